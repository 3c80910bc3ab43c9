# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leaked addresses: an IPAM holds them for pods that are gone or have other addresses, so nobody can get them."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import typing as t

from .._common.addresses import Network
from .._kube.multus import NETWORK_STATUS
from .._kube.query import Object, query, quoted
from .._model.pools import AddressPool, LeakedAddress

NO_POD = "no such pod runs"
NEWER_POD = "it belonged to an earlier pod of this name"
OTHER_ADDRESS = "the pod has other addresses"
TWO_PODS = "two pods have it"
NO_NODE = "the block of a node that is not in the cluster"
OTHER_BLOCK = "outside the block of the pod's node"


class Pod(t.NamedTuple):
    """What matters of a pod for its addresses. Ended pods are left out: their addresses should be free."""

    uid: str
    node: str
    running: bool
    attached: t.Tuple[str, ...]  # addresses from multus
    addresses: t.Tuple[str, ...]  # those, and its own


Pods = t.Mapping[str, Pod]  # by namespace/name


class Holder(t.NamedTuple):
    """An address, and the pod that an IPAM gave it to."""

    address: str
    pod: str  # namespace/name; empty: not known
    uid: str = ""


def read_pod(pod: Object) -> t.Tuple[str, Pod]:
    """Namespace/name of a pod, and what matters of it here."""
    metadata = pod["metadata"]
    attached: t.List[str] = []
    with contextlib.suppress(ValueError, TypeError):  # it is not the JSON that multus writes
        status = json.loads(query(f"metadata.annotations.{quoted(NETWORK_STATUS)}", pod) or "[]")
        attached += map(canonical, query("[].ips[]", status) or ())
    own = map(canonical, query("status.podIPs[].ip", pod) or ())
    return f"{metadata['namespace']}/{metadata['name']}", Pod(
        metadata.get("uid", ""),
        query("spec.nodeName", pod) or "",
        query("status.phase", pod) == "Running",
        tuple(attached),
        (*attached, *own),
    )


def canonical(address: str) -> str:
    """An address in Python's notation, without a prefix: an IPv6 address can be written in several ways."""
    return str(ipaddress.ip_interface(address).ip)


def why_leaked(holder: Holder, pods: Pods) -> str:
    """Why an address has leaked; empty if its pod has it, or may still get it."""
    if not holder.pod:  # early releases of whereabouts did not record it
        return ""
    pod = pods.get(holder.pod)
    if pod is None:
        return NO_POD
    if holder.uid and pod.uid and holder.uid != pod.uid:
        return NEWER_POD
    if pod.running and pod.attached and holder.address not in pod.addresses:
        return OTHER_ADDRESS
    return ""


def leaked_addresses(
    holders: t.Iterable[Holder], pods: Pods, kept: t.Collection[str] = frozenset()
) -> t.List[LeakedAddress]:
    """The leaked addresses among these. kept: pods whose addresses the IPAM keeps while they are away."""
    found = ((holder, why_leaked(holder, pods)) for holder in holders)
    return [
        {"address": holder.address, "pod": holder.pod, "why": why}
        for holder, why in found
        if why and not (holder.pod in kept and why in (NO_POD, NEWER_POD))
    ]


def held_twice(cidr: Network, pods: Pods) -> t.List[LeakedAddress]:
    """Addresses of this network that more than one pod has."""
    owners: t.Dict[str, t.List[str]] = {}
    for name, pod in sorted(pods.items()):
        for address in dict.fromkeys(pod.attached):
            if ipaddress.ip_address(address) in cidr:
                owners.setdefault(address, []).append(name)
    return [
        {"address": address, "pod": ", ".join(names), "why": TWO_PODS}
        for address, names in owners.items()
        if len(names) > 1
    ]


def confirmed_leaks(first: t.Sequence[AddressPool], second: t.Sequence[AddressPool]) -> t.List[AddressPool]:
    """The pools as read the second time, with the leaks seen both times: a pod that just came or went is not a leak."""
    before = {(pool["ipam"], pool["name"]): pool["leaked"] for pool in first}
    return [
        {
            **pool,
            "leaked": [leak for leak in pool["leaked"] if leak in before.get((pool["ipam"], pool["name"]), ())],
        }
        for pool in second
    ]
