# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with hosts, judged over all of them: pure, from what host_info and rdma_info returned."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings

Host = t.Dict[str, t.Any]
Hosts = t.Mapping[str, Host]

SUPPORTED = {"debian": ("12", "13"), "ubuntu": ("22.04", "24.04")}
MEMORY_MB = {"control_plane": 1700, "worker": 1024}
DISK_MB = 10 * 1024
CLOCK_SECONDS = 30
CONTROL_PLANE_PORTS = (2379, 2380, 6443, 10257, 10259)
NODE_PORTS = (10250, 10256)
# As far as the kernel keeps a process name. What a broken earlier run left is for kubeadm to mend, not for a person.
KUBERNETES_PROCESSES = (
    "kubelet",
    "etcd",
    "kube-apiserver",
    "kube-controller",
    "kube-scheduler",
    "kube-proxy",
)

# They make uverbs*, umad* and rdma_cm in /dev/infiniband.
RDMA_MODULES = ("ib_uverbs", "ib_umad", "rdma_ucm")


class Expected(t.NamedTuple):
    """What the cluster to be asks of its hosts."""

    kubernetes: t.Tuple[int, ...]  # major, minor; empty if it can't be read
    endpoint: str
    managed: bool  # the role kubernetes builds the cluster; if not, somebody else does, and keeps its hosts


def judge(hosts: Hosts, expected: Expected, found: Findings) -> None:
    """Every check of single hosts and between hosts. Hosts that could not be looked at are a finding of their own."""
    seen = {name: host for name, host in hosts.items() if host.get("host") and not host.get("recalled")}
    for name, host in hosts.items():
        _unobserved(name, host, found)
    for name, host in seen.items():
        for check in _ALWAYS:
            check(name, host, found)
        if expected.managed:
            for check in _MANAGED:
                check(name, host, found)
            _cgroup(name, host, expected, found)
    for unique, key, what in _UNIQUE:
        _unique(seen, unique, key, what, found)
    if expected.managed:
        _existing_cluster(seen, expected, found)


def _unobserved(name: str, host: Host, found: Findings) -> None:
    errors = [error for error in host.get("errors", ()) if error["source"] != "vipu"]
    if host.get("recalled"):
        known = f"; planned as it was seen at {host['recalled']}"
    else:
        known = "" if host.get("host") else "; its addresses are not known, so pods may get them"
    for error in errors if not known else errors[:1]:  # one says it all of a host that is down
        seen = f"{error['seen']} (at {error['where']}){known}"
        found.error("unobserved", [name], error["what"], seen, error["next_step"])
    if (not host.get("host") or host.get("recalled")) and not errors:
        found.error(
            "unobserved",
            [name],
            "The host could not be looked at.",
            f"it left the play before it answered: its own message is above{known}",
            "Make it reachable by SSH with Python 3 and privileges, or take it out of the inventory.",
        )


def _distribution(name: str, host: Host, found: Findings) -> None:
    system = host["host"]
    if system["version"] not in SUPPORTED.get(system["distribution"], ()):
        found.error(
            "distribution",
            [name],
            "This distribution is not supported.",
            f"{system['distribution'] or 'unknown'} {system['version']}".strip(),
            "Install Debian 12 or 13, or Ubuntu 22.04 or 24.04.",
        )


def _architecture(name: str, host: Host, found: Findings) -> None:
    if host["host"]["architecture"] not in ("x86_64", "amd64"):
        found.error(
            "architecture",
            [name],
            "IPU and RDMA images are built for x86_64.",
            f"the host is {host['host']['architecture']}",
            "Use an x86_64 host.",
        )


def _python(name: str, host: Host, found: Findings) -> None:
    version = host["host"]["python"]
    if tuple(int(part) for part in version.split(".")[:2]) < (3, 8):
        found.error(
            "python-version",
            [name],
            "The modules need Python 3.8 or later.",
            f"Python {version}",
            "Point ansible_python_interpreter at a newer one.",
        )


def _systemd(name: str, host: Host, found: Findings) -> None:
    if not host["host"]["systemd"]:
        found.error(
            "systemd",
            [name],
            "Services are managed by systemd.",
            "systemd does not run this host",
            "Boot the host with systemd.",
        )


