# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks and pools that this collection made but that are no longer planned: found, checked and removed.

Pools that stay are checked too: nv-ipam gives up blocks that do not fit the new plan.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.manager import is_ours
from .._common.result import FabricError, outcome
from .._common.text import shorten_list
from .._ipam.leaks import Pods, read_pod
from .._ipam.nv_ipam import keeps_block
from .._ipam.pool_audit import running_pods
from .._ipam.ranges import parse_ranges, read_address, union
from .._ipam.whereabouts import WHEREABOUTS, reserved_address
from .._kube.client import ApiError, Cluster, connect, describe, refusal, wait_until
from .._kube.multus import ATTACHMENTS, NAD, Attachment, Name, Pool, nad_faults, named_pools, networks_of, read_ipams
from .._kube.query import Object, query
from .._model.pools import AddressSource
from .._model.profiles import BY_KIND, PREFIX, SRIOV, profile_of
from . import address_sets, address_sources
from .macvlan_objects import owners, readable_spec
from .removal import Removal, listed_networks, name_of

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr

SHOWN = 20
VF_POLICIES = f"/apis/{SRIOV}/sriovnetworknodepolicies"
GONE = "addresses of pods that are gone"


class StaleAddress(t.NamedTuple):
    """An address that whereabouts holds for a pod that no longer runs, and the request that frees it."""

    address: str
    pod: str
    verb: str
    path: str
    body: Object


class Unplanned(t.NamedTuple):
    """What is no longer planned, and what depends on it."""

    networks: t.List[Object]
    attachments: t.List[Object]  # that belong to the networks
    pools: t.List[Object]
    users: t.Dict[str, t.List[str]]  # networks that each pod uses, by the pod's namespace/name
    leaving: t.List[str]  # pods that use them too, but are being deleted
    stale: t.List[StaleAddress]
    policies: t.Sequence[Object] = ()  # SriovNetworkNodePolicies that no planned network needs

    @property
    def objects(self) -> t.List[Object]:
        return [*self.networks, *self.pools, *self.policies]

    @property
    def names(self) -> t.List[str]:
        return [describe(obj) for obj in self.objects]


# ---- what is not planned --------------------------------------------------------------------------------------------


def unplanned_networks(items: t.Iterable[Object], planned: t.Sequence[Object]) -> t.List[Object]:
    """Our networks that are not planned, by kind and name: a network of another type is a different one."""
    names = {(profile_of(network).kind, network["name"]) for network in planned}
    return [item for item in items if is_ours(item) and (item["kind"], item["metadata"]["name"]) not in names]


def unplanned_pools(items: t.Iterable[Object], planned: t.Sequence[Object], namespace: str) -> t.List[Object]:
    """Pools that no planned network uses; nv-ipam reads only one namespace."""
    kept = {(kind, namespace, name) for network in planned for kind, name in address_sets.planned_pools(network)}
    return [item for item in items if is_ours(item) and (item["kind"], *name_of(item)) not in kept]


def unplanned_policies(items: t.Iterable[Object], planned: t.Sequence[Object]) -> t.List[Object]:
    """Policies that created VFs for a network without VFs in the plan."""
    names = {network["name"] for network in planned if profile_of(network).namespaced}
    return [
        {**item, "apiVersion": SRIOV, "kind": "SriovNetworkNodePolicy"}
        for item in items
        if is_ours(item) and item["metadata"]["name"] not in names
    ]


def attachment_of(network: Object) -> Attachment:
    """The NAD that a network should have. An IPAM that is not JSON has no addresses."""
    profile = BY_KIND[network["kind"]]
    spec = readable_spec(network.get("spec"), profile.kind) or {}
    ipam = spec.get("ipam")
    resource = spec.get("resourceName", "")
    found: Attachment = {
        "resource": f"{PREFIX}/{resource.rpartition('/')[2]}" if resource else "",
        "name": network["metadata"]["name"],
        "namespace": spec.get("networkNamespace") or "default",
        "master": spec.get("master", ""),
        "mode": spec.get("mode", ""),
        "mtu": spec.get("mtu", 0),
        "ipam": ipam if isinstance(ipam, dict) else {},
    }
    if profile.cni != "macvlan":
        found["cni"] = profile.cni
    return found


def belongs_to(attachment: Object, networks: t.Sequence[Attachment]) -> bool:
    """Whether an attachment belongs to these networks: owned by one, or, without an owner, equal to one."""
    made_for = owners(attachment)
    if made_for or query("metadata.ownerReferences", attachment):
        return any((profile_of(network).kind, network["name"]) in made_for for network in networks)
    place = name_of(attachment)
    return any(
        place == (network["namespace"], network["name"]) and not nad_faults(attachment, network) for network in networks
    )


