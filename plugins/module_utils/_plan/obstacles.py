# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of a host's own setup that break a node or its pods: reported before they show up as a pod that hangs."""

from __future__ import annotations

import typing as t

from .._common.addresses import read_network
from .._common.findings import Findings
from .._host.cri import CONTAINERD
from .._host.obstacles import CONTAINERD as CONTAINERD_DATA
from .._host.obstacles import KUBELET, NEIGHBOURS, RDMA
from .._model.observation import Obstacles
from .._model.plan import PlannedNetwork
from .._model.settings import Settings
from .._model.stacks import named_stack
from .endpoints import parse_address
from .hosts import Hosts, PlacedHost
from .port_table import uses
from .running_cluster import Running

# File systems that can't hold an upper directory of overlayfs: the kernel reports "invalid argument".
NO_OVERLAY = frozenset(
    {"9p", "aufs", "beegfs", "ceph", "cifs", "ecryptfs", "gpfs", "lustre", "nfs", "nfs4", "overlay", "ramfs", "rootfs"}
    | {"smb3", "squashfs", "vfat"}
)
CONTROLLERS = ("cpu", "cpuset", "memory", "pids")  # a kubelet does not run without them
UNMANAGED = ("cali*", "tunl*", "vxlan*", "flannel*", "cni*", "veth*")
OFFLOADS = ("tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation")
# Pod networks whose interfaces NetworkManager would take over.
ROUTED = ("calico", "canal", "flannel")


def check_obstacles(
    settings: Settings,
    hosts: Hosts,
    running: t.Optional[Running],
    networks: t.Sequence[PlannedNetwork],
    findings: Findings,
) -> None:
    """Check every host, except those with only an observation from an earlier run."""
    there = [network["name"] for network in running.facts["pod_networks"]] if running else []
    pod_networks = [settings.cni] if settings.manage_kubernetes else there
    rdma = {name for network in networks if network["rdma"] for name in network["hosts"]}
    by_vxlan = any("VXLAN" in use.component for use in uses(settings))
    neighbours: t.Dict[str, int] = {}  # by host: number of NICs on all of its networks
    for network in networks:
        for name in network["hosts"]:
            neighbours[name] = neighbours.get(name, 0) + len(network["hosts"])
    for name, host in hosts.items():
        seen = host.facts.get("obstacles") if host.facts and not host.observation.get("recalled") else None
        if not seen or not host.facts:
            continue
        _check_modules(name, seen, set(host.facts["modules"]) if settings.manage_kubernetes else set(), rdma, findings)
        _check_network_manager(name, seen, pod_networks, findings)
        _check_neighbours(name, seen, neighbours.get(name, 0) * settings.pods_per_node, settings, networks, findings)
        if name in rdma:
            _check_kubelet(name, seen, findings)
        if settings.manage_kubernetes:
            _check_filesystem(name, seen, settings, findings)
            _check_firewall(name, seen, settings, findings)
            if by_vxlan:
                _check_offloads(name, seen, host, findings)
            if host.facts["cgroup"] == "v2":
                _check_controllers(name, seen, findings)


def _check_filesystem(name: str, seen: Obstacles, settings: Settings, findings: Findings) -> None:
    if settings.runtime == CONTAINERD and seen["filesystem"] in NO_OVERLAY:
        findings.error(
            "disk",
            [name],
            "containerd keeps images as layers of overlayfs, which this file system can't carry.",
            f"{CONTAINERD_DATA} is on {seen['filesystem']}, as on a host that boots over the network",
            f"Mount a local ext4 or XFS at {CONTAINERD_DATA}, in /etc/fstab or the image of the host too.",
        )


def _check_kubelet(name: str, seen: Obstacles, findings: Findings) -> None:
    if seen["kubelet_directory"] not in ("", KUBELET):
        findings.error(
            "rdma-resource",
            [name],
            f"The RDMA device plugin registers in {KUBELET}: with a kubelet elsewhere the node has 0 of the resource.",
            f"the kubelet runs with --root-dir={seen['kubelet_directory']}",
            f"Start the kubelet without --root-dir. Or mount its directory at {KUBELET} too: mount --bind, with a line"
            " in /etc/fstab.",
        )


def _check_modules(name: str, seen: Obstacles, wanted: t.Set[str], rdma: t.Container[str], findings: Findings) -> None:
    if name in rdma:
        wanted = wanted | set(RDMA)
    blocked = {module: where for module, where in sorted(seen["unloadable"].items()) if module in wanted}
    if blocked:
        findings.error(
            "kernel-modules",
            [name],
            "Modules that nodes and their pods need are blocked on this host.",
            "; ".join(f"{module}: {where}" for module, where in blocked.items()),
            f"Remove these settings, then run modprobe -a {' '.join(blocked)} (after a reboot, if it was the kernel's"
            " command line).",
        )


