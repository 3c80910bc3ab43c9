# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a control plane says about its cluster: release, endpoint, addresses, pod network and pools of nv-ipam.

kubectl asks as the administrator.
"""

from __future__ import annotations

import functools
import json
import os
import re
import typing as t

from .._common.cilium import CONFIG, is_exclusive
from .._common.helm_record import Object
from .._common.pod_security import POD_SECURITY, PRIVILEGED
from .._model.observation import ClusterFacts, FabricNetwork, NodeIdentity, NvIpamPool, PodNetwork
from .._model.stacks import STACKS
from .attachments import ATTACHMENTS, read_attachments
from .distributions import find_distribution, on_host
from .dra import read_dra_nics
from .files import MARK, read_text
from .ipu_operator import DEPLOYMENTS, read_ipu
from .kubectl import run_kubectl
from .nic_policies import read_nic_policies
from .role_files import SYSCTL

UNFINISHED = "var/lib/ipu-fabric/kubeadm-unfinished"
SECONDS = 120  # a busy host takes long to load kubectl
# Pod networks, by the DaemonSet that implements them.
POD_NETWORKS = {
    "antrea-agent": "antrea",
    "aws-node": "aws-vpc-cni",
    "calico-node": "calico",
    "canal": "canal",
    "cilium": "cilium",
    "kindnet": "kindnet",
    "kube-flannel": "flannel",
    "kube-flannel-ds": "flannel",
    "kube-ovn-cni": "kube-ovn",
    "kube-router": "kube-router",
    "ovnkube-node": "ovn-kubernetes",
    "rke2-canal": "canal",
    "weave-net": "weave",
}
# The "hardened" images are those of RKE2.
MULTUS_IMAGES = ("multus-cni", "multus", "multus-thick", "hardened-multus-cni", "hardened-multus-thick")

# Defaults of k3s and RKE2 for pods and services.
POD_CIDR, SERVICE_CIDR = "10.42.0.0/16", "10.43.0.0/16"
NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"  # label of the node
SERVERS = f"{NODES}?labelSelector={CONTROL_PLANE}"
RELEASE = "meta.helm.sh/release-name"  # annotation of Helm
ELSEWHERE = "(from elsewhere)"  # a value that comes from a reference, not from the DaemonSet itself
BACKEND = "flannel.alpha.coreos.com/backend-type"  # annotation of flannel, which is built into k3s


class Metadata(t.TypedDict, total=False):
    """The identity of an object."""

    name: str
    namespace: str
    annotations: t.Dict[str, str]
    labels: t.Dict[str, str]


class EnvVar(t.TypedDict, total=False):
    """An environment variable of a container. Without a value it takes one by reference."""

    name: str
    value: str


class Container(t.TypedDict, total=False):
    """The parts of a container that are read here."""

    name: str
    image: str
    env: t.List[EnvVar]


class PodSpec(t.TypedDict, total=False):
    """The part of a pod's spec that is read here."""

    containers: t.List[Container]
    initContainers: t.List[Container]


class PodTemplate(t.TypedDict, total=False):
    """The pods of a DaemonSet."""

    spec: PodSpec


class Spec(t.TypedDict, total=False):
    """The parts of the specs of nodes, DaemonSets and IPPools that are read here."""

    template: PodTemplate
    podCIDR: str
    subnet: str
    perNodeBlockSize: int
    config: str
    unschedulable: bool
    taints: t.List[t.Dict[str, str]]


class Allocation(t.TypedDict):
    """The block of a node in an IPPool."""

    nodeName: str
    startIP: str
    endIP: str


class NodeAddress(t.TypedDict):
    """An address, or a name, of a node."""

    type: str
    address: str


class Status(t.TypedDict, total=False):
    """The parts of the status of nodes and IPPools that are read here."""

    allocations: t.List[Allocation]
    addresses: t.List[NodeAddress]
    nodeInfo: t.Dict[str, str]
    conditions: t.List[t.Dict[str, str]]


