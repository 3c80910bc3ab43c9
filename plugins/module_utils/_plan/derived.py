# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Derives a plan from the objects of any cluster: what its networks promise, for the proof to test. Pure.

Networks that can't be derived, or not be proved without harm to others, are listed with the reason.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import itertools
import json
import typing as t

from .._common.cni import plugins_of
from .._common.result import FabricError
from .._common.text import shorten_list
from .._kube.multus import INSTALL, RESOURCE, Name, networks_of
from .._kube.query import Object, query, quoted
from .._model.plan import NotProved, Plan, PlannedHost, PlannedLink, PlannedNetwork, PlannedSubnet
from .._model.profiles import INFINIBAND, INFINIBAND_ONLY
from .._model.stacks import OWN_DEVICES, OWN_IPAM, STACKS
from .derived_addresses import Given, LeftOutError, Pools, addresses_of
from .report import count

# With their default modes.
CNIS = {"macvlan": "bridge", "ipvlan": "l2", "sriov": "", "host-device": "", "ipoib": "", "ib-sriov": ""}
MADE_BY = {stack.network: name for name, stack in STACKS.items()}
CONTROL_PLANES = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")  # taint keys
NO_MASTER = "(default route)"  # the NIC that CNI plugins take if none is named
ALONE = 'Prove it alone: -e \'{{"fabric_prove_networks": ["{}"]}}\'.'


@dataclasses.dataclass(frozen=True)
class ClusterObjects:
    """Objects of a cluster as its API returns them. In lists of several kinds, each object has its `kind`."""

    version: str  # of Kubernetes, without v
    endpoint: str  # host:port of the API
    nodes: t.Sequence[Object]
    attachments: t.Sequence[Object]  # NetworkAttachmentDefinitions
    networks: t.Sequence[Object]  # MacvlanNetworks, HostDeviceNetworks, SriovNetworks, SpiderMultusConfigs
    pools: Pools
    policies: t.Sequence[Object]  # NicClusterPolicies, NicNodePolicies, SriovNetworkNodePolicies
    config_maps: t.Sequence[Object]  # of device plugins installed by hand, and of multus
    multus: t.Sequence[Object]  # its DaemonSets
    pods: t.Sequence[Object]  # running ones


class Resource(t.NamedTuple):
    """A resource of a device plugin."""

    name: str  # without its prefix, which the plugin's options can change
    rdma: bool
    interfaces: t.FrozenSet[str]  # selected by name; empty: it selects by something else
    labels: t.Optional[t.Mapping[str, str]]  # of the nodes that should have it; None: not stated


# ---- resources of device plugins ------------------------------------------------------------------------------------


def read_config(text: object) -> Object:
    try:
        found = json.loads(str(text or "{}"))
    except ValueError:
        return {}  # the plugin does not start with it either
    return found if isinstance(found, dict) else {}


def plugin_resources(spec: Object, labels: t.Optional[t.Mapping[str, str]]) -> t.Iterator[Resource]:
    """Resources offered by the device plugins of a NicClusterPolicy or a NicNodePolicy."""
    shared = read_config(query("rdmaSharedDevicePlugin.config", spec))
    for entry in query("configList[?resourceName]", shared) or ():
        names = query("[selectors.ifNames, devices][] | []", entry) or ()
        yield Resource(entry["resourceName"], True, frozenset(map(str, names)), labels)
    for entry in query("resourceList[?resourceName]", read_config(query("sriovDevicePlugin.config", spec))) or ():
        rdma = bool(query("[selectors][] | [?isRdma]", entry))
        yield Resource(entry["resourceName"], rdma, frozenset(), labels)


def resources_of(seen: ClusterObjects) -> t.List[Resource]:
    found: t.List[Resource] = []
    for policy in seen.policies:
        spec, labels = policy.get("spec") or {}, query("spec.nodeSelector", policy)
        if policy["kind"] == "SriovNetworkNodePolicy":
            found.append(Resource(spec.get("resourceName", ""), bool(spec.get("isRdma")), frozenset(), labels))
        else:
            found += plugin_resources(spec, labels)
    for config_map in seen.config_maps:
        for text in (config_map.get("data") or {}).values():
            found += plugin_resources({"rdmaSharedDevicePlugin": {"config": text}}, None)
    return found


