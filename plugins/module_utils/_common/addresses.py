# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses and networks from their text. Each is parsed only once, not for every pair of network and link."""

from __future__ import annotations

import functools
import ipaddress
import typing as t

Address = t.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Interface = t.Union[ipaddress.IPv4Interface, ipaddress.IPv6Interface]
Network = t.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]


@functools.lru_cache(maxsize=None)
def read_address(text: str) -> Address:
    """An address. ValueError, with the reason, if it is invalid."""
    return ipaddress.ip_address(text)


@functools.lru_cache(maxsize=None)
def read_interface(address: str, prefix: int) -> Interface:
    """An address with its prefix length. ValueError if it is invalid."""
    return ipaddress.ip_interface(f"{address}/{prefix}")


@functools.lru_cache(maxsize=None)
def read_network(text: str, strict: bool = True) -> Network:
    """A network in CIDR notation; strict: without host bits. ValueError if it is invalid."""
    return ipaddress.ip_network(text, strict=strict)


def normal_addresses(given: t.Iterable[str]) -> t.Set[str]:
    """Addresses in uniform notation, without empty ones; invalid ones stay as they are."""
    found = set()
    for address in filter(None, given):
        try:
            found.add(str(read_address(address)))
        except ValueError:
            found.add(address)
    return found