def addresses_of(obj: Object) -> netaddr.IPSet:
    """The addresses that an object itself allocates; a network with nv-ipam takes them from its pools."""
    with contextlib.suppress(*address_sets.MALFORMED):
        if obj["kind"] in BY_KIND:
            return address_sets.range_addresses(address_sets.read_ranges(attachment_of(obj)["ipam"]))
        if obj["kind"] in address_sources.POOLS:
            return address_sets.pool_addresses(obj["spec"])
    return netaddr.IPSet()


def find_conflicts(found: Unplanned, planned: t.Sequence[Object]) -> t.List[str]:
    """Which of these objects share addresses with which planned network."""
    theirs = [(network["name"], address_sets.planned_addresses(network)) for network in planned]
    texts = []
    for obj in found.objects:
        own = addresses_of(obj)
        for name, addresses in theirs:
            both = own & addresses
            if both:
                texts.append(f"{describe(obj)} shares {address_sets.describe_addresses(both)}, with network {name}")
    return texts


# ---- blocks of nv-ipam ----------------------------------------------------------------------------------------------


def blocks_given_up(
    items: t.Iterable[Object], planned: t.Sequence[Object], namespace: str
) -> t.Dict[str, netaddr.IPSet]:
    """Addresses that other pods may get from blocks that nodes lose when the pools become as planned; by pool."""
    specs = {pool.get("name"): pool for network in planned for pool in address_sets.pools_of(network)}
    found = {}
    for item in items:
        place, name = name_of(item)
        if item["kind"] != "IPPool" or place != namespace or name not in specs:
            continue
        spec = specs[name]
        with contextlib.suppress(*address_sets.MALFORMED):
            blocks = query("status.allocations[].[nodeName, join('-', [startIP, endIP])]", item) or ()
            lost = [block for node, block in blocks if not keeps_block(spec, node, block)]
            if lost:
                was, will = ("{subnet} in blocks of {perNodeBlockSize}".format(**each) for each in (item["spec"], spec))
                what = f"{describe(item)}: {was} now, {will} planned; nodes that lose their block: "
                what += f"{len(lost)} of {len(blocks)}"
                found[what] = parse_ranges(lost, name) & address_sets.pool_addresses(spec)
    return found


def refuse_blocks_in_use(lost: t.Mapping[str, netaddr.IPSet], pods: Pods) -> None:
    """Refuse while pods have such addresses: a node's daemon knows only its own pods, and would allocate them again."""
    held = {
        f"{name} ({address})": what
        for name, pod in sorted(pods.items())
        for address in dict.fromkeys(pod.attached)
        for what, addresses in lost.items()
        if read_address(address) in addresses
    }
    if held:
        raise FabricError(
            "Nodes must keep their nv-ipam blocks while pods have addresses from them: other pods could get these.",
            "; ".join(dict.fromkeys(held.values())),
            f"in use: {shorten_list(list(held), SHOWN)}",
            "Stop what creates these pods and run again, or keep the pool as it is: its block size follows from "
            "fabric_pods_per_node, share, reserved and the number of hosts, its nodes from the hosts with a NIC on the "
            "network.",
            code="unsafe",
        )


# ---- addresses that pods keep ---------------------------------------------------------------------------------------


def addresses_left(
    items: t.Sequence[Object], planned: t.Sequence[Object], namespace: str
) -> t.Dict[str, netaddr.IPSet]:
    """Addresses that pods may have from the current networks and pools, but not from the planned ones; by network."""
    found = {}
    for network in planned:
        pools = {(kind, namespace, name) for kind, name in address_sets.planned_pools(network)}
        own = [
            item
            for item in items
            if (item["kind"], item["metadata"]["name"]) == (profile_of(network).kind, network["name"])
            or (item["kind"], *name_of(item)) in pools
        ]
        with contextlib.suppress(*address_sets.MALFORMED):
            allowed = address_sets.planned_addresses(network)
            left = union(map(addresses_of, own)) - allowed
            if allowed and left:
                found[network["name"]] = left
    return found


