# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVIDIA Network Operator: its NicClusterPolicy, its upgrades from release to release, and its removal."""

from __future__ import annotations

import dataclasses
import json
import typing as t

from .._common.admission import ENFORCE, nfd_tolerations, with_unproved
from .._common.result import FabricError
from .._kube.merge_values import merge_values
from .._kube.query import Object
from .._model.plan import DeviceResource, RdmaResource, SriovPolicy
from .._model.profiles import ETHERNET, SRIOV
from .._model.wish import Wish
from .._network.operator_upgrade import ANOTHER, upgrade_refusal, upgrade_steps
from .._network.operator_upgrade import CHECK as OPERATOR_UPGRADE
from .._network.releases import NETWORK_OPERATORS, OTHER_TYPES, components, features, parse, show
from .multus import check_multus
from .objects import definitions, device_plugin, home, named
from .settings import ChartSettings

NAME = "network-operator"
API = "mellanox.com/v1alpha1"
# What the chart leaves behind. Attachments are defined by multus; others may use that definition and nv-ipam's.
CRDS = tuple(
    f"{kind}.mellanox.com"
    for kind in ("macvlannetworks", "hostdevicenetworks", "ipoibnetworks", "nicclusterpolicies", "nicnodepolicies")
)
NV_IPAM_CRDS = ("ippools.nv-ipam.nvidia.com", "cidrpools.nv-ipam.nvidia.com")
ATTACHMENTS = "network-attachment-definitions.k8s.cni.cncf.io"
# The label that Node Feature Discovery gives to nodes with a Mellanox NIC; the device plugin runs only there.
NIC_LABEL = "feature.node.kubernetes.io/pci-15b3.present"
LABELS = (
    "network.nvidia.com/operator.mofed.wait",
    "network.nvidia.com/operator.nic-configuration.wait",
    "nvidia.com/ofed-driver-upgrade-state",
)
# The label by which a NicNodePolicy selects its nodes: with one value per node, no two policies select the same node.
GROUP_LABEL = "ipu.fabric/nic-group"
# DaemonSets of the operator that write a token for their CNI plugin.
PLUGINS = {"multus": "kube-multus-ds", "whereabouts": "whereabouts"}
# With the operator's own limit of 50Mi, multus is OOM-killed on nodes with many pods.
MULTUS_MEMORY = "256Mi"
# The operator can't render the driver's DaemonSet without probes. These and the policy are the vendor chart's, except
# that a drain must not lose pods without a controller, or their empty directories.
OFED_DEFAULTS: Object = {
    "startupProbe": {"initialDelaySeconds": 10, "periodSeconds": 20},
    "livenessProbe": {"initialDelaySeconds": 30, "periodSeconds": 30},
    "readinessProbe": {"initialDelaySeconds": 10, "periodSeconds": 30},
    "upgradePolicy": {
        "autoUpgrade": True,
        "maxParallelUpgrades": 1,
        "drain": {"enable": True, "force": False, "deleteEmptyDir": False, "timeoutSeconds": 300},
    },
}


class NodeGroup(t.TypedDict):
    """Nodes that get the device plugin from one NicNodePolicy."""

    name: str  # of the policy
    nodes: t.Sequence[str]
    resources: t.Sequence[RdmaResource]


@dataclasses.dataclass(frozen=True)
class Settings(ChartSettings):
    """Variables of the role, without its name as a prefix."""

    allow_kubernetes: bool
    allow_skip: bool
    allow_move: bool
    ipam: str
    rdma_resources: t.Sequence[RdmaResource]
    nic_groups: t.Sequence[NodeGroup]
    device_resources: t.Sequence[DeviceResource]
    sriov_policies: t.Sequence[SriovPolicy]
    ipoib: bool
    multus: bool
    images: t.Mapping[str, t.Mapping[str, str]]
    image_pull_secrets: t.Sequence[str]
    node_affinity: Object
    tolerations: t.Sequence[Object]
    admission: str
    ofed_driver: Object
    rdma_nodes: t.Sequence[str]
    nfd: bool
    cni_bin_directory: str
    cni_network_directory: str
    restart: t.Mapping[str, str]  # CNI plugins whose pods need a restart, with the end of their first token


