# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ports that hosts need of each other: who must reach whom, and what could not be reached.

All hosts are paired with all control planes. Among the others, a ring and its diameters are enough to find a firewall
on a host, and few enough for hundreds of hosts.
"""

from __future__ import annotations

import itertools
import typing as t

from .._common.findings import Findings
from .._common.text import shorten_list
from .._model.observation import OpenPorts, PortProbe, PortTarget
from .._model.plan import Controller
from .endpoints import is_loopback
from .host_links import NetworkLinks
from .hosts import Hosts, PlacedHost, with_role
from .port_table import (
    ALL,
    API_SERVER,
    BETWEEN_PLANES,
    FROM_PLANES,
    IP_PROTOCOL,
    ROCE,
    SUPERVISOR,
    TO_PLANES,
    Port,
    Use,
)

NAMES = 4  # names of hosts or pairs in one line
Pairs = t.Iterable[t.Tuple[str, str]]  # inventory names of source and target

KINDS: t.Dict[str, t.Literal["tcp", "udp", "ip"]] = {"TCP": "tcp", "UDP": "udp", IP_PROTOCOL: "ip"}
SEEN = {
    "filtered": "no answer",
    "refused": "refused",
    "unreachable": "unreachable",
    "forbidden": "forbidden by the sender's own firewall",
    "unresolved": "a name that is not known there",
}


def ring(names: t.Sequence[str]) -> Pairs:
    """Each name with the next one and with the opposite one."""
    count = len(names)
    steps = sorted({1 % count, count // 2} - {0}) if count else []
    return [(name, names[(place + step) % count]) for place, name in enumerate(names) for step in steps]


class Need(t.NamedTuple):
    """A port that one host needs of another."""

    source: str  # inventory name
    target: str  # inventory name, or the name of a machine outside the inventory
    port: Port
    address: str  # of the target
    come_from: str = ""  # address of the source; empty: any


def port_targets(hosts: Hosts, needs: t.Iterable[Need]) -> t.Dict[str, t.List[PortTarget]]:
    """What each host has to connect to, as far as something listens there."""
    targets: t.Dict[str, t.Dict[t.Tuple[str, str], PortTarget]] = {}
    listening = {name: _listening(host) for name, host in hosts.items()}
    for need in _valid(needs):
        if need.target in hosts and need.port not in listening[need.target]:
            continue
        of_source = targets.setdefault(need.source, {})
        target = of_source.setdefault(
            (need.target, need.address),
            {"host": need.target, "address": need.address, "source": need.come_from, "tcp": [], "udp": [], "ip": []},
        )
        protocol, number = need.port
        target[KINDS[protocol]].append(number)
    return {name: list(found.values()) for name, found in targets.items()}


def listen_ports(hosts: Hosts, needs: t.Iterable[Need]) -> t.Dict[str, OpenPorts]:
    """What others need of each host: the ports for its temporary listener."""
    wanted: t.Dict[str, OpenPorts] = {}
    for target, (protocol, number) in sorted({(need.target, need.port) for need in _valid(needs)}):
        if target in hosts:
            wanted.setdefault(target, {"tcp": [], "udp": [], "ip": []})[KINDS[protocol]].append(number)
    return wanted


def _valid(needs: t.Iterable[Need]) -> t.Iterator[Need]:
    return (need for need in dict.fromkeys(needs) if need.source != need.target and need.address)


def cluster_needs(hosts: Hosts, lines: t.Iterable[Use]) -> t.Iterator[Need]:
    """Needs between hosts of the cluster, from lines of the table."""
    planes = with_role(hosts, "control_plane")
    to_planes, from_planes = list(itertools.product(hosts, planes)), list(itertools.product(planes, hosts))
    ways: t.Dict[str, t.Sequence[t.Tuple[str, str]]] = {
        TO_PLANES: to_planes,
        FROM_PLANES: from_planes,
        BETWEEN_PLANES: list(itertools.product(planes, planes)),
        ALL: [*to_planes, *from_planes, *ring(list(hosts))],
    }
    return _needs(hosts, [(line.port, ways[line.way]) for line in lines if line.way in ways])


def embedded_needs(hosts: Hosts, distributions: t.Container[str]) -> t.Iterator[Need]:
    """Needs in a k3s or RKE2 cluster: nodes connect to the servers, which reach kubelets through their own tunnel."""
    to_planes = list(itertools.product(hosts, with_role(hosts, "control_plane")))
    ports = {"k3s": [API_SERVER], "rke2": [API_SERVER, SUPERVISOR]}
    wanted = [port for name, listed in ports.items() if name in distributions for port in listed]
    return _needs(hosts, [(port, to_planes) for port in dict.fromkeys(wanted)])


def vipu_needs(hosts: Hosts, controllers: t.Iterable[Controller], by_site: bool) -> t.Iterator[Need]:
    """V-IPU, for hosts that did not ask it at this address: where `vipu` got an answer, the port is open."""
    for controller in controllers:
        if is_loopback(controller["address"]):  # refused by vipu-address
            continue
        planned = (controller["address"], controller["port"])
        for name in controller["serves"]:
            asked = hosts[name].observation.get("vipu")
            if (asked["address"], asked["port"]) != planned if asked else by_site:
                yield Need(name, f"V-IPU ({controller['host']})", ("TCP", controller["port"]), controller["address"])


def _needs(hosts: Hosts, pairs: t.Iterable[t.Tuple[Port, Pairs]]) -> t.Iterator[Need]:
    for port, of_port in pairs:
        for source, target in of_port:
            yield Need(source, target, port, hosts[target].address)


def roce_needs(chosen: t.Sequence[NetworkLinks]) -> t.Iterator[Need]:
    """A NIC with working RDMA consumes packets to RoCE's port (kube-router#1746): there, only the proof can tell."""
    for network in chosen:
        own = {name: link.addresses for name, link in network.links.items() if not link.nic["device"]}
        plain = {name: addresses[0]["address"] for name, addresses in own.items() if addresses}
        for source, target in ring(list(plain)):
            yield Need(source, target, ROCE, plain[target], plain[source])


