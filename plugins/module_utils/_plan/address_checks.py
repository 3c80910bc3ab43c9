# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether each node has an address that its kubelet accepts, in each family of the cluster."""

from __future__ import annotations

import typing as t

from .._common.addresses import Network, normal_addresses, read_network
from .._common.findings import Findings
from .._model.observation import NodeIdentity
from .._model.settings import Settings
from .cluster import ClusterCidrs
from .endpoints import parse_address
from .hardening import read_site
from .hosts import Hosts, PlacedHost
from .node_addresses import VARIABLE, AddressRules, links_of, possible_subnets

# Prefix length of the range that the controller manager gives to each node by default.
NODE_BITS = {4: 24, 6: 64}
# Of addresses: kubeadm refuses CIDRs of services with less or more, and of pods with more ranges for nodes.
SERVICE_BITS, RANGE_BITS = (4, 20), 16
FAMILIES = {4: "IPv4", 6: "IPv6"}


def check_addresses(rules: AddressRules, hosts: Hosts, findings: Findings) -> None:
    """Check each host's addresses: those that its kubelet would refuse, or that nobody would reach."""
    for host in hosts.values():
        if not host.facts or not host.rdma or host.observation.get("recalled"):
            continue
        if not host.address:
            findings.error(
                "node-address",
                [host.name],
                "A node needs an address that the other hosts reach.",
                _why_none(rules),
                f"Set ip of the host in the inventory, or {VARIABLE} to an interface or a subnet that all hosts have.",
            )
            continue
        _check_interfaces(host, findings)
        _check_families(rules, host, findings)
        _check_subnets(rules, host, findings)


def check_moved(hosts: Hosts, nodes: t.Sequence[NodeIdentity], findings: Findings) -> None:
    """No role changes the address of an existing node: if a plan has another one, the plan is wrong, not the node."""
    known = {(node["name"], node["machine_id"]): node.get("addresses", []) for node in nodes}
    for host in hosts.values():
        if not host.facts or host.observation.get("recalled"):
            continue
        has = known.get((host.node, host.facts["machine_id"]), [])
        joined = ",".join(has)
        if has and not normal_addresses(host.addresses) <= normal_addresses(has):
            findings.warning(
                "node-address",
                [host.name],
                "A node keeps the address with which it joined, and the plan has another one.",
                f"the node {host.node} has {joined} in the cluster; by its default route, its ip or {VARIABLE} the host"
                f" would have {','.join(host.addresses)}",
                f"Set ip of the host in the inventory to {joined}, or {VARIABLE} to an interface or a subnet with that"
                " address. To move the node to another address, remove it with ipu.fabric.remove_node, then run site.",
            )


def _why_none(rules: AddressRules) -> str:
    if rules.interface or rules.subnets:
        asked = [rules.interface, *map(str, rules.subnets)]
        return f"no address of the host fits {VARIABLE}: {', '.join(filter(None, asked))}"
    return "there is no default route, and ip is not set in the inventory"


def _held(host: PlacedHost) -> t.Dict[str, str]:
    """The interface of each address that a host has."""
    rdma = host.rdma
    held = {one["address"]: link["netdev"] for link in links_of(host.observation) for one in link["addresses"]}
    return {**held, **{one["address"]: "lo" for one in (rdma.get("loopback", []) if rdma else [])}}


def _check_interfaces(host: PlacedHost, findings: Findings) -> None:
    held = _held(host)
    known = {parse_address(text) for text in [*held, host.facts["default_address"] if host.facts else ""]}
    strange = [text for text in host.addresses if parse_address(text) not in known]
    if strange:
        has = ", ".join(f"{text} ({netdev})" for text, netdev in held.items()) or "none"
        findings.error(
            "node-address",
            [host.name],
            "A node's address has to be on an interface of its host: the kubelet refuses any other.",
            f"ip is {', '.join(strange)}; the host has {has}",
            "Set ip to the address at which the other hosts reach it. A public one can stay in ansible_host.",
        )


