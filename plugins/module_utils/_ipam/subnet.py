# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address plan of one fabric subnet: which of its addresses pods may get, in the format of an IPAM."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import itertools
import typing as t

from .._common.addresses import Address, Interface, Network, read_address, read_interface
from .._common.result import FabricError
from .._common.text import shorten_list
from .._model.plan import Ipam, PoolSpec, SubnetPlan
from .blocks import most_per_node, plan_blocks, pool_spec
from .excludes import exclude_list
from .pod_share import WINDOW, Demand
from .ranges import parse_address, parse_range, parse_ranges, single_addresses, whole

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr

Interfaces = t.Mapping[str, Interface]  # by node name
Addresses = t.Mapping[str, Address]

SHOWN = 5  # names in a message
SUBNETS = 8  # subnets in a message
POINT_TO_POINT = 2  # host bits of a link between a node and a switch: /30 and longer
ROUTED = "https://github.com/ipu-fabric/ipu.fabric/blob/main/docs/networks.md#routed-rails"


CIDRS = {"pods": "fabric_pod_cidr", "services": "fabric_service_cidr"}


@dataclasses.dataclass(frozen=True)
class FabricNode:
    """A node's NIC on the fabric."""

    name: str
    address: str  # empty: the NIC has none, and the request states the subnet
    prefix: int  # bits
    mtu: int = 0  # bytes; 0: not known


@dataclasses.dataclass(frozen=True)
class SubnetRequest:
    """What is known of a subnet, and what is requested from it: the options of the module rdma_subnet."""

    nodes: t.Sequence[FabricNode]
    subnet: str = ""  # CIDR; empty: the subnet of the nodes' addresses
    gateway: str = ""
    reserved: t.Sequence[str] = ()  # addresses, CIDRs and ranges a-b, in any subnet, that pods must not get
    share: str = "upper_half"  # or all, a CIDR, a range a-b
    avoid: t.Sequence[str] = ()  # CIDRs that the subnet must not overlap
    # What uses these CIDRs, pods or services, and whether others manage that cluster. Not options of the module.
    avoid_of: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    avoid_stays: bool = False
    pods: int = 0  # addresses for all nodes together; 0: at least one
    ipam: str = "whereabouts"  # or nv-ipam
    ipam_release: str = ""  # of the network operator; empty: the newest
    pool_name: str = ""  # of the nv-ipam IPPool


def _interfaces(nodes: t.Sequence[FabricNode], stated: str) -> t.Dict[str, Interface]:
    """Each node's address with its prefix, by name; nodes need none if the subnet is stated."""
    found: t.Dict[str, Interface] = {}
    if not nodes:
        raise FabricError(
            "The fabric subnet comes from the nodes' addresses.",
            "nodes",
            "no node",
            "Give at least one node with its address.",
            code="invalid-input",
        )
    for node in [node for node in nodes if node.address or not stated]:
        name = node.name
        try:
            interface = read_interface(node.address, node.prefix)
        except ValueError as error:
            raise FabricError(
                "A node's fabric address with its prefix was expected.",
                f"node {name}",
                f"'{node.address}/{node.prefix}' ({error})",
                "Write it like 10.5.0.11 and 24.",
                code="invalid-input",
            ) from error
        address = read_address(node.address)
        if address.is_link_local or address.is_loopback or address.is_multicast:
            raise FabricError(
                "A fabric address must be reachable from other nodes.",
                f"node {name}",
                f"{interface}",
                "Give the fabric NIC a routable address, or select another NIC.",
                code="invalid-input",
            )
        found[name] = interface
    return found


def _refuse_several(groups: t.Mapping[Network, t.Sequence[str]]) -> t.NoReturn:
    """Say what several subnets mean here: a mistake, two families, or a routed rail."""
    listed = sorted(groups.items(), key=lambda item: (item[0].version, item[0]))
    what = "All nodes of one fabric network must be on one subnet."
    if len({network.version for network in groups}) > 1:
        step = "Give each node an address of the same family, or name the family that all have (key families)."
    elif any(one.overlaps(other) for one, other in itertools.combinations(groups, 2)):
        step = "Correct the prefix of the nodes that differ, or plan one network for each subnet."
    elif all(network.max_prefixlen - network.prefixlen <= POINT_TO_POINT for network in groups):
        what = "The rail is routed, with a point-to-point link for each node: its subnets have no address for a pod."
        step = (
            "On the switches, put the rail's NICs into one VLAN or VXLAN with one subnet, such as a /24. Otherwise"
            " leave this network out: only SR-IOV or host-device networks with a CIDRPool of nv-ipam can give a pod the"
            f" address of such a link, and this collection does not plan those: {ROUTED}"
        )
    else:
        what += " To pods, a routed subnet for each rack or node is a separate network."
        step = (
            "Plan one network for each subnet (keys hosts and select.subnet): its pods reach each other, and jobs stay"
            " within it. Or put all NICs of the network into one subnet (a VLAN or VXLAN), or correct a mistyped"
            f" address: {ROUTED}"
        )
    raise FabricError(
        what,
        "nodes",
        shorten_list((f"{network}: {shorten_list(sorted(names), SHOWN)}" for network, names in listed), SUBNETS, "; "),
        step,
        code="invalid-input",
    )