def _cpus(name: str, host: Host, found: Findings) -> None:
    if "control_plane" in host["roles"] and 0 < host["host"]["cpus"] < 2:
        found.error(
            "cpus", [name], "A control plane needs two processors.", f"{host['host']['cpus']} there", "Add a processor."
        )


def _memory(name: str, host: Host, found: Findings) -> None:
    least = MEMORY_MB["control_plane" if "control_plane" in host["roles"] else "worker"]
    memory = host["host"]["memory_mb"]
    if memory < least:
        found.error(
            "memory", [name], f"A host of this role needs {least} MiB of memory.", f"it has {memory}", "Add memory."
        )


def _disk(name: str, host: Host, found: Findings) -> None:
    if _member(host):  # has its images already
        return
    for path, free in host["host"]["disk_mb"].items():
        if free < DISK_MB:
            found.error(
                "disk",
                [name],
                f"{path} needs {DISK_MB // 1024} GiB of free space for images and data.",
                f"{free / 1024:.1f} GiB are free",
                f"Free space, or mount a larger disk at {path}.",
            )


def _swap(name: str, host: Host, found: Findings) -> None:
    if host["host"]["swap"]:
        found.warning(
            "swap",
            [name],
            "Swap is on; the role kubernetes turns it off, now and for later boots.",
            ", ".join(host["host"]["swap"]),
            "Nothing, unless something else on this host needs swap.",
        )


def _member(host: Host) -> bool:
    return bool(host["host"]["kubelet"]["server"])


def _ports(name: str, host: Host, found: Findings) -> None:
    wanted = NODE_PORTS + (CONTROL_PLANE_PORTS if "control_plane" in host["roles"] else ())
    for busy in host["host"]["ports_busy"]:
        if busy["port"] in wanted and busy["process"] not in KUBERNETES_PROCESSES:
            found.error(
                "ports",
                [name],
                f"Port {busy['port']} must be free for Kubernetes.",
                f"{busy['process'] or 'a process'} listens on it",
                "Stop that service, or move it to another port.",
            )


def _modules(name: str, host: Host, found: Findings) -> None:
    modules = host["host"]["modules"]
    missing = sorted(module for module, there in modules.items() if there is False)
    unknown = sorted(module for module, there in modules.items() if there is None)
    if missing:
        found.error(
            "kernel-modules",
            [name],
            "Pod networks need kernel modules.",
            f"kernel {host['host']['kernel']} has no {', '.join(missing)}",
            "Install the full kernel package (linux-image-amd64, or linux-modules-extra on Ubuntu).",
        )
    if unknown:
        found.warning(
            "kernel-modules",
            [name],
            "Whether the kernel has a module can't be told.",
            f"{', '.join(unknown)}: not loaded, and no /lib/modules of kernel {host['host']['kernel']}",
            "Nothing if it is built in; verify shows it.",
        )


def _time(name: str, host: Host, found: Findings) -> None:
    clock = host["host"]["time"]
    if abs(clock["offset"]) > CLOCK_SECONDS:
        found.error(
            "time",
            [name],
            "Clocks must agree: certificates are not valid before their time.",
            f"{abs(clock['offset'])} s {'ahead of' if clock['offset'] > 0 else 'behind'} the controller",
            "Set the clock, by chrony or systemd-timesyncd.",
        )
    elif clock["synchronized"] is False:
        found.warning(
            "time",
            [name],
            "The clock is not kept by NTP.",
            "timedatectl says NTPSynchronized=no",
            "Set up chrony or systemd-timesyncd.",
        )


def _dns(name: str, host: Host, found: Findings) -> None:
    missing = sorted(asked for asked, resolved in host["host"]["dns"].items() if not resolved)
    if missing:
        found.error(
            "dns",
            [name],
            "Names that the cluster needs must resolve on every host.",
            f"no answer for {', '.join(missing)}",
            "Add them to DNS or to /etc/hosts, or correct /etc/resolv.conf.",
        )


