# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of Spiderpool."""

from __future__ import annotations

import ipaddress
import json
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._ipam.leaks import (
    NEWER_POD,
    NO_POD,
    Holder,
    Pods,
    orphan,
    plain,
    shared,
    sorted_by_address,
    why_orphaned,
)
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.pool_facts import by_node, pool_facts
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import Runs, merge, parse_run, size, subtract
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Object, field

SPIDERPOOL = "/apis/spiderpool.spidernet.io/v2beta1"
# Spiderpool keeps the addresses of their pods while a pod is away.
KEEPS_ADDRESSES = ("StatefulSet", "VirtualMachineInstance")


def spider_pools(pools: t.Sequence[Object], endpoints: t.Sequence[Object], pods: Pods) -> t.List[Object]:
    kept = {
        f"{endpoint['metadata']['namespace']}/{endpoint['metadata']['name']}"
        for endpoint in endpoints
        if field(endpoint, "status.ownerControllerType") in KEEPS_ADDRESSES
    }
    found = []
    for pool in pools:
        name, spec = pool["metadata"]["name"], pool["spec"]
        cidr = ipaddress.ip_network(spec["subnet"], strict=False)
        holders = [
            Holder(plain(address), entry.get("pod", ""), entry.get("podUid", ""))
            for address, entry in json.loads(field(pool, "status.allocatedIPs") or "{}").items()
        ]
        orphans = [
            orphan(h.address, h.pod, why)
            for h in holders
            for why in [why_orphaned(h, pods)]
            if why and not (h.pod in kept and why in (NO_POD, NEWER_POD))
        ]
        usable: Runs = merge(parse_run(text, name)[1] for text in spec.get("ips") or ())
        taken = [parse_run(text, name)[1] for text in spec.get("excludeIPs") or ()]
        total = field(pool, "status.totalIPCount")
        capacity = sum(size(subtract(run, taken)) for run in usable) if total is None else total
        found.append(
            pool_facts(
                name,
                "spiderpool",
                cidr,
                size(usable),
                capacity,
                len(holders),
                orphaned=sorted_by_address(orphans + shared(cidr, pods)),
                nodes=by_node(holders, pods),
            )
        )
    return found