def allocatable(node: Object) -> t.Mapping[str, str]:
    return query("status.allocatable", node) or {}


def full_name(resource: str, nodes: t.Iterable[Object]) -> str:
    """A resource's full name as on nodes; with the usual prefix if no node has it."""
    names = {name for node in nodes for name in allocatable(node) if name.rpartition("/")[2] == resource}
    return min(names, default=f"rdma/{resource}")


def resource_of(master: str, asked: str, known: t.Sequence[Resource], nodes: t.Sequence[Object]) -> t.Tuple[str, str]:
    """The RDMA resource for pods on a NIC, and what is uncertain about it. Both may be empty.

    asked: the one that the network itself names.
    """
    if asked:
        return asked if "/" in asked else full_name(asked, nodes), ""
    rdma = [each for each in known if each.rdma]
    mine = sorted({each.name for each in rdma if {master, master.partition(".")[0]} & each.interfaces})
    loose = sorted({each.name for each in rdma if not each.interfaces})
    if mine:
        return full_name(mine[0], nodes), ""
    if len(loose) == 1:
        return full_name(loose[0], nodes), f"no selector names {master}: {loose[0]} is assumed to be its resource"
    several = f"any of {', '.join(loose)} may be the resource of {master}, so it is proved without RDMA"
    return "", several if loose else ""


# ---- one network ----------------------------------------------------------------------------------------------------


class Candidate(t.NamedTuple):
    """A network that can be proved, and the nodes for it."""

    network: PlannedNetwork
    config: Object  # its plugin's part of the CNI configuration
    notes: t.List[NotProved]


def name_of(obj: Object) -> Name:
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def left_out(place: Name, error: LeftOutError) -> NotProved:
    return {"network": "/".join(place), "whole": True, "fault": error.fault, "why": error.why, "next": error.next}


def main_plugin(attachment: Object) -> t.Tuple[Object, t.List[str]]:
    """The plugin that creates the interface, and the types of the chained plugins after it."""
    text = query("spec.config", attachment)
    if not text:
        raise LeftOutError("its CNI configuration is a file on the nodes, which the API does not show")
    plugins = plugins_of(text)
    types = [str(each.get("type", "")) for each in plugins]
    if not any(types):
        raise LeftOutError(
            "its CNI configuration can't be read, so pods can't join it", "Correct spec.config.", fault=True
        )
    place = next((number for number, cni in enumerate(types) if cni in CNIS), None)
    if place is None:
        raise LeftOutError(f"its CNI plugin is {types[0]}; only {', '.join(CNIS)} can be proved")
    if plugins[place].get("linkInContainer"):
        raise LeftOutError("its master is an interface inside its own pods (linkInContainer)")
    return plugins[place], types[place + 1 :]


def usable_nodes(nodes: t.Iterable[Object]) -> t.List[Object]:
    """Nodes that are not cordoned."""
    return [node for node in nodes if not query("spec.unschedulable", node)]


def nodes_with(resource: str, known: t.Sequence[Resource], nodes: t.Sequence[Object]) -> t.List[Object]:
    """Nodes that have a resource, or that a policy selects for it. Without a resource, all but control planes."""
    if not resource:
        taints = [set(query("spec.taints[?effect!='PreferNoSchedule'].key", node) or ()) for node in nodes]
        return [node for node, keys in zip(nodes, taints) if not keys & set(CONTROL_PLANES)]
    stated = [each.labels for each in known if each.labels and each.name == resource.rpartition("/")[2]]
    return [
        node
        for node in nodes
        if resource in allocatable(node)
        or any(labels.items() <= (node["metadata"].get("labels") or {}).items() for labels in stated)
    ]


def isolation(seen: ClusterObjects) -> t.Optional[t.Set[str]]:
    """The only namespaces whose networks may be used from other namespaces; None: all."""
    texts = [text for config in seen.config_maps for text in (config.get("data") or {}).values()]
    configs = [read_config(text) for text in texts]
    words = query("[].spec.template.spec.containers[].[command, args][] | []", list(seen.multus)) or ()
    flags = dict(word.lstrip("-").partition("=")[::2] for word in words if word.startswith("--"))
    on = any(config.get("namespaceIsolation") is True for config in configs)
    if not on and flags.get("namespace-isolation") not in ("", "true"):
        return None
    listed = next((config["globalNamespaces"] for config in configs if config.get("globalNamespaces")), "")
    return set((listed or flags.get("global-namespaces") or "default").split(","))


