# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtual address of the API: whether the control planes can hold it, and whether somebody else does."""

from __future__ import annotations

import ipaddress
import typing as t

from .._common.addresses import Address, Network
from .._common.findings import Findings
from .._model.observation import Link, Observation, Observations, VipFacts
from .._model.plan import VirtualAddress
from .._model.settings import Settings
from .cluster import ClusterCidrs
from .endpoints import parse_address
from .hosts import Hosts, PlacedHost, with_role

VARIABLE = "fabric_control_plane_vip"
CHECK, IN_USE = "virtual-address", "virtual-address-in-use"
FREE = f"Set {VARIABLE} to a free address of the control planes' network."
ROUTER_IDS = 255


def without_virtual_address(observations: Observations, text: str) -> t.Dict[str, Observation]:
    """The observations as if no control plane held the address: the plan must not change when it moves."""
    address = parse_address(text)
    if address is None:
        return dict(observations)

    def is_held(found: str, prefix: int) -> bool:
        return parse_address(found) == address and prefix == address.max_prefixlen

    def strip(link: Link) -> Link:
        kept = [one for one in link["addresses"] if not is_held(one["address"], one["prefix"])]
        return {**link, "addresses": kept}

    def seen(observation: Observation) -> Observation:
        rdma = observation.get("rdma")
        if not rdma or "kube_control_plane" not in observation["groups"]:
            return observation
        return {**observation, "rdma": {**rdma, "links": [strip(link) for link in rdma["links"]]}}

    return {name: seen(observation) for name, observation in observations.items()}


def plan_virtual_address(
    settings: Settings, hosts: Hosts, cidrs: ClusterCidrs, findings: Findings
) -> t.Optional[VirtualAddress]:
    """keepalived's settings; None without the variable, or if the address can't be used, which is a finding."""
    text, planes = settings.control_plane_vip, with_role(hosts, "control_plane")
    if not text:
        return None
    address = parse_address(text)
    if address is None:
        meant = parse_address(text.partition("/")[0]) or parse_address(text.partition(":")[0])
        step = f"Set {VARIABLE} to one address, without a prefix or a port, such as {meant or '10.88.0.50'}."
        _report(findings, [], "is not an address.", text, step)
        return None
    if not settings.manage_kubernetes:
        what = "is kept by the role kubernetes, which does not manage this cluster."
        seen = "fabric_manage_kubernetes is false"
        _report(findings, [], what, seen, "Leave it empty, and set fabric_control_plane_endpoint if it is needed.")
        return None
    members = [hosts[name] for name in planes]
    _check_kind(address, findings)
    _check_hosts(address, hosts, findings)
    _check_networks(address, members, findings)
    _check_cidrs(address, cidrs, findings)
    _check_keepalived(members, findings)
    _check_free(address, hosts, members, findings)
    return {
        "address": str(address),
        "router_id": _router_id(address, settings.control_plane_vip_router_id, findings),
        "members": {host.name: host.address for host in members},
    }


def _report(findings: Findings, hosts: t.Sequence[str], what: str, seen: str, step: str) -> None:
    findings.error(CHECK, hosts, f"{VARIABLE} {what}", seen, step)


def _router_id(address: Address, wanted: int, findings: Findings) -> int:
    if not 0 <= wanted <= ROUTER_IDS:
        findings.error(
            CHECK,
            [],
            f"{VARIABLE}_router_id must be a router ID of VRRP.",
            str(wanted),
            f"Set {VARIABLE}_router_id to 0 to have it taken from the address, or to 1 to {ROUTER_IDS}.",
        )
    return wanted or address.packed[-1] or ROUTER_IDS


def _check_kind(address: Address, findings: Findings) -> None:
    if address.is_multicast or address.is_loopback or address.is_unspecified or address.is_link_local:
        _report(findings, [], "must be an address that hosts of several networks can reach.", str(address), FREE)


def _view(host: PlacedHost) -> t.Optional[VipFacts]:
    """What a control plane sees of the address; None if it was not asked."""
    return host.facts.get("vip") if host.facts else None


def _addresses(host: PlacedHost) -> t.Set[t.Optional[Address]]:
    """All known addresses of a host."""
    texts = [*host.addresses, host.facts["default_address"] if host.facts else ""]
    texts += [one["address"] for link in (host.rdma["links"] if host.rdma else ()) for one in link["addresses"]]
    return {parse_address(text) for text in texts}


