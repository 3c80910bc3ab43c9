# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of an object that go into an archive: those known to be harmless, and nothing else. Pure functions."""

from __future__ import annotations

import json
import typing as t

from .._kube.query import Object, query

# Fields by name. `*` is any name, a list adds no level, and `json` stands for the contents of a JSON string.
# A path ends in a text, a number or a list of these: an object there is left out.
Tree = t.Dict[str, "Tree"]


def below(place: str, fields: str) -> str:
    return " ".join(f"{place}.{field}" for field in fields.split())


METADATA = "name namespace uid generation creationTimestamp deletionTimestamp"
COMMON = f"""
{below("metadata", METADATA)} {below("metadata.ownerReferences", "kind name uid")}
{below("status.conditions", "type status reason message lastTransitionTime")}
"""
CONTAINER = "name image resources.limits.* resources.requests.*"
CONTAINERS = f"{below('initContainers', CONTAINER)} {below('containers', CONTAINER)}"
ENDED = "reason exitCode signal startedAt finishedAt"
STATE = f"""
name image imageID ready started restartCount state.running.startedAt state.waiting.reason
{below("state.terminated", ENDED)} {below("lastState.terminated", ENDED)}
"""
POD = f"""
{COMMON} {below("spec", f"{CONTAINERS} nodeName priorityClassName hostNetwork restartPolicy tolerations.*")}
{below("status", "phase reason message podIP podIPs.ip hostIP startTime qosClass")}
{below("status.initContainerStatuses", STATE)} {below("status.containerStatuses", STATE)}
"""
# These may quote a command, or a program's last words.
SAID = " ".join(
    below(f"status.{kind}", "state.waiting.message state.terminated.message lastState.terminated.message")
    for kind in ("initContainerStatuses", "containerStatuses")
)
OWNER = f"""
{COMMON} spec.replicas status.*
{below("spec.template.spec", f"{CONTAINERS} nodeSelector.* tolerations.* hostNetwork")}
"""
POOL = f"""
{COMMON} {below("spec.allocations.*", "id podref ifName")} spec.nodeSelector.nodeSelectorTerms.matchExpressions.*
{below("spec", "range subnet perNodeBlockSize gateway exclusions.* cidr perNodeNetworkPrefix gatewayIndex")}
{below("spec", "ips excludeIPs ipVersion default disable nodeName namespaceName")} status.* status.allocations.*
"""
COMPONENT = "image repository version imagePullSecrets upgradePolicy.*"
PARTS = """
ofedDriver rdmaSharedDevicePlugin sriovDevicePlugin nvIpam nicFeatureDiscovery
secondaryNetwork.multus secondaryNetwork.cniPlugins secondaryNetwork.ipoib secondaryNetwork.ipamPlugin
"""
IPAM = "type range range_start range_end exclude gateway poolName poolType node_slice_size network_name"
CNI = f"cniVersion name type master mode mtu linkInContainer {below('ipam', IPAM)}"
ALLOWED: t.Mapping[str, str] = {
    "Node": f"""
        {COMMON} metadata.labels.* {below("spec", "podCIDR podCIDRs unschedulable taints.*")}
        {below("status", "capacity.* allocatable.* addresses.* nodeInfo.*")}
    """,
    "NicClusterPolicy": f"""
        {COMMON} {" ".join(below(f"spec.{part}", COMPONENT) for part in PARTS.split())}
        {below("status", "state reason appliedStates.*")}
    """,
    "MacvlanNetwork": f"""
        {COMMON} {below("spec", "master mode mtu networkNamespace")} {below("spec.ipam.json", IPAM)}
        {below("status", "state reason macvlanNetworkAttachmentDef")}
    """,
    "NetworkAttachmentDefinition": f"""
        {COMMON} {below("spec.config.json", CNI)} {below("spec.config.json.plugins", CNI)}
    """,
    "IPPool": POOL,
    "CIDRPool": POOL,
    "SpiderIPPool": POOL,
    "SpiderMultusConfig": f"""
        {COMMON} {below("spec", "cniType enableCoordinator macvlan.* macvlan.ippools.* chainCNIJsonData")}
    """,
    "IPUJob": f"""
        {COMMON} {below("spec", "jobInstances ipusPerJobInstance workersPerJobInstance cleanPodPolicy restartPolicy.*")}
        spec.workers.replicas {below("spec.launcher.template.spec", CONTAINERS)}
        {below("spec.workers.template.spec", CONTAINERS)} status.* status.workersStatus.*
    """,
    "Pod": POD,
    "DaemonSet": OWNER,
    "Deployment": OWNER,
    "Event": f"""
        {below("metadata", METADATA)} type reason message count firstTimestamp lastTimestamp eventTime series.count
        {below("involvedObject", "kind namespace name fieldPath")} {below("source", "component host")}
    """,
}
# Messages about what Kubernetes does for a pod. Others may quote a workload's command or output.
PLAIN = (
    *("BackOff", "Evicted", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedMount", "FailedScheduling"),
    *("NetworkNotReady", "NodeNotReady", "Preempted", "Pulled", "Pulling", "Scheduled"),
)
# Components in kube-system, where others have pods too: Kubernetes itself, pod networks, and what we install there.
COMPONENTS = (
    *("kube-apiserver-", "kube-controller-manager-", "kube-scheduler-", "kube-proxy-", "etcd-", "metrics-server-"),
    *("coredns-", "rke2-coredns-", "calico-", "tigera-", "kube-flannel-", "canal-", "rke2-canal-"),
    *("cilium-", "rke2-cilium-", "kube-multus-", "multus-", "whereabouts-", "local-path-provisioner-"),
)


def tree_of(paths: str) -> Tree:
    root: Tree = {}
    for path in paths.split():
        place = root
        for name in path.split("."):
            place = place.setdefault(name, {})
    return root


TREES = {kind: tree_of(paths) for kind, paths in ALLOWED.items()}
COMPONENT_POD = tree_of(f"{POD} {SAID}")


def harmless(item: Object, kind: str, ours: bool) -> Object:
    """The fields of an object that may leave the site; `ours`: it is in a namespace of components."""
    tree = COMPONENT_POD if kind == "Pod" and ours else TREES[kind]
    found: Object = _part(item, tree) or {}
    if kind == "Event" and not ours and item.get("reason") not in PLAIN:
        found.pop("message", None)
    return found


def _part(value: t.Any, tree: Tree) -> t.Any:
    """The part of a value that may leave the site; None if nothing may."""
    if isinstance(value, dict):
        known = [name for name in value if name in tree or "*" in tree]
        parts = {name: _part(value[name], tree[name if name in tree else "*"]) for name in known}
        return {name: part for name, part in parts.items() if part is not None} or (None if value else value)
    if isinstance(value, list):
        parts_of_list = [part for part in (_part(each, tree) for each in value) if part is not None]
        return parts_of_list if parts_of_list or not value else None
    if "json" in tree and isinstance(value, str):
        try:
            return json.dumps(_part(json.loads(value), tree["json"]) or {})
        except (ValueError, RecursionError):
            return None
    return None if tree else value


def is_component(pod: Object) -> bool:
    """Whether a pod in a namespace of components is one, rather than somebody's job there."""
    if "Job" in (query("metadata.ownerReferences[].kind", pod) or []):
        return False
    namespace, name = query("metadata.[namespace, name]", pod)
    return namespace != "kube-system" or name.startswith(COMPONENTS)