def _netns(name: str, host: Host, found: Findings) -> None:
    if host.get("rdma", {}).get("netns_mode") == "exclusive":
        found.error(
            "netns-mode",
            [name],
            "RDMA devices must be shared between network namespaces: the shared device plugin crashes otherwise.",
            "`rdma system` says exclusive",
            "Run once with netns-mode in fabric_allow and rdma_host_reboot set: rdma_host then mends it for good.",
        )


def _rdma_modules(name: str, host: Host, found: Findings) -> None:
    """Without its device files a NIC is none for the device plugin: the node has 0 of the resource, and no message."""
    rdma = host.get("rdma") or {}
    loaded = rdma.get("modules")
    missing = [module for module in RDMA_MODULES if module not in (loaded or ())]
    if loaded is not None and missing and any(link["device"] for link in rdma["links"]):
        found.warning(
            "rdma-modules",
            [name],
            "The RDMA device plugin needs the device files of all these modules: the resource counts 0 without them.",
            f"not loaded: {', '.join(missing)}",
            f"Load them, and name them in /etc/modules-load.d/rdma.conf: modprobe -a {' '.join(missing)}",
        )


def _cgroup(name: str, host: Host, expected: Expected, found: Findings) -> None:
    if host["host"]["cgroup"] == "v2":
        return
    seen = f"the host has cgroup {host['host']['cgroup']}"
    step = "Boot with systemd.unified_cgroup_hierarchy=1, or a distribution that has cgroup v2."
    if expected.kubernetes >= (1, 35):
        found.error("cgroup-v2", [name], "From 1.35 on the kubelet refuses to run without cgroup v2.", seen, step)
    else:
        found.warning("cgroup-v2", [name], "cgroup v1 is in its last releases of Kubernetes.", seen, step)


def _unique(hosts: Hosts, check: str, key: str, what: str, found: Findings) -> None:
    owners: t.Dict[str, t.List[str]] = {}
    for name, host in hosts.items():
        value = host["host"][key]
        for single in filter(None, value if isinstance(value, list) else [value]):
            owners.setdefault(single.lower(), []).append(name)
    for value, names in owners.items():
        if len(names) > 1:
            found.error(check, names, what, f"{len(names)} hosts have '{value}'", _UNIQUE_STEPS[check])


def _existing_cluster(hosts: Hosts, expected: Expected, found: Findings) -> None:
    for name, host in hosts.items():
        for other in host["host"]["other_kubernetes"]:
            found.error(
                "existing-cluster",
                [name],
                "Another Kubernetes is on this host.",
                f"{other} has left or keeps its data here",
                f"Uninstall {other}, or set fabric_manage_kubernetes to false and keep its cluster.",
            )
    planes = [host["host"] for host in hosts.values() if "control_plane" in host["roles"]]
    endpoints = {expected.endpoint} | {f"{plane['default_address']}:6443" for plane in planes}
    endpoints |= {f"{host['address']}:6443" for host in hosts.values()}
    clusters = {plane["kubelet"]["cluster"] for plane in planes} - {""}
    for name, host in hosts.items():
        server, cluster = host["host"]["kubelet"]["server"], host["host"]["kubelet"]["cluster"]
        foreign = server and server not in endpoints
        if foreign or (server and cluster and cluster not in clusters) or (cluster and len(clusters) > 1):
            found.error(
                "existing-cluster",
                [name],
                "The host is part of another cluster.",
                f"its API server is {server or 'not known'}, the plan's is {expected.endpoint or 'not known'}",
                "Take it out there and run `kubeadm reset` on it, or correct the inventory.",
            )


_ALWAYS = (_distribution, _architecture, _python, _systemd, _time, _netns, _rdma_modules)
_MANAGED = (_cpus, _memory, _disk, _swap, _ports, _modules, _dns)
_UNIQUE = (
    ("unique-hostname", "hostname", "Each host needs its own name: it is the name of its node."),
    ("unique-mac", "macs", "Each NIC needs its own MAC."),
    ("unique-machine-id", "machine_id", "Each host needs its own machine-id: pod networks and logs rely on it."),
)
_UNIQUE_STEPS = {
    "unique-hostname": "Rename all but one with hostnamectl.",
    "unique-mac": "Give the cloned machine a new MAC.",
    "unique-machine-id": "On the clones: rm /etc/machine-id, then systemd-machine-id-setup, then reboot.",
}
