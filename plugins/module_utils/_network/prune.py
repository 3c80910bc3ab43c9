# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks and pools that this collection made and that are not planned any more: found, judged, and removed."""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import json
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.pools import running_pods
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.whereabouts import (
    ATTACHMENTS,
    WHEREABOUTS,
    read_ipams,
    reserved_address,
)
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import (
    ApiError,
    Cluster,
    Object,
    connect,
    describe,
    field,
    refusal,
    wait_until,
)
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import NAD
from ansible_collections.ipu.fabric.plugins.module_utils._network import overlaps
from ansible_collections.ipu.fabric.plugins.module_utils._network.macvlan import API, nad_faults, readable_spec
from ansible_collections.ipu.fabric.plugins.module_utils._network.removal import (
    ANNOTATIONS,
    Name,
    Removal,
    name_of,
    networks_of,
)

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr

SHOWN = 20
GONE = "addresses of pods that are gone"


class Dead(t.NamedTuple):
    """An address that whereabouts keeps for a pod which does not run any more, and the request that frees it."""

    address: str
    pod: str
    verb: str
    path: str
    body: Object


class LeftOver(t.NamedTuple):
    """What is not planned any more, and what depends on it."""

    networks: t.List[Object]
    attachments: t.List[Object]  # that go with the networks
    pools: t.List[Object]
    users: t.Dict[str, t.List[str]]  # the networks that a pod asks for, by namespace/name of the pod
    leaving: t.List[str]  # pods that use them as well, and are being deleted
    dead: t.List[Dead]

    @property
    def objects(self) -> t.List[Object]:
        return [*self.networks, *self.pools]

    @property
    def names(self) -> t.List[str]:
        return [describe(obj) for obj in self.objects]


# ---- what is left over ----------------------------------------------------------------------------------------------


def unplanned_networks(items: t.Iterable[Object], planned: t.Sequence[Object]) -> t.List[Object]:
    names = {network["name"] for network in planned}
    return [
        {**item, "apiVersion": API, "kind": "MacvlanNetwork"}
        for item in items
        if overlaps.is_ours(item) and item["metadata"]["name"] not in names
    ]


def unplanned_pools(items: t.Iterable[Object], planned: t.Sequence[Object], namespace: str) -> t.List[Object]:
    """Pools that no network of the plan deals from; nv-ipam looks into one namespace only."""
    kept = {(kind, namespace, name) for network in planned for kind, name in overlaps.planned_pools(network)}
    return [item for item in items if overlaps.is_ours(item) and (item["kind"], *name_of(item)) not in kept]


def as_network(network: Object) -> Object:
    """A MacvlanNetwork in the words of a plan. An IPAM that is no JSON deals nothing."""
    spec = readable_spec(network.get("spec")) or {}
    ipam = spec.get("ipam")
    return {
        "name": network["metadata"]["name"],
        "namespace": spec.get("networkNamespace") or "default",
        "master": spec.get("master", ""),
        "mode": spec.get("mode"),
        "mtu": spec.get("mtu"),
        "ipam": ipam if isinstance(ipam, dict) else {},
    }


def goes_along(attachment: Object, networks: t.Sequence[Object]) -> bool:
    """Whether an attachment is of these networks: made for one, or, where nobody owns it, equal to what one says."""
    made_for = overlaps.owners(attachment)
    if field(attachment, "metadata.ownerReferences"):
        return any(network["name"] in made_for for network in networks)
    place = name_of(attachment)
    return any(
        place == (network["namespace"], network["name"]) and not nad_faults(attachment, network) for network in networks
    )


def addresses_of(obj: Object) -> netaddr.IPSet:
    """What a left-over deals by itself; a network of nv-ipam deals from its pools."""
    with contextlib.suppress(*overlaps.MALFORMED):
        if obj["kind"] == "MacvlanNetwork":
            return overlaps.range_addresses(overlaps.read_ranges(as_network(obj)["ipam"]))
        return overlaps.pool_addresses(obj["spec"])
    return netaddr.IPSet()


def conflicts(found: LeftOver, planned: t.Sequence[Object]) -> t.List[str]:
    """Which left-overs share addresses with which network of the plan."""
    theirs = [(network["name"], overlaps.planned_addresses(network)) for network in planned]
    texts = []
    for obj in found.objects:
        own = addresses_of(obj)
        for name, addresses in theirs:
            both = own & addresses
            if both:
                texts.append(f"{describe(obj)} shares {overlaps.describe_addresses(both)}, with network {name}")
    return texts


