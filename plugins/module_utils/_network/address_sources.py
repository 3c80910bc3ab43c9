# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where pods of a cluster get addresses from: pools of nv-ipam, and attachments whose IPAM defines its own ranges."""

from __future__ import annotations

import contextlib
import typing as t

from .._common.manager import is_ours
from .._ipam.ranges import parse_ranges, range_texts
from .._kube.client import Cluster, describe
from .._kube.multus import ATTACHMENTS, NAD, read_ipams
from .._kube.query import Object, query
from .._model.pools import AddressSource
from .address_sets import MALFORMED, pool_addresses, range_addresses, read_ranges, stores
from .macvlan_objects import known, owners
from .removal import listed_networks

if t.TYPE_CHECKING:
    import netaddr

NV_IPAM = "nv-ipam.nvidia.com/v1alpha1"
POOLS = {"IPPool": "ippools", "CIDRPool": "cidrpools"}


def listed_pools(cluster: Cluster) -> t.List[Object]:
    return [
        {**item, "apiVersion": NV_IPAM, "kind": kind}
        for kind, plural in POOLS.items()
        for item in cluster.items(f"/apis/{NV_IPAM}/{plural}")
    ]


def address_sources(cluster: Cluster) -> t.List[AddressSource]:
    """All sources of pod addresses in the cluster."""
    networks = known(item for item in listed_networks(cluster) if is_ours(item))
    found = []
    for pool in listed_pools(cluster):
        with contextlib.suppress(*MALFORMED):
            found.append(address_source(pool, is_ours(pool), "nv-ipam", pool_addresses(pool["spec"]), []))
    for item in cluster.items(ATTACHMENTS):
        attachment = {**item, "apiVersion": NAD[0], "kind": NAD[1]}
        for ipam in read_ipams(item):
            with contextlib.suppress(*MALFORMED):
                ours, addresses = bool(owners(item) & networks), range_addresses(read_ranges(ipam))
                addresses = addresses | static_addresses(ipam)
                if addresses:
                    found.append(address_source(attachment, ours, ipam["type"], addresses, stores(ipam)))
    return found


def static_addresses(ipam: Object) -> netaddr.IPSet:
    """Addresses that an attachment assigns to its pods directly. No pool knows that they are taken."""
    entries = query("addresses[].address", ipam) if ipam.get("type") == "static" else None
    return parse_ranges([str(entry).partition("/")[0] for entry in entries or ()], "ipam.addresses")


def address_source(
    obj: Object, ours: bool, ipam: str, addresses: netaddr.IPSet, held_in: t.Sequence[str]
) -> AddressSource:
    metadata = obj["metadata"]
    return {
        "kind": obj["kind"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "what": describe(obj),
        "ours": ours,
        "ipam": ipam,
        "stores": list(held_in),
        "ranges": range_texts(addresses),
    }
