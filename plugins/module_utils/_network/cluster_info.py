# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What roles need to know of a cluster before they change it: versions, nodes, add-ons, network operators."""

from __future__ import annotations

import typing as t

from .._common.manager import is_ours
from .._host.cluster import MULTUS_IMAGES, image_names, places
from .._host.facts import ca_digest
from .._host.nic_policies import KINDS
from .._kube.client import Cluster
from .._kube.multus import ATTACHMENTS, read_ipams
from .._kube.ownership import own_labels, release_is_ours
from .._kube.query import Object, query, quoted
from .._kube.readiness import condition_true
from .._kubeadm.membership import CONTROL_PLANE_LABEL
from .._kubeadm.upgrade import tag_release
from .._model.operators import Installation
from .macvlan_objects import known, owners
from .removal import listed_networks, name_of

NFD_IMAGES = ("node-feature-discovery", "node-feature-discovery-minimal")
WHEREABOUTS_IMAGES = ("whereabouts", "hardened-whereabouts")
STARTED = "max(status.containerStatuses[].state.running.startedAt || `[]`)"
NV_IPAM_IMAGES = ("nvidia-k8s-ipam",)

# The CA by which pods trust the API server, the same in every namespace.
ROOT_CA = "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt"
MIRROR = "kubernetes.io/config.mirror"
POLICY = "/apis/mellanox.com/v1alpha1/nicclusterpolicies/nic-cluster-policy"
NODE_POLICIES = KINDS["NicNodePolicy"]


def component_releases(cluster: Cluster) -> t.Dict[str, t.Dict[str, str]]:
    """Releases of the control plane's static pods by node, as the node's kubelet reports them."""
    found: t.Dict[str, t.Dict[str, str]] = {}
    for pod in cluster.items("/api/v1/namespaces/kube-system/pods", labelSelector="tier=control-plane"):
        # Only a kubelet creates mirror pods, and only for its own node.
        name = query("metadata.labels.component", pod)
        if name and query(f"metadata.annotations.{quoted(MIRROR)}", pod):
            image = query("spec.containers[0].image", pod) or ""
            found.setdefault(query("spec.nodeName", pod) or "", {})[name] = tag_release(image)
    return found


def node_view(node: Object, components: t.Mapping[str, t.Mapping[str, str]]) -> Object:
    return {
        "name": node["metadata"]["name"],
        "ready": condition_true(node, "Ready"),
        "schedulable": not query("spec.unschedulable", node),
        "control_plane": CONTROL_PLANE_LABEL in (node["metadata"].get("labels") or {}),
        "addresses": query("status.addresses[?type=='InternalIP'].address", node) or [],
        "version": (query("status.nodeInfo.kubeletVersion", node) or "").lstrip("v"),
        "components": dict(components.get(node["metadata"]["name"], {})),
        "machine_id": query("status.nodeInfo.machineID", node) or "",
        "own_labels": own_labels(node),
    }


def addon_facts(cluster: Cluster) -> Object:
    """DaemonSets of Node Feature Discovery and of multus, and the nodes with a ready multus.

    Also when the pods of multus and whereabouts started on each node: that is when they wrote their CNI plugin's token.
    """
    daemonsets = cluster.items("/apis/apps/v1/daemonsets")
    multus = places(daemonsets, MULTUS_IMAGES)
    # The topology updater is a second DaemonSet of the same installation.
    workers = [each for each in daemonsets if "topology" not in each["metadata"]["name"]]
    since: t.Dict[str, t.Dict[str, str]] = {"multus": {}, "whereabouts": {}}
    for daemonset in daemonsets:
        metadata, labels = daemonset["metadata"], query("spec.selector.matchLabels", daemonset) or {}
        for name, images in (("multus", MULTUS_IMAGES), ("whereabouts", WHEREABOUTS_IMAGES)):
            if places([daemonset], images):
                selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
                pods = cluster.items(f"/api/v1/namespaces/{metadata['namespace']}/pods", labelSelector=selector)
                ready = [pod for pod in pods if condition_true(pod, "Ready")]
                since[name].update({pod["spec"]["nodeName"]: query(STARTED, pod) or "" for pod in ready})
    return {
        "nfd": places(workers, NFD_IMAGES),
        "multus": multus,
        "multus_nodes": sorted(since["multus"]),
        "cni_since": since,
    }