class ApiObject(t.TypedDict, total=False):
    """The parts of the API's answers that are read here."""

    gitVersion: str
    data: t.Dict[str, str]
    items: t.List[ApiObject]
    metadata: Metadata
    spec: Spec
    status: Status


class Addresses(t.NamedTuple):
    """CIDRs of pods and services; empty if unknown."""

    pods: str
    services: str


class UnansweredError(Exception):
    """The API server did not answer, or not with what was asked for."""


Ask = t.Callable[[str], ApiObject]


def ask(kubectl: t.Sequence[str], admin: str, path: str) -> ApiObject:
    """An object of the API, or an empty one if it does not exist."""
    done = run_kubectl(admin, "get", "--raw", path, program=kubectl, timeout=SECONDS)
    if done.rc == 0:
        answer: ApiObject = json.loads(done.out)
        return answer
    if "(NotFound)" in done.err:
        return {}
    said = done.err.strip().splitlines()[-1:] or [f"timed out after {SECONDS} s"]
    raise UnansweredError(said[0])


def setting(configuration: str, name: str) -> str:
    """A value of kubeadm's ClusterConfiguration, in the format that kubeadm writes. Hosts have no YAML parser."""
    match = re.search(rf"^ *{name}: *['\"]?([^\s'\"]+)", configuration, re.MULTILINE)
    return match.group(1) if match else ""


def node_identity(node: ApiObject) -> NodeIdentity:
    """What identifies a node, and what keeps pods away from it."""
    spec, status, labels = node.get("spec", {}), node.get("status", {}), node["metadata"].get("labels", {})
    found: NodeIdentity = {
        "name": node["metadata"]["name"],
        "machine_id": status.get("nodeInfo", {}).get("machineID", ""),
        "addresses": [one["address"] for one in status.get("addresses", []) if one["type"] == "InternalIP"],
    }
    for condition in (each for each in status.get("conditions", []) if each["type"] == "Ready"):
        if condition["status"] != "True":
            found["not_ready"] = f"{condition.get('reason', '')}: {condition.get('message', '')}".strip(": ")
    if spec.get("unschedulable"):
        found["cordoned"] = True
    closed = any(taint["effect"] in ("NoSchedule", "NoExecute") for taint in spec.get("taints", []))
    if CONTROL_PLANE in labels and not closed:
        found["untainted"] = True
    return found


def autodetection(daemon_set: ApiObject) -> t.Dict[str, str]:
    """How calico-node detects a host's addresses: IPv4 unless disabled, IPv6 only if requested."""
    containers = daemon_set.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])
    for container in containers:
        if container["name"] == "calico-node":
            env = {each["name"]: each.get("value", ELSEWHERE) for each in container.get("env", [])}
            looks = {"IP": env.get("IP", "") in ("", "autodetect"), "IP6": env.get("IP6", "") == "autodetect"}
            names = [f"{name}_AUTODETECTION_METHOD" for name, wanted in looks.items() if wanted]
            return {name: env.get(name) or "first-found" for name in names}
    return {}


def pod_networks(daemon_sets: ApiObject, installations: ApiObject) -> t.List[PodNetwork]:
    """The pod networks of a cluster, and what shows each of them."""
    found: t.List[PodNetwork] = []
    for each in daemon_sets.get("items", []):
        if each["metadata"]["name"] in POD_NETWORKS:
            seen = "DaemonSet {namespace}/{name}".format(**each["metadata"])
            network: PodNetwork = {"name": POD_NETWORKS[each["metadata"]["name"]], "seen": seen}
            methods = autodetection(each) if network["name"] == "calico" else {}
            found.append({**network, "autodetection": methods} if methods else network)
    # What Calico's operator is configured to set up, whether or not it has done so.
    return found + [
        {"name": "calico", "seen": "Installation {name}".format(**each["metadata"])}
        for each in installations.get("items", [])
    ]


def image_name(image: str) -> str:
    """The last part of an image name, without registry, tag and digest."""
    return image.rpartition("/")[2].partition("@")[0].partition(":")[0]


