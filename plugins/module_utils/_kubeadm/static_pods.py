# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The static pods of a control plane: their processes, and whether these predate their certificates.

When a container's process ends, the kubelet restarts it. So this needs neither the API nor a program such as crictl,
which hosts may lack, and never moves a manifest.
"""

from __future__ import annotations

import os
import re
import signal
import time
import typing as t

from .._common.text import join_endpoint
from .._host.certificates import LEAVES
from .._host.files import read_text
from . import paths

# With the certificates that each reads at its start, in the order of restarts.
STATIC_PODS = {
    "etcd": ("etcd-server", "etcd-peer"),
    "kube-apiserver": ("apiserver", "apiserver-kubelet-client", "apiserver-etcd-client", "front-proxy-client"),
    "kube-controller-manager": ("controller-manager.conf",),
    "kube-scheduler": ("scheduler.conf",),
}
NAME_LENGTH = 15  # maximum length of a process name in the kernel
MARGIN = 5  # seconds: the kernel gives start times in whole seconds, and file times come from another clock


class Process(t.NamedTuple):
    """A process and its start time, in seconds since 1970."""

    pid: int
    started: float


def static_pods() -> t.List[str]:
    """The static pods that have a manifest on this host."""
    folder = os.path.join(paths.ROOT, paths.MANIFESTS.lstrip("/"))
    return [name for name in STATIC_PODS if os.path.exists(os.path.join(folder, f"{name}.yaml"))]


def _booted() -> int:
    found = re.search(r"^btime (\d+)$", read_text(os.path.join(paths.ROOT, "proc/stat")), re.MULTILINE)
    return int(found.group(1)) if found else 0


def _network(pid: str) -> str:
    try:
        return os.readlink(os.path.join(paths.ROOT, "proc", pid, "ns/net"))
    except OSError:  # it has ended
        return ""


def processes(name: str) -> t.List[Process]:
    """Processes of a static pod. They share the host's network, unlike those of a cluster inside a pod."""
    found, booted, own = [], _booted(), _network("self")
    folder = os.path.join(paths.ROOT, "proc")
    for pid in filter(str.isdigit, os.listdir(folder)):
        # Number, name in parentheses, state and so on: the name may contain anything.
        before, _bracket, after = read_text(os.path.join(folder, pid, "stat")).rpartition(")")
        fields = after.split()
        if before.partition("(")[2] == name[:NAME_LENGTH] and len(fields) > 19 and _network(pid) == own:
            zombie = fields[0] == "Z"
            ticks = int(fields[19])
            if not zombie:
                found.append(Process(int(pid), booted + ticks / os.sysconf("SC_CLK_TCK")))
    return found


def renewed_at(name: str) -> float:
    """The time of the newest of a static pod's certificates; 0 without any.

    A time in the future comes from a wrong clock, and is ignored: it would restart the pod in each run.
    """
    files = [os.path.join(paths.ROOT, LEAVES[leaf]) for leaf in STATIC_PODS[name]]
    written = [os.path.getmtime(file) for file in files if os.path.exists(file)]
    return max((moment for moment in written if moment <= time.time()), default=0.0)


def stale_pods() -> t.List[str]:
    """Static pods that started before their certificates were written, and so have the old ones in memory."""
    return [
        name
        for name in static_pods()
        if any(process.started + MARGIN < renewed_at(name) for process in processes(name))
    ]


def end_process(process: Process) -> None:
    try:
        os.kill(process.pid, signal.SIGTERM)
    except ProcessLookupError:  # it has ended by itself
        return


def local_api() -> str:
    """The URL of this host's own API server, from its manifest: the cluster's endpoint may lead to another one."""
    manifest = read_text(os.path.join(paths.ROOT, paths.MANIFESTS.lstrip("/"), "kube-apiserver.yaml"))
    address = re.search(r"--advertise-address=([^\s\"']+)", manifest)
    port = re.search(r"--secure-port=(\d+)", manifest)
    host = address.group(1) if address else "localhost"
    return f"https://{join_endpoint(host, int(port.group(1)) if port else 6443)}"
