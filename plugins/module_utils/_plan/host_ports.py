# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ports that hosts need of each other: who has to reach whom, and what could not be reached.

Control planes and all other hosts are paired fully. Between the others a ring and its diameters are enough to find a
firewall on a host, and few enough for hundreds of hosts.
"""

from __future__ import annotations

import itertools
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._common.text import shorten_list
from ansible_collections.ipu.fabric.plugins.module_utils._model.observation import PortProbe, PortTarget
from ansible_collections.ipu.fabric.plugins.module_utils._plan.host_links import NetworkLinks
from ansible_collections.ipu.fabric.plugins.module_utils._plan.hosts import Hosts, PlacedHost, with_role

NAMES = 4  # of hosts or pairs, in one line
Port = t.Tuple[str, int]  # protocol and number
Pairs = t.Iterable[t.Tuple[str, str]]  # inventory names of source and target

API_SERVER, ETCD, ETCD_PEER, KUBELET = ("TCP", 6443), ("TCP", 2379), ("TCP", 2380), ("TCP", 10250)
SUPERVISOR = ("TCP", 9345)
POD_NETWORK: t.Dict[str, t.List[Port]] = {"calico": [("UDP", 4789), ("TCP", 5473)], "flannel": [("UDP", 8472)]}
ROCE = ("UDP", 4791)
VRRP = ("IP protocol", 112)
KINDS: t.Dict[str, t.Literal["tcp", "udp", "ip"]] = {"TCP": "tcp", "UDP": "udp", "IP protocol": "ip"}
SERVICES: t.Dict[Port, str] = {
    API_SERVER: "API server",
    ETCD: "etcd",
    ETCD_PEER: "etcd",
    KUBELET: "kubelet",
    ("UDP", 4789): "Calico's VXLAN",
    ("TCP", 5473): "Calico's Typha",
    ("UDP", 8472): "flannel's VXLAN",
    ROCE: "RoCE",
    VRRP: "VRRP",
    SUPERVISOR: "RKE2's supervisor",
}
SEEN = {
    "filtered": "no answer",
    "refused": "refused",
    "unreachable": "unreachable",
    "forbidden": "forbidden by the sender's own firewall",
}


def ring(names: t.Sequence[str]) -> Pairs:
    """Each with the next one and with the one across."""
    count = len(names)
    steps = sorted({1 % count, count // 2} - {0}) if count else []
    return [(name, names[(place + step) % count]) for place, name in enumerate(names) for step in steps]


class Need(t.NamedTuple):
    """A port that one host needs of another."""

    source: str  # inventory name
    target: str
    port: Port
    address: str  # of the target
    come_from: str = ""  # address of the source; empty: any


def port_targets(
    hosts: Hosts, chosen: t.Sequence[NetworkLinks], cluster: t.Iterable[Need]
) -> t.Dict[str, t.List[PortTarget]]:
    """For each host what it has to connect to, as far as something listens there."""
    targets: t.Dict[str, t.Dict[t.Tuple[str, str], PortTarget]] = {}
    listening = {name: _listening(host) for name, host in hosts.items()}
    for need in dict.fromkeys(itertools.chain(cluster, _roce_needs(chosen))):
        if need.source == need.target or not need.address or need.port not in listening[need.target]:
            continue
        of_source = targets.setdefault(need.source, {})
        target = of_source.setdefault(
            (need.target, need.address),
            {"host": need.target, "address": need.address, "source": need.come_from, "tcp": [], "udp": [], "ip": []},
        )
        protocol, number = need.port
        target[KINDS[protocol]].append(number)
    return {name: list(found.values()) for name, found in targets.items()}


def kubeadm_needs(hosts: Hosts, cni: str, virtual: bool) -> t.Iterator[Need]:
    """Of a cluster that the role kubernetes builds."""
    planes = with_role(hosts, "control_plane")
    to_planes, to_all = list(itertools.product(hosts, planes)), list(itertools.product(planes, hosts))
    between = list(itertools.product(planes, planes))
    pairs: t.List[t.Tuple[Port, Pairs]] = [(API_SERVER, to_planes), (KUBELET, to_all)]
    pairs += [(ETCD, between), (ETCD_PEER, between), *([(VRRP, between)] if virtual else [])]
    pairs += [(port, [*to_planes, *to_all, *ring(list(hosts))]) for port in POD_NETWORK.get(cni, [])]
    return _needs(hosts, pairs)


def embedded_needs(hosts: Hosts, distributions: t.Container[str]) -> t.Iterator[Need]:
    """Of a cluster of k3s or RKE2: what every node needs of its servers, which reach kubelets by a tunnel of theirs."""
    to_planes = list(itertools.product(hosts, with_role(hosts, "control_plane")))
    ports = {"k3s": [API_SERVER], "rke2": [API_SERVER, SUPERVISOR]}
    wanted = [port for name, listed in ports.items() if name in distributions for port in listed]
    return _needs(hosts, [(port, to_planes) for port in dict.fromkeys(wanted)])


def _needs(hosts: Hosts, pairs: t.Iterable[t.Tuple[Port, Pairs]]) -> t.Iterator[Need]:
    for port, of_port in pairs:
        for source, target in of_port:
            yield Need(source, target, port, hosts[target].address)


def _roce_needs(chosen: t.Sequence[NetworkLinks]) -> t.Iterator[Need]:
    """A NIC whose RDMA is up keeps all packets to RoCE's port (kube-router#1746): there only the proof can tell."""
    for network in chosen:
        plain = {name: link.addresses[0]["address"] for name, link in network.links.items() if not link.nic["device"]}
        for source, target in ring(list(plain)):
            yield Need(source, target, ROCE, plain[target], plain[source])


