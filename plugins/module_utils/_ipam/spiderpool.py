# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of Spiderpool."""

from __future__ import annotations

import ipaddress
import json
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._ipam.leaks import (
    Holder,
    Pods,
    canonical,
    held_twice,
    leaked_addresses,
)
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.pool_facts import Counts, allocated_by_node, pool_facts
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import parse_ranges
from ansible_collections.ipu.fabric.plugins.module_utils._kube.query import Object, query
from ansible_collections.ipu.fabric.plugins.module_utils._model.pools import AddressPool

SPIDERPOOL = "/apis/spiderpool.spidernet.io/v2beta1"
# Spiderpool keeps the addresses of their pods while a pod is away.
KEEPS_ADDRESSES = ("StatefulSet", "VirtualMachineInstance")


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
        found.append(pool_facts(("spiderpool", name, cidr), counts, leaked, allocated_by_node(holders, pods)))
    return found
