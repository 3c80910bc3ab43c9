# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads addresses, CIDRs and ranges a-b into netaddr sets.

ipaddress parses the text: netaddr accepts more notations than people mean. A netaddr set costs the same for a /24 as
for an IPv6 /64; use its `.size`, because `len()` fails beyond 2^63.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import typing as t

from .._common.addresses import Address, Network
from .._common.addresses import read_address as by_text
from .._common.result import FabricError

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr


def read_address(text: str) -> netaddr.IPAddress:
    address = by_text(text)
    return netaddr.IPAddress(int(address), address.version)


def ip_range(first: Address, last: Address) -> netaddr.IPRange:
    return netaddr.IPRange(netaddr.IPAddress(int(first), first.version), netaddr.IPAddress(int(last), last.version))


def whole(network: Network) -> netaddr.IPRange:
    """All addresses of a network, including the first and the last."""
    return ip_range(network[0], network[-1])


def single_addresses(addresses: t.Iterable[Address]) -> netaddr.IPSet:
    """These addresses as a set. Neighbours are joined into ranges first: netaddr is slow with many single addresses."""
    runs: t.List[t.Tuple[Address, Address]] = []  # first and last
    for address in sorted(set(addresses), key=lambda each: (each.version, int(each))):
        if runs and runs[-1][1].version == address.version and int(runs[-1][1]) == int(address) - 1:
            runs[-1] = (runs[-1][0], address)
        else:
            runs.append((address, address))
    return netaddr.IPSet([ip_range(*run) for run in runs])


def read_range(text: str, strict: bool = True) -> netaddr.IPRange:
    """The range of an address, a CIDR or `a-b`. strict: refuse a CIDR with host bits."""
    if "-" in text:
        first, last = (ipaddress.ip_address(part.strip()) for part in text.split("-"))
        if first.version != last.version or int(first) > int(last):
            raise ValueError(f"{last} does not follow {first}")
        return ip_range(first, last)
    return whole(ipaddress.ip_network(text.strip(), strict=strict))


def without_host_bits(text: str) -> str:
    """How to write a CIDR that has host bits, which people copy from CNI configurations; empty for other texts."""
    try:
        network = str(ipaddress.ip_network(text.strip(), strict=False))
    except ValueError:
        return ""
    return f"Write {network}, without host bits. " if "/" in text and network != text.strip() else ""


def _meant_range(text: str) -> str:
    """How to write a range whose end is only its last number, or comes first; empty for other texts."""
    first, _dash, last = (part.strip() for part in text.partition("-"))
    whole_last = f"{first.rpartition('.')[0]}.{last}" if last.isdigit() else last
    for low, high in ((first, whole_last), (whole_last, first)):
        with contextlib.suppress(ValueError):
            read_range(f"{low}-{high}")
            return f"Write {low}-{high}."
    return ""


def parse_range(text: str, where: str) -> netaddr.IPRange:
    """The range of an address, a CIDR or `a-b` that a person wrote at `where`."""
    try:
        return read_range(text)
    except ValueError as error:
        raise FabricError(
            "An address, a CIDR or a range a-b was expected.",
            where,
            f"{text!r} ({error})",
            without_host_bits(text).strip()
            or _meant_range(text)
            or "Write it like 10.5.0.20, 10.5.0.64/26 or 10.5.0.10-10.5.0.20.",
            code="invalid-input",
        ) from error


@functools.lru_cache(maxsize=16)  # every rail of a large site reserves the same thousands of addresses
def _parse_ranges(texts: t.Tuple[str, ...], where: str) -> netaddr.IPSet:
    single, others = [], []
    for text in texts:
        try:
            single.append(by_text(text))
        except ValueError:
            others.append(parse_range(text, where))
    return netaddr.IPSet(others) | single_addresses(single)


def parse_ranges(texts: t.Iterable[str], where: str) -> netaddr.IPSet:
    """All addresses of several ranges, of both families. Do not change the set in place: it is cached."""
    return _parse_ranges(tuple(texts), where)


def parse_address(text: str, where: str) -> Address:
    try:
        return ipaddress.ip_address(text.strip())
    except ValueError as error:
        raise FabricError(
            "An IP address was expected.", where, f"{text!r}", "Write it like 10.5.0.1.", code="invalid-input"
        ) from error


def union(sets: t.Iterable[netaddr.IPSet]) -> netaddr.IPSet:
    return netaddr.IPSet([cidr for each in sets for cidr in each.iter_cidrs()])


def range_texts(addresses: netaddr.IPSet) -> t.List[str]:
    """A set as the fewest ranges `a-b`, IPv4 first."""
    return [str(each) for each in addresses.iter_ipranges()]