def _check_hosts(address: Address, hosts: Hosts, findings: Findings) -> None:
    owners = [name for name, host in hosts.items() if address in _addresses(host)]
    if owners:
        _report(
            findings, owners, "must not be a host's own address.", f"{address} is that of {', '.join(owners)}", FREE
        )
    views = {name: _view(host) for name, host in hosts.items()}
    behind = [name for name, view in views.items() if view and address in map(parse_address, view["gateways"])]
    if behind:
        seen = f"{address} is the gateway of routes of {', '.join(behind)}"
        _report(findings, behind, "must not be a gateway's address.", seen, FREE)


def _network(host: PlacedHost) -> t.Optional[Network]:
    """The network of the interface that has the host's own address."""
    own = parse_address(host.address)
    for link in host.rdma["links"] if host.rdma else ():
        for one in link["addresses"]:
            if own is not None and parse_address(one["address"]) == own:
                return ipaddress.ip_interface(f"{own}/{one['prefix']}").network
    return None


def _check_networks(address: Address, members: t.Sequence[PlacedHost], findings: Findings) -> None:
    for host in members:
        network = _network(host)
        if not host.address or not host.rdma:
            continue  # unobserved, which is already a finding
        if network is None:
            seen = f"no interface of {host.name} has its address {host.address}"
            _report(findings, [host.name], "needs control planes whose own addresses are on an interface.", seen, FREE)
        elif address.version != network.version:
            seen = f"{address} is IPv{address.version}, {host.name} is {host.address}"
            _report(findings, [host.name], "must be of the family of the control planes' addresses.", seen, FREE)
        elif address not in network:
            seen = f"{address} is not in {network}, the host's network"
            step = f"{FREE} Control planes in several networks need a balancer (fabric_control_plane_endpoint)."
            _report(findings, [host.name], "must be in the network of every control plane.", seen, step)
        elif address.version == 4 and network.num_addresses > 2 and address in (network[0], network[-1]):
            seen = f"{address} is the first or the last of {network}"
            _report(findings, [host.name], "must be an address that a host can have.", seen, FREE)


def _check_cidrs(address: Address, cidrs: ClusterCidrs, findings: Findings) -> None:
    for variable, ranges in (("fabric_pod_cidr", cidrs.pods), ("fabric_service_cidr", cidrs.services)):
        for cidr in ranges:
            if address in cidr:
                seen = f"{address} is in {cidr} ({variable})"
                _report(findings, [], "must not be an address of pods or services.", seen, FREE)


def _check_keepalived(members: t.Sequence[PlacedHost], findings: Findings) -> None:
    views = {host.name: _view(host) for host in members}
    foreign = [name for name, view in views.items() if view and view["foreign_keepalived"]]
    if foreign:
        findings.error(
            CHECK,
            foreign,
            f"{VARIABLE} needs keepalived, which does something else on this host.",
            "/etc/keepalived/keepalived.conf was not written by this collection, which does not overwrite it",
            f"Move the file away, or leave {VARIABLE} empty and set fabric_control_plane_endpoint to the address that"
            " you keep yourself.",
        )


def _check_free(address: Address, hosts: Hosts, members: t.Sequence[PlacedHost], findings: Findings) -> None:
    """Only hosts asked in this run count. A control plane that can't be asked may hold it: its MAC is known."""
    asked = {host.name: _view(host) for host in members if not host.observation.get("recalled")}
    views = {name: view for name, view in asked.items() if view}
    if any(view["held"] for view in views.values()):
        return
    owners = {mac.lower(): host for host in hosts.values() if host.facts for mac in host.facts["macs"]}
    names = {host.name for host in members}
    seen: t.Dict[str, t.List[str]] = {}
    for name, view in views.items():
        owner = owners.get(view["mac"].lower())
        if (owner and owner.name in names) or not (view["mac"] or view["answered"]):
            continue
        found = [f"on the local network it is at {view['mac']}" + (f", a NIC of {owner.name}" if owner else "")]
        found = found if view["mac"] else []
        found += [f"TCP 6443 is {view['answered']}"] if view["answered"] else []
        seen.setdefault("; ".join(found), []).append(name)
    for what, askers in seen.items():
        findings.error(
            IN_USE,
            askers,
            f"Another machine has the virtual address of the API ({VARIABLE}): with two of them it leads to either.",
            f"{address}, as {', '.join(askers)} sees it: {what}",
            f"{FREE} It may be another site's, or that of a control plane which has left the inventory.",
        )