@dataclasses.dataclass(frozen=True)
class Seen:
    """What ipu.fabric.cluster_info and ipu.fabric.fabric_stack found; empty for a bundle."""

    present: bool = False
    version: str = ""  # of Kubernetes
    nodes: t.Sequence[t.Mapping[str, t.Any]] = ()
    # DaemonSets and Deployments, as NAMESPACE/NAME
    nfd: t.Sequence[str] = ()
    multus: t.Sequence[str] = ()
    nv_ipam: t.Sequence[str] = ()
    whereabouts: t.Sequence[str] = ()
    own: t.Sequence[str] = ()  # those that this collection installed
    network_operators: t.Sequence[t.Mapping[str, str]] = ()
    policy_ipam: str = ""  # of the existing policy
    policy_in_chart: bool = False  # whether the chart owns the policy
    device_plugin: str = ""  # which of our policies configures the RDMA device plugin: cluster or node
    node_policies: t.Sequence[str] = ()  # our NicNodePolicies
    pods: t.Sequence[str] = ()  # on the operator's networks, for a removal or a change of the IPAM
    other_pods: t.Sequence[str] = ()
    attachments: t.Sequence[str] = ()  # NetworkAttachmentDefinitions of others, for a removal


@dataclasses.dataclass(frozen=True)
class OperatorWish(Wish):
    """A Wish, with fields for this operator only."""

    steps: t.Sequence[str] = ("present",)  # task files of the role to run
    labels: t.Sequence[Object] = ()  # as ipu.fabric.node_labels takes them
    gone: t.Sequence[Object] = ()  # NicNodePolicies of groups that no longer exist
    plugin_pods: str = ""  # label selector for the pods of the RDMA device plugin
    keeps_policy: bool = False  # the release reads its policy only once
    keeps_config: bool = False  # the device plugin of this release reads its configuration only once
    settle: int = 0  # seconds until a ready policy reflects this release, and not the previous one
    restarts: t.Sequence[Object] = ()  # DaemonSets with the annotation that makes their pods restart
    restarted: t.Sequence[Object] = ()  # the same, as ipu.fabric.kube_wait takes them


def decide(settings: Settings, seen: Seen) -> OperatorWish:
    """Raise FabricError for what the vendor does not support, a second operator or multus, and removing others'."""
    return removed(settings, seen) if settings.state == "absent" else installed(settings, seen)


def elsewhere(places: t.Sequence[str], settings: Settings) -> t.List[str]:
    """Those outside the operator's namespace."""
    return [place for place in places if not place.startswith(f"{settings.namespace}/")]


# Installation and upgrade


def installed(settings: Settings, seen: Seen) -> OperatorWish:
    can = release_features(settings.version)
    ours = [each for each in seen.network_operators if is_ours(each, settings)]
    former = ours[0]["version"] if ours else ""
    nfd = elsewhere(seen.nfd, settings)
    check_kubernetes(settings, seen.version)
    check_admission(settings, can)
    if seen.present:
        check_multus("network_operator", settings.multus, elsewhere(seen.multus, settings))
    check_only_one([each["namespace"] for each in seen.network_operators if not is_ours(each, settings)])
    check_driver(settings, nfd)
    check_ipam(settings, seen)
    check_groups(settings, can)
    check_types(settings)
    check_move(settings, seen)
    change = check_upgrade(settings, former)
    own = {place.rpartition("/")[2] for place in (*seen.multus, *seen.whereabouts) if not elsewhere([place], settings)}
    ends = {PLUGINS[plugin]: end for plugin, end in settings.restart.items() if PLUGINS.get(plugin) in own}
    keeps_policy = bool(former) and not can["policy_updates"]
    names = [group["name"] for group in settings.nic_groups]
    plugins = ["rdma-shared-dp", *(f"rdma-shared-dp-{name}" for name in names)]
    plugins += ["sriovdp"] if settings.device_resources else []
    before = ["before_upgrade"] if keeps_policy or seen.policy_in_chart else []
    return OperatorWish(
        steps=[*before, "present", *(["restart_plugins"] if ends else [])],
        release=settings.release(
            NAME, settings.namespace, chart_values(settings, settings.nfd and not nfd, len(seen.nodes) == 1)
        ),
        objects=[
            nic_cluster_policy(settings),
            *(nic_node_policy(settings, group) for group in settings.nic_groups),
            *(sriov_policy(settings, policy) for policy in settings.sriov_policies),
        ],
        ready=[
            {"kind": "Deployment", "name": NAME, "namespace": settings.namespace},
            {"kind": "NicClusterPolicy", "api_version": API, "name": "nic-cluster-policy", "value": "ready"},
            *({"kind": "NicNodePolicy", "api_version": API, "name": name, "value": "ready"} for name in names),
            *(with_vfs(node, settings.namespace) for node in settings.rdma_nodes if settings.sriov_policies),
        ],
        crds=[CRDS[0], ATTACHMENTS, *(NV_IPAM_CRDS[:1] if settings.ipam == "nv-ipam" else [])],
        labels=[{"name": node, "labels": labels} for node, labels in node_labels(settings, seen).items()],
        gone=[named(API, "NicNodePolicy", name) for name in seen.node_policies if name not in names],
        plugin_pods=f"app in ({', '.join(plugins)})",
        keeps_policy=keeps_policy,
        keeps_config=not can["restarts_plugins"],
        settle=15 if change in ("upgrade", "skip") else 0,
        restarts=[restart(name, settings.namespace, end) for name, end in ends.items()],
        restarted=[{"kind": "DaemonSet", "name": name, "namespace": settings.namespace} for name in ends],
    )


