# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Address pools of whereabouts, nv-ipam and Spiderpool: what they have, who holds it, and what leaked."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.subnet import Run, Runs, merge, parse_run, size, subtract
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster, Object, connect, field
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import NAD_API, NETWORK_STATUS

Network = t.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]

PAGE = 500  # pods a request: all pods of a large cluster in one answer hurt the API server
WHEREABOUTS = "/apis/whereabouts.cni.cncf.io/v1alpha1"
ATTACHMENTS = f"/apis/{NAD_API}/network-attachment-definitions"
NV_IPAM = "/apis/nv-ipam.nvidia.com/v1alpha1/ippools"
SPIDERPOOL = "/apis/spiderpool.spidernet.io/v2beta1"
# Spiderpool keeps the addresses of their pods while a pod is away.
KEEPS_ADDRESSES = ("StatefulSet", "VirtualMachineInstance")

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


# ---- what the API says ----------------------------------------------------------------------------------------------


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


def pool_facts(
    name: str, ipam: str, cidr: Network, usable: int, capacity: int, allocated: int, **more: t.Any
) -> Object:
    """One pool, in the shape that the module ip_pool_info returns."""
    return {
        "name": name,
        "ipam": ipam,
        "cidr": str(cidr),
        "usable": usable,
        "excluded": usable - capacity,
        "capacity": capacity,
        "allocated": allocated,
        "free": max(capacity - allocated, 0),
        **more,
    }


def by_node(holders: t.Iterable[Holder], pods: Pods) -> t.List[Object]:
    """How many addresses the pods of each node hold, where every node may take any."""
    counts: t.Dict[str, int] = {}
    for holder in holders:
        node = pods[holder.pod].node if holder.pod in pods else ""
        if node:
            counts[node] = counts.get(node, 0) + 1
    return [
        {"node": node, "range": "", "capacity": None, "allocated": count, "free": None}
        for node, count in sorted(counts.items())
    ]


def sorted_by_address(orphans: t.Iterable[Object]) -> t.List[Object]:
    def key(entry: Object) -> t.Tuple[int, int]:
        address = ipaddress.ip_address(entry["address"].split("-")[0])
        return address.version, int(address)

    return sorted(orphans, key=key)


# ---- whereabouts ----------------------------------------------------------------------------------------------------


def ipams(attachment: Object) -> t.List[Object]:
    """The IPAM settings in an attachment's CNI configuration, which may be a chain of plugins."""
    try:
        config = json.loads(field(attachment, "spec.config") or "{}")
        return [plugin.get("ipam") or {} for plugin in (config, *config.get("plugins", ()))]
    except (ValueError, AttributeError, TypeError):
        return []  # such a network never gave out an address


def ranges_of(attachments: t.Iterable[Object]) -> t.Dict[Network, t.List[Object]]:
    """The IPAM settings of all whereabouts networks, by their CIDR: a pool itself knows no bounds and no excludes."""
    found: t.Dict[Network, t.List[Object]] = {}
    for ipam in (ipam for attachment in attachments for ipam in ipams(attachment)):
        with contextlib.suppress(ValueError, AttributeError, FabricError):  # it never gave out an address either
            if ipam.get("type") == "whereabouts":
                for entry in (ipam, *ipam.get("ipRanges", ())):
                    if entry.get("range"):
                        settings = bounds(entry)
                        found.setdefault(settings["cidr"], []).append(settings)
    return found


def bounds(entry: Object) -> Object:
    """CIDR, run of usable addresses and excluded runs of one range, `a-b/len` too."""
    low, _dash, rest = entry["range"].rpartition("-")
    interface = ipaddress.ip_interface(rest)
    cidr = interface.network
    first, last = int(cidr[0]) + 1, int(cidr[-1]) - 1
    start, end = (low, str(interface.ip)) if low else (entry.get("range_start"), entry.get("range_end"))
    # Bounds outside the usable addresses are ignored by whereabouts without a word.
    if start and first <= int(ipaddress.ip_address(start)) <= last:
        first = int(ipaddress.ip_address(start))
    if end and first <= int(ipaddress.ip_address(end)) <= last:
        last = int(ipaddress.ip_address(end))
    excluded = [ipaddress.ip_network(text, strict=False) for text in entry.get("exclude") or ()]
    return {
        "cidr": cidr,
        "usable": (first, last),
        "allowed": subtract((first, last), [(int(block[0]), int(block[-1])) for block in excluded]),
    }


