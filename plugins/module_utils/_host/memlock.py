# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The locked-memory limit of container runtimes, which their containers inherit."""

from __future__ import annotations

import json
import os
import time
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome
from ansible_collections.ipu.fabric.plugins.module_utils._host.systemd import (
    Unit,
    file_diffs,
    read_file,
    show,
    stale_units,
    systemctl,
    write_file,
)

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

DAEMON = "/etc/docker/daemon.json"
SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "E": 1 << 60}
# How the kubelet of each kind of cluster talks to its API server: kubeconfig, kubectl.
KUBELETS = (
    ("/etc/kubernetes/kubelet.conf", ["kubectl"]),
    ("/var/lib/rancher/k3s/agent/kubelet.kubeconfig", ["k3s", "kubectl"]),
    ("/var/lib/rancher/rke2/agent/kubelet.kubeconfig", ["/var/lib/rancher/rke2/bin/kubectl"]),
)

Json = t.Dict[str, t.Any]


def limit_bytes(limit: str) -> t.Optional[int]:
    """A limit as systemd writes it in bytes; None is no limit."""
    if limit == "infinity":
        return None
    number, factor = (limit[:-1], SUFFIXES[limit[-1]]) if limit[-1:] in SUFFIXES else (limit, 1)
    if not number.isdigit():
        raise FabricError(
            "The limit is not one.", "memlock_limit", limit, "Set infinity, or bytes such as 67108864 or 64M."
        )
    return int(number) * factor


def shown_limit(limit: t.Optional[int]) -> str:
    """How systemctl show prints it."""
    return "infinity" if limit is None else str(limit)


def drop_in_path(unit: str) -> str:
    # Behind the 10- of others, so that this value counts.
    return f"/etc/systemd/system/{unit}.service.d/50-memlock.conf"


def drop_in_text(limit: str) -> str:
    return f"[Service]\nLimitMEMLOCK={limit}\n"


def merge_daemon(text: str, limit: t.Optional[int]) -> str:
    """Docker's daemon.json with the default limit, everything else kept; unchanged text when it says so already."""
    try:
        settings = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise FabricError(
            "Docker's configuration is not valid JSON.",
            DAEMON,
            str(error),
            "Correct the file (often a comma too many), then run again.",
        ) from error
    if not isinstance(settings, dict):
        raise FabricError(
            "Docker's configuration is not a JSON object.", DAEMON, text[:60], "Correct the file, then run again."
        )
    value = -1 if limit is None else limit
    wanted = {"Name": "memlock", "Hard": value, "Soft": value}
    ulimits = settings.get("default-ulimits") or {}
    if ulimits.get("memlock") == wanted:
        return text
    return json.dumps({**settings, "default-ulimits": {**ulimits, "memlock": wanted}}, indent=2) + "\n"


def wanted_files(units: t.Dict[str, Unit], limit: str) -> t.Tuple[t.Dict[str, t.Any], t.Dict[str, t.List[str]]]:
    """Files to write, and which of them each unit reads. A unit that has the limit from elsewhere needs no drop-in."""
    size = limit_bytes(limit)
    files: t.Dict[str, t.Any] = {}
    readers: t.Dict[str, t.List[str]] = {}
    for name, unit in units.items():
        path = drop_in_path(name)
        if unit.get("LimitMEMLOCK") != shown_limit(size):
            files[path] = {"content": drop_in_text(limit), "mode": "0644"}
            readers[name] = [path]
    if "docker" in units:
        current = read_file(DAEMON) or {"content": "", "mode": "0644"}
        files[DAEMON] = {**current, "content": merge_daemon(current["content"], size)}
        readers.setdefault("docker", []).append(DAEMON)
    return files, readers


def ready_pods(answer: Json) -> t.Set[str]:
    """Pods that are ready, by namespace and name, from a PodList."""

    def ready(pod: Json) -> bool:
        conditions = pod.get("status", {}).get("conditions", [])
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    return {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in answer["items"] if ready(pod)}


def pods_here(module: AnsibleModule) -> t.Optional[t.Tuple[t.Set[str], t.Set[str]]]:
    """All pods of this node, and those that are ready; None when there is no kubelet, or no answer."""
    for config, kubectl in KUBELETS:
        path = module.get_bin_path(kubectl[0])
        if not path or not os.path.exists(config):
            continue
        name = os.uname().nodename.lower()
        argv = [
            path,
            *kubectl[1:],
            "--kubeconfig",
            config,
            "--request-timeout",
            "10s",
            "get",
            "pods",
            "-A",
            "-o",
            "json",
        ]
        code, out, _err = module.run_command(
            [*argv, "--field-selector", f"spec.nodeName={module.params['node_name'] or name}"]
        )
        if code == 0:
            answer = json.loads(out)
            return {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in answer["items"]}, ready_pods(
                answer
            )
        return None
    return None


def wait_for_pods(module: AnsibleModule, expected: t.Set[str]) -> None:
    """Wait until the pods that were ready are so again. Those that are gone meanwhile don't count."""
    give_up = time.monotonic() + module.params["timeout"]
    lacking: t.Set[str] = expected
    while lacking:
        seen = pods_here(module)
        if seen is not None:
            lacking = (expected & seen[0]) - seen[1]
        if not lacking:
            return
        if time.monotonic() > give_up:
            raise FabricError(
                "Pods did not come back after the container runtime was restarted.",
                os.uname().nodename,
                "not ready: " + ", ".join(sorted(lacking)),
                "Look at them with kubectl describe pod. The hosts that come after this one were not touched.",
            )
        time.sleep(2)


def take_over(module: AnsibleModule, units: t.Dict[str, Unit], names: t.Sequence[str]) -> None:
    """Restart runtimes, and see their pods come back."""
    pods = pods_here(module)
    if any(units[name].get("NeedDaemonReload") == "yes" for name in names):
        systemctl(module, "daemon-reload")
    systemctl(module, "restart", *names)
    if pods:
        wait_for_pods(module, pods[1])


def run(module: AnsibleModule) -> Json:
    """The body of M(ipu.fabric.memlock)."""
    params = module.params
    limit_bytes(params["limit"])
    units = {name: unit for name, unit in show(module, params["units"]).items() if unit["LoadState"] == "loaded"}
    files_after, readers = wanted_files(units, params["limit"])
    files_before = {path: read_file(path) for path in files_after}
    changed = {path: file for path, file in files_after.items() if file != files_before[path]}
    if changed and not module.check_mode:
        for path, file in changed.items():
            write_file(module, path, file["content"], file["mode"], backup=path == DAEMON)
        systemctl(module, "daemon-reload")
        units = show(module, sorted(units))

    old = stale_units(units, readers)
    running = [name for name, unit in units.items() if unit["ActiveState"] == "active"]
    stale = [name for name in running if old[name] or any(path in changed for path in readers.get(name, []))]
    restart = stale if params["restart"] else []
    if restart and not module.check_mode:
        take_over(module, units, restart)
    left = [] if restart else stale
    result = outcome(
        {"files": files_before, "stale": stale}, {"files": files_after, "stale": left}, stale=stale, units=sorted(units)
    )
    return {
        **result,
        "diff": [*file_diffs(files_before, files_after), {"before": {"stale": stale}, "after": {"stale": left}}],
    }
