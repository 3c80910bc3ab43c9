# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address plan of one fabric network: which addresses pods may get, and how to say so to an IPAM.

Addresses are whole numbers here, sets of them sorted runs `(first, last)` that neither touch nor overlap: a /16 with
1,000 nodes and an IPv6 /64 cost the same. `ipaddress` of the standard library does it: one dependency less.
"""

from __future__ import annotations

import ipaddress
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.blocks import plan_blocks, pool_spec
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.excludes import exclude_list
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import (
    Address,
    Network,
    Runs,
    merge,
    parse_address,
    parse_run,
    size,
)
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.shares import WINDOW, Demand


def _names(names: t.Iterable[str], most: int = 5) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def _interfaces(nodes: t.Sequence[t.Mapping[str, t.Any]]) -> t.Dict[str, t.Any]:
    """Each node's address with its prefix, by name."""
    found: t.Dict[str, t.Any] = {}
    if not nodes:
        raise FabricError(
            "The fabric subnet comes from the nodes' addresses.",
            "nodes",
            "no node",
            "Give at least one node with its address.",
        )
    for node in nodes:
        name, text = str(node["name"]), f"{node['address']}/{node['prefix']}"
        try:
            interface = ipaddress.ip_interface(text)
        except ValueError as error:
            raise FabricError(
                "A node's fabric address with its prefix was expected.",
                f"node {name}",
                f"{text!r} ({error})",
                "Write it like 10.5.0.11 and 24.",
            ) from error
        if interface.ip.is_link_local or interface.ip.is_loopback or interface.ip.is_multicast:
            raise FabricError(
                "A fabric address must be reachable from other nodes.",
                f"node {name}",
                f"{interface}",
                "Give the fabric NIC a routable address, or select another NIC.",
            )
        found[name] = interface
    return found


def _network(interfaces: t.Mapping[str, t.Any]) -> Network:
    """The one subnet that all nodes share."""
    groups: t.Dict[Network, t.List[str]] = {}
    holders: t.Dict[Address, t.List[str]] = {}
    for name, interface in interfaces.items():
        groups.setdefault(interface.network, []).append(name)
        holders.setdefault(interface.ip, []).append(name)
    if len(groups) > 1:
        raise FabricError(
            "All nodes of one fabric network must be on one subnet.",
            "nodes",
            "; ".join(
                f"{network}: {_names(names)}"
                for network, names in sorted(groups.items(), key=lambda item: str(item[0]))
            ),
            "Mend the prefix of the nodes that differ, or plan one network for each subnet.",
        )
    for address, names in holders.items():
        if len(names) > 1:
            raise FabricError(
                "Each node needs an address of its own.",
                _names(names),
                f"both have {address}",
                "Give one of them another address.",
            )
    network = next(iter(groups))
    if network.max_prefixlen - network.prefixlen < 2:
        raise FabricError(
            "A fabric subnet needs room for pods.",
            "nodes",
            f"{network} has no usable address besides the nodes'",
            f"Use a subnet of /{network.max_prefixlen - 2} or shorter on the fabric NICs; a /24 is usual.",
        )
    return network


def _refuse_overlap(network: Network, avoid: t.Iterable[str]) -> None:
    for text in avoid:
        version, (first, last) = parse_run(text, "avoid")
        if version == network.version and first <= int(network[-1]) and last >= int(network[0]):
            raise FabricError(
                "The fabric subnet must not overlap another network of the cluster.",
                f"avoid {text}",
                f"the fabric subnet is {network}",
                "Choose another pod or service CIDR: the fabric's addresses are given by the hosts.",
            )


def _gateway(network: Network, text: str, interfaces: t.Mapping[str, t.Any]) -> t.Optional[Address]:
    if not text:
        return None
    gateway = parse_address(text, "gateway")
    if gateway not in network or gateway in (network[0], network[-1]):
        raise FabricError(
            "The gateway must be a host address of the fabric subnet.",
            "gateway",
            f"{gateway} is not one of {network}",
            "Correct it, or leave it empty.",
        )
    for name, interface in interfaces.items():
        if interface.ip == gateway:
            raise FabricError(
                "A pod cannot reach its own node over macvlan, so no node can be the gateway.",
                f"node {name}",
                f"it has the gateway's address {gateway}",
                "Move the gateway to a machine that runs no pods, or leave it empty.",
            )
    return gateway