def reserved_address(name: str, cidrs: t.Iterable[Network]) -> str:
    """The address in the name of an OverlappingRangeIPReservation: colons are hyphens, a network's name may precede."""
    parts = name.split("-")
    for start in range(len(parts)):
        for text in ("-".join(parts[start:]), ":".join(parts[start:])):
            with contextlib.suppress(ValueError):
                address = ipaddress.ip_address(text)
                if any(address in cidr for cidr in cidrs if cidr.version == address.version):
                    return str(address)
    return ""


def whereabouts_pools(
    pools: t.Sequence[Object], reservations: t.Sequence[Object], attachments: t.Sequence[Object], pods: Pods
) -> t.List[Object]:
    """A reservation outlives its allocation when a node dies between the two: it keeps the address from everybody."""
    ranges = ranges_of(attachments)
    starts = {pool["metadata"]["name"]: ipaddress.ip_interface(pool["spec"]["range"]) for pool in pools}
    cidrs = [start.network for start in starts.values()]
    reserved = [
        Holder(reserved_address(item["metadata"]["name"], cidrs), field(item, "spec.podref") or "")
        for item in reservations
    ]
    found = []
    for pool in pools:
        name = pool["metadata"]["name"]
        start, cidr = starts[name].ip, starts[name].network
        holders = {
            str(start + int(offset)): Holder(str(start + int(offset)), entry.get("podref") or "")
            for offset, entry in (pool["spec"].get("allocations") or {}).items()
            if offset.isdigit()
        }
        for holder in reserved:
            if holder.address and ipaddress.ip_address(holder.address) in cidr:
                holders.setdefault(holder.address, holder)
        settings = ranges.get(cidr) or [bounds({"range": str(cidr)})]
        usable = size(merge(setting["usable"] for setting in settings))
        capacity = size(merge(run for setting in settings for run in setting["allowed"]))
        orphans = [orphan(h.address, h.pod, why) for h in holders.values() for why in [why_orphaned(h, pods)] if why]
        found.append(
            pool_facts(
                name,
                "whereabouts",
                cidr,
                usable,
                capacity,
                len(holders),
                orphaned=sorted_by_address(orphans + shared(cidr, pods)),
                nodes=by_node(holders.values(), pods),
            )
        )
    return found


# ---- nv-ipam --------------------------------------------------------------------------------------------------------


def nv_ipam_pools(pools: t.Sequence[Object], pods: Pods, nodes: t.Collection[str]) -> t.List[Object]:
    """The API knows only which block a node has; which pod has which address is read off the pods."""
    return [nv_ipam_pool(pool, pods, nodes) for pool in pools]


def nv_ipam_pool(pool: Object, pods: Pods, nodes: t.Collection[str]) -> Object:
    name, spec = pool["metadata"]["name"], pool["spec"]
    cidr = ipaddress.ip_network(spec["subnet"], strict=False)
    taken = [parse_run(f"{e['startIP']}-{e['endIP']}", name)[1] for e in spec.get("exclusions") or ()]
    if spec.get("gateway"):
        taken.append(parse_run(spec["gateway"], name)[1])
    held = [
        (Holder(address, key), pod)
        for key, pod in sorted(pods.items())
        for address in dict.fromkeys(pod.attached)
        if ipaddress.ip_address(address) in cidr
    ]
    addresses = {holder.address for holder, _pod in held}
    orphans = shared(cidr, pods)
    blocks: t.List[Object] = []
    runs: t.Dict[str, Run] = {}
    for block in field(pool, "status.allocations") or ():
        node = block["nodeName"]
        run = runs[node] = parse_run(f"{block['startIP']}-{block['endIP']}", name)[1]
        text = f"{block['startIP']}-{block['endIP']}"
        if node not in nodes:
            orphans.append(orphan(text, "", f"{NO_NODE}: {node}"))
        indexes = [(run[0] + e["startIndex"], run[0] + e["endIndex"]) for e in spec.get("perNodeExclusions") or ()]
        capacity = size(subtract(run, taken + indexes))
        allocated = sum(run[0] <= int(ipaddress.ip_address(address)) <= run[1] for address in addresses)
        blocks.append(
            {
                "node": node,
                "range": text,
                "capacity": capacity,
                "allocated": allocated,
                "free": max(capacity - allocated, 0),
            }
        )
    for holder, pod in held:
        first, last = runs.get(pod.node, (1, 0))
        if pod.node and not first <= int(ipaddress.ip_address(holder.address)) <= last:
            orphans.append(orphan(holder.address, holder.pod, OTHER_BLOCK))
    return pool_facts(
        name,
        "nv-ipam",
        cidr,
        size(merge(runs.values())),
        sum(block["capacity"] for block in blocks),
        len(addresses),
        orphaned=sorted_by_address(orphans),
        nodes=sorted(blocks, key=lambda block: str(block["node"])),
    )