def _network(interfaces: Interfaces, own: Addresses, stated: str) -> Network:
    """The one subnet that all nodes share, or the stated one."""
    groups: t.Dict[Network, t.List[str]] = {}
    holders: t.Dict[Address, t.List[str]] = {}
    for name, interface in interfaces.items():
        groups.setdefault(interface.network, []).append(name)
        holders.setdefault(own[name], []).append(name)
    if len(groups) > 1 and not stated:
        _refuse_several(groups)
    for address, names in holders.items():
        if len(names) > 1:
            raise FabricError(
                "Each node needs an address of its own.",
                shorten_list(sorted(names), SHOWN),
                f"they share {address}",
                "Give each of them an address of its own.",
                code="invalid-input",
            )
    network = ipaddress.ip_network(stated) if stated else next(iter(groups))
    if network.max_prefixlen - network.prefixlen < 2:
        raise FabricError(
            "A fabric subnet needs room for pods.",
            "subnet" if stated else "nodes",
            f"{network} has no usable address besides the nodes'",
            f"Use a subnet of /{network.max_prefixlen - 2} or shorter"
            + ("" if stated else " on the fabric NICs")
            + f"; a /24 is usual. A point-to-point link has no address for a pod: {ROUTED}",
            code="invalid-input",
        )
    return network


def _refuse_overlap(network: Network, request: SubnetRequest) -> None:
    for text in request.avoid:
        if not netaddr.IPSet(parse_range(text, "avoid")).isdisjoint(netaddr.IPSet(whole(network))):
            raise FabricError(
                "The fabric subnet must not overlap another network of the cluster.",
                _whose(text, request),
                f"the fabric subnet is {network}",
                _where_to_go(text, request),
                code="invalid-input",
            )


def _whose(text: str, request: SubnetRequest) -> str:
    whose = request.avoid_of.get(text)
    if not whose:
        return f"avoid {text}"
    return f"the cluster's {whose} have {text}" if request.avoid_stays else f"{CIDRS[whose]} is {text}"


def _where_to_go(text: str, request: SubnetRequest) -> str:
    if request.avoid_stays:
        move = "Choose another `subnet`" if request.subnet else "Give the fabric NICs addresses of another subnet"
        return f"{move}, or select another NIC: the ranges of a cluster that is managed elsewhere stay as they are."
    variables = CIDRS.get(request.avoid_of.get(text, ""), " or ".join(CIDRS.values()))
    other = ", or another `subnet`." if request.subnet else ": the fabric's addresses are given by the hosts."
    return f"Choose another {variables}{other}"


def _gateway(network: Network, text: str, own: Addresses) -> t.Optional[Address]:
    if not text:
        return None
    gateway = parse_address(text, "gateway")
    if gateway not in network or gateway in (network[0], network[-1]):
        raise FabricError(
            "The gateway must be a host address of the fabric subnet.",
            "gateway",
            f"{gateway} is not one of {network}",
            "Correct `gateway`, or leave it empty.",
            code="invalid-input",
        )
    for name, address in own.items():
        if address == gateway:
            raise FabricError(
                "A pod cannot reach its own node over macvlan, so no node can be the gateway.",
                f"node {name}",
                f"it has the gateway's address {gateway}",
                "Move the gateway to a machine that runs no pods, or leave `gateway` empty.",
                code="invalid-input",
            )
    return gateway


def _taken(network: Network, own: Addresses, gateway: t.Optional[Address], reserved: t.Iterable[str]) -> netaddr.IPSet:
    """Addresses that no pod may get, whatever the share. IPv6 has no broadcast, but the last one is for anycast."""
    single = [network[0], network[-1], *own.values()]
    if gateway is not None:
        single.append(gateway)
    return single_addresses(single) | parse_ranges(reserved, "reserved")


