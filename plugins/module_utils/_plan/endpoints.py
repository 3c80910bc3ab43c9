# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses and host:port as text."""

from __future__ import annotations

import re
import typing as t

from .._common.addresses import Address, read_address
from .._model.observation import ADVERTISED, LEASE, LinkAddress

# RFC 1123, as the API server validates names of nodes, and kubeadm that of the endpoint.
LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_NAME = re.compile(rf"(?=.{{1,253}}$){LABEL}([.]{LABEL})*")


def parse_address(text: str) -> t.Optional[Address]:
    """The address, or None if the text is not an IP address."""
    try:
        return read_address(text)
    except ValueError:
        return None


def static_first(addresses: t.Iterable[LinkAddress]) -> t.List[LinkAddress]:
    """Static addresses, then leases, then single ones without a subnet (as from DHCPv6), then advertised ones.

    `ip` lists those of router advertisements before the others.
    """

    def key(one: LinkAddress) -> t.Tuple[bool, bool, bool]:
        single = one["prefix"] == (128 if ":" in one["address"] else 32)
        return one.get("origin") == ADVERTISED, single, one.get("origin") == LEASE

    return sorted(addresses, key=key)


def is_loopback(text: str) -> bool:
    """Whether an address or a host name is the host itself."""
    address = parse_address(text)
    return address.is_loopback if address else text.split(".")[0] == "localhost"
