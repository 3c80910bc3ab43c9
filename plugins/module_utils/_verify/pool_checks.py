# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of address pools: free addresses, leaked addresses, and overlaps with other pools. Pure functions."""

from __future__ import annotations

import ipaddress
import typing as t

from .._common.text import shorten_list
from .._ipam.leaks import TWO_PODS
from .._ipam.planned_ranges import pool_names
from .._ipam.ranges import parse_ranges
from .._model.checks import Check
from .._model.plan import Plan, PlannedNetwork, PlannedSubnet
from .._model.pools import AddressPool, AddressSource, LeakedAddress
from .._model.probe import Probe
from .._model.stacks import STACKS, is_derived
from .._network import address_sets
from .catalog import LEFT_OVER, NOT_OURS, result, skip
from .pods import targets

WITHOUT_POOL = ("host-local", "static")
SHOWN = 3  # leaked addresses to name in one line
FREE_LEAKS = {
    "whereabouts": "Wait for whereabouts' reconciler (whereabouts_reconcile sets its schedule; where others installed"
    " it, reconciler_cron_expression), or remove the leaked entries: `kubectl edit -n NAMESPACE"
    " ippools.whereabouts.cni.cncf.io {name}`, with the namespace of whereabouts. Delete one of the pods that share an"
    " address.",
    "nv-ipam": "Delete the named pods, unless another network of this subnet gave them these addresses (annotation"
    " k8s.v1.cni.cncf.io/network-status): then change the range of that network. The nv-ipam-controller frees the block"
    " of a node that is gone.",
    **{stack.ipam: stack.leaks for stack in STACKS.values() if stack.leaks},
}


def check_pools(plan: Plan, probe: Probe) -> t.Iterator[Check]:
    for network in plan["networks"]:
        if not network["subnet"]:
            yield skip("ip_pool", "the plan has no subnet for this network", network=network["name"])
            continue
        # A node that is missing in the cluster is a separate finding.
        nodes = [
            target.node
            for target in targets(plan)
            if network["name"] in target.networks and target.node in probe["nodes"]
        ]
        # If two networks share a subnet, each has its own pool.
        others = {name for other in plan["networks"] if other != network for name in pool_names(other["ipam"])}
        pools = [pool for pool in probe["pools"] if pool["name"] not in others]
        for subnet in network["subnets"]:
            yield from subnet_checks(network, subnet, pools, nodes)


def subnet_checks(
    network: PlannedNetwork, subnet: PlannedSubnet, pools: t.Sequence[AddressPool], nodes: t.Sequence[str]
) -> t.Iterator[Check]:
    """The checks of the pools of one subnet; whereabouts creates a pool when it assigns the first address."""
    cidr = str(ipaddress.ip_network(subnet["cidr"], strict=False))
    mine = [pool for pool in pools if pool["cidr"] == cidr and counts(pool, str(network["ipam"].get("type")))]
    for pool in mine:
        yield pool_check(network["name"], subnet["needed"], pool, nodes)
    if not mine and network["ipam"].get("type") == "nv-ipam":
        yield result("ip_pool", False, f"an IPPool of {cidr}", "there is none", network=network["name"])
    elif not mine:
        poolless = network["ipam"].get("type") in WITHOUT_POOL
        kept = f"{network['ipam'].get('type')} keeps no pool in the API"
        none = f"there is no pool of {cidr} before the first address is given out"
        yield skip("ip_pool", kept if poolless else none, network=network["name"], later=not poolless)


def counts(pool: AddressPool, ipam: str) -> bool:
    """Whether a pool is this IPAM's own. Another IPAM's old pool counts while pods have addresses from it."""
    return pool["ipam"] == ipam or pool["allocated"] > len(lost(pool))


def lost(pool: AddressPool) -> t.List[LeakedAddress]:
    """Addresses that no pod has, and that are therefore not available to others."""
    return [entry for entry in pool["leaked"] if entry["why"] != TWO_PODS]


def pool_check(network: str, needed: int, pool: AddressPool, nodes: t.Sequence[str]) -> Check:
    """Check what is free, what leaked, and whether the planned pods still fit."""
    faults = []
    if pool["leaked"]:
        leaks = [f"{e['address']} ({e['why']}{': ' if e['pod'] else ''}{e['pod']})" for e in pool["leaked"]]
        faults.append(f"leaked: {shorten_list(leaks, SHOWN)}")
    full = exhausted(pool, nodes)
    if full:
        faults.append(full)
    room = pool["capacity"] - len(lost(pool))
    if room < needed:
        faults.append(f"room for {room} pods")
    # The probe reads the pools before its own pods get addresses.
    seen = "before the proof {usable} usable - {excluded} excluded - {allocated} allocated = {free} free".format(**pool)
    expected = "addresses free, none leaked" + (f", room for {needed} pods" if needed else "")
    seen = "; ".join([seen, *faults])
    check = result("ip_pool", not faults, expected, seen, network=network, subject=pool["name"])
    if pool["leaked"]:
        check = check._replace(next=FREE_LEAKS[pool["ipam"]].format(**pool))
    return check


def exhausted(pool: AddressPool, nodes: t.Sequence[str]) -> str:
    """Where the next pod would get no address; with nv-ipam, on which nodes."""
    if pool["ipam"] != "nv-ipam":
        return "" if pool["free"] else "exhausted"
    free = {block["node"]: block["free"] for block in pool["nodes"]}
    full = [node for node in nodes if free.get(node) == 0]
    without = [node for node in nodes if node not in free]
    texts = [f"exhausted on {', '.join(full)}" if full else "", f"no block for {', '.join(without)}" if without else ""]
    return "; ".join(filter(None, texts))


def check_overlaps(plan: Plan, probe: Probe) -> t.Iterator[Check]:
    """Check that nothing but the plan's own networks and pools assigns addresses of a network."""
    derived = is_derived(plan)  # then each network counts by itself: no plan says that they share no address
    own = {("NetworkAttachmentDefinition", n["namespace"], n["name"]) for n in plan["networks"] if not derived}
    pools = {pool for network in plan["networks"] for pool in address_sets.planned_pools(dict(network))}
    others = [
        each
        for each in probe["address_sources"]
        if (each["kind"], each["namespace"], each["name"]) not in own and (each["kind"], each["name"]) not in pools
    ]
    for network in plan["networks"]:
        if network["subnet"]:
            itself = ("NetworkAttachmentDefinition", network["namespace"], network["name"])
            mine = [each for each in others if (each["kind"], each["namespace"], each["name"]) != itself]
            yield overlap_check(network, mine)
        else:
            yield skip("pool_overlap", "the plan has no subnet for this network", network=network["name"])


def overlap_check(network: PlannedNetwork, others: t.Sequence[AddressSource]) -> Check:
    mine, stores = address_sets.planned_addresses(dict(network)), set(address_sets.stores(dict(network["ipam"])))
    seen, steps = [], set()
    for each in others:
        both = mine & parse_ranges(each["ranges"], each["what"])
        # A site's own attachment may use the same whereabouts store: that is one pool, and no duplicate address.
        if both and (each["ours"] or not stores & set(each["stores"])):
            owner = "left over" if each["ours"] else "not ours"
            steps.add(LEFT_OVER if each["ours"] else NOT_OURS)
            seen.append(f"{each['what']} ({each['ipam']}, {owner}): {address_sets.describe_addresses(both)}")
    text = "; ".join(seen) or "no other pool or range has them"
    expected = "addresses that no other pool gives out"
    check = result("pool_overlap", not seen, expected, text, network=network["name"])
    return check._replace(next=" ".join(sorted(steps, reverse=True)))
