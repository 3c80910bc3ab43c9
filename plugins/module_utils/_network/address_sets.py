# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of nv-ipam pools, of IPAMs with their own ranges, and of planned networks; as sets to compare."""

from __future__ import annotations

import contextlib
import ipaddress
import typing as t

from .._common.result import FabricError
from .._ipam.nv_ipam import excluded_addresses
from .._ipam.ranges import ip_range, union
from .._ipam.whereabouts import Range, bounded_range
from .._kube.query import Object, query

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr

MALFORMED = (ValueError, KeyError, TypeError, AttributeError, FabricError)  # nobody gets an address from such entries


# ---- pools and IPAM configurations ----------------------------------------------------------------------------------


def describe_addresses(addresses: netaddr.IPSet) -> str:
    """The number of addresses, and the first and last of them."""
    ranges = list(addresses.iter_ipranges())
    first, last = ranges[0][0], ranges[-1][-1]
    return f"{addresses.size} addresses, {first} to {last}" if addresses.size > 1 else f"the address {first}"


def pool_addresses(spec: Object) -> netaddr.IPSet:
    """The addresses that an IPPool (subnet) or a CIDRPool (cidr) of nv-ipam may allocate."""
    block = ipaddress.ip_network(spec.get("subnet") or spec["cidr"], strict=False)
    first, last = (0, -1) if block.version == 6 or block.num_addresses < 4 else (1, -2)
    return netaddr.IPSet(ip_range(block[first], block[last])) - excluded_addresses(spec, "exclusions")


def read_ranges(ipam: Object) -> t.List[Range]:
    """The ranges of an IPAM that defines its own: whereabouts and host-local."""
    if ipam.get("type") == "whereabouts":
        entries = query("[@, ipRanges][]", ipam)
    elif ipam.get("type") == "host-local":
        entries = query("[@, ranges[]][].{range: subnet, range_start: rangeStart, range_end: rangeEnd}", ipam)
    else:
        entries = []
    return [bounded_range(entry) for entry in query("[?range]", entries)]


def range_addresses(ranges: t.Iterable[Range]) -> netaddr.IPSet:
    return union(each.allowed for each in ranges)


def stores(ipam: Object) -> t.List[str]:
    """Where whereabouts keeps its allocations: networks that share a store never get the same address."""
    if ipam.get("type") != "whereabouts":
        return []
    return [f"{ipam.get('network_name') or ''} {each.cidr}".strip() for each in read_ranges(ipam)]


def pool_names(ipam: Object) -> t.Set[t.Tuple[str, str]]:
    """Kind and name of the pools that an IPAM of type nv-ipam takes addresses from."""
    if ipam.get("type") != "nv-ipam":
        return set()
    kind = "CIDRPool" if ipam.get("poolType") == "cidrpool" else "IPPool"
    return {(kind, name.strip()) for name in str(ipam.get("poolName") or "").split(",") if name.strip()}


# ---- what is planned ------------------------------------------------------------------------------------------------


def planned_pools(network: Object) -> t.Set[t.Tuple[str, str]]:
    own = {("IPPool", pool["name"]) for pool in pools_of(network) if pool.get("name")}
    return own | pool_names(network.get("ipam") or {})


def planned_addresses(network: Object) -> netaddr.IPSet:
    """The addresses that pods on a planned network may get."""
    parts = [pool_addresses(pool) for pool in pools_of(network) if pool.get("subnet")]
    parts += [each.allowed for each in read_ranges(network.get("ipam") or {})]
    if not parts:  # the stack creates the pools
        subnets = network.get("subnets") or [network.get("subnet") or {}]
        parts = [bounded_range({**each, "range": each["cidr"]}).allowed for each in subnets if each]
    return union(parts)


def pools_of(network: Object) -> t.List[Object]:
    """The nv-ipam pools of a planned network."""
    return [pool for pool in network.get("pools") or [network.get("pool")] if pool]
