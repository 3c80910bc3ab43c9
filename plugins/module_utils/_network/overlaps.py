# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who deals addresses in a cluster, and which: pools of nv-ipam, and attachments whose IPAM has ranges of its own."""

from __future__ import annotations

import contextlib
import ipaddress
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import Runs, merge, parse_run, size, subtract
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.whereabouts import ATTACHMENTS, bounds, ipams
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import MANAGER, Cluster, Object, describe, field
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import NAD
from ansible_collections.ipu.fabric.plugins.module_utils._network.macvlan import API

MACVLANS = f"/apis/{API}/macvlannetworks"
NV_IPAM = "nv-ipam.nvidia.com/v1alpha1"
POOLS = {"IPPool": "ippools", "CIDRPool": "cidrpools"}
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, FabricError)  # nobody gets an address from such a one

Addresses = t.Mapping[int, Runs]  # by IP version
Part = t.Tuple[int, Runs]


# ---- addresses ------------------------------------------------------------------------------------------------------


def union(parts: t.Iterable[Part]) -> Addresses:
    found: t.Dict[int, Runs] = {}
    for version, runs in parts:
        found[version] = merge([*found.get(version, []), *runs])
    return found


def shared(one: Addresses, other: Addresses) -> Addresses:
    """The addresses that are in both."""
    found: t.Dict[int, Runs] = {}
    for version in set(one) & set(other):
        reach = -1
        # Within each of the two nothing overlaps: what begins before the end of another run is in both.
        for first, last in sorted([*one[version], *other[version]]):
            if first <= reach:
                found.setdefault(version, []).append((first, min(last, reach)))
            reach = max(reach, last)
    return found


def texts(addresses: Addresses) -> t.List[str]:
    """Ranges `a-b`, as JSON can have them."""
    kinds: t.Dict[int, t.Any] = {4: ipaddress.IPv4Address, 6: ipaddress.IPv6Address}
    return [f"{kinds[v](first)}-{kinds[v](last)}" for v in sorted(addresses) for first, last in addresses[v]]


def from_texts(ranges: t.Iterable[str]) -> Addresses:
    parsed = (parse_run(text, "ranges") for text in ranges)
    return union((version, [run]) for version, run in parsed)


def told(addresses: Addresses) -> str:
    """How many addresses, and the first and the last of them."""
    ends = [end for text in texts(addresses) for end in text.split("-")]
    number = sum(size(runs) for runs in addresses.values())
    return f"{number} addresses, {ends[0]} to {ends[-1]}" if number > 1 else f"the address {ends[0]}"


# ---- pools and IPAM configurations ----------------------------------------------------------------------------------


def pool_addresses(spec: Object) -> Addresses:
    """What an IPPool (subnet) or a CIDRPool (cidr) of nv-ipam may give out."""
    block = ipaddress.ip_network(spec.get("subnet") or spec["cidr"], strict=False)
    taken = [parse_run(f"{e['startIP']}-{e['endIP']}", "exclusions")[1] for e in spec.get("exclusions") or ()]
    ends = (0, -1) if block.version == 6 or block.num_addresses < 4 else (1, -2)
    return {block.version: subtract((int(block[ends[0]]), int(block[ends[1]])), taken)}


def ranges(ipam: Object) -> t.List[Object]:
    """Each range of an IPAM that has its own, as `bounds` gives it: whereabouts and host-local."""
    if ipam.get("type") == "whereabouts":
        entries = [ipam, *(ipam.get("ipRanges") or ())]
    elif ipam.get("type") == "host-local":
        entries = [
            {"range": entry.get("subnet"), "range_start": entry.get("rangeStart"), "range_end": entry.get("rangeEnd")}
            for entry in (ipam, *(entry for group in ipam.get("ranges") or () for entry in group))
        ]
    else:
        entries = []
    return [bounds(entry) for entry in entries if entry.get("range")]


def range_addresses(found: t.Iterable[Object]) -> Addresses:
    return union((entry["cidr"].version, entry["allowed"]) for entry in found)