def image_names(workload: Object) -> t.List[str]:
    """The last parts of a workload's image names, without registry and tag. Init containers may install multus."""
    pods = workload.get("spec", {}).get("template", {}).get("spec", {})
    containers = [*(pods.get("initContainers") or ()), *(pods.get("containers") or ())]
    return [image_name(each.get("image", "")) for each in containers]


def places(workloads: t.Iterable[Object], images: t.Sequence[str]) -> t.List[str]:
    """The workloads that run one of the images, as NAMESPACE/NAME."""
    found = [each["metadata"] for each in workloads if set(image_names(each)) & set(images)]
    return sorted("{namespace}/{name}".format(**metadata) for metadata in found)


def mark_exclusive(network: PodNetwork, asks: Ask) -> PodNetwork:
    """Mark Cilium as exclusive if it disables the CNI configurations of others."""
    if network["name"] != "cilium":
        return network
    namespace = network["seen"].split()[-1].partition("/")[0]
    settings = asks(f"/api/v1/namespaces/{namespace}/configmaps/{CONFIG}").get("data", {})
    return {**network, "exclusive": True} if is_exclusive(settings) else network


def nv_ipam_pools(pools: ApiObject) -> t.List[NvIpamPool]:
    """The IPPools, and the blocks that nodes hold of each."""
    return [
        {
            "name": pool["metadata"]["name"],
            "subnet": pool["spec"]["subnet"],
            "block_size": pool["spec"]["perNodeBlockSize"],
            "blocks": {
                each["nodeName"]: f"{each['startIP']}-{each['endIP']}"
                for each in pool.get("status", {}).get("allocations", [])
            },
        }
        for pool in pools.get("items", [])
    ]


def fabric_networks(asks: Ask) -> t.List[FabricNetwork]:
    """The networks of all stacks, from all namespaces."""
    return [
        {"stack": name, "name": network["metadata"]["name"]}
        for name, stack in STACKS.items()
        for network in asks(stack.networks).get("items", [])
    ]


def flag(arguments: t.Sequence[str], name: str) -> str:
    """The value of a flag, which is the next argument or follows an equals sign."""
    for word, following in zip(arguments, [*arguments[1:], ""]):
        if word == name:
            return following
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return ""


def embedded_addresses(name: str, servers: ApiObject) -> Addresses:
    """The CIDRs of a k3s or RKE2 cluster: from the arguments that a server recorded on its node, else the defaults."""
    for node in servers.get("items", []):
        written = node["metadata"].get("annotations", {}).get(f"{name}.io/node-args", "")
        if not written:
            continue
        arguments: t.List[str] = json.loads(written)
        # If nodes have only IPv6 addresses, the defaults differ.
        usual = "." in node.get("spec", {}).get("podCIDR", "")
        return Addresses(
            flag(arguments, "--cluster-cidr") or POD_CIDR * usual,
            flag(arguments, "--service-cidr") or SERVICE_CIDR * usual,
        )
    return Addresses("", "")


def embedded_flannel(servers: ApiObject) -> t.List[PodNetwork]:
    """flannel as built into k3s, where it has no DaemonSet."""
    for node in servers.get("items", []):
        if node["metadata"].get("annotations", {}).get(BACKEND):
            return [{"name": "flannel", "seen": f"annotation {BACKEND} of node {node['metadata']['name']}"}]
    return []


def read_addresses(distribution: str, asks: Ask, servers: ApiObject) -> t.Tuple[str, Addresses]:
    """Endpoint and addresses, as the cluster's installer recorded them in the cluster."""
    if distribution != "kubeadm":
        return "", embedded_addresses(distribution, servers)
    kubeadm = asks("/api/v1/namespaces/kube-system/configmaps/kubeadm-config")
    configuration = kubeadm.get("data", {}).get("ClusterConfiguration", "")
    addresses = Addresses(setting(configuration, "podSubnet"), setting(configuration, "serviceSubnet"))
    return setting(configuration, "controlPlaneEndpoint"), addresses