def users_of(place: Name, pods: t.Iterable[Object]) -> t.List[str]:
    return ["/".join(name_of(pod)) for pod in pods if place in networks_of(pod)]


def planned_subnet(given: Given) -> PlannedSubnet:
    runs = list(given.allowed.iter_ipranges())
    return {
        "cidr": str(given.cidr),
        "prefix": given.cidr.prefixlen,
        "gateway": given.gateway,
        "range_start": str(runs[0][0]),
        "range_end": str(runs[-1][-1]),
        "exclude": given.exclude,
        "capacity": given.allowed.size,
        "warnings": [],
        "needed": 0,
    }


def derive_network(attachment: Object, seen: ClusterObjects, known: t.Sequence[Resource]) -> Candidate:
    """The plan of one network. LeftOutError if it can't be proved."""
    place = name_of(attachment)
    config, chain = main_plugin(attachment)
    cni, master = str(config["type"]), str(config.get("master") or NO_MASTER)
    asked = query(f"metadata.annotations.{quoted(RESOURCE)}", attachment) or ""
    nodes = usable_nodes(seen.nodes)
    resource, doubt = ("", "") if cni in OWN_DEVICES else resource_of(master, asked, known, nodes)
    if cni in OWN_DEVICES:
        resource = device_resource(asked, chain, known)
        master = f"a device of {resource}"
    addresses = addresses_of(config.get("ipam"), seen.pools)
    wanted = [node for node in nodes_with(resource, known, nodes) if addresses.nodes(node)]
    if addresses.single:
        users = users_of(place, seen.pods)
        if users:
            raise LeftOutError(f"{shorten_list(users, 3)} has its only address, and a second pod would take it over")
        wanted = wanted[:1]
    if not wanted:
        lack = f"has {resource}" if resource else "may run its pods"
        raise LeftOutError(f"no uncordoned node {lack}", "See `kubectl describe nodes`.", fault=bool(resource))
    subnets = [planned_subnet(each) for each in addresses.given]
    owners = query("metadata.ownerReferences[].kind", attachment) or ()
    network: PlannedNetwork = {
        "name": place[1],
        "namespace": place[0],
        "hosts": sorted(node["metadata"]["name"] for node in wanted),
        "master": master,
        "mode": str(config.get("mode") or CNIS[cni]),
        "mtu": config["mtu"] if isinstance(config.get("mtu"), int) else 0,
        "resource": resource,
        "rdma": bool(resource),
        "rdma_drivers": [],
        "rdma_netdevs": [],
        "subnet": subnets[0] if subnets else None,
        "subnets": subnets,
        "ipam": config["ipam"],
        "pool": addresses.pools[0] if addresses.pools else None,
        "pools": addresses.pools,
        "made_by": next((MADE_BY[kind] for kind in owners if kind in MADE_BY), ""),
    }
    if network["made_by"] == OWN_IPAM and "coordinator" not in chain:
        network["made_by"] = ""  # without it, pods have no separate routes for each rail
    if cni != "macvlan":
        network["cni"] = cni
    if "sbr" in chain:
        network["meta_plugins"] = [{"type": "sbr"}]
    if cni in INFINIBAND_ONLY:
        network["link_layer"] = INFINIBAND
    notes = [*addresses.notes]
    if doubt:
        notes.append((doubt, "Name the NIC in ifNames of the device plugin's selectors."))
    told: t.List[NotProved] = [
        {"network": "/".join(place), "whole": False, "fault": False, "why": why, "next": step} for why, step in notes
    ]
    return Candidate(network, config, told)