def is_ours(operator: t.Mapping[str, str], settings: Settings) -> bool:
    return (operator["namespace"], operator["release"]) == (settings.namespace, NAME)


def restart(name: str, namespace: str, end: str) -> Object:
    """An annotation that restarts a DaemonSet's pods. The operator keeps it: it compares only its own revisions."""
    template = {"metadata": {"annotations": {"fabric.ipu/token-ends": end}}}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": {"template": template}}


def check_kubernetes(settings: Settings, version: str) -> None:
    minor, (low, high) = parse(version)[:2], NETWORK_OPERATORS[parse(settings.version)[:2]].kubernetes
    if minor and not settings.allow_kubernetes and not low <= minor <= high:
        raise FabricError(
            f"Network operator {settings.version} supports Kubernetes {show(low)} to {show(high)}.",
            "the cluster",
            f"it runs {version}",
            "Use another release, or set fabric_allow: [kubernetes-range] (for the role alone,"
            " network_operator_allow_kubernetes: true) to install it anyway.",
            code="wrong-state",
        )


def check_admission(settings: Settings, can: t.Mapping[str, bool]) -> None:
    if settings.admission == ENFORCE and not can["tolerations"]:
        raise FabricError(
            f"DaemonSets of network operator {settings.version} do not tolerate the taint of unproved nodes: these"
            " could never be proved.",
            "fabric_admission",
            settings.admission,
            "Set fabric_admission to warn, or use network operator 23.7 or later.",
            code="invalid-input",
        )


def check_only_one(others: t.Sequence[str]) -> None:
    if others:
        why, step = ANOTHER
        raise FabricError(
            why, "Deployments of the cluster", f"one is in namespace {', '.join(others)}", step, code="not-ours"
        )


def check_driver(settings: Settings, nfd: t.Sequence[str]) -> None:
    if settings.ofed_driver and not settings.nfd and not nfd:
        raise FabricError(
            "The driver container runs on nodes whose kernel and distribution Node Feature Discovery has found.",
            "DaemonSets of the cluster",
            "no Node Feature Discovery",
            "Install it, or set network_operator_nfd to true; ipu.fabric.site does so where fabric_ofed is set.",
            code="not-found",
        )


def check_ipam(settings: Settings, seen: Seen) -> None:
    """Refuse a new IPAM while pods have addresses from the former one, which the new one does not know."""
    pods = [*seen.pods, *seen.other_pods]
    if seen.policy_ipam not in ("", settings.ipam) and pods:
        raise FabricError(
            f"The IPAM is {seen.policy_ipam}, and {settings.ipam} would hand out the addresses of running pods again.",
            "pods of the cluster",
            ", ".join(pods),
            f"Stop these pods first, or set fabric_ipam to {seen.policy_ipam}.",
            code="unsafe",
        )


def check_groups(settings: Settings, can: t.Mapping[str, bool]) -> None:
    if settings.nic_groups and not can["node_policies"]:
        raise FabricError(
            f"Network operator {settings.version} has no NicNodePolicy.",
            "network_operator_nic_groups",
            ", ".join(group["name"] for group in settings.nic_groups),
            "Leave it empty, or use network operator 26.4 or later.",
            code="invalid-input",
        )


def check_types(settings: Settings) -> None:
    """Refuse network types other than macvlan before the release that supports them."""
    if (settings.ipoib or settings.device_resources or settings.sriov_policies) and parse(settings.version)[
        :2
    ] < OTHER_TYPES:
        raise FabricError(
            f"Networks of types other than macvlan need network operator {show(OTHER_TYPES)} or later.",
            "network_operator_ipoib, network_operator_device_resources and network_operator_sriov_policies",
            f"network_operator_version is {settings.version}",
            "Leave these empty, or use a later release.",
            code="invalid-input",
        )