def chart_names(deployments: ApiObject) -> t.List[str]:
    """The Helm charts, with versions, named in the labels of the cluster's Deployments."""
    labels = [each["metadata"].get("labels", {}) for each in deployments.get("items", [])]
    return sorted({chart for chart in (each.get("helm.sh/chart", "") for each in labels) if chart})


def restricted(namespaces: ApiObject) -> t.Dict[str, str]:
    """The level that Pod Security enforces in each namespace whose pods may not do everything."""
    labels = {each["metadata"]["name"]: each["metadata"].get("labels", {}) for each in namespaces.get("items", [])}
    levels = {name: found.get(POD_SECURITY, PRIVILEGED) for name, found in labels.items()}
    return {name: level for name, level in levels.items() if level != PRIVILEGED}


def network_operators(deployments: ApiObject) -> t.List[str]:
    """NAMESPACE/RELEASE of each network operator; an empty release if Helm did not install it."""
    found = [each["metadata"] for each in deployments.get("items", []) if "network-operator" in image_names(each)]
    return sorted(f"{each['namespace']}/{each.get('annotations', {}).get(RELEASE, '')}" for each in found)


def read_cluster(root: str) -> ClusterFacts:
    """Facts about the cluster of which this host is a control plane."""
    found = find_distribution(root)
    admin = found.admin if found else ""
    facts: ClusterFacts = {
        "present": bool(admin),
        "answered": False,
        "unfinished": os.path.exists(os.path.join(root, UNFINISHED)),
        "error": "",
        "version": "",
        "endpoint": "",
        "pod_cidr": "",
        "service_cidr": "",
        "pod_networks": [],
        "nv_ipam_pools": [],
        "nodes": [],
        "ipu": None,
        "fabric_networks": [],
        "charts": [],
        "built_here": MARK in read_text(os.path.join(root, SYSCTL.lstrip("/"))),
    }
    if not found or not admin:
        return facts
    name = found.distribution.name
    asks = functools.partial(ask, found.kubectl, on_host(root, admin))
    try:
        version = asks("/version")
        servers = asks(SERVERS) if found.distribution.embeds_containerd else ApiObject()
        endpoint, addresses = read_addresses(name, asks, servers)
        nodes = [node_identity(each) for each in asks(NODES).get("items", [])]
        daemon_sets = asks("/apis/apps/v1/daemonsets")
        networks = pod_networks(daemon_sets, asks("/apis/operator.tigera.io/v1/installations"))
        networks = [mark_exclusive(network, asks) for network in networks]
        pools = nv_ipam_pools(asks("/apis/nv-ipam.nvidia.com/v1alpha1/ippools"))
        ipu = read_ipu(asks)
        fabric = fabric_networks(asks)
        deployments = asks(DEPLOYMENTS)
        charts, operators = chart_names(deployments), network_operators(deployments)
        attachments = read_attachments(
            (each["metadata"].get("namespace", ""), each["metadata"]["name"], each.get("spec", {}).get("config", ""))
            for each in asks(ATTACHMENTS).get("items", [])
        )
        dra_nics = read_dra_nics(asks)
        nic_policies = read_nic_policies(asks)
        levels = restricted(asks(NAMESPACES))
    except UnansweredError as error:
        return {**facts, "error": str(error)}
    if attachments:
        facts["attachments"] = attachments
    if dra_nics:
        facts["dra_nics"] = dra_nics
    if nic_policies:
        facts["nic_policies"] = nic_policies
    if operators:
        facts["network_operators"] = operators
    if levels:
        facts["pod_security"] = levels
    return {
        **facts,
        "answered": True,
        "built_elsewhere": not facts["built_here"],
        "version": version["gitVersion"].lstrip("v"),
        "endpoint": endpoint,
        "pod_cidr": addresses.pods,
        "service_cidr": addresses.services,
        "pod_networks": networks or embedded_flannel(servers),
        "nv_ipam_pools": pools,
        "nodes": nodes,
        "ipu": ipu,
        "fabric_networks": fabric,
        "charts": charts,
        "multus": places(daemon_sets.get("items", []), MULTUS_IMAGES),
    }
