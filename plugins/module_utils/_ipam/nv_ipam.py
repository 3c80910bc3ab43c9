# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of nv-ipam, which gives each node a block."""

from __future__ import annotations

import ipaddress
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._ipam.leaks import (
    NO_NODE,
    OTHER_BLOCK,
    Holder,
    Pods,
    orphan,
    shared,
    sorted_by_address,
)
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.pool_facts import pool_facts
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import Run, merge, parse_run, size, subtract
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Object, field

NV_IPAM = "/apis/nv-ipam.nvidia.com/v1alpha1/ippools"


def nv_ipam_pools(pools: t.Sequence[Object], pods: Pods, nodes: t.Collection[str]) -> t.List[Object]:
    """The API knows only which block a node has; which pod has which address is read off the pods."""
    return [nv_ipam_pool(pool, pods, nodes) for pool in pools]


def nv_ipam_pool(pool: Object, pods: Pods, nodes: t.Collection[str]) -> Object:
    name, spec = pool["metadata"]["name"], pool["spec"]
    cidr = ipaddress.ip_network(spec["subnet"], strict=False)
    taken = [parse_run(f"{e['startIP']}-{e['endIP']}", name)[1] for e in spec.get("exclusions") or ()]
    if spec.get("gateway"):
        taken.append(parse_run(spec["gateway"], name)[1])
    held = [
        (Holder(address, key), pod)
        for key, pod in sorted(pods.items())
        for address in dict.fromkeys(pod.attached)
        if ipaddress.ip_address(address) in cidr
    ]
    addresses = {holder.address for holder, _pod in held}
    orphans = shared(cidr, pods)
    blocks: t.List[Object] = []
    runs: t.Dict[str, Run] = {}
    for block in field(pool, "status.allocations") or ():
        node = block["nodeName"]
        run = runs[node] = parse_run(f"{block['startIP']}-{block['endIP']}", name)[1]
        text = f"{block['startIP']}-{block['endIP']}"
        if node not in nodes:
            orphans.append(orphan(text, "", f"{NO_NODE}: {node}"))
        indexes = [(run[0] + e["startIndex"], run[0] + e["endIndex"]) for e in spec.get("perNodeExclusions") or ()]
        capacity = size(subtract(run, taken + indexes))
        allocated = sum(run[0] <= int(ipaddress.ip_address(address)) <= run[1] for address in addresses)
        blocks.append(
            {
                "node": node,
                "range": text,
                "capacity": capacity,
                "allocated": allocated,
                "free": max(capacity - allocated, 0),
            }
        )
    for holder, pod in held:
        first, last = runs.get(pod.node, (1, 0))
        if pod.node and not first <= int(ipaddress.ip_address(holder.address)) <= last:
            orphans.append(orphan(holder.address, holder.pod, OTHER_BLOCK))
    return pool_facts(
        name,
        "nv-ipam",
        cidr,
        size(merge(runs.values())),
        sum(block["capacity"] for block in blocks),
        len(addresses),
        orphaned=sorted_by_address(orphans),
        nodes=sorted(blocks, key=lambda block: str(block["node"])),
    )