def device_resource(asked: str, chain: t.Sequence[str], known: t.Sequence[Resource]) -> str:
    """The resource that a pod has to request to get its own device."""
    if not asked:
        raise LeftOutError(
            "it has no annotation that names its resource, so no pod can request a device",
            f"Set {RESOURCE} on the NetworkAttachmentDefinition.",
        )
    rdma = any(each.rdma for each in known if each.name == asked.rpartition("/")[2])
    if not rdma and "rdma" not in chain:
        raise LeftOutError(f"nothing says that {asked} has RDMA (isRdma), and a device without RDMA proves little")
    return asked


# ---- all of them ----------------------------------------------------------------------------------------------------


def chosen_attachments(seen: ClusterObjects, only: t.Sequence[str]) -> t.List[Object]:
    """Attachments to prove, sorted by namespace and name. FabricError for an unknown name."""
    ordered = sorted(seen.attachments, key=name_of)
    names = ["/".join(name_of(each)) for each in ordered]
    wanted = {each if "/" in each else f"default/{each}" for each in only}
    unknown = sorted(wanted - set(names))
    if unknown:
        raise FabricError(
            "Only networks that the cluster has can be proved.",
            "variable fabric_prove_networks",
            f"no NetworkAttachmentDefinition {', '.join(unknown)}",
            f"Choose from the networks of the cluster: {shorten_list(names, 20) or 'none'}.",
            code="invalid-input",
        )
    return [each for each, name in zip(ordered, names) if not only or name in wanted]


def lacking_attachments(seen: ClusterObjects, only: t.Sequence[str]) -> t.Iterator[NotProved]:
    """Networks of operators that lack a NetworkAttachmentDefinition."""
    there = {name_of(each) for each in seen.attachments}
    for obj in () if only else seen.networks:
        namespace, name = name_of(obj)
        place = (query("spec.networkNamespace", obj) or namespace or "default", name)
        if place not in there:
            state = ": ".join(filter(None, query("status.[state, reason]", obj) or ())) or "no state"
            why = f"{obj['kind']} {name} has no NetworkAttachmentDefinition ({state})"
            step = f"`kubectl describe {obj['kind'].lower()} {name}` has the reason."
            yield left_out(place, LeftOutError(why, step, fault=True))


def refuse_clash(one: Candidate, taken: t.Sequence[Candidate]) -> None:
    """Refuse a network that can't be in one pod with the networks before it."""
    network = one.network
    place = f"{network['namespace']}/{network['name']}"
    for other in taken:
        theirs = other.network
        named = f"{theirs['namespace']}/{theirs['name']}"
        if theirs["name"] == network["name"]:
            same = " and the same configuration" if other.config == one.config else ""
            raise LeftOutError(f"{named} has the same name{same}", ALONE.format(place))
        kinds = {each.get("cni", "macvlan") for each in (network, theirs)}
        if network["master"] == theirs["master"] and kinds == {"macvlan", "ipvlan"}:
            raise LeftOutError(f"{named} has its NIC, which carries macvlans or ipvlans, not both", ALONE.format(place))


def derive_networks(seen: ClusterObjects, only: t.Sequence[str]) -> t.Tuple[t.List[PlannedNetwork], t.List[NotProved]]:
    known, shared = resources_of(seen), isolation(seen)
    taken: t.List[Candidate] = []
    beside = list(lacking_attachments(seen, only))
    for attachment in chosen_attachments(seen, only):
        place = name_of(attachment)
        try:
            if shared is not None and place[0] not in shared:
                step = f"Let multus share its namespace (globalNamespaces), or prove one like it in {min(shared)}."
                raise LeftOutError(
                    "multus keeps namespaces apart (namespaceIsolation), and the proof runs in its own", step
                )
            one = derive_network(attachment, seen, known)
            refuse_clash(one, taken)
        except LeftOutError as error:
            beside.append(left_out(place, error))
        else:
            taken.append(one)
            beside += one.notes
    return [one.network for one in taken], beside


def pod_cidrs(nodes: t.Iterable[Object]) -> str:
    """Pod CIDRs of the nodes, merged; empty if the pod network does not publish them."""
    cidrs = [ipaddress.ip_network(text) for node in nodes for text in query("spec.podCIDRs", node) or ()]
    by_family = itertools.chain.from_iterable(
        ipaddress.collapse_addresses([each for each in cidrs if each.version == version])  # type: ignore[type-var]
        for version in (4, 6)
    )
    return ",".join(map(str, by_family))


