# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leaked addresses: those that an IPAM keeps for pods which are gone or have others, so that nobody can get them."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import Network
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Object, field
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import NETWORK_STATUS

NO_POD = "no such pod runs"
NEWER_POD = "it was another pod of this name"
OTHER_ADDRESS = "the pod has other addresses"
TWO_PODS = "two pods have it"
NO_NODE = "the block of a node that is not there"
OTHER_BLOCK = "outside the block of the pod's node"


class Pod(t.NamedTuple):
    """What of a pod matters to its addresses. Pods that have ended are not looked at: theirs are to be free."""

    uid: str
    node: str
    running: bool
    attached: t.Tuple[str, ...]  # by multus
    addresses: t.Tuple[str, ...]  # those, and its own


Pods = t.Mapping[str, Pod]  # by namespace/name


class Holder(t.NamedTuple):
    """An address, and the pod that an IPAM gave it to."""

    address: str
    pod: str
    uid: str = ""


def read_pod(pod: Object) -> t.Tuple[str, Pod]:
    metadata, status = pod["metadata"], pod.get("status") or {}
    attached: t.List[str] = []
    with contextlib.suppress(ValueError, TypeError, AttributeError):  # not the JSON that multus writes
        for entry in json.loads((metadata.get("annotations") or {}).get(NETWORK_STATUS) or "[]"):
            attached += map(plain, entry.get("ips") or [])
    own = [plain(entry["ip"]) for entry in status.get("podIPs") or []]
    return f"{metadata['namespace']}/{metadata['name']}", Pod(
        metadata.get("uid", ""),
        field(pod, "spec.nodeName") or "",
        status.get("phase") == "Running",
        tuple(attached),
        tuple(attached + own),
    )


def plain(address: str) -> str:
    """An address as Python writes it, without a prefix: IPv6 has several spellings."""
    return str(ipaddress.ip_interface(address).ip)


def orphan(address: str, pod: str, why: str) -> Object:
    return {"address": address, "pod": pod, "why": why}


def why_orphaned(holder: Holder, pods: Pods) -> str:
    """Why an address is nobody's any more; empty when its pod has it, or may still get it."""
    if not holder.pod:  # early releases of whereabouts did not write it down
        return ""
    pod = pods.get(holder.pod)
    if pod is None:
        return NO_POD
    if holder.uid and pod.uid and holder.uid != pod.uid:
        return NEWER_POD
    if pod.running and pod.attached and holder.address not in pod.addresses:
        return OTHER_ADDRESS
    return ""


def shared(cidr: Network, pods: Pods) -> t.List[Object]:
    """Addresses of this network that more than one pod has."""
    owners: t.Dict[str, t.List[str]] = {}
    for name, pod in sorted(pods.items()):
        for address in dict.fromkeys(pod.attached):
            if ipaddress.ip_address(address) in cidr:
                owners.setdefault(address, []).append(name)
    return [orphan(address, ", ".join(names), TWO_PODS) for address, names in owners.items() if len(names) > 1]


def sorted_by_address(orphans: t.Iterable[Object]) -> t.List[Object]:
    def key(entry: Object) -> t.Tuple[int, int]:
        address = ipaddress.ip_address(entry["address"].split("-")[0])
        return address.version, int(address)

    return sorted(orphans, key=key)


def confirmed(first: t.Sequence[Object], second: t.Sequence[Object]) -> t.List[Object]:
    """The second look, with those orphans that the first one saw too: a pod that just came or went is none."""
    before = {(pool["ipam"], pool["name"]): pool["orphaned"] for pool in first}
    return [
        {
            **pool,
            "orphaned": [entry for entry in pool["orphaned"] if entry in before.get((pool["ipam"], pool["name"]), ())],
        }
        for pool in second
    ]
