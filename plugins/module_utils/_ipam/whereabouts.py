# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of whereabouts, from the API: its pools, networks and reservations."""

from __future__ import annotations

import contextlib
import ipaddress
import typing as t

from .._common.addresses import Network
from .._common.result import FabricError
from .._kube.multus import read_ipams
from .._kube.query import Object, query
from .._model.pools import AddressPool
from .leaks import Holder, Pods, held_twice, leaked_addresses
from .pool_facts import Counts, allocated_by_node, pool_facts
from .ranges import ip_range, read_address, read_range, union

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr

WHEREABOUTS = "/apis/whereabouts.cni.cncf.io/v1alpha1"


class Range(t.NamedTuple):
    """A range of an IPAM that allocates single addresses."""

    cidr: Network
    usable: netaddr.IPSet  # between its bounds
    allowed: netaddr.IPSet  # without excluded ones


def ranges_by_cidr(attachments: t.Iterable[Object]) -> t.Dict[Network, t.List[Range]]:
    """The ranges of all whereabouts networks, by their CIDR: a pool itself has neither bounds nor excludes."""
    found: t.Dict[Network, t.List[Range]] = {}
    for ipam in (ipam for attachment in attachments for ipam in read_ipams(attachment)):
        with contextlib.suppress(ValueError, AttributeError, TypeError, FabricError):  # unusable for whereabouts too
            if ipam.get("type") == "whereabouts":
                for entry in query("[@, ipRanges][] | [?range]", ipam):
                    each = bounded_range(entry)
                    found.setdefault(each.cidr, []).append(each)
    return found


def bounded_range(entry: Object) -> Range:
    """One range with its bounds and excludes; also in the notation `a-b/len`."""
    low, _dash, rest = entry["range"].rpartition("-")
    interface = ipaddress.ip_interface(rest)
    cidr = interface.network
    if cidr.num_addresses < 3:
        return Range(cidr, netaddr.IPSet(), netaddr.IPSet())
    bounds = ip_range(cidr[1], cidr[-2])
    start, end = (low, str(interface.ip)) if low else (entry.get("range_start"), entry.get("range_end"))
    # whereabouts silently ignores bounds outside the usable addresses.
    if start and read_address(start) in bounds:
        bounds = netaddr.IPRange(read_address(start), bounds[-1])
    if end and read_address(end) in bounds:
        bounds = netaddr.IPRange(bounds[0], read_address(end))
    usable = netaddr.IPSet(bounds)
    excluded = netaddr.IPSet([read_range(text, strict=False) for text in entry.get("exclude") or ()])
    return Range(cidr, usable, usable - excluded)


def reserved_address(name: str, cidrs: t.Iterable[Network]) -> str:
    """The address in an OverlappingRangeIPReservation's name: with hyphens for colons, perhaps after a network name."""
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
) -> t.List[AddressPool]:
    """Pools with their leaks. A reservation left by a node that died blocks its address, without an allocation."""
    ranges = ranges_by_cidr(attachments)
    starts = {pool["metadata"]["name"]: ipaddress.ip_interface(pool["spec"]["range"]) for pool in pools}
    cidrs = [start.network for start in starts.values()]
    reserved = [
        Holder(reserved_address(item["metadata"]["name"], cidrs), query("spec.podref", item) or "")
        for item in reservations
    ]
    found = []
    for pool in pools:
        name = pool["metadata"]["name"]
        start, cidr = starts[name].ip, starts[name].network
        holders = {
            str(start + int(offset)): Holder(str(start + int(offset)), entry.get("podref") or "")
            for offset, entry in (query("spec.allocations", pool) or {}).items()
            if offset.isdigit()
        }
        for holder in reserved:
            if holder.address and ipaddress.ip_address(holder.address) in cidr:
                holders.setdefault(holder.address, holder)
        bounded = ranges.get(cidr) or [bounded_range({"range": str(cidr)})]
        usable, allowed = union(each.usable for each in bounded), union(each.allowed for each in bounded)
        found.append(
            pool_facts(
                ("whereabouts", name, cidr),
                Counts(usable.size, allowed.size, len(holders)),
                [*leaked_addresses(holders.values(), pods), *held_twice(cidr, pods)],
                allocated_by_node(holders.values(), pods),
            )
        )
    return found
