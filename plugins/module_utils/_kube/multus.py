# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Multus: what a pod requests from it, and the NetworkAttachmentDefinitions (NADs) that it reads. Pure functions."""

from __future__ import annotations

import json
import typing as t

from .._common.cni import split_chain
from .._model.profiles import MetaPlugin, profile_of
from .._model.stacks import NETWORKS
from .query import Object, query, quoted

# Annotation of a pod: the networks that multus attached, as JSON.
NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status"
# Annotation of a NAD: the resource that provides the plugin's device.
RESOURCE = "k8s.v1.cni.cncf.io/resourceName"
REQUESTS = (NETWORKS, "v1.multus-cni.io/default-network")
# A network that pods can request.
NAD_API = "k8s.cni.cncf.io/v1"
NAD = (NAD_API, "NetworkAttachmentDefinition")
INSTALL = (
    "Install multus: ipu.fabric.site and NVIDIA's network operator can do that, or apply its own manifest"
    " (https://github.com/k8snetworkplumbingwg/multus-cni)."
)
ATTACHMENTS = f"/apis/{NAD_API}/network-attachment-definitions"

Name = t.Tuple[str, str]  # namespace and name
Pool = t.Tuple[str, str]  # kind and name


class _OfType(t.TypedDict, total=False):
    cni: str  # its plugin, unless it is macvlan
    resource: str  # with its prefix, if each pod gets its own device
    meta_plugins: t.List[MetaPlugin]  # plugins after the main one, if the network's object has any


class Attachment(_OfType):
    """The content of a NAD. Each planned network defines its own."""

    name: str
    namespace: str
    master: str  # the hosts' interface that pods join; empty if each pod gets its own device
    mode: str  # of macvlan
    mtu: int  # bytes; 0: the master's
    ipam: Object  # configuration of the IPAM plugin


# ---- what a pod asks for --------------------------------------------------------------------------------------------


def selections(text: str, namespace: str) -> t.List[Object]:
    """The networks in an annotation (`a, jobs/b@net2` or a JSON list), each with its namespace and name."""
    if text.lstrip().startswith("["):
        try:
            return [{**i, "namespace": i.get("namespace") or namespace, "name": i["name"]} for i in json.loads(text)]
        except (ValueError, TypeError, KeyError, AttributeError):
            return []  # multus refuses it too: such a pod has no network
    names = (part.strip().partition("@")[0].rpartition("/") for part in text.split(",") if part.strip())
    return [{"namespace": place or namespace, "name": name} for place, _slash, name in names]


def requests(pod: Object) -> t.List[Object]:
    """The networks that a pod requests, as multus' network selection elements."""
    texts = [query(f"metadata.annotations.{quoted(key)}", pod) or "" for key in REQUESTS]
    return [element for text in texts for element in selections(text, pod["metadata"]["namespace"])]


def networks_of(pod: Object) -> t.Set[Name]:
    """The networks that a pod requests."""
    return {(element["namespace"], element["name"]) for element in requests(pod)}


def named_pools(pod: Object) -> t.Set[Pool]:
    """The nv-ipam pools that a pod names itself, in the cni-args of its annotation."""
    found: t.Set[Pool] = set()
    for args in query('[]."cni-args"', requests(pod)):
        kind = "CIDRPool" if query("poolType", args) == "cidrpool" else "IPPool"
        found |= {(kind, name) for name in query("poolNames || poolName || `[]`", args)}
    return found


# ---- what multus gave a pod ------------------------------------------------------------------------------------------


def network_status(pod: Object) -> t.List[Object]:
    """The networks that multus recorded on a pod, an entry for each."""
    try:
        status = json.loads(query(f"metadata.annotations.{quoted(NETWORK_STATUS)}", pod) or "[]")
    except ValueError:
        return []
    return status if isinstance(status, list) else []