def kept_addresses(left: t.Mapping[str, netaddr.IPSet], pods: Pods) -> t.List[str]:
    """A warning for each network whose running pods have such addresses: they keep them until they are restarted."""
    texts = []
    for name, addresses in left.items():
        held = [
            f"{key} ({address})"
            for key, pod in sorted(pods.items())
            for address in dict.fromkeys(pod.attached)
            if read_address(address) in addresses
        ]
        if held:
            texts.append(
                f"Running pods keep addresses that network {name} no longer gives to pods (subnet, share, reserved): "
                f"{shorten_list(held, SHOWN)}. Next: run site, and then restart these pods; until then the proof fails."
            )
    return texts


# ---- who uses it ----------------------------------------------------------------------------------------------------


def find_users(pods: t.Iterable[Object], doomed: t.Set[Name], pools: t.Set[Pool]) -> t.Dict[str, t.List[str]]:
    """The pods that use attachments or pools to be removed, and the names of these."""
    found = {}
    for pod in pods:
        used = ["/".join(name) for name in networks_of(pod) & doomed]
        used += [f"{kind} {name}" for kind, name in named_pools(pod) & pools]
        if used:
            found["/".join(name_of(pod))] = sorted(used)
    return found


# ---- whereabouts ----------------------------------------------------------------------------------------------------