# ---- who uses it ----------------------------------------------------------------------------------------------------


def named_pools(pod: Object) -> t.Set[t.Tuple[str, str]]:
    """The pools of nv-ipam that a pod names itself, in the cni-args of its annotation."""
    found: t.Set[t.Tuple[str, str]] = set()
    for key in ANNOTATIONS:
        with contextlib.suppress(ValueError, TypeError, AttributeError):  # names only, or refused by multus as well
            for item in json.loads((pod["metadata"].get("annotations") or {}).get(key) or "[]"):
                args = item.get("cni-args") or {}
                kind = "CIDRPool" if args.get("poolType") == "cidrpool" else "IPPool"
                found |= {(kind, name) for name in args.get("poolNames") or args.get("poolName") or ()}
    return found


def users(pods: t.Iterable[Object], doomed: t.Set[Name], pools: t.Set[t.Tuple[str, str]]) -> t.Dict[str, t.List[str]]:
    """The pods that use doomed attachments or pools, and by which names."""
    found = {}
    for pod in pods:
        used = ["/".join(name) for name in networks_of(pod) & doomed]
        used += [f"{kind} {name}" for kind, name in named_pools(pod) & pools]
        if used:
            found["/".join(name_of(pod))] = sorted(used)
    return found


# ---- whereabouts ----------------------------------------------------------------------------------------------------


def dead_entries(
    pools: t.Sequence[Object], reservations: t.Sequence[Object], cidrs: t.Set[t.Any], alive: t.Set[str]
) -> t.List[Dead]:
    """What whereabouts keeps, in these subnets, for pods that do not run any more. Nobody's network frees it then.

    The version makes it a conflict when whereabouts has changed the pool in between.
    """
    found = []
    for pool in pools:
        start = ipaddress.ip_interface(pool["spec"]["range"])
        if start.network not in cidrs:
            continue
        namespace, name = name_of(pool)
        gone = {
            offset: entry["podref"]
            for offset, entry in (pool["spec"].get("allocations") or {}).items()
            if entry.get("podref") and entry["podref"] not in alive
        }
        version = {"resourceVersion": pool["metadata"].get("resourceVersion")}
        body = {"metadata": version, "spec": {"allocations": dict.fromkeys(gone)}}
        path = f"{WHEREABOUTS}/namespaces/{namespace}/ippools/{name}"
        found += [Dead(str(start.ip + int(offset)), pod, "patch", path, body) for offset, pod in gone.items()]
    for item in reservations:
        namespace, name = name_of(item)
        address, pod = reserved_address(name, cidrs), field(item, "spec.podref")
        if address and pod and pod not in alive:
            path = f"{WHEREABOUTS}/namespaces/{namespace}/overlappingrangeipreservations/{name}"
            version = {"resourceVersion": item["metadata"].get("resourceVersion")}
            found.append(Dead(address, pod, "delete", path, {"preconditions": version}))
    return found


def free(cluster: Cluster, dead: t.Sequence[Dead]) -> None:
    """One request a pool. Where whereabouts was faster it stays its own reconciler's work."""
    for verb, path, body in {each.path: (each.verb, each.path, each.body) for each in dead}.values():
        try:
            if verb == "patch":
                cluster.patch(path, body)
            else:
                cluster.request(verb, path, body=body)
        except ApiError as error:
            if error.status not in (404, 409):
                raise refusal(error, verb, path) from error


# ---- the module -----------------------------------------------------------------------------------------------------