def _temporary(host: PlacedHost) -> t.Set[Port]:
    """Ports on which the temporary listener of a host listens."""
    listener = host.observation.get("listener")
    if not listener:
        return set()
    found = {("TCP", port) for port in listener["tcp"]} | {("UDP", port) for port in listener["udp"]}
    return found | {("IP protocol", number) for number in listener.get("ip", ())}


def _listening(host: PlacedHost) -> t.Set[Port]:
    """Ports of a host on which something answers. Only the temporary listener returns packets."""
    busy: t.Set[Port] = {("TCP", entry["port"]) for entry in host.facts["ports_busy"]} if host.facts else set()
    return busy | _temporary(host)


def check_host_ports(hosts: Hosts, findings: Findings) -> None:
    """What could not be reached, one finding for each port."""
    ended = [name for name, host in hosts.items() if _ended_early(host)]
    if ended:
        findings.warning(
            "host-ports",
            ended,
            "It is not known whether other hosts reach these: their temporary listener ended before it was told to.",
            "another run had started its own, or the time was up before all hosts had connected",
            "Run it again, with many hosts with more forks (ansible.cfg).",
        )
    failed: t.Dict[Port, t.List[t.Tuple[str, PortProbe]]] = {}
    asked: t.Dict[Port, int] = {}
    for source, host in hosts.items():
        for probe in host.observation.get("probes") or []:
            port = (probe["protocol"], probe["port"])
            if probe["host"] in ended and port in _temporary(hosts[probe["host"]]):
                continue
            asked[port] = asked.get(port, 0) + 1
            if probe["seen"] != "open":
                failed.setdefault(port, []).append((source, probe))
    for port, probes in failed.items():
        _report(port, probes, asked[port], findings)


def _ended_early(host: PlacedHost) -> bool:
    listener = host.observation.get("listener")
    return listener is not None and listener["name"] != host.observation.get("listened")


def _report(port: Port, probes: t.Sequence[t.Tuple[str, PortProbe]], asked: int, findings: Findings) -> None:
    sources = list(dict.fromkeys(source for source, _probe in probes))
    targets = list(dict.fromkeys(probe["host"] for _source, probe in probes))
    name = f"{port[0]} {port[1]}"
    by_answer: t.Dict[str, t.List[str]] = {}
    for source, probe in probes:
        by_answer.setdefault(probe["seen"], []).append(f"{source} to {probe['host']} ({probe['address']})")
    seen = "; ".join(f"{SEEN[answer]}: {shorten_list(pairs, NAMES)}" for answer, pairs in by_answer.items())
    findings.error(
        "host-ports",
        targets if len(targets) <= len(sources) else sources,
        f"{shorten_list(sources, NAMES)} cannot reach {name} ({SERVICES[port]}) of {shorten_list(targets, NAMES)}.",
        f"{seen}; {len(probes)} of {asked} connections failed",
        f"Open {name} in the firewalls of {shorten_list(targets, NAMES)} (nft list ruleset, iptables -S) and between.",
    )
