# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses and host:port as text."""

from __future__ import annotations

import typing as t

from .._common.addresses import Address, read_address
from .._model.observation import ADVERTISED, LEASE, LinkAddress


def parse_address(text: str) -> t.Optional[Address]:
    """The address, or None where the text is no IP address."""
    try:
        return read_address(text)
    except ValueError:
        return None


def static_first(addresses: t.Iterable[LinkAddress]) -> t.List[LinkAddress]:
    """Those that somebody set, then leases, single ones after them, which tell no subnet (as DHCPv6 gives them).

    Last come those of router advertisements, which `ip` lists before the others.
    """

    def key(one: LinkAddress) -> t.Tuple[bool, bool, bool]:
        single = one["prefix"] == (128 if ":" in one["address"] else 32)
        return one.get("origin") == ADVERTISED, single, one.get("origin") == LEASE

    return sorted(addresses, key=key)


def is_loopback(text: str) -> bool:
    """Whether an address or a host name means the host itself."""
    address = parse_address(text)
    return address.is_loopback if address else text.split(".")[0] == "localhost"