def _check_controllers(name: str, seen: Obstacles, findings: Findings) -> None:
    missing = [each for each in CONTROLLERS if each not in seen["controllers"]]
    if seen["controllers"] and missing:
        findings.error(
            "kernel-modules",
            [name],
            "A kubelet needs these cgroup controllers, and does not run without them.",
            f"cgroup v2 without {', '.join(missing)}",
            f"Take cgroup_disable={','.join(missing)} out of the kernel's command line (/etc/default/grub, then"
            " update-grub), and reboot.",
        )


def _check_network_manager(name: str, seen: Obstacles, pod_networks: t.Sequence[str], findings: Findings) -> None:
    if seen["network_manager"] and set(pod_networks) & set(ROUTED):
        devices = ";".join(f"interface-name:{pattern}" for pattern in UNMANAGED)
        findings.warning(
            "network-manager",
            [name],
            "NetworkManager may take interfaces of pods for its own, and change their routes: pods lose their network.",
            "it runs, and no unmanaged-devices of its configuration names them",
            f"Write [keyfile] and, below it, unmanaged-devices={devices} into"
            " /etc/NetworkManager/conf.d/kubernetes.conf, then run systemctl reload NetworkManager.",
        )


def _check_firewall(name: str, seen: Obstacles, settings: Settings, findings: Findings) -> None:
    """host-ports tests only between hosts. Calico accepts pods' traffic before rules of ufw, not of firewalld."""
    if not seen["firewall"] or (seen["firewall"] == "ufw" and settings.cni != "flannel"):
        return
    cidrs = [part.strip() for part in settings.pod_cidr.split(",")]
    missing = [cidr for cidr in cidrs if not any(_covers(source, cidr) for source in seen["firewall_sources"])]
    if missing:
        commands = {
            "ufw": [f"ufw allow from {cidr}" for cidr in missing],
            "firewalld": [
                *(f"firewall-cmd --permanent --zone=trusted --add-source={cidr}" for cidr in missing),
                "firewall-cmd --reload",
            ],
        }
        findings.warning(
            "host-ports",
            [name],
            "The firewall of the host drops what pods send to it or through it: CoreDNS does not reach the API.",
            f"{seen['firewall']} is on, and does not let everything pass from {' and '.join(missing)}",
            f"Run {'; '.join(commands[seen['firewall']])}. Nothing to do if other rules let pods pass.",
        )


def _check_offloads(name: str, seen: Obstacles, host: PlacedHost, findings: Findings) -> None:
    """The hypervisor drops TCP in VXLAN that its virtual NIC segmented; pings pass, which makes it hard to find."""
    links = host.rdma["links"] if host.rdma else []
    able = [nic for nic in links if nic["netdev"] in seen.get("tunnel_offloads", [])]
    nics = [nic["netdev"] for nic in able if {each["address"] for each in nic["addresses"]} & set(host.addresses)]
    if nics:
        off = " ".join(f"{feature} off" for feature in OFFLOADS)
        findings.warning(
            "tunnel-offload",
            [name],
            "VMware's hypervisors may drop what pods on different hosts send by TCP, though pings pass: their virtual"
            " NICs segment packets in VXLAN wrongly.",
            f"{', '.join(nics)} (vmxnet3) has tx-udp_tnl-segmentation on, and the pod network uses VXLAN",
            f"Run ethtool -K {nics[0]} {off}, at each boot too. Or use an encapsulation other than VXLAN"
            " (kubernetes_calico_installation).",
        )


def _covers(source: str, cidr: str) -> bool:
    try:
        outer, inner = read_network(source, strict=False), read_network(cidr)
    except ValueError:  # already a finding, or not a CIDR
        return False
    lower = parse_address(str(inner.network_address))
    return lower is not None and lower in outer and outer.prefixlen <= inner.prefixlen


def _check_neighbours(
    name: str,
    seen: Obstacles,
    needed: int,
    settings: Settings,
    networks: t.Sequence[PlannedNetwork],
    findings: Findings,
) -> None:
    """A job's pod learns all others of that job on each rail; the kernel counts neighbours of all pods together."""
    limit = seen["neighbours"]
    if limit and settings.manage_kubernetes:
        limit = max(limit, NEIGHBOURS)
    stack = named_stack(settings.stack)
    if limit and stack:
        limit = max(limit, stack.neighbours)
    if not limit or needed <= limit:
        return
    wanted = 1 << (needed - 1).bit_length()
    families = {"ipv6" if ":" in subnet["cidr"] else "ipv4" for network in networks for subnet in network["subnets"]}
    keys = [f"net.{family}.neigh.default.gc_thresh3" for family in sorted(families) or ["ipv4"]]
    where = "kubernetes_sysctl" if settings.manage_kubernetes else "/etc/sysctl.d/99-neighbours.conf"
    findings.warning(
        "neighbours",
        [name],
        "The kernel should keep all neighbours that pods of the fabric have: beyond its limit RDMA can't connect, and"
        " only the kernel's log says so (neighbor table overflow).",
        f"gc_thresh3 is {seen['neighbours']}; the networks of this host have up to {needed} interfaces of pods"
        f" (fabric_pods_per_node is {settings.pods_per_node})",
        f"Set {' and '.join(keys)} to {wanted} in {where}, and gc_thresh2 to {wanted // 2}.",
    )
