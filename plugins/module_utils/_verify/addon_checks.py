# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of what networks rest on: multus and Node Feature Discovery, pools of addresses. Pure."""

from __future__ import annotations

import ipaddress
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._ipam.leaks import TWO_PODS
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import parse_ranges
from ansible_collections.ipu.fabric.plugins.module_utils._network import overlaps
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import Check, result, skip
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pods import Facts, targets

SHOWN = 3  # leaked addresses that are named in one line
FREE_LEAKS = {
    "whereabouts": "Let whereabouts' reconciler run (reconciler_cron_expression), or take the leaked entries out of "
    "`kubectl edit ippools.whereabouts.cni.cncf.io {name}`; delete one of the pods that share an address.",
    "nv-ipam": "Delete the pods that are named; the block of a node that is gone is freed by the nv-ipam-controller.",
    "spiderpool": "Look at the log of the spiderpool-controller: its garbage collection frees them, if it is on.",
}


def judge_addons(plan: Facts, probe: Facts) -> t.Iterator[Check]:
    addons = probe.get("addons") or {"nfd": [], "multus": [], "multus_nodes": []}
    for check, name in (("nfd", "nfd"), ("multus_once", "multus")):
        found = addons[name]
        yield result(check, len(found) < 2, "one at most", ", ".join(found) or "none")
    for target in targets(plan):
        if not addons["multus"]:
            yield skip("multus_node", "multus is no DaemonSet of this cluster", node=target.node)
        elif target.networks and target.node in probe["nodes"]:
            good, names = target.node in addons["multus_nodes"], ", ".join(addons["multus"])
            seen = f"{names}: ready" if good else f"{names}: no ready pod on this node"
            yield result("multus_node", good, "a ready pod of multus", seen, node=target.node)


def judge_pools(plan: Facts, probe: Facts) -> t.Iterator[Check]:
    for network in plan.get("networks", []):
        if not network.get("subnet"):
            yield skip("ip_pool", "the plan has no subnet for this network", network=network["name"])
            continue
        nodes = [target.node for target in targets(plan) if network["name"] in target.networks]
        for subnet in network.get("subnets") or [network["subnet"]]:
            yield from judge_subnet(network, subnet, probe.get("pools") or [], nodes)


def judge_subnet(network: Facts, subnet: Facts, pools: t.Sequence[Facts], nodes: t.Sequence[str]) -> t.Iterator[Check]:
    """The pools of one subnet; whereabouts makes its pool when it gives out the first address."""
    cidr = str(ipaddress.ip_network(subnet["cidr"], strict=False))
    mine = [pool for pool in pools if pool["cidr"] == cidr]
    for pool in mine:
        yield pool_check(network["name"], subnet.get("needed") or 0, pool, nodes)
    if not mine and (network.get("ipam") or {}).get("type") == "nv-ipam":
        yield result("ip_pool", False, f"an IPPool of {cidr}", "there is none", network=network["name"])
    elif not mine:
        yield skip(
            "ip_pool", f"there is no pool of {cidr} before the first address is given out", network=network["name"]
        )


def pool_check(network: str, needed: int, pool: Facts, nodes: t.Sequence[str]) -> Check:
    """What is left, what leaked, and whether the pods that were planned still find room."""
    leaked = [entry for entry in pool["leaked"] if entry["why"] != TWO_PODS]
    faults = []
    if pool["leaked"]:
        told = [f"{e['address']} ({e['why']}{': ' if e['pod'] else ''}{e['pod']})" for e in pool["leaked"][:SHOWN]]
        more = len(pool["leaked"]) - SHOWN
        faults.append(f"leaked: {', '.join(told)}" + (f" and {more} more" if more > 0 else ""))
    full = exhausted(pool, nodes)
    if full:
        faults.append(full)
    room = pool["capacity"] - len(leaked)
    if room < needed:
        faults.append(f"room for {room} pods")
    seen = "{usable} usable - {excluded} excluded - {allocated} allocated = {free} free".format(**pool)
    expected = "addresses free, none leaked" + (f", room for {needed} pods" if needed else "")
    seen = "; ".join([seen, *faults])
    check = result("ip_pool", not faults, expected, seen, network=network, subject=pool["name"])
    if pool["leaked"]:
        check = check._replace(next=FREE_LEAKS[pool["ipam"]].format(**pool))
    return check


def exhausted(pool: Facts, nodes: t.Sequence[str]) -> str:
    """Where the next pod would get no address; of nv-ipam that is a matter of each node."""
    if pool["ipam"] != "nv-ipam":
        return "" if pool["free"] else "exhausted"
    free = {block["node"]: block["free"] for block in pool["nodes"]}
    full = [node for node in nodes if free.get(node) == 0]
    without = [node for node in nodes if node not in free]
    texts = [f"exhausted on {', '.join(full)}" if full else "", f"no block for {', '.join(without)}" if without else ""]
    return "; ".join(filter(None, texts))


def judge_overlaps(plan: Facts, probe: Facts) -> t.Iterator[Check]:
    """Whether anybody but the plan's own networks and pools deals a network's addresses."""
    networks = plan.get("networks", [])
    own = {("NetworkAttachmentDefinition", n.get("namespace") or "default", n["name"]) for n in networks}
    pools = {pool for network in networks for pool in overlaps.planned_pools(network)}
    others = [
        each
        for each in probe.get("address_sources") or []
        if (each["kind"], each["namespace"], each["name"]) not in own and (each["kind"], each["name"]) not in pools
    ]
    for network in networks:
        if not network.get("subnet"):
            yield skip("pool_overlap", "the plan has no subnet for this network", network=network["name"])
            continue
        mine, stores = overlaps.planned_addresses(network), set(overlaps.stores(network.get("ipam") or {}))
        seen = []
        for each in others:
            both = mine & parse_ranges(each["ranges"], each["what"])
            # A site's own attachment may deal from the same store of whereabouts: one pool, and no address twice.
            if both and (each["ours"] or not stores & set(each["stores"])):
                maker = "left over" if each["ours"] else "not ours"
                seen.append(f"{each['what']} ({each['ipam']}, {maker}): {overlaps.describe_addresses(both)}")
        text = "; ".join(seen) or "no other pool or range has them"
        yield result("pool_overlap", not seen, "addresses that nobody else deals", text, network=network["name"])
