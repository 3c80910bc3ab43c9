# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of nv-ipam, which gives each node a block."""

from __future__ import annotations

import bisect
import contextlib
import ipaddress
import typing as t

from .._kube.query import Object, query
from .._model.plan import PoolSpec
from .._model.pools import AddressPool, LeakedAddress, NodeAllocation
from .leaks import NO_NODE, OTHER_BLOCK, Holder, Pod, Pods, held_twice
from .pool_facts import Counts, pool_facts
from .ranges import parse_range, parse_ranges

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr

# Node names, in the form in which the plan selects nodes.
SELECTED = "nodeSelector.nodeSelectorTerms[].matchExpressions[] | [?key=='kubernetes.io/hostname'].values[]"
NV_IPAM = "/apis/nv-ipam.nvidia.com/v1alpha1/ippools"

Blocks = t.Mapping[str, "netaddr.IPRange"]  # by node


def nv_ipam_pools(pools: t.Sequence[Object], pods: Pods, nodes: t.Collection[str]) -> t.List[AddressPool]:
    """Pools with their leaks. The API knows only the block of each node; the addresses come from the pods."""
    blocks = [read_blocks(pool) for pool in pools]
    return [
        nv_ipam_pool(pool, own, [other for other in blocks if other is not own], pods, nodes)
        for pool, own in zip(pools, blocks)
    ]


def read_blocks(pool: Object) -> Blocks:
    name = pool["metadata"]["name"]
    return {
        item["nodeName"]: parse_range(f"{item['startIP']}-{item['endIP']}", name)
        for item in query("status.allocations", pool) or ()
    }


def has(blocks: Blocks, node: str, address: str) -> bool:
    """Whether the address is in the node's block."""
    return node in blocks and netaddr.IPAddress(address) in blocks[node]


def excluded_addresses(spec: Object, where: str) -> netaddr.IPSet:
    """The addresses that the spec of an IPPool or a CIDRPool excludes on all nodes; the gateway is not among them."""
    return parse_ranges(query("exclusions[].join('-', [startIP, endIP])", spec) or (), where)


def keeps_block(spec: t.Union[Object, PoolSpec], node: str, block: str) -> bool:
    """Whether a node keeps its block `a-b` under this spec of an IPPool, by the rules of nv-ipam's controller."""
    network, size = ipaddress.ip_network(spec["subnet"], strict=False), spec["perNodeBlockSize"]
    first, last = map(ipaddress.ip_address, block.split("-"))
    nodes = query(SELECTED, spec)
    if first not in network or last not in network or (nodes and node not in nodes):
        return False
    skipped = 1 if network.num_addresses > 2 else 0  # the network's own address
    offset = int(first) - int(network[skipped])
    return offset >= 0 and offset % size == 0 and int(last) - int(first) + 1 == size


def nv_ipam_pool(
    pool: Object, blocks: Blocks, others: t.Sequence[Blocks], pods: Pods, nodes: t.Collection[str]
) -> AddressPool:
    """One pool with its blocks. others: those of the other pools, which may be parts of the same subnet."""
    name, spec = pool["metadata"]["name"], pool["spec"]
    cidr = ipaddress.ip_network(spec["subnet"], strict=False)
    taken = excluded_addresses(spec, name)
    if spec.get("gateway"):
        taken |= parse_ranges([spec["gateway"]], name)

    def elsewhere(pod: Pod, address: str) -> bool:
        return any(has(each, pod.node, address) for each in others)

    held = [
        (Holder(address, key), pod)
        for key, pod in sorted(pods.items())
        for address in dict.fromkeys(pod.attached)
        if ipaddress.ip_address(address) in cidr and (has(blocks, pod.node, address) or not elsewhere(pod, address))
    ]
    addresses = sorted({netaddr.IPAddress(holder.address) for holder, _pod in held})
    leaked: t.List[LeakedAddress] = held_twice(cidr, pods)
    allocations: t.List[NodeAllocation] = []
    for node, block in blocks.items():
        text = f"{block[0]}-{block[-1]}"
        if node not in nodes:
            leaked.append({"address": text, "pod": "", "why": f"{NO_NODE}: {node}"})
        own = [
            netaddr.IPRange(block[0] + each["startIndex"], block[0] + each["endIndex"])
            for each in spec.get("perNodeExclusions") or ()
            if each["startIndex"] <= each["endIndex"]
        ]
        capacity = (netaddr.IPSet(block) - taken - netaddr.IPSet(own)).size
        allocated = bisect.bisect(addresses, block[-1]) - bisect.bisect_left(addresses, block[0])
        free = max(capacity - allocated, 0)
        allocations.append({"node": node, "range": text, "capacity": capacity, "allocated": allocated, "free": free})
    for holder, pod in held:
        if pod.node and not has(blocks, pod.node, holder.address):
            leaked.append({"address": holder.address, "pod": holder.pod, "why": OTHER_BLOCK})
    capacity = sum(each["capacity"] or 0 for each in allocations)
    counts = Counts(netaddr.IPSet(blocks.values()).size, capacity, len(addresses))
    return pool_facts(("nv-ipam", name, cidr), counts, leaked, allocations)