def _mtu(nodes: t.Iterable[FabricNode]) -> t.Tuple[int, t.List[str]]:
    """The smallest MTU (0: none is known), and a warning if they differ."""
    by_mtu: t.Dict[int, t.List[str]] = {}
    for node in nodes:
        if node.mtu:
            by_mtu.setdefault(node.mtu, []).append(node.name)
    warnings = []
    if len(by_mtu) > 1:
        seen = "; ".join(f"{mtu}: {shorten_list(sorted(names), SHOWN)}" for mtu, names in sorted(by_mtu.items()))
        warnings.append(f"The fabric NICs have different MTUs; pods get the smallest ({seen}).")
    return min(by_mtu, default=0), warnings


def _ipam(ipam: str, cidr: str, ends: netaddr.IPRange, exclude: t.List[str], pool_name: str) -> Ipam:
    """The ipam of the network's custom resource."""
    if ipam == "nv-ipam":
        return {"type": ipam, "poolName": pool_name} if pool_name else {"type": ipam}
    # The excludes alone would do, but old releases step through an excluded half one address at a time.
    return {
        "type": ipam,
        "range": cidr,
        "range_start": str(ends[0]),
        "range_end": str(ends[-1]),
        "exclude": exclude,
    }


def plan_subnet(request: SubnetRequest) -> SubnetPlan:
    """Plan which addresses of the nodes' subnet pods can get."""
    if request.ipam not in ("whereabouts", "nv-ipam"):
        raise FabricError(
            "An IPAM was expected.", "ipam", f"{request.ipam!r}", "Choose whereabouts or nv-ipam.", code="invalid-input"
        )
    pods = request.pods
    if pods < 0:
        raise FabricError("A number of pods was expected.", "pods", str(pods), "Give 0 or more.", code="invalid-input")
    interfaces = _interfaces(request.nodes, request.subnet)
    own = {name: interface.ip for name, interface in interfaces.items()}
    network = _network(interfaces, own, request.subnet)
    _refuse_overlap(network, request)
    gateway = _gateway(network, request.gateway, own)
    taken = _taken(network, own, gateway, request.reserved)
    demand = Demand(network, taken, request.share, pods, len(request.nodes))
    allowed = demand.allowed(request.share)
    capacity = allowed.size
    if capacity < max(pods, 1):
        without = demand._replace(taken=_taken(network, own, gateway, ())).allowed(request.share).size
        raise FabricError(
            f"Addresses for {pods} pods were asked for." if pods else "Pods need addresses of the fabric subnet.",
            f"fabric subnet {network}, share {request.share}",
            f"{capacity} are left after those of the nodes, of the gateway and in `reserved`",
            f"Remove addresses from `reserved`: without it, {without} are left."
            if demand.allowed("all").size < max(pods, 1) <= without
            else demand.more_room(most_per_node(demand, allowed, request.ipam, request.ipam_release)),
            code="invalid-input",
        )
    mtu, warnings = _mtu(request.nodes)
    pool: t.Optional[PoolSpec] = None
    if request.ipam == "nv-ipam":
        blocks, block_size, more = plan_blocks(demand, allowed, request.ipam_release)
        allowed, capacity = blocks.allowed, sum(blocks.allocated(block_size, len(request.nodes)))
        pool = pool_spec(network, blocks, block_size, gateway)
        warnings += more
    others = [f"{name} {interface}" for name, interface in interfaces.items() if interface.network != network]
    if others:
        warnings.append(f"Nodes have a prefix other than {network}: {shorten_list(others, SHOWN)}.")
    if network.num_addresses > WINDOW:
        warnings.append(f"{network} is wider than IPAMs can count: pods get addresses of its first 2^53 only.")
    runs = list(allowed.iter_ipranges())
    ends = netaddr.IPRange(runs[0][0], runs[-1][-1])
    exclude = exclude_list(network, allowed)
    return {
        "cidr": str(network),
        "prefix": network.prefixlen,
        "gateway": str(gateway) if gateway is not None else "",
        "range_start": str(ends[0]),
        "range_end": str(ends[-1]),
        "exclude": exclude,
        "capacity": capacity,
        "mtu": mtu,
        "ipam": _ipam(request.ipam, str(network), ends, exclude, request.pool_name),
        "pool": pool,
        "warnings": warnings,
    }
