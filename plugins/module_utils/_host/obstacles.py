# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of a host's own setup that break a node or its pods, and would show only then."""

from __future__ import annotations

import glob
import os
import re
import typing as t

from .._common.command import output_of
from .._model.observation import Obstacles
from .files import read_text
from .processes import host_processes
from .sysfs import driver_name

CONTAINERD = "/var/lib/containerd"
KUBELET = "/var/lib/kubelet"
VMXNET3 = "vmxnet3"
SECONDS = 5.0  # for a program to answer
NEIGHBOURS = 32768  # entries: the role kubernetes raises the kernel's limit to this at least
MODPROBE = ("etc/modprobe.d", "run/modprobe.d", "usr/local/lib/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d")
NETWORK_MANAGER = ("etc/NetworkManager", "run/NetworkManager", "usr/lib/NetworkManager")
# Modules that may be blocked, and that pods with RDMA over macvlan need.
RDMA = ("ib_umad", "ib_uverbs", "macvlan", "mlx5_ib", "rdma_ucm")
TO_NOTHING = re.compile(r"^\s*install\s+(\S+)\s+(?:\S*/)?(?:true|false|nologin)\b", re.MULTILINE)
UNMANAGED = re.compile(r"^\s*unmanaged-devices\s*[+]?=.*(?:cali|flannel|type:veth)", re.MULTILINE)
ADDRESS = r"[0-9a-fA-F.:]+/[0-9]+"
# ufw also keeps each rule in a comment: action, protocol, port and address of the destination, then the source.
UFW_RULE = re.compile(rf"^### tuple ### allow any any \S+ any ({ADDRESS}) in\b", re.MULTILINE)
TRUSTED_SOURCE = re.compile(rf"<source\s+address=[\"']({ADDRESS})[\"']")


def filesystem_of(path: str, mounts: str) -> str:
    """The type of the file system at a path, from /proc/mounts; of several mounts at one place the last counts."""
    found, longest = "", -1
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        if f"{path}/".startswith(point.rstrip("/") + "/") and len(point) >= longest:
            found, longest = fields[2], len(point)
    return found


def kubelet_directory(root: str, arguments: t.Sequence[str]) -> str:
    """The kubelet's data directory; empty if it does not run. A link or a mount at the default path will do."""
    words = iter(arguments)
    given = ""
    for word in words:
        flag, _sign, value = word.partition("=")
        if flag in ("--root-dir", "-root-dir"):
            given = value or next(words, "")
    if not given:
        return KUBELET if arguments else ""

    ours, theirs = (os.path.join(root, path.lstrip("/")) for path in (KUBELET, given))
    same = os.path.exists(ours) and os.path.exists(theirs) and os.path.samefile(ours, theirs)
    return KUBELET if same or given.rstrip("/") == KUBELET else given.rstrip("/")


def unloadable_modules(root: str, names: t.Iterable[str]) -> t.Dict[str, str]:
    """The modules that modprobe or the kernel is configured not to load, with the file that says so."""
    wanted = set(names)
    found: t.Dict[str, str] = {}
    for folder in MODPROBE:
        for path in sorted(glob.glob(os.path.join(root, folder, "*.conf"))):
            for name in TO_NOTHING.findall(read_text(path)):
                name = name.replace("-", "_")
                if name in wanted:
                    found.setdefault(name, f"/{folder}/{os.path.basename(path)}")
    for name in re.findall(r"\bmodule_blacklist=(\S+)", read_text(os.path.join(root, "proc/cmdline"))):
        found.update(dict.fromkeys(wanted & set(name.split(",")), "module_blacklist of the kernel's command line"))
    return found


def _managed_interfaces(root: str) -> bool:
    """Whether NetworkManager manages the interfaces of pods, because nothing tells it not to."""
    texts = [
        read_text(path)
        for folder in NETWORK_MANAGER
        for path in [
            os.path.join(root, folder, "NetworkManager.conf"),
            *glob.glob(os.path.join(root, folder, "conf.d/*.conf")),
        ]
    ]
    return not any(UNMANAGED.search(text) for text in texts)


def _firewall(root: str, running: t.Container[str]) -> t.Tuple[str, t.List[str]]:
    """The active firewall, and the sources from which it accepts everything."""
    if "firewalld" in running:
        return "firewalld", TRUSTED_SOURCE.findall(read_text(os.path.join(root, "etc/firewalld/zones/trusted.xml")))
    if re.search(r"^\s*ENABLED=[\"']?yes", read_text(os.path.join(root, "etc/ufw/ufw.conf")), re.MULTILINE):
        rules = [read_text(os.path.join(root, "etc/ufw", name)) for name in ("user.rules", "user6.rules")]
        return "ufw", UFW_RULE.findall("\n".join(rules))
    return "", []


def tunnel_offloads(root: str) -> t.List[str]:
    """VMware NICs that segment VXLAN packets in hardware. Without ethtool all count: drivers enable it by default."""
    found = []
    for path in sorted(glob.glob(os.path.join(root, "sys/class/net/*"))):
        name = os.path.basename(path)
        if driver_name(os.path.join(path, "device")) == VMXNET3:
            features = output_of("ethtool", "-k", name, timeout=SECONDS)
            if not re.search(r"^\s*tx-udp_tnl-segmentation: off", features, re.MULTILINE):
                found.append(name)
    return found


def read_obstacles(root: str, modules: t.Iterable[str]) -> Obstacles:
    """All obstacles; `modules` are those that the cluster needs."""
    running = host_processes(root, ("kubelet", "NetworkManager", "firewalld"))
    name, sources = _firewall(root, running)
    limit = read_text(os.path.join(root, "proc/sys/net/ipv4/neigh/default/gc_thresh3")).strip()
    return {
        "filesystem": filesystem_of(CONTAINERD, read_text(os.path.join(root, "proc/mounts"))),
        "kubelet_directory": kubelet_directory(root, running.get("kubelet", [])),
        "unloadable": unloadable_modules(root, [*modules, *RDMA]),
        "network_manager": "NetworkManager" in running and _managed_interfaces(root),
        "firewall": name,
        "firewall_sources": sources,
        "controllers": read_text(os.path.join(root, "sys/fs/cgroup/cgroup.controllers")).split(),
        "tunnel_offloads": tunnel_offloads(root),
        "neighbours": int(limit) if limit.isdecimal() else 0,
    }