def look(cluster: Cluster, planned: t.Sequence[Object], pool_namespace: str) -> LeftOver:
    networks = unplanned_networks(cluster.items(overlaps.MACVLANS), planned)
    pools = unplanned_pools(overlaps.listed_pools(cluster), planned, pool_namespace)
    if not networks and not pools:
        return LeftOver([], [], [], {}, [], [])
    nads = [{**item, "apiVersion": NAD[0], "kind": NAD[1]} for item in cluster.items(ATTACHMENTS)]
    former = [as_network(network) for network in networks]
    along = [nad for nad in nads if goes_along(nad, former)]
    names = {(pool["kind"], pool["metadata"]["name"]) for pool in pools}
    doomed = {(network["namespace"], network["name"]) for network in former} | {name_of(nad) for nad in along}
    for nad in nads:
        with contextlib.suppress(*overlaps.MALFORMED):
            if any(overlaps.pool_names(ipam) & names for ipam in read_ipams(nad)):
                doomed.add(name_of(nad))
    cidrs = set()
    for network in former:
        if network["ipam"].get("type") == "whereabouts":
            with contextlib.suppress(*overlaps.MALFORMED):
                cidrs |= {each.cidr for each in overlaps.read_ranges(network["ipam"])}
    # Before the pods: whoever has an address by now was there before.
    held = cluster.items(f"{WHEREABOUTS}/ippools") if cidrs else []
    reservations = cluster.items(f"{WHEREABOUTS}/overlappingrangeipreservations") if cidrs else []
    pods = list(running_pods(cluster))
    dead = dead_entries(held, reservations, cidrs, {"/".join(name_of(pod)) for pod in pods})
    leaving = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
    staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    going = sorted(users(leaving, doomed, names))
    return LeftOver(networks, along, pools, users(staying, doomed, names), going, dead)


def refuse_users(found: LeftOver) -> None:
    if not found.users:
        return
    shown = [f"{pod} ({', '.join(names)})" for pod, names in sorted(found.users.items())[:SHOWN]]
    more = len(found.users) - len(shown)
    raise FabricError(
        "No pod may use a network that is to be removed.",
        f"not planned any more: {', '.join(found.names)}",
        f"{len(found.users)} pods use them: {', '.join(shown)}" + (f" and {more} more" if more else ""),
        "Stop what made these pods and run again, or plan the network again. Nothing was changed.",
    )


def settled(look_again: t.Callable[[], LeftOver], found: LeftOver, timeout: float) -> LeftOver:
    """What is left over once the pods that are being deleted have given back their addresses."""

    def pending() -> t.List[str]:
        nonlocal found
        if found.leaving:
            found = look_again()
            refuse_users(found)
        return [f"Pod {pod} still exists" for pod in found.leaving]

    wait_until(
        pending,
        timeout,
        "Pods on networks that are to be removed are being deleted, and were expected to go.",
        "Look at these pods: their nodes may not answer. Nothing was changed.",
    )
    return found


def refuse_conflicts(found: LeftOver, planned: t.Sequence[Object]) -> None:
    seen = conflicts(found, planned)
    if seen:
        raise FabricError(
            "Two networks must not deal the same addresses: two pods would get one.",
            f"not planned any more, and still there: {', '.join(found.names)}",
            "; ".join(seen),
            "Have them removed with fabric_prune_networks: true (in the role macvlan: macvlan_prune), or give the "
            "planned network another part of the subnet (key share). Nothing was changed.",
        )


def existing(cluster: Cluster, objects: t.Sequence[Object]) -> t.List[Object]:
    return [obj for obj in objects if cluster.read(obj) is not None]


def remove(cluster: Cluster, found: LeftOver, timeout: float) -> None:
    """Each is gone before the next one goes: no network may ask a pool that is not there."""
    removal = Removal(cluster, timeout)
    free(cluster, found.dead)  # first: once its network is gone, a later run would not know of it
    for group in (found.networks, found.attachments, found.pools):
        removal.remove(
            group,
            functools.partial(existing, cluster, group),
            "Look at the finalizers of what is left with kubectl get -o yaml.",
        )


def run(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module macvlan_prune."""
    planned, prune = module.params["networks"], module.params["prune"]
    cluster = connect(module)

    def look_again() -> LeftOver:
        return look(cluster, planned, module.params["pool_namespace"])

    found = look_again()
    if not prune:
        refuse_conflicts(found, planned)
        if found.objects:
            module.warn(
                f"Not planned any more, and left as they are: {', '.join(found.names)}. They share no address with a "
                "planned network; fabric_prune_networks: true (in the role macvlan: macvlan_prune) removes them."
            )
        return outcome({}, {}, left_over=found.names, removed=[])
    refuse_users(found)
    if found.objects and not module.check_mode:
        found = settled(look_again, found, module.params["timeout"])
        remove(cluster, found, module.params["timeout"])
    before: Object = {describe(obj): obj.get("spec") for obj in [*found.networks, *found.attachments, *found.pools]}
    if found.dead:
        before[GONE] = sorted(f"{each.address}: {each.pod}" for each in found.dead)
    removed = [name for name in before if name != GONE]
    return outcome(before, {}, left_over=found.names, removed=removed)
