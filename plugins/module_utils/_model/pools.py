# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Address pools as they are in a cluster: what ip_pool_info returns, and what verify compares with the plan."""

from __future__ import annotations

import typing as t


class LeakedAddress(t.TypedDict):
    """An address that nobody can get, or that two pods have."""

    address: str  # or a node's whole block, a-b
    pod: str  # namespace/name; empty: none is known
    why: str


class NodeAllocation(t.TypedDict):
    """Addresses of a pool on one node. Only nv-ipam gives a node a block of its own."""

    node: str
    range: str  # a-b; empty without a block
    capacity: t.Optional[int]  # addresses that pods may have; null without a block
    allocated: int
    free: t.Optional[int]  # null without a block


class AddressPool(t.TypedDict):
    """One pool, counted in addresses."""

    name: str  # of its object
    ipam: str  # the type of its CNI plugin
    cidr: str
    usable: int  # between the pool's bounds
    excluded: int  # usable addresses that no pod may have
    capacity: int  # usable minus excluded
    allocated: int  # including leaked ones
    free: int
    leaked: t.List[LeakedAddress]
    nodes: t.List[NodeAllocation]


class AddressSource(t.TypedDict):
    """A pool or a NetworkAttachmentDefinition that pods get addresses from."""

    kind: str
    namespace: str
    name: str
    what: str  # kind and name, as a person writes them
    ours: bool  # this collection applied it
    ipam: str
    stores: t.List[str]  # of whereabouts: sources that share a store never allocate the same address twice
    ranges: t.List[str]  # a-b
