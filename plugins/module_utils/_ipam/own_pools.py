# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of the stack with its own IPAM: for planned networks, and as a cluster has them. Pure."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import typing as t

from .._common.findings import Findings
from .._common.result import FabricError
from .._kube.query import Object, query
from .._model.plan import Ipam, PlannedNetwork
from .._model.pools import AddressPool
from .._model.stacks import OWN_IPAM, STACKS
from .leaks import Holder, Pods, canonical, held_twice, leaked_addresses
from .pool_facts import Counts, allocated_by_node, pool_facts
from .ranges import parse_range, parse_ranges

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr

STACK = STACKS[OWN_IPAM]
API = STACK.group
PATH = f"/apis/{API}"
# Its controller lists every address of a pool: half of an IPv6 subnet would not fit into memory.
POOL_MAX = 1 << 16
# For pods of these controllers, it keeps the addresses while a pod is away.
KEEPS_ADDRESSES = ("StatefulSet", "VirtualMachineInstance")


class Pool(t.NamedTuple):
    """The addresses of a pool: its span, and what is excluded from it."""

    name: str
    span: netaddr.IPRange
    excluded: netaddr.IPSet

    @property
    def version(self) -> int:
        return self.span.version

    @property
    def capacity(self) -> int:
        return self.span.size - self.excluded.size


def pool_of(network: PlannedNetwork) -> Pool:
    """The pool of a planned network, no larger than the stack can handle."""
    where, subnet = f"network {network['name']}", network.get("subnet")
    if not subnet:
        raise FabricError(
            f"A {STACK.title} network needs its subnet.",
            where,
            "no subnet",
            "Pass a network of a plan (fabric_plan, or plan.json), which has its subnet.",
            code="invalid-input",
        )
    bounds = parse_range(f"{subnet['range_start']}-{subnet['range_end']}", where)
    span = netaddr.IPRange(bounds[0], bounds[min(bounds.size, POOL_MAX) - 1])
    excluded = parse_ranges(subnet.get("exclude") or [], where) & netaddr.IPSet(span)
    planned = network.get("ipam") or {}
    named = planned.get("default_ipv4_ippool") or planned.get("default_ipv6_ippool")
    return Pool(named[0] if named else f"{network['name']}-v{span.version}", span, excluded)


def ipam(network: PlannedNetwork, name: str = "") -> Ipam:
    """The IPAM part of the CNI configuration that the stack writes for a network. name: of a pool the site chose."""
    pool = pool_of(network)
    if pool.version == 6:
        return {"type": STACK.ipam, "default_ipv6_ippool": [name or pool.name]}
    return {"type": STACK.ipam, "default_ipv4_ippool": [name or pool.name]}


def network_problems(network: PlannedNetwork) -> t.Iterator[t.Tuple[str, str]]:
    """Pairs of something that the stack can't do for a network, and the alternative."""
    if network.get("mode", "bridge") != "bridge":
        yield (
            f"mode is {network['mode']}",
            f"{STACK.title}'s macvlan networks are bridges: set mode to bridge in fabric_networks.",
        )
    if not network["master"]:
        yield "no master", "Name the NIC that the pods of this network join."


def check_networks(planned: t.Sequence[PlannedNetwork], found: Findings) -> None:
    """Findings for planned networks that the stack can't create as planned."""
    for network in planned:
        name, subnet = network["name"], network["subnet"]
        if not subnet:
            continue  # already a finding
        pool = pool_of(network)
        for seen, step in network_problems(network):
            found.error("networks", [], f"{name}: {STACK.title} can't create this network.", seen, step)
        if len(network.get("subnets") or []) > 1:
            found.error(
                "networks",
                [],
                f"{name}: with {STACK.title}, a network has only one address family.",
                ", ".join(entry["cidr"] for entry in network["subnets"]),
                "Name one family (key families), or set fabric_stack to network_operator.",
            )
        if not subnet["gateway"]:
            found.warning(
                "policy-routes",
                [],
                f"{name}: without a gateway, pods have no route of their own out of this rail.",
                "gateway is empty",
                "Set `gateway` in fabric_networks, unless all hosts of the rail are in its subnet.",
            )
        if pool.capacity < max(subnet["needed"], 1):
            found.error(
                "subnet",
                [],
                f"{name}: {STACK.title} uses only the first {POOL_MAX} addresses of a range.",
                f"{pool.capacity} of them are left for {subnet['needed']} pods",
                "Set `share` in fabric_networks to another part of the subnet.",
            )


def spider_pools(pools: t.Sequence[Object], endpoints: t.Sequence[Object], pods: Pods) -> t.List[AddressPool]:
    kept = {
        f"{endpoint['metadata']['namespace']}/{endpoint['metadata']['name']}"
        for endpoint in endpoints
        if query("status.ownerControllerType", endpoint) in KEEPS_ADDRESSES
    }
    found = []
    for pool in pools:
        name, spec = pool["metadata"]["name"], pool["spec"]
        cidr = ipaddress.ip_network(spec["subnet"], strict=False)
        holders = [
            Holder(canonical(address), entry.get("pod", ""), entry.get("podUid", ""))
            for address, entry in json.loads(query("status.allocatedIPs", pool) or "{}").items()
        ]
        usable, taken = (parse_ranges(spec.get(key) or (), name) for key in ("ips", "excludeIPs"))
        total = query("status.totalIPCount", pool)
        capacity = (usable - taken).size if total is None else total
        leaked = [*leaked_addresses(holders, pods, kept), *held_twice(cidr, pods)]
        counts = Counts(usable.size, capacity, len(holders))
        found.append(pool_facts((STACK.ipam, name, cidr), counts, leaked, allocated_by_node(holders, pods)))
    return found
