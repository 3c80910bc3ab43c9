# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address ranges that a plan gives to pods, and why an address is outside of them."""

from __future__ import annotations

import contextlib
import itertools
import typing as t

from .._model.plan import Exclusion, Ipam, PlannedNetwork
from .ranges import read_address, read_range

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr


class PlannedRange(t.NamedTuple):
    """The addresses of one family that pods may have."""

    bounds: netaddr.IPRange
    excluded: t.List[netaddr.IPRange]  # as the plan lists them

    @property
    def text(self) -> str:
        return f"{self.bounds[0]} - {self.bounds[-1]}"


def read_entry(entry: t.Union[str, Exclusion]) -> netaddr.IPRange:
    """The range of a CIDR, an address, an `a-b` range, or a startIP/endIP pair."""
    return read_range(entry if isinstance(entry, str) else f"{entry['startIP']}-{entry['endIP']}", strict=False)


def planned_ranges(network: PlannedNetwork) -> t.Iterator[PlannedRange]:
    """The range of each family of a planned network."""
    for subnet, pool in itertools.zip_longest(network["subnets"], network["pools"]):
        excluded = [*subnet["exclude"], *(pool["exclusions"] if pool else ())]
        bounds = read_range(f"{subnet['range_start']}-{subnet['range_end']}")
        yield PlannedRange(bounds, [read_entry(entry) for entry in excluded])


def pool_names(ipam: Ipam) -> t.List[str]:
    """Names of the pools that pods of a planned network get addresses from; the plan names none for whereabouts."""
    of_stack = [*ipam.get("default_ipv4_ippool", []), *ipam.get("default_ipv6_ippool", [])]
    return [*filter(None, ipam.get("poolName", "").split(",")), *of_stack]


def address_fault(network: PlannedNetwork, address: str) -> str:
    """Why a pod should not have this address; empty if it may."""
    ip = read_address(address)
    ranges = list(planned_ranges(network))
    planned = next((each for each in ranges if each.bounds.version == ip.version), ranges[0])
    if ip not in planned.bounds:
        return f"{ip} is outside {planned.text}"
    for excluded in planned.excluded:
        if ip in excluded:
            return f"{ip} is excluded" + (f" ({excluded[0]} - {excluded[-1]})" if excluded.size > 1 else "")
    return ""
