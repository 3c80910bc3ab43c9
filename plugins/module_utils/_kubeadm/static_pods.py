# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The static pods of a control plane: their processes, and whether these are older than their certificates.

The kubelet starts a container again when its process ends. That takes neither the API nor a program such as crictl,
which hosts may lack, and no manifest is ever moved away.
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

# With the certificates that each reads when it starts, in the order in which they are restarted.
STATIC_PODS = {
    "etcd": ("etcd-server", "etcd-peer"),
    "kube-apiserver": ("apiserver", "apiserver-kubelet-client", "apiserver-etcd-client", "front-proxy-client"),
    "kube-controller-manager": ("controller-manager.conf",),
    "kube-scheduler": ("scheduler.conf",),
}
NAME_LENGTH = 15  # of a process, in the kernel
MARGIN = 5  # seconds: the kernel says when it was started to a second, and files have their own clock


class Process(t.NamedTuple):
    """A process, and when it was started, in seconds since 1970."""

    pid: int
    started: float


def static_pods() -> t.List[str]:
    """Those that have a manifest on this host."""
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
    """Of a static pod. They share the host's network, which no cluster inside of a pod does."""
    found, booted, own = [], _booted(), _network("self")
    folder = os.path.join(paths.ROOT, "proc")
    for pid in filter(str.isdigit, os.listdir(folder)):
        # Number, name in brackets, state and so on: the name may have anything in it.
        before, _bracket, after = read_text(os.path.join(folder, pid, "stat")).rpartition(")")
        fields = after.split()
        if before.partition("(")[2] == name[:NAME_LENGTH] and len(fields) > 19 and _network(pid) == own:
            zombie = fields[0] == "Z"
            ticks = int(fields[19])
            if not zombie:
                found.append(Process(int(pid), booted + ticks / os.sysconf("SC_CLK_TCK")))
    return found


def renewed_at(name: str) -> float:
    """When the newest of a static pod's certificates was written; 0 without any.

    A file of the future was written while the clock was wrong: it says nothing, or each run would restart the pod.
    """
    files = [os.path.join(paths.ROOT, LEAVES[leaf]) for leaf in STATIC_PODS[name]]
    written = [os.path.getmtime(file) for file in files if os.path.exists(file)]
    return max((moment for moment in written if moment <= time.time()), default=0.0)


def stale_pods() -> t.List[str]:
    """Static pods that run since before their certificates were written: they have the old ones in memory."""
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
    """The URL of this host's own API server, as its manifest has it: the endpoint may lead to another one."""
    manifest = read_text(os.path.join(paths.ROOT, paths.MANIFESTS.lstrip("/"), "kube-apiserver.yaml"))
    address = re.search(r"--advertise-address=([^\s\"']+)", manifest)
    port = re.search(r"--secure-port=(\d+)", manifest)
    host = address.group(1) if address else "localhost"
    return f"https://{join_endpoint(host, int(port.group(1)) if port else 6443)}"