def stores(ipam: Object) -> t.List[str]:
    """Where whereabouts writes down what it dealt: networks that have a store in common never deal an address twice."""
    if ipam.get("type") != "whereabouts":
        return []
    return [f"{ipam.get('network_name') or ''} {entry['cidr']}".strip() for entry in ranges(ipam)]


def pool_names(ipam: Object) -> t.Set[t.Tuple[str, str]]:
    """Kind and name of the pools that an IPAM of nv-ipam deals from."""
    if ipam.get("type") != "nv-ipam":
        return set()
    kind = "CIDRPool" if ipam.get("poolType") == "cidrpool" else "IPPool"
    return {(kind, name.strip()) for name in str(ipam.get("poolName") or "").split(",") if name.strip()}


# ---- what is planned ------------------------------------------------------------------------------------------------


def planned_pools(network: Object) -> t.Set[t.Tuple[str, str]]:
    own = {("IPPool", pool["name"]) for pool in _pools_of(network) if pool.get("name")}
    return own | pool_names(network.get("ipam") or {})


def planned_addresses(network: Object) -> Addresses:
    """What pods on a network of the plan may get."""
    pools = [pool for pool in _pools_of(network) if pool.get("subnet")]
    parts: t.List[Part] = [part for pool in pools for part in pool_addresses(pool).items()]
    parts += range_addresses(ranges(network.get("ipam") or {})).items()
    if not parts:  # Spiderpool's
        subnets = network.get("subnets") or [network.get("subnet") or {}]
        parts += range_addresses(bounds({**each, "range": each["cidr"]}) for each in subnets if each).items()
    return union(parts)


def _pools_of(network: Object) -> t.List[Object]:
    return [pool for pool in network.get("pools") or [network.get("pool")] if pool]


# ---- what a cluster has ---------------------------------------------------------------------------------------------


def is_ours(obj: Object) -> bool:
    """Whether this collection has applied the object. The API server writes down who did; a copy of it is not ours."""
    managers = obj["metadata"].get("managedFields") or ()
    return any(each.get("manager") == MANAGER and each.get("operation") == "Apply" for each in managers)


def owners(attachment: Object) -> t.Set[str]:
    """The MacvlanNetworks that an attachment was made for."""
    listed = field(attachment, "metadata.ownerReferences") or ()
    return {owner["name"] for owner in listed if owner.get("kind") == "MacvlanNetwork"}


def listed_pools(cluster: Cluster) -> t.List[Object]:
    return [
        {**item, "apiVersion": NV_IPAM, "kind": kind}
        for kind, plural in POOLS.items()
        for item in cluster.items(f"/apis/{NV_IPAM}/{plural}")
    ]


def dealers(cluster: Cluster) -> t.List[Object]:
    """Everything that deals addresses: kind, namespace, name, whether it is ours, IPAM, stores, ranges `a-b`."""
    networks = {item["metadata"]["name"] for item in cluster.items(MACVLANS) if is_ours(item)}
    found = []
    for pool in listed_pools(cluster):
        with contextlib.suppress(*MALFORMED):
            found.append(dealer(pool, is_ours(pool), "nv-ipam", pool_addresses(pool["spec"]), []))
    for item in cluster.items(ATTACHMENTS):
        attachment = {**item, "apiVersion": NAD[0], "kind": NAD[1]}
        for ipam in ipams(item):
            with contextlib.suppress(*MALFORMED):
                addresses = range_addresses(ranges(ipam))
                if addresses:
                    ours = bool(owners(item) & networks)
                    found.append(dealer(attachment, ours, ipam["type"], addresses, stores(ipam)))
    return found


def dealer(obj: Object, ours: bool, ipam: str, addresses: Addresses, held: t.Sequence[str]) -> Object:
    metadata = obj["metadata"]
    return {
        "kind": obj["kind"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "what": describe(obj),
        "ours": ours,
        "ipam": ipam,
        "stores": list(held),
        "ranges": texts(addresses),
    }