def network_fault(pod: Object, network: Name) -> str:
    """Why a running pod lacks a network that it requests; empty if it has it, or does not request it.

    A sandbox that is created while multus is away (a reboot, multus-cni#1387) has only the cluster's network. The pod
    then keeps the status that multus wrote earlier, with the former address of eth0.
    """
    if network not in networks_of(pod) or query("spec.hostNetwork", pod) or query("metadata.deletionTimestamp", pod):
        return ""
    own = set(query("status.podIPs[].ip", pod) or ())
    if query("status.phase", pod) != "Running" or not own:
        return ""
    status = network_status(pod)
    if f"{network[0]}/{network[1]}" not in query("[].name", status):
        return "multus did not attach it"
    before = set(query('[?"default"].ips[]', status))
    if before and not before & own:
        return f"its network was recreated without multus: multus gave it {min(before)}, now it has {min(own)}"
    return ""


# ---- what a NAD says ------------------------------------------------------------------------------------------------


def read_ipams(attachment: Object) -> t.List[Object]:
    """The IPAM settings in an attachment's CNI configuration, which may be a chain of plugins."""
    try:
        config = json.loads(query("spec.config", attachment) or "{}")
    except (ValueError, TypeError):
        return []  # such a network never assigned an address
    return [ipam for ipam in query("[@, plugins][].ipam", config) or () if isinstance(ipam, dict)]


def planned_config(network: Attachment) -> Object:
    """The wanted configuration of the main plugin in a network's NAD."""
    profile = profile_of(network)
    wanted: Object = {"type": profile.cni}
    if profile.shared:
        wanted["master"] = network["master"]
    if profile.cni == "macvlan":
        wanted["mode"] = network["mode"]
    wanted["ipam"] = network["ipam"]
    return {**wanted, "mtu": network["mtu"]} if network["mtu"] and profile.cni == "macvlan" else wanted


def nad_difference(nad: Object, network: Attachment) -> t.Tuple[Object, Object]:
    """The main plugin's configuration in a NAD, and the planned one. Name and version do not matter.

    Nor do the VF options that the SR-IOV operator adds.
    """
    text, planned, profile = query("spec.config", nad) or "", planned_config(network), profile_of(network)
    try:
        config, chained = split_chain(json.loads(text), profile.cni)
    except ValueError:
        return {"config": text}, planned
    if config is None:
        return {"config": text}, planned
    if profile.namespaced:
        seen: Object = {key: config.get(key) for key in planned}
        return {**seen, "meta_plugins": chained}, {**planned, "meta_plugins": network.get("meta_plugins", [])}
    return {k: v for k, v in config.items() if k not in ("name", "cniVersion")}, planned


def nad_faults(nad: t.Optional[Object], network: Attachment) -> t.List[str]:
    """How the NAD differs from the network; empty if it matches the plan."""
    place = f"NetworkAttachmentDefinition {network['namespace']}/{network['name']}"
    if nad is None:
        return [f"{place} does not exist"]
    text = query("spec.config", nad) or ""
    try:
        config, chained = split_chain(json.loads(text), profile_of(network).cni)
    except ValueError as error:
        return [f"{place} is not valid JSON ({error}): {text}"]
    if config is None:
        return [f"{place} is not a CNI configuration: {text}"]
    differing = [
        f"{place} says {key}={config.get(key)!r}, but {value!r} is planned"
        for key, value in planned_config(network).items()
        if config.get(key) != value
    ]
    planned = network.get("meta_plugins", [])
    if profile_of(network).namespaced and chained != planned:
        differing.append(f"{place} has the plugins {json.dumps(chained)}, but {json.dumps(planned)} are planned")
    asked, resource = query(f"metadata.annotations.{quoted(RESOURCE)}", nad) or "", network.get("resource")
    if not profile_of(network).shared and resource and asked != resource:
        differing.append(f"{place} asks for the resource {asked or '(none)'}, but {resource} is planned")
    if not network["mtu"] and config.get("mtu"):
        differing.append(f"{place} says mtu={config['mtu']}, but the master's is planned")
    return differing


def nad_reference(network: Attachment) -> Object:
    """Kind and name of the NAD of a network."""
    metadata = {"name": network["name"], "namespace": network["namespace"]}
    return {"apiVersion": NAD[0], "kind": NAD[1], "metadata": metadata}
