# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One address pool, in the format that ip_pool_info returns."""

from __future__ import annotations

import ipaddress
import typing as t

from .._common.addresses import Network
from .._model.pools import AddressPool, LeakedAddress, NodeAllocation
from .leaks import Holder, Pods


class Counts(t.NamedTuple):
    """Numbers of addresses of a pool."""

    usable: int
    capacity: int
    allocated: int


def pool_facts(
    pool: t.Tuple[str, str, Network],
    counts: Counts,
    leaked: t.Iterable[LeakedAddress],
    nodes: t.Iterable[NodeAllocation],
) -> AddressPool:
    """A pool by its IPAM, name and subnet; leaks sorted by address, nodes by name."""
    ipam, name, cidr = pool
    return {
        "name": name,
        "ipam": ipam,
        "cidr": str(cidr),
        "usable": counts.usable,
        "excluded": counts.usable - counts.capacity,
        "capacity": counts.capacity,
        "allocated": counts.allocated,
        "free": max(counts.capacity - counts.allocated, 0),
        "leaked": sorted(leaked, key=by_address),
        "nodes": sorted(nodes, key=lambda each: each["node"]),
    }


def by_address(leak: LeakedAddress) -> t.Tuple[int, int]:
    address = ipaddress.ip_address(leak["address"].split("-")[0])
    return address.version, int(address)


def allocated_by_node(holders: t.Iterable[Holder], pods: Pods) -> t.List[NodeAllocation]:
    """How many addresses the pods of each node hold, if the IPAM has no blocks and any node may take any address."""
    counts: t.Dict[str, int] = {}
    for holder in holders:
        node = pods[holder.pod].node if holder.pod in pods else ""
        if node:
            counts[node] = counts.get(node, 0) + 1
    return [
        {"node": node, "range": "", "capacity": None, "allocated": count, "free": None}
        for node, count in counts.items()
    ]