def stale_addresses(
    pools: t.Sequence[Object], reservations: t.Sequence[Object], cidrs: t.Set[t.Any], alive: t.Set[str]
) -> t.List[StaleAddress]:
    """What whereabouts holds in these subnets for pods that no longer run. Without the network, nothing frees it.

    The resource version causes a conflict if whereabouts has changed the pool in between.
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
        found += [StaleAddress(str(start.ip + int(offset)), pod, "patch", path, body) for offset, pod in gone.items()]
    for item in reservations:
        namespace, name = name_of(item)
        address, pod = reserved_address(name, cidrs), query("spec.podref", item)
        if address and pod and pod not in alive:
            path = f"{WHEREABOUTS}/namespaces/{namespace}/overlappingrangeipreservations/{name}"
            version = {"resourceVersion": item["metadata"].get("resourceVersion")}
            found.append(StaleAddress(address, pod, "delete", path, {"preconditions": version}))
    return found


def free_addresses(cluster: Cluster, stale: t.Sequence[StaleAddress]) -> None:
    """Send one request per pool. Pools that whereabouts has changed meanwhile are left to its own reconciler."""
    for verb, path, body in {each.path: (each.verb, each.path, each.body) for each in stale}.values():
        try:
            if verb == "patch":
                cluster.patch(path, body)
            else:
                cluster.request(verb, path, body=body)
        except ApiError as error:
            if error.status not in (404, 409):
                raise refusal(error, verb, path) from error


# ---- the module -----------------------------------------------------------------------------------------------------


def find_unplanned(cluster: Cluster, planned: t.Sequence[Object], pool_namespace: str) -> Unplanned:
    networks = unplanned_networks(listed_networks(cluster), planned)
    pools = unplanned_pools(address_sources.listed_pools(cluster), planned, pool_namespace)
    policies = unplanned_policies(cluster.items(VF_POLICIES), planned)
    if not networks and not pools and not policies:
        return Unplanned([], [], [], {}, [], [])
    nads = [{**item, "apiVersion": NAD[0], "kind": NAD[1]} for item in cluster.items(ATTACHMENTS)]
    former = [attachment_of(network) for network in networks]
    belonging = [nad for nad in nads if belongs_to(nad, former)]
    names = {(pool["kind"], pool["metadata"]["name"]) for pool in pools}
    doomed = {(network["namespace"], network["name"]) for network in former} | {name_of(nad) for nad in belonging}
    for nad in nads:
        with contextlib.suppress(*address_sets.MALFORMED):
            if any(address_sets.pool_names(ipam) & names for ipam in read_ipams(nad)):
                doomed.add(name_of(nad))
    cidrs = set()
    for network in former:
        if network["ipam"].get("type") == "whereabouts":
            with contextlib.suppress(*address_sets.MALFORMED):
                cidrs |= {each.cidr for each in address_sets.read_ranges(network["ipam"])}
    # Read before the pods, so that every pod with an address is in the list that follows.
    held = cluster.items(f"{WHEREABOUTS}/ippools") if cidrs else []
    reservations = cluster.items(f"{WHEREABOUTS}/overlappingrangeipreservations") if cidrs else []
    pods = list(running_pods(cluster))
    stale = stale_addresses(held, reservations, cidrs, {"/".join(name_of(pod)) for pod in pods})
    leaving = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
    staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    going = sorted(find_users(leaving, doomed, names))
    return Unplanned(networks, belonging, pools, find_users(staying, doomed, names), going, stale, policies)


def refuse_users(found: Unplanned) -> None:
    if not found.users:
        return
    users = [f"{pod} ({', '.join(names)})" for pod, names in sorted(found.users.items())]
    raise FabricError(
        "No pod may use a network that is to be removed.",
        f"no longer planned: {', '.join(found.names)}",
        f"{'1 pod uses' if len(users) == 1 else f'{len(users)} pods use'} them: {shorten_list(users, SHOWN)}",
        "Stop what creates these pods and run again, or plan the network again.",
        code="unsafe",
    )


def wait_for_leaving(find_again: t.Callable[[], Unplanned], found: Unplanned, timeout: float) -> Unplanned:
    """What is not planned once the pods being deleted, and their addresses, are gone."""

    def pending() -> t.List[str]:
        nonlocal found
        if found.leaving:
            found = find_again()
            refuse_users(found)
        return [f"Pod {pod} still exists" for pod in found.leaving]

    wait_until(
        pending,
        timeout,
        "Pods on networks that are to be removed are being deleted, and are still there.",
        "Check these pods: their nodes may be down.",
    )
    return found


def refuse_conflicts(found: Unplanned, planned: t.Sequence[Object]) -> None:
    seen = find_conflicts(found, planned)
    if seen:
        raise FabricError(
            "Two networks must not give out the same addresses: two pods could get the same one.",
            f"no longer planned, and still in the cluster: {', '.join(found.names)}",
            "; ".join(seen),
            "Remove them with fabric_prune_networks: true (in the role macvlan: macvlan_prune), or give the "
            "planned network another part of the subnet (key share).",
            code="unsafe",
        )


def existing(cluster: Cluster, objects: t.Sequence[Object]) -> t.List[Object]:
    return [obj for obj in objects if cluster.read(obj) is not None]


def remove(cluster: Cluster, found: Unplanned, timeout: float) -> None:
    """Remove them in an order in which each is gone before the next: no network may use a pool that does not exist."""
    removal = Removal(cluster, timeout)
    free_addresses(cluster, found.stale)  # first: once the network is gone, a later run would not find them
    for group in (found.networks, found.attachments, found.pools, found.policies):
        removal.remove(
            group,
            functools.partial(existing, cluster, group),
            "Check the finalizers of what is left with kubectl get -o yaml.",
        )


def others_of(found: t.Iterable[AddressSource], planned: t.Sequence[Object]) -> t.List[str]:
    """Networks and pools that allocate addresses but that this collection neither made nor would take over."""
    pools = {pool for network in planned for pool in address_sets.planned_pools(network)}
    others = [each for each in found if not each["ours"] and (each["kind"], each["name"]) not in pools]
    return list(dict.fromkeys(each["what"] for each in others))


def prune_networks(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module macvlan_network with state=pruned."""
    planned, prune = module.params["networks"], module.params["unplanned"] == "remove"
    cluster = connect(module)

    def find_again() -> Unplanned:
        return find_unplanned(cluster, planned, module.params["pool_namespace"])

    pools, namespace = address_sources.listed_pools(cluster), module.params["pool_namespace"]
    networks = listed_networks(cluster)
    lost, left = blocks_given_up(pools, planned, namespace), addresses_left([*networks, *pools], planned, namespace)
    pods = dict(map(read_pod, running_pods(cluster))) if lost or left else {}
    refuse_blocks_in_use(lost, pods)
    for text in kept_addresses(left, pods):
        module.warn(text)
    found = find_again()
    others = others_of(address_sources.address_sources(cluster), planned) if module.check_mode else []
    if not prune:
        refuse_conflicts(found, planned)
        if found.objects:
            module.warn(
                f"No longer planned, and kept: {', '.join(found.names)}. They share no address with a "
                "planned network; fabric_prune_networks: true (in the role macvlan: macvlan_prune) removes them."
            )
        return outcome({}, {}, networks=[], unplanned=found.names, removed=[], others=others)
    refuse_users(found)
    if found.objects and not module.check_mode:
        found = wait_for_leaving(find_again, found, module.params["timeout"])
        remove(cluster, found, module.params["timeout"])
    before: Object = {describe(obj): obj.get("spec") for obj in [*found.objects, *found.attachments]}
    if found.stale:
        before[GONE] = sorted(f"{each.address}: {each.pod}" for each in found.stale)
    removed = [name for name in before if name != GONE]
    return outcome(before, {}, networks=[], unplanned=found.names, removed=removed, others=others)
