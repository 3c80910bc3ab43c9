# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restarts of the services that run a host's containers, and the pods that must become ready again afterwards.

Containers keep running meanwhile. With k3s and RKE2, a server's API server stops with its service, so those services
are restarted on one server after another, and only on request.
"""

from __future__ import annotations

import functools
import json
import os
import time
import typing as t

from .._common.command import run_program
from .._common.result import FabricError
from .distributions import DISTRIBUTIONS, EMBEDDING_UNITS, find_distribution
from .kubectl import run_kubectl
from .kubelets import kubelet_kubectl, node_name
from .systemd import Unit, run_runtime, systemctl

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

JOURNAL_SECONDS = 30
READYZ_SECONDS = 30


class Condition(t.TypedDict):
    """A condition of a pod."""

    type: str
    status: str


class Metadata(t.TypedDict):
    """The identity of a pod."""

    namespace: str
    name: str


class Pod(t.TypedDict, total=False):
    """The parts of a pod that are read here."""

    metadata: Metadata
    status: t.Dict[str, t.List[Condition]]  # of which `conditions` is read


class PodList(t.TypedDict):
    """The API's list of pods."""

    items: t.List[Pod]


class NodePods(t.NamedTuple):
    """Pods of this node, by namespace and name."""

    all: t.Set[str]
    ready: t.Set[str]


def pod_name(pod: Pod) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def ready_pods(answer: PodList) -> t.Set[str]:
    """Pods that are ready, by namespace and name."""

    def is_ready(pod: Pod) -> bool:
        conditions = pod.get("status", {}).get("conditions", [])
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    return {pod_name(pod) for pod in answer["items"] if is_ready(pod)}


def node_pods(module: AnsibleModule) -> t.Optional[NodePods]:
    """The pods of this node; None if there is no kubelet, or no answer."""
    kubelet = kubelet_kubectl()
    if not kubelet:
        return None
    config, program = kubelet
    of_node = ("--field-selector", f"spec.nodeName={node_name(module.params['node_name'])}")
    done = run_kubectl(config, "get", "pods", "-A", "-o", "json", *of_node, program=program, request_timeout="10s")
    if done.rc != 0:
        return None
    answer: PodList = json.loads(done.out)
    return NodePods({pod_name(pod) for pod in answer["items"]}, ready_pods(answer))


def wait_for_pods(module: AnsibleModule, expected: t.Set[str]) -> None:
    """Wait until the pods that were ready are ready again. Pods that were deleted meanwhile don't count."""
    give_up = time.monotonic() + module.params["timeout"]
    missing: t.Set[str] = expected
    while missing:
        pods = node_pods(module)
        if pods is not None:
            missing = (expected & pods.all) - pods.ready
        if not missing:
            return
        if time.monotonic() > give_up:
            raise FabricError(
                "Pods did not become ready again after the container runtime was restarted.",
                os.uname().nodename,
                "not ready: " + ", ".join(sorted(missing)),
                "See why with kubectl describe pod.",
                code="timeout",
            )
        time.sleep(2)


def carries_api(unit: str) -> bool:
    """Whether a service contains an API server."""
    return any(unit in each.server_units for each in DISTRIBUTIONS.values())


def restart_service(unit: str, seconds: int) -> None:
    """Restart a service of k3s or RKE2, whose unit waits indefinitely for servers that do not answer."""
    service = f"{unit}.service"
    done = run_program(["systemctl", "restart", service], seconds)
    if done.rc == 0:
        return
    journal = run_program(["journalctl", "-u", service, "-n", "15", "--no-pager", "-o", "cat"], JOURNAL_SECONDS).out
    raise FabricError(
        f"{unit} did not start again."
        if done.rc is not None
        else f"{unit} was not ready {seconds} s after its restart.",
        f"{service} on {os.uname().nodename}",
        "\n".join(filter(None, [done.err.strip(), journal.strip()])) or f"rc {done.rc}",
        "Fix what its journal reports. Then run again: what has not been restarted yet is restarted then.",
        code="timeout" if done.rc is None else "not-ready",
    )


def wait_for_api(module: AnsibleModule) -> None:
    """Wait until the API server of this host is ready: the next server is restarted only then."""
    found = find_distribution()
    if not found or not found.admin:
        return
    give_up = time.monotonic() + module.params["timeout"]
    argv = ["get", "--raw", "/readyz"]
    while True:
        done = run_kubectl(found.admin, *argv, program=found.kubectl, request_timeout="10s", timeout=READYZ_SECONDS)
        if done.rc == 0:
            return
        if time.monotonic() > give_up:
            raise FabricError(
                "The API server was not ready again after the restart of its service.",
                os.uname().nodename,
                done.err.strip() or f"rc {done.rc}",
                f"See journalctl -u {found.units[0]} on this host. No other server was restarted after it.",
                code="timeout",
            )
        time.sleep(2)


def restart_runtimes(module: AnsibleModule, units: t.Dict[str, Unit], names: t.Sequence[str]) -> None:
    """Restart runtimes, and wait for the pods that were ready."""
    pods = node_pods(module)
    if any(units[name].get("NeedDaemonReload") == "yes" for name in names):
        systemctl(module, "daemon-reload")
    for name in names:
        if name in EMBEDDING_UNITS:
            restart = functools.partial(restart_service, name, module.params["timeout"])
        else:
            restart = functools.partial(systemctl, module, "restart", name)
        run_runtime(module, name, restart, restart, needed=False)
        if carries_api(name):
            wait_for_api(module)
    if pods:
        wait_for_pods(module, pods.ready)