def check_move(settings: Settings, seen: Seen) -> None:
    """Refuse the move of the device plugin while pods use it: for a while, no node has the resources."""
    pods, target = [*seen.pods, *seen.other_pods], "node" if settings.nic_groups else "cluster"
    if seen.device_plugin not in ("", target) and pods and not settings.allow_move:
        raise FabricError(
            f"The RDMA device plugin moves to another policy ({seen.device_plugin} to {target}), and pods have its"
            " resources.",
            "pods of the cluster",
            ", ".join(pods),
            "Let these pods end first. Or set fabric_allow: [nic-policy] (for the role alone,"
            " network_operator_allow_move: true): pods that run keep their NICs, new ones wait a minute or so."
            f" fabric_nic_policy: {seen.device_plugin} leaves all as it is.",
            code="unsafe",
        )


def check_upgrade(settings: Settings, former: str) -> str:
    """The kind of change from the installed release to the wanted one."""
    change, _steps = upgrade_steps(former, settings.version)
    refusal = upgrade_refusal(former, settings.version)
    if refusal and not (change == "skip" and settings.allow_skip):
        step = refusal.next_step
        if change == "skip":
            step += (
                f" Or set fabric_allow: [{OPERATOR_UPGRADE}] (for the role alone, network_operator_allow_skip: true) to"
                " leave lines out."
            )
        raise FabricError(refusal.what, "network_operator_version", refusal.seen, step, code="wrong-state")
    return change


def release_features(release: str) -> t.Dict[str, bool]:
    """The features of a release."""
    version = parse(release)
    if version[:2] not in NETWORK_OPERATORS:
        raise FabricError(
            "This network operator release is not in the table.",
            "network_operator_version",
            release,
            "Write the full release, as in 26.7.1.",
            code="invalid-input",
        )
    return features(version[:2])


# The policy


def policy_spec(settings: Settings) -> Object:
    """The spec of the NicClusterPolicy."""
    release, ipam = settings.version, settings.ipam
    can = release_features(release)
    images = component_images(settings)
    secrets = settings.image_pull_secrets
    multus = {"containerResources": multus_resources()} if can["container_resources"] else {}
    secondary = {"cniPlugins": component(images["cniPlugins"], secrets)}
    if settings.multus:
        secondary["multus"] = component(images["multus"], secrets, **multus)
    spec: Object = {"secondaryNetwork": secondary}
    if ipam == "nv-ipam":
        spec["nvIpam"] = component(images["nvIpam"], secrets, enableWebhook=False)
    elif can["whereabouts"]:  # otherwise whereabouts is installed separately
        secondary["ipamPlugin"] = component(images["ipamPlugin"], secrets)
    if settings.rdma_resources and not settings.nic_groups:
        spec["rdmaSharedDevicePlugin"] = plugin_section(settings, settings.rdma_resources)
    if settings.ipoib:
        secondary["ipoib"] = component(images["ipoib"], secrets)
    if settings.device_resources:
        config = quotable(json.dumps({"resourceList": list(settings.device_resources)}, sort_keys=True))
        spec["sriovDevicePlugin"] = component(images["sriovDevicePlugin"], secrets, config=config)
    if settings.ofed_driver:
        spec["ofedDriver"] = ofed_driver(release, settings.ofed_driver, secrets)
    tolerations = with_unproved(settings.admission, settings.tolerations)
    if tolerations and can["tolerations"]:
        spec["tolerations"] = tolerations
    if settings.node_affinity:
        spec["nodeAffinity"] = dict(settings.node_affinity)
    return spec


def component_images(settings: Settings) -> t.Dict[str, Object]:
    """The images of the release, with those of the site in their place."""
    types = [*(["ipoib"] if settings.ipoib else []), *(["host_device"] if settings.device_resources else [])]
    found = components(settings.version, settings.ipam, types)
    return {name: {**image, **settings.images.get(name, {})} for name, image in found.items()}


def plugin_section(settings: Settings, resources: t.Sequence[RdmaResource]) -> Object:
    """The RDMA shared device plugin's section, the same in both kinds of policies."""
    image = component_images(settings)["rdmaSharedDevicePlugin"]
    return component(image, settings.image_pull_secrets, config=device_plugin_config(resources))