def _taken(
    network: Network, interfaces: t.Mapping[str, t.Any], gateway: t.Optional[Address], reserved: t.Iterable[str]
) -> Runs:
    """What no pod may get, wherever the share lies. IPv6 has no broadcast address, but its last one is for anycast."""
    single = [network[0], network[-1], *(interface.ip for interface in interfaces.values())]
    if gateway is not None:
        single.append(gateway)
    runs = [(int(address), int(address)) for address in single]
    runs += [run for version, run in (parse_run(text, "reserved") for text in reserved) if version == network.version]
    return merge(runs)


def _mtu(nodes: t.Iterable[t.Mapping[str, t.Any]]) -> t.Tuple[int, t.List[str]]:
    """The least MTU (0: none is known), and a warning when they differ."""
    by_mtu: t.Dict[int, t.List[str]] = {}
    for node in nodes:
        if node.get("mtu"):
            by_mtu.setdefault(int(node["mtu"]), []).append(str(node["name"]))
    warnings = []
    if len(by_mtu) > 1:
        seen = "; ".join(f"{mtu}: {_names(names)}" for mtu, names in sorted(by_mtu.items()))
        warnings.append(f"The fabric NICs have different MTUs, pods get the least ({seen}).")
    return min(by_mtu, default=0), warnings


def _ipam(ipam: str, subnet: t.Mapping[str, t.Any], pool_name: str) -> t.Dict[str, t.Any]:
    """The ipam of the network's CR."""
    if ipam == "nv-ipam":
        return {"type": ipam, "poolName": pool_name} if pool_name else {"type": ipam}
    # The excludes alone would do, but old releases walk through an excluded half address by address.
    return {
        "type": ipam,
        "range": subnet["cidr"],
        **{key: subnet[key] for key in ("range_start", "range_end", "exclude")},
    }


def plan_subnet(
    *,
    nodes: t.Sequence[t.Mapping[str, t.Any]],
    gateway: str = "",
    reserved: t.Sequence[str] = (),
    share: str = "upper_half",
    avoid: t.Sequence[str] = (),
    pods: int = 0,
    ipam: str = "whereabouts",
    ipam_release: str = "26.4.1",
    pool_name: str = "",
) -> t.Dict[str, t.Any]:
    """Plan which addresses of the nodes' subnet pods get. See the module rdma_subnet for the options and the result."""
    if ipam not in ("whereabouts", "nv-ipam"):
        raise FabricError("An IPAM was expected.", "ipam", f"{ipam!r}", "Choose whereabouts or nv-ipam.")
    if pods < 0:
        raise FabricError("A number of pods was expected.", "pods", str(pods), "Give 0 or more.")
    interfaces = _interfaces(nodes)
    network = _network(interfaces)
    _refuse_overlap(network, avoid)
    gateway_address = _gateway(network, gateway, interfaces)
    demand = Demand(network, _taken(network, interfaces, gateway_address, reserved), share, pods, len(interfaces))
    allowed = demand.allowed(share)
    capacity = size(allowed)
    if capacity < max(pods, 1):
        raise FabricError(
            f"Addresses for {pods} pods were asked for." if pods else "Pods need addresses of the fabric subnet.",
            f"fabric subnet {network}, share {share}",
            f"{capacity} are left without the nodes', the gateway's and the reserved ones",
            demand.more_room(),
        )
    mtu, warnings = _mtu(nodes)
    pool = None
    if ipam == "nv-ipam":
        blocks, block_size, more = plan_blocks(demand, allowed, ipam_release)
        allowed, capacity = blocks.allowed, sum(blocks.dealt(block_size, len(interfaces)))
        pool = pool_spec(network, blocks, block_size, gateway_address)
        warnings += more
    if network.num_addresses > WINDOW:
        warnings.append(f"{network} is wider than IPAMs can count: pods get addresses of its first 2^53 only.")
    subnet = {
        "cidr": str(network),
        "prefix": network.prefixlen,
        "gateway": str(gateway_address) if gateway_address is not None else "",
        "range_start": str(type(network[0])(allowed[0][0])),
        "range_end": str(type(network[0])(allowed[-1][1])),
        "exclude": exclude_list(network, allowed),
        "capacity": capacity,
        "mtu": mtu,
    }
    return {**subnet, "ipam": _ipam(ipam, subnet, pool_name), "pool": pool, "warnings": warnings}