def operator_view(deployment: Object) -> Object:
    """A network operator: its namespace, its release, and its Helm release name."""
    metadata = deployment["metadata"]
    images = query("spec.template.spec.containers[].image", deployment) or []
    tags = [image.rpartition("/")[2].partition("@")[0].partition(":")[2] for image in images]
    version = query(f"labels.{quoted('app.kubernetes.io/version')}", metadata) or next(iter(tags), "")
    release = query(f"annotations.{quoted('meta.helm.sh/release-name')}", metadata) or ""
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "version": version.lstrip("v"),
        "release": release,
    }


def installations(cluster: Cluster, image: str) -> t.List[Installation]:
    """The operators whose Deployments run an image."""
    found = [each for each in cluster.items("/apis/apps/v1/deployments") if image in image_names(each)]
    return [t.cast(Installation, {**operator_view(each), "ours": release_is_ours(cluster, each)}) for each in found]


def in_chart(policy: t.Optional[Object]) -> bool:
    """Whether a chart upgrade would delete the policy: the chart owns it, and no annotation keeps it."""
    managed_by = query(f"metadata.labels.{quoted('app.kubernetes.io/managed-by')}", policy)
    resource_policy = query(f"metadata.annotations.{quoted('helm.sh/resource-policy')}", policy)
    return bool(managed_by == "Helm" and resource_policy != "keep")


def policy_ipam(policy: t.Optional[Object]) -> str:
    """The IPAM of the existing networks: nv-ipam if the policy has it, else whereabouts, of the policy or separate."""
    if policy is None:
        return ""
    return "nv-ipam" if query("spec.nvIpam", policy) else "whereabouts"


def device_plugin(policy: t.Optional[Object], node_policies: t.Sequence[Object]) -> str:
    """Which of our policies configures the RDMA device plugin: cluster or node; empty: none."""
    if is_ours(policy) and query("spec.rdmaSharedDevicePlugin", policy):
        return "cluster"
    return "node" if any(query("spec.rdmaSharedDevicePlugin", each) for each in node_policies) else ""


def is_own(cluster: Cluster, workload: Object, policy: t.Optional[Object]) -> bool:
    """Whether a workload comes from this collection: it made the Helm release or the policy."""
    of_policy = "NicClusterPolicy" in (query("metadata.ownerReferences[].kind", workload) or ())
    return is_ours(policy) if of_policy else release_is_ours(cluster, workload)


def whereabouts_networks(cluster: Cluster) -> t.List[str]:
    """NetworkAttachmentDefinitions of others whose pods get addresses from whereabouts."""
    ours = known(network for network in listed_networks(cluster) if is_ours(network))
    return [
        "/".join(name_of(nad))
        for nad in cluster.items(ATTACHMENTS)
        if not owners(nad) & ours and any(ipam.get("type") == "whereabouts" for ipam in read_ipams(nad))
    ]


def read_cluster(cluster: Cluster) -> Object:
    daemonsets = cluster.items("/apis/apps/v1/daemonsets")
    deployments = cluster.items("/apis/apps/v1/deployments")
    policy = cluster.get(POLICY)
    node_policies = [each for each in cluster.items(NODE_POLICIES) if is_ours(each)]
    operators = [deployment for deployment in deployments if "network-operator" in image_names(deployment)]
    whereabouts = [daemonset for daemonset in daemonsets if set(image_names(daemonset)) & set(WHEREABOUTS_IMAGES)]
    version = query("gitVersion", cluster.get("/version")) or ""
    components = component_releases(cluster)
    return {
        "present": cluster.present,
        "version": version.lstrip("v"),
        "ca": ca_digest(query(f"data.{quoted('ca.crt')}", cluster.get(ROOT_CA)) or ""),
        "nodes": [node_view(node, components) for node in cluster.items("/api/v1/nodes")],
        "nfd": places(daemonsets, NFD_IMAGES),
        "multus": places(daemonsets, MULTUS_IMAGES),
        "nv_ipam": places([*daemonsets, *deployments], NV_IPAM_IMAGES),
        "whereabouts": places(whereabouts, WHEREABOUTS_IMAGES),
        "whereabouts_networks": whereabouts_networks(cluster),
        "api_groups": sorted(query("groups[].name", cluster.get("/apis")) or []),
        "network_operators": [operator_view(operator) for operator in operators],
        "own": sorted("/".join(name_of(w)) for w in [*operators, *whereabouts] if is_own(cluster, w, policy)),
        "policy_in_chart": in_chart(policy),
        "policy_ipam": policy_ipam(policy),
        "device_plugin": device_plugin(policy, node_policies),
        "node_policies": sorted(each["metadata"]["name"] for each in node_policies),
    }