def nic_node_policy(settings: Settings, group: NodeGroup) -> Object:
    """The NicNodePolicy of a group."""
    spec: Object = {
        "nodeSelector": {GROUP_LABEL: group["name"]},
        "rdmaSharedDevicePlugin": plugin_section(settings, group["resources"]),
    }
    tolerations = with_unproved(settings.admission, settings.tolerations)
    if tolerations:
        spec["tolerations"] = tolerations
    return {**named(API, "NicNodePolicy", group["name"]), "spec": spec}


def sriov_policy(settings: Settings, policy: SriovPolicy) -> Object:
    """The policy by which the SR-IOV operator creates VFs. The NIC's own link type: another changes its firmware."""
    spec: Object = {
        "resourceName": policy["resource"],
        "nodeSelector": {NIC_LABEL: "true"},
        "nicSelector": {"rootDevices": list(policy["pci"])},
        "numVfs": policy["vfs"],
        "deviceType": "netdevice",
        "linkType": "eth" if policy["link_layer"] == ETHERNET else "ib",
        "isRdma": True,
    }
    if policy["mtu"]:
        spec["mtu"] = policy["mtu"]
    return {**named(SRIOV, "SriovNetworkNodePolicy", policy["name"], settings.namespace), "spec": spec}


def with_vfs(node: str, namespace: str) -> Object:
    """The state of a node's VFs, as ipu.fabric.kube_wait takes it. The SR-IOV operator may drain and reboot it."""
    wanted = {"api_version": SRIOV, "kind": "SriovNetworkNodeState", "name": node, "namespace": namespace}
    return {**wanted, "field": "status.syncStatus", "value": "Succeeded"}


def node_labels(settings: Settings, seen: Seen) -> t.Dict[str, t.Dict[str, t.Optional[str]]]:
    """By node, the labels that tell the operator about its NICs."""
    group_of = {node: group["name"] for group in settings.nic_groups for node in group["nodes"]}
    grouped = bool(group_of or seen.node_policies)
    return {
        node: {NIC_LABEL: "true", **({GROUP_LABEL: group_of.get(node)} if grouped else {})}
        for node in settings.rdma_nodes
    }


def nic_cluster_policy(settings: Settings) -> Object:
    """The NicClusterPolicy. The operator accepts only this name."""
    return {
        "apiVersion": API,
        "kind": "NicClusterPolicy",
        "metadata": {"name": "nic-cluster-policy"},
        "spec": policy_spec(settings),
    }


def component(image: t.Mapping[str, str], pull_secrets: t.Sequence[str], **more: t.Any) -> Object:
    """One component of the policy, whose image pull secrets are plain names."""
    secrets = {"imagePullSecrets": list(pull_secrets)} if pull_secrets else {}
    return {**image, **secrets, **more}


def ofed_driver(release: str, wanted: t.Mapping[str, t.Any], pull_secrets: t.Sequence[str]) -> Object:
    """The driver container, with the policy's own field names. The site chooses its version; there is no default."""
    if not wanted.get("version"):
        raise FabricError(
            "The driver container needs a version.",
            "network_operator_ofed_driver",
            f"only {', '.join(sorted(wanted))}",
            "Add the version that the vendor names for this release, or leave all of it empty for the host's driver.",
            code="invalid-input",
        )
    image = "doca-driver" if parse(release)[:2] >= (24, 1) else "mofed"
    base = component({"repository": "nvcr.io/nvidia/mellanox", "image": image}, pull_secrets, **OFED_DEFAULTS)
    return merge_values(base, wanted)


def multus_resources() -> t.List[Object]:
    memory = {"memory": MULTUS_MEMORY}
    return [{"name": "kube-multus", "requests": {"cpu": "100m", **memory}, "limits": dict(memory)}]


def device_plugin_config(resources: t.Sequence[RdmaResource]) -> str:
    """The shared device plugin's configuration: JSON that the operator puts between single quotes."""
    return quotable(json.dumps(device_plugin(resources), sort_keys=True))


def quotable(text: str) -> str:
    """The text, which must not contain the single quotes that the operator puts around it."""
    if "'" in text:
        raise FabricError(
            "The RDMA resources can't hold a single quote.",
            "rdma resources",
            text,
            "Name interfaces without quotes.",
            code="invalid-input",
        )
    return text


# The chart