def _check_subnets(rules: AddressRules, host: PlacedHost, findings: Findings) -> None:
    """Warn of several subnets on an interface: the first is taken, but another host may list them in another order."""
    subnets = possible_subnets(host.observation, rules)
    if len({each.version for each in subnets}) < len(subnets):
        findings.warning(
            "node-address",
            [host.name],
            f"The interface of {VARIABLE} has addresses of several subnets, and the first one is taken.",
            f"{rules.interface} of {host.name} has {' and '.join(map(str, subnets))}; its node gets {host.address}",
            f"Name the subnet of the nodes beside the interface, as in {VARIABLE}: {{interface: {rules.interface},"
            f" subnet: {subnets[0]}}}.",
        )


def _check_families(rules: AddressRules, host: PlacedHost, findings: Findings) -> None:
    has = [parsed.version for parsed in map(parse_address, host.addresses) if parsed]
    if has == list(rules.families) or not has or not rules.families:
        return
    wanted, there = (" and ".join(FAMILIES[family] for family in families) for families in (rules.families, has))
    findings.error(
        "node-address",
        [host.name],
        "A node needs an address of each family that the cluster has, in the order of fabric_service_cidr.",
        f"the cluster has {wanted}; the host's interface, or its ip, has {there} alone"
        if set(has) != set(rules.families)
        else f"the cluster has {wanted}; ip has {there}",
        "Give the host a permanent address of each family, or set ip to both, separated by a comma; or use CIDRs of one"
        " family in fabric_pod_cidr and fabric_service_cidr.",
    )


def _check_size(variable: str, text: str, cidr: Network, bits: t.Tuple[int, int], findings: Findings) -> None:
    """bits: the fewest and the most for addresses in the CIDR, as kubeadm checks them."""
    longest, shortest = (cidr.max_prefixlen - each for each in bits)
    if cidr.prefixlen > longest:
        fitting = str(cidr.supernet(new_prefix=max(longest - 8, shortest)))
    elif cidr.prefixlen < shortest:
        fitting = f"{cidr.network_address}/{shortest}"
    else:
        return
    parts = (part.strip() for part in text.split(","))
    findings.error(
        "cidr",
        [],
        f"kubeadm takes a {variable} of IPv{cidr.version} from /{shortest} to /{longest} only.",
        str(cidr),
        f"Set {variable} to {','.join(fitting if read_network(part) == cidr else part for part in parts)}.",
    )


def check_node_ranges(settings: Settings, cidrs: ClusterCidrs, nodes: int, findings: Findings) -> None:
    """Sizes that kubeadm refuses. flannel gives pods addresses from their node's range, and needs one for each node."""
    for cidr in cidrs.services:
        _check_size("fabric_service_cidr", settings.service_cidr, cidr, SERVICE_BITS, findings)
    given = (read_site(settings.cluster_config).get("controllerManager") or {}).get("extraArgs") or []
    arguments = {each["name"]: each["value"] for each in given}
    for cidr in cidrs.pods:
        name = f"node-cidr-mask-size-ipv{cidr.version}" if len(cidrs.pods) > 1 else "node-cidr-mask-size"
        text = arguments.get(name) or arguments.get(f"node-cidr-mask-size-ipv{cidr.version}", "")
        bits = int(text) if text.isdecimal() else NODE_BITS[cidr.version]
        ranges = 2 ** (bits - cidr.prefixlen) if bits >= cidr.prefixlen else 0
        least = cidr.max_prefixlen - bits
        if settings.cni != "flannel" or ranges >= nodes:
            if arguments.get("allocate-node-cidrs") != "false":
                _check_size("fabric_pod_cidr", settings.pod_cidr, cidr, (least, least + RANGE_BITS), findings)
        else:
            fitting = bits - (nodes - 1).bit_length()
            findings.error(
                "cidr",
                [],
                "flannel takes a range of fabric_pod_cidr for each node, and there are too few.",
                f"ranges of /{bits} in {cidr}: {ranges}; hosts in the inventory: {nodes}",
                f"Before the cluster is built, set fabric_pod_cidr to a /{fitting} or larger, or fabric_cni to calico.",
            )