def _temporary(host: PlacedHost) -> t.Set[Port]:
    """Ports of a host's temporary listener."""
    listener = host.observation.get("listener")
    if not listener:
        return set()
    found = {("TCP", port) for port in listener["tcp"]} | {("UDP", port) for port in listener["udp"]}
    return found | {("IP protocol", number) for number in listener.get("ip", ())}


def _listening(host: PlacedHost) -> t.Set[Port]:
    """Ports of a host on which something listens. Only the temporary listener returns packets."""
    busy: t.Set[Port] = {("TCP", entry["port"]) for entry in host.facts["ports_busy"]} if host.facts else set()
    return busy | _temporary(host)


def check_host_ports(hosts: Hosts, components: t.Mapping[Port, str], findings: Findings) -> None:
    """Report what could not be reached, with one finding for each port."""
    ended = [name for name, host in hosts.items() if _ended_early(host)]
    if ended:
        findings.warning(
            "host-ports",
            ended,
            "Whether other hosts reach these is unknown: their temporary listener ended too early.",
            "another run had started its own, or the time was up before all hosts had connected",
            "Run it again; with many hosts raise forks (ansible.cfg).",
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
        inside = [one for one in probes if one[1]["host"] in hosts]
        for one in (inside, [one for one in probes if one not in inside]):
            if one:
                _report(port, one, asked[port], components.get(port, "") if one is inside else "", findings)


def _ended_early(host: PlacedHost) -> bool:
    listener = host.observation.get("listener")
    return listener is not None and listener["name"] != host.observation.get("listened")


def _at(probe: PortProbe) -> str:
    return probe["host"] if probe["address"] in probe["host"] else f"{probe['host']} ({probe['address']})"


def _report(
    port: Port, probes: t.Sequence[t.Tuple[str, PortProbe]], asked: int, component: str, findings: Findings
) -> None:
    """component is empty if the target is outside the inventory, and then named by what it is."""
    sources = list(dict.fromkeys(source for source, _probe in probes))
    targets = list(dict.fromkeys(probe["host"] for _source, probe in probes))
    name = f"{port[0]} {port[1]}"
    label = f"{name} ({component})" if component else name
    by_answer: t.Dict[str, t.List[str]] = {}
    for source, probe in probes:
        by_answer.setdefault(probe["seen"], []).append(f"{source} to {_at(probe)}")
    seen = "; ".join(f"{SEEN[answer]}: {shorten_list(pairs, NAMES)}" for answer, pairs in by_answer.items())
    step = (
        f"Open {name} in the firewalls of {shorten_list(targets, NAMES)} (nft list ruleset, iptables -S) and in those"
        " between the hosts."
    )
    if not component and any("V-IPU" in target for target in targets):
        step = (
            "Correct its address where it is wrong, in fabric_vipu_hosts or where `vipu` on the host has it from."
            f" Otherwise o{step[1:]}"
        )
    if set(by_answer) == {"unresolved"}:
        step = "Write the address in place of the name, or make these hosts resolve the name (DNS, /etc/hosts)."
    findings.error(
        "host-ports",
        targets if component and len(targets) <= len(sources) else sources,
        f"{shorten_list(sources, NAMES)} cannot reach {label} of {shorten_list(targets, NAMES)}.",
        f"{seen}; {len(probes)} of {asked} connections failed",
        step,
    )