def chart_values(settings: Settings, nfd: bool, single: bool = False) -> Object:
    """Values of the chart; those not set keep its defaults. It never manages a policy. single: there is one node."""
    can = release_features(settings.version)
    values: Object = {"nfd": {"enabled": nfd}, **sriov_values(bool(settings.sriov_policies), single)}
    if can["deploy_cr"]:
        values["deployCR"] = False
    if can["nfd_rules"]:
        values["nfd"]["deployNodeFeatureRules"] = nfd
    if can["upgrade_crds"]:
        # The role applies the CRDs, so no hook is needed.
        values["upgradeCRDs"] = False
    if can["keep_policy_hook"]:
        # The role also handles a policy that Helm owns.
        values["keepNCP"] = False
    operator = {}
    if settings.cni_bin_directory and can["cni_bin_directory"]:
        operator["cniBinDirectory"] = settings.cni_bin_directory
    if settings.cni_network_directory and can["cni_network_directory"]:
        operator["cniNetworkDirectory"] = settings.cni_network_directory
    if operator:
        values["operator"] = operator
    if settings.image_pull_secrets:
        values["imagePullSecrets"] = list(settings.image_pull_secrets)
    if nfd:
        values.update(nfd_tolerations(settings.admission))
    return merge_values(values, settings.values)


def sriov_values(wanted: bool, single: bool) -> Object:
    """Values of the SR-IOV operator. With a single node, drained pods would have nowhere to go."""
    config = {"sriov-network-operator": {"sriovOperatorConfig": {"disableDrain": True}}} if wanted and single else {}
    return {"sriovNetworkOperator": {"enabled": wanted}, **config}


# Removal


def removed(settings: Settings, seen: Seen) -> OperatorWish:
    check_ours(seen)
    multus, nv_ipam = elsewhere(seen.multus, settings), elsewhere(seen.nv_ipam, settings)
    gone = [*CRDS, *([] if nv_ipam else NV_IPAM_CRDS), *([] if multus or seen.attachments else [ATTACHMENTS])]
    # Whereabouts installed by the role whereabouts stays, in the namespace of its pools.
    needed = [place.partition("/")[0] for place in seen.whereabouts if not place.endswith("/whereabouts")]
    return OperatorWish(
        steps=["absent"],
        release=settings.release(NAME, settings.namespace, {}),
        labels=[{"name": node["name"], "labels": labels_left(node, settings, seen)} for node in seen.nodes],
        remnants=[*definitions(gone), *home(settings.namespace, needed)],
        paths=paths(settings, bool(multus), bool(nv_ipam), bool(elsewhere(seen.whereabouts, settings))),
    )


def check_ours(seen: Seen) -> None:
    """Refuse if there are operators of others: a removal would delete their definitions too."""
    operators = {f"{each['namespace']}/{each['name']}": each["release"] for each in seen.network_operators}
    others = [f"{place} (release {name})" for place, name in operators.items() if place not in seen.own]
    if others:
        raise FabricError(
            "Only a network operator that this collection has installed is removed, with its definitions, and only when"
            " there is no other.",
            "Deployments of the cluster",
            f"{', '.join(others)} in the cluster, installed by somebody else",
            "Leave it, and remove networks alone with fabric_prune_networks: true (in the role macvlan: macvlan_prune),"
            " or have those who installed it remove it first.",
            code="not-ours",
        )


def labels_left(node: t.Mapping[str, t.Any], settings: Settings, seen: Seen) -> t.Dict[str, None]:
    """Labels of the operator, and the one of this role unless a Node Feature Discovery maintains it."""
    own = NIC_LABEL in node["own_labels"] and not elsewhere(seen.nfd, settings)
    return dict.fromkeys([*LABELS, GROUP_LABEL, *([NIC_LABEL] if own else [])])


def paths(settings: Settings, multus: bool, nv_ipam: bool, whereabouts: bool) -> t.List[str]:
    """What its pods leave on a host, except files of others. Standard CNI plugins stay: pod networks may use them."""
    programs, net = settings.cni_bin_directory or "/opt/cni/bin", settings.cni_network_directory or "/etc/cni/net.d"
    of_nv_ipam = [f"{net}/nv-ipam.d", f"{programs}/nv-ipam", "/var/lib/cni/nv-ipam", "/var/log/nv-ipam-cni.log"]
    of_multus = [f"{net}/00-multus.conf", f"{net}/multus.d", f"{programs}/multus", f"{programs}/passthru"]
    return [
        *([] if nv_ipam else of_nv_ipam),
        *([] if multus else [*of_multus, "/var/lib/cni/multus"]),
        *([] if whereabouts else [f"{net}/whereabouts.d", f"{programs}/whereabouts"]),
    ]
