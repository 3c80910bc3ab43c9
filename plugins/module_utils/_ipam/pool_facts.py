# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One address pool, in the shape that the module ip_pool_info returns."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._ipam.leaks import Holder, Pods
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import Network
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Object


def pool_facts(
    name: str, ipam: str, cidr: Network, usable: int, capacity: int, allocated: int, **more: t.Any
) -> Object:
    """One pool, in the shape that the module ip_pool_info returns."""
    return {
        "name": name,
        "ipam": ipam,
        "cidr": str(cidr),
        "usable": usable,
        "excluded": usable - capacity,
        "capacity": capacity,
        "allocated": allocated,
        "free": max(capacity - allocated, 0),
        **more,
    }


def by_node(holders: t.Iterable[Holder], pods: Pods) -> t.List[Object]:
    """How many addresses the pods of each node hold, where every node may take any."""
    counts: t.Dict[str, int] = {}
    for holder in holders:
        node = pods[holder.pod].node if holder.pod in pods else ""
        if node:
            counts[node] = counts.get(node, 0) + 1
    return [
        {"node": node, "range": "", "capacity": None, "allocated": count, "free": None}
        for node, count in sorted(counts.items())
    ]
