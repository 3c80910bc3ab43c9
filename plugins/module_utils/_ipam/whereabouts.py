# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of whereabouts: what the API says of them, their networks and their reservations."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.leaks import (
    Holder,
    Pods,
    orphan,
    shared,
    sorted_by_address,
    why_orphaned,
)
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.pool_facts import by_node, pool_facts
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import Network, merge, size, subtract
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Object, field
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import NAD_API

WHEREABOUTS = "/apis/whereabouts.cni.cncf.io/v1alpha1"
ATTACHMENTS = f"/apis/{NAD_API}/network-attachment-definitions"


def ipams(attachment: Object) -> t.List[Object]:
    """The IPAM settings in an attachment's CNI configuration, which may be a chain of plugins."""
    try:
        config = json.loads(field(attachment, "spec.config") or "{}")
        return [plugin.get("ipam") or {} for plugin in (config, *config.get("plugins", ()))]
    except (ValueError, AttributeError, TypeError):
        return []  # such a network never gave out an address


def ranges_of(attachments: t.Iterable[Object]) -> t.Dict[Network, t.List[Object]]:
    """The IPAM settings of all whereabouts networks, by their CIDR: a pool itself knows no bounds and no excludes."""
    found: t.Dict[Network, t.List[Object]] = {}
    for ipam in (ipam for attachment in attachments for ipam in ipams(attachment)):
        with contextlib.suppress(ValueError, AttributeError, FabricError):  # it never gave out an address either
            if ipam.get("type") == "whereabouts":
                for entry in (ipam, *ipam.get("ipRanges", ())):
                    if entry.get("range"):
                        settings = bounds(entry)
                        found.setdefault(settings["cidr"], []).append(settings)
    return found


def bounds(entry: Object) -> Object:
    """CIDR, run of usable addresses and excluded runs of one range, `a-b/len` too."""
    low, _dash, rest = entry["range"].rpartition("-")
    interface = ipaddress.ip_interface(rest)
    cidr = interface.network
    first, last = int(cidr[0]) + 1, int(cidr[-1]) - 1
    start, end = (low, str(interface.ip)) if low else (entry.get("range_start"), entry.get("range_end"))
    # Bounds outside the usable addresses are ignored by whereabouts without a word.
    if start and first <= int(ipaddress.ip_address(start)) <= last:
        first = int(ipaddress.ip_address(start))
    if end and first <= int(ipaddress.ip_address(end)) <= last:
        last = int(ipaddress.ip_address(end))
    excluded = [ipaddress.ip_network(text, strict=False) for text in entry.get("exclude") or ()]
    return {
        "cidr": cidr,
        "usable": (first, last),
        "allowed": subtract((first, last), [(int(block[0]), int(block[-1])) for block in excluded]),
    }


def reserved_address(name: str, cidrs: t.Iterable[Network]) -> str:
    """The address in the name of an OverlappingRangeIPReservation: colons are hyphens, a network's name may precede."""
    parts = name.split("-")
    for start in range(len(parts)):
        for text in ("-".join(parts[start:]), ":".join(parts[start:])):
            with contextlib.suppress(ValueError):
                address = ipaddress.ip_address(text)
                if any(address in cidr for cidr in cidrs if cidr.version == address.version):
                    return str(address)
    return ""


def whereabouts_pools(
    pools: t.Sequence[Object], reservations: t.Sequence[Object], attachments: t.Sequence[Object], pods: Pods
) -> t.List[Object]:
    """A reservation outlives its allocation when a node dies between the two: it keeps the address from everybody."""
    ranges = ranges_of(attachments)
    starts = {pool["metadata"]["name"]: ipaddress.ip_interface(pool["spec"]["range"]) for pool in pools}
    cidrs = [start.network for start in starts.values()]
    reserved = [
        Holder(reserved_address(item["metadata"]["name"], cidrs), field(item, "spec.podref") or "")
        for item in reservations
    ]
    found = []
    for pool in pools:
        name = pool["metadata"]["name"]
        start, cidr = starts[name].ip, starts[name].network
        holders = {
            str(start + int(offset)): Holder(str(start + int(offset)), entry.get("podref") or "")
            for offset, entry in (pool["spec"].get("allocations") or {}).items()
            if offset.isdigit()
        }
        for holder in reserved:
            if holder.address and ipaddress.ip_address(holder.address) in cidr:
                holders.setdefault(holder.address, holder)
        settings = ranges.get(cidr) or [bounds({"range": str(cidr)})]
        usable = size(merge(setting["usable"] for setting in settings))
        capacity = size(merge(run for setting in settings for run in setting["allowed"]))
        orphans = [orphan(h.address, h.pod, why) for h in holders.values() for why in [why_orphaned(h, pods)] if why]
        found.append(
            pool_facts(
                name,
                "whereabouts",
                cidr,
                usable,
                capacity,
                len(holders),
                orphaned=sorted_by_address(orphans + shared(cidr, pods)),
                nodes=by_node(holders.values(), pods),
            )
        )
    return found