# ---- Spiderpool -----------------------------------------------------------------------------------------------------


def spider_pools(pools: t.Sequence[Object], endpoints: t.Sequence[Object], pods: Pods) -> t.List[Object]:
    kept = {
        f"{endpoint['metadata']['namespace']}/{endpoint['metadata']['name']}"
        for endpoint in endpoints
        if field(endpoint, "status.ownerControllerType") in KEEPS_ADDRESSES
    }
    found = []
    for pool in pools:
        name, spec = pool["metadata"]["name"], pool["spec"]
        cidr = ipaddress.ip_network(spec["subnet"], strict=False)
        holders = [
            Holder(plain(address), entry.get("pod", ""), entry.get("podUid", ""))
            for address, entry in json.loads(field(pool, "status.allocatedIPs") or "{}").items()
        ]
        orphans = [
            orphan(h.address, h.pod, why)
            for h in holders
            for why in [why_orphaned(h, pods)]
            if why and not (h.pod in kept and why in (NO_POD, NEWER_POD))
        ]
        usable: Runs = merge(parse_run(text, name)[1] for text in spec.get("ips") or ())
        taken = [parse_run(text, name)[1] for text in spec.get("excludeIPs") or ()]
        total = field(pool, "status.totalIPCount")
        capacity = sum(size(subtract(run, taken)) for run in usable) if total is None else total
        found.append(
            pool_facts(
                name,
                "spiderpool",
                cidr,
                size(usable),
                capacity,
                len(holders),
                orphaned=sorted_by_address(orphans + shared(cidr, pods)),
                nodes=by_node(holders, pods),
            )
        )
    return found


# ---- the module -----------------------------------------------------------------------------------------------------


def running_pods(cluster: Cluster) -> t.Iterator[Object]:
    """Every pod that has not ended, page by page."""
    token = None
    while True:
        selector = "status.phase!=Succeeded,status.phase!=Failed"
        page = cluster.get("/api/v1/pods", fieldSelector=selector, limit=PAGE, **{"continue": token}) or {}
        yield from page.get("items") or ()
        token = field(page, "metadata.continue")
        if not token:
            return


def live_pods(cluster: Cluster) -> t.Dict[str, Pod]:
    return dict(read_pod(pod) for pod in running_pods(cluster))


def look(cluster: Cluster) -> t.List[Object]:
    """All pools of all three, as they are now."""
    whereabouts = cluster.items(f"{WHEREABOUTS}/ippools")
    reservations = cluster.items(f"{WHEREABOUTS}/overlappingrangeipreservations") if whereabouts else []
    attachments = cluster.items(ATTACHMENTS) if whereabouts else []
    blocks = cluster.items(NV_IPAM)
    spider = cluster.items(f"{SPIDERPOOL}/spiderippools")
    endpoints = cluster.items(f"{SPIDERPOOL}/spiderendpoints") if spider else []
    if not (whereabouts or blocks or spider):
        return []
    pods = live_pods(cluster)
    nodes = {node["metadata"]["name"] for node in cluster.items("/api/v1/nodes")} if blocks else set()
    found = [
        *whereabouts_pools(whereabouts, reservations, attachments, pods),
        *nv_ipam_pools(blocks, pods, nodes),
        *spider_pools(spider, endpoints, pods),
    ]
    return sorted(found, key=lambda pool: (pool["ipam"], pool["name"]))


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


def audit(cluster: Cluster, settle: float) -> t.List[Object]:
    """All pools; what looks orphaned is looked at again `settle` seconds later."""
    pools = look(cluster)
    if not any(pool["orphaned"] for pool in pools):
        return pools
    time.sleep(settle)
    return confirmed(pools, look(cluster))


def run(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module ip_pool_info."""
    pools = audit(connect(module), module.params["settle"])
    wanted = module.params["cidrs"]
    if wanted:
        asked = {str(ipaddress.ip_network(cidr, strict=False)) for cidr in wanted}
        pools = [pool for pool in pools if pool["cidr"] in asked]
    return {"changed": False, "pools": pools, "orphans": sum(len(pool["orphaned"]) for pool in pools)}
