# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Test pods that show that pods can start: each gets its addresses, runs nothing, and is removed again."""

from __future__ import annotations

import contextlib
import typing as t

from .._common.manager import is_ours
from .._common.result import FabricError
from .._model.stacks import NETWORKS
from .client import Cluster, wait_until
from .multus import network_status
from .nodes import why_not_ready
from .pod_problems import Problem
from .query import Object, query, quoted
from .readiness import network_problems

LABEL = "fabric.ipu/start"
# The kubelet sets up a pod's network before it looks for the image, and this image is neither present nor pulled.
IMAGE = "localhost/ipu-fabric/no-image:none"
REMOVAL = 60  # seconds until a pod's addresses are released
SPARE = 60  # seconds after the wait until the kubelet itself ends a pod that a killed run left
OS = f"metadata.labels.{quoted('kubernetes.io/os')}"


class StartPod(t.TypedDict):
    """A pod that must start, as in the module's option."""

    name: str  # network that it requests; empty: only the cluster's own
    namespace: str
    hosts: t.List[str]  # nodes that have the network


def choose_node(nodes: t.Sequence[Object], hosts: t.Sequence[str]) -> str:
    """A Ready node to start on, without taints if there is one; empty if none is Ready.

    If the inventory's host names differ from the cluster's node names, any node will do.
    """
    named = [node for node in nodes if node["metadata"]["name"] in hosts]
    able = [node for node in named or nodes if not why_not_ready(node) and query(OS, node) in (None, "linux")]
    return min(((bool(query("spec.taints", node)), node["metadata"]["name"]) for node in able), default=(False, ""))[1]


def reference(wanted: StartPod) -> Object:
    name = "-".join(filter(None, ("ipu-fabric-start", wanted["name"])))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": wanted["namespace"]}}


def manifest(wanted: StartPod, node: str, lifetime: int) -> Object:
    """A pod that the Pod Security level `restricted` allows."""
    pod = reference(wanted)
    networks = {NETWORKS: f"{wanted['namespace']}/{wanted['name']}"} if wanted["name"] else {}
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    only = {"name": "none", "image": IMAGE, "imagePullPolicy": "Never", "securityContext": context}
    return {
        **pod,
        "metadata": {**pod["metadata"], "labels": {LABEL: "pod"}, "annotations": networks},
        "spec": {
            "nodeName": node,  # works on a cordoned node too
            "containers": [only],
            "activeDeadlineSeconds": lifetime,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        },
    }


class PodWatch:
    """Pods that must start. Its context first removes leftovers of a killed run, and finally its own pods."""

    what = "pods to start"
    next_step = "Read the events of the namespace, and the logs of the kubelet and of multus on that node."

    def __init__(self, cluster: Cluster, pods: t.Sequence[StartPod], timeout: int) -> None:
        self.cluster, self.wanted, self.lifetime = cluster, pods, timeout + SPARE

    def __enter__(self) -> None:
        self.remove()

    def __exit__(self, kind: t.Optional[t.Type[BaseException]], *_more: object) -> None:
        # Why a pod did not start matters more than that it can't be removed.
        with contextlib.suppress(*[FabricError] if kind else []):
            self.remove()

    def left(self) -> t.List[str]:
        """The paths of our existing pods."""
        paths = sorted({f"/api/v1/namespaces/{wanted['namespace']}/pods" for wanted in self.wanted})
        found = [(path, pod) for path in paths for pod in self.cluster.items(path, labelSelector=LABEL)]
        return [f"{path}/{pod['metadata']['name']}" for path, pod in found if is_ours(pod)]

    def remove(self) -> None:
        for path in self.left():
            self.cluster.delete(path)
        step = "If its node is down for good, run kubectl delete pod --force; otherwise read the log of its kubelet."
        wait_until(self.left, REMOVAL, "A test pod is not deleted.", step, 0.5)

    def problems(self) -> t.List[Problem]:
        """Why pods have not started yet. Missing pods are created."""
        return [problem for wanted in self.wanted for problem in self.start_problems(wanted)]

    def create(self, wanted: StartPod) -> Problem:
        name = reference(wanted)["metadata"]["name"]
        node = choose_node(self.cluster.items("/api/v1/nodes"), wanted["hosts"])
        if not node:
            return Problem(f"pod {name}: none of its nodes is Ready: {', '.join(wanted['hosts']) or 'any'}")
        try:
            self.cluster.apply(manifest(wanted, node, self.lifetime))
        except FabricError as error:
            # Passes in a new namespace: its service account appears a moment later.
            return Problem(f"pod {name}: {error.seen}", True)
        return Problem(f"pod {name} on {node} has just been created")

    def start_problems(self, wanted: StartPod) -> t.List[Problem]:
        pod = self.cluster.read(reference(wanted))
        if pod is None:
            return [self.create(wanted)]
        name, status = pod["metadata"]["name"], pod.get("status") or {}
        where = f"pod {name} on {query('spec.nodeName', pod)}"
        if not is_ours(pod):
            return [Problem(f"pod {name} is somebody else's", True)]
        if status.get("phase") == "Failed":
            return [Problem(f"{where}: {status.get('reason')}: {status.get('message')}", True)]
        if not status.get("podIP"):
            unset = Problem(f"{where} has no address yet")
            return network_problems(self.cluster, wanted["namespace"], [pod]) or [unset]
        if wanted["name"] and f"{wanted['namespace']}/{wanted['name']}" not in query("[].name", network_status(pod)):
            return [Problem(f"{where}: multus did not attach {wanted['name']}")]
        return []
