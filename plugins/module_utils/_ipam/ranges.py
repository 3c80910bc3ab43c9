# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses, CIDRs and ranges a-b as people write them, and sets of them."""

from __future__ import annotations

import functools
import ipaddress
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError

Network = t.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]
Address = t.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Run = t.Tuple[int, int]
Runs = t.List[Run]


def merge(runs: t.Iterable[Run]) -> Runs:
    """Sorted runs; those that touch or overlap become one."""
    merged: Runs = []
    for first, last in sorted(runs):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def subtract(whole: Run, taken: t.Iterable[Run]) -> Runs:
    """What is left of `whole` without `taken`."""
    left: Runs = []
    start, end = whole
    for first, last in merge(taken):
        if last < start or first > end:
            continue
        if first > start:
            left.append((start, first - 1))
        start = last + 1
    if start <= end:
        left.append((start, end))
    return left


def size(runs: t.Iterable[Run]) -> int:
    return sum(last - first + 1 for first, last in runs)


@functools.lru_cache(maxsize=65536)  # every rail of a large site has the same thousands of addresses to look at
def _read_run(text: str) -> t.Tuple[int, Run]:
    if "-" in text:
        low, high = (ipaddress.ip_address(part.strip()) for part in text.split("-"))
        if low.version != high.version or int(low) > int(high):
            raise ValueError(f"{high} does not follow {low}")
        return low.version, (int(low), int(high))
    network = ipaddress.ip_network(text.strip())
    return network.version, (int(network[0]), int(network[-1]))


def parse_run(text: str, where: str) -> t.Tuple[int, Run]:
    """IP version and run of an address, a CIDR or an `a-b` range."""
    try:
        return _read_run(text)
    except ValueError as error:
        raise FabricError(
            "An address, a CIDR or a range a-b was expected.",
            where,
            f"{text!r} ({error})",
            "Write it like 10.5.0.20, 10.5.0.64/26 or 10.5.0.10-10.5.0.20.",
        ) from error


def parse_address(text: str, where: str) -> Address:
    try:
        return ipaddress.ip_address(text.strip())
    except ValueError as error:
        raise FabricError("An IP address was expected.", where, f"{text!r}", "Write it like 10.5.0.1.") from error