def planned_link(network: PlannedNetwork) -> PlannedLink:
    """A node's NIC, of which only the name is known."""
    return {
        "netdev": network["master"],
        "altname": "",
        "pci": "",
        "mac": "",
        "driver": "",
        "kind": "",
        "lower": [],
        "rdma_netdevs": [],
        "device": "",
        "mtu": network["mtu"],
        "rate_gbps": None,
        "pcie_gbps": None,
        "addresses": [],
        "address": "",
        "prefix": 0,
    }


def derive_plan(seen: ClusterObjects, only: t.Sequence[str] = ()) -> Plan:
    """The plan of an existing cluster. FabricError if there is nothing to prove.

    only: namespace/name of the networks to include; empty: all.
    """
    networks, beside = derive_networks(seen, only)
    if not networks:
        listed = [f"{each['network']}: {each['why']}" for each in beside if each["whole"]]
        there, step = shorten_list(listed, 10, "; ") or "there is none", "Create one"
        if not listed and not seen.multus:
            there += ", and no DaemonSet of multus, which would attach pods to them"
            step = f"{INSTALL} Then create a NetworkAttachmentDefinition"
        raise FabricError(
            "The proof needs a network for pods.",
            "NetworkAttachmentDefinitions of all namespaces",
            there,
            f"{step} (https://github.com/ipu-fabric/ipu.fabric/blob/main/docs/any-cluster.md says which can be proved),"
            " or have ipu.fabric.site plan and build them.",
            code="not-found",
        )
    hosts: t.Dict[str, PlannedHost] = {}
    for node in sorted(seen.nodes, key=name_of):
        name = node["metadata"]["name"]
        mine = [network for network in networks if name in network["hosts"]]
        if mine:
            hosts[name] = {
                "node": name,
                "platform": "",
                "address": ",".join(query("status.addresses[?type=='InternalIP'].address", node) or ()),
                "roles": ["worker"],
                "links": {network["name"]: planned_link(network) for network in mine},
                "gpus": [],
            }
    whole = sum(each["whole"] for each in beside)
    rest = f"; {whole} can't be proved" if whole else ""
    line = f"To prove: {count(len(networks), 'network')} on {count(len(hosts), 'node')}{rest}. Nothing is installed."
    return {
        "schema": 1,
        "made": {"time": "", "site": "", "collection": "", "by": ""},
        "summary": {
            "hosts": {name: {"word": "untouched", "why": []} for name in hosts},
            "counts": {"untouched": len(hosts)},
            "bare": False,
            "line": line,
            "state": "nothing",
            "exit_code": 0,
        },
        "since": None,
        "recorded": "",
        "releases": {
            "kubernetes": seen.version,
            "stack": "",
            "network_operator": "",
            OWN_IPAM: "",
            "gpu_operator": "",
            "ipu_operator": "",
            "cni": "none",
            "cni_version": "",
            "cni_images": [],
            "pause": "",
            "ipam": "",
            "whereabouts": "",
            "whereabouts_standalone": False,
            "features": {},
            "components": {},
        },
        "support": [],
        "cluster": {
            "pod_cidr": pod_cidrs(seen.nodes),
            "service_cidr": "",
            "endpoint": seen.endpoint,
            "distribution": {
                "name": "",
                "containerd_socket": "",
                "cni_bin_directory": "",
                "cni_network_directory": "",
            },
            "runtime": {"name": "", "cri_dockerd": "", "kubelet_feature_gates": {}},
            "virtual_address": None,
            "control_planes": [],
            "workers": list(hosts),
            "single_node": len(seen.nodes) == 1,
            "running": None,
        },
        "hardening": None,
        "hosts": hosts,
        "vipu": {"controllers": [], "value": "", "node_labels": {}},
        "ipu_operator": None,
        "networks": networks,
        "rdma_resources": [],
        "no_proxy": {"everything": [], "downloads": []},
        "certificates": [],
        "cni_token_ends": {"hosts": [], "restart": {}},
        "sources": [],
        "image_digests": {},
        "drift": None,
        "drift_time": "",
        "findings": [],
        "not_proved": beside,
    }
