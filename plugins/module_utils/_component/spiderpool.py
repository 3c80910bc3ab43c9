# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spiderpool in a cluster: its chart, the address pool and SpiderMultusConfig of each network, and its removal."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import typing as t

from .._common.result import FabricError
from .._common.text import fingerprint
from .._ipam.own_pools import API, POOL_MAX, ipam, network_problems, pool_of
from .._kube.merge_values import merge_values
from .._kube.multus import Attachment
from .._kube.query import Object
from .._model.plan import PlannedNetwork, RdmaResource
from .._model.profiles import NO_ADVERTISEMENTS
from .._model.stacks import STACKS
from .._model.wish import Wish
from .._network.macvlan_objects import namespaces
from .multus import check_multus
from .objects import device_plugin, home, pods_on
from .settings import ChartSettings

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr

CRDS = (
    "spiderippools.spiderpool.spidernet.io",
    "spidermultusconfigs.spiderpool.spidernet.io",
    "network-attachment-definitions.k8s.cni.cncf.io",
)
# While the controller is down, the injection webhook refuses every pod: pods of the pod network must not have to wait
# for it.
NEVER_INJECTED = ("kube-system", "kube-flannel", "tigera-operator", "calico-system", "calico-apiserver")
# Device plugin, agent and controller read their ConfigMaps only once: a change of this annotation restarts them.
CONFIG = "fabric.ipu/config"
# CNI plugins that the chart installs by default, but that no macvlan rail needs.
OTHER_PLUGINS = ("installRdmaCNI", "installOvsCNI", "installSriovCNI", "installibSriovCNI", "installIpoibCNI",
                 "installVlanCNI")  # fmt: skip
# A pool of documentation addresses (RFC 5737); only for a dry run.
PROBE: Object = {
    "apiVersion": API,
    "kind": "SpiderIPPool",
    "metadata": {"name": "fabric-probe"},
    "spec": {"subnet": "192.0.2.0/24", "ips": ["192.0.2.1"]},
}


class SpiderpoolNetwork(PlannedNetwork, total=False):
    """A planned network, with what a site may add to it for Spiderpool."""

    vlan: int  # on the master; 0: none


@dataclasses.dataclass(frozen=True)
class Settings(ChartSettings):
    """Variables of the role, without its name as a prefix."""

    networks: t.Sequence[SpiderpoolNetwork]
    namespace_labels: t.Mapping[str, str]
    coordinator: t.Mapping[str, t.Any]
    detect_gateway: bool
    detect_ip_conflict: bool
    rdma_resources: t.Sequence[RdmaResource]
    rdma_nodes: t.Sequence[str]  # empty: all nodes
    multus: bool
    cni_plugins: bool
    cni_bin_directory: str
    cni_network_directory: str
    inject: bool
    inject_value: str
    inject_namespaces: t.Sequence[str]
    inject_namespaces_exclude: t.Sequence[str]
    metrics: bool
    dashboards: bool
    registry: str
    image_pull_secrets: t.Sequence[str]


@dataclasses.dataclass(frozen=True)
class Seen:
    """What ipu.fabric.cluster_info found, and for a removal ipu.fabric.fabric_stack; empty for a bundle."""

    present: bool = False
    multus: t.Sequence[str] = ()  # DaemonSets, as NAMESPACE/NAME
    api_groups: t.Sequence[str] = ()
    nodes: t.Sequence[t.Mapping[str, t.Any]] = ()
    installations: t.Sequence[t.Mapping[str, t.Any]] = ()
    definitions: t.Sequence[Object] = ()  # CRDs that nobody else needs


def decide(settings: Settings, seen: Seen) -> Wish:
    """Raise FabricError for a second multus or none, dashboards without Grafana, or removing others' Spiderpool."""
    removes, namespace = settings.state == "absent", settings.namespace
    others = [place for place in seen.multus if not place.startswith(f"{namespace}/")]
    if removes:
        check_ours(seen.installations)
    elif seen.present:
        check_multus("spiderpool", settings.multus, others)
        check_grafana(settings, seen)
    networks: t.Sequence[SpiderpoolNetwork] = [] if removes else settings.networks
    check_networks(networks)
    return Wish(
        release=settings.release(
            "spiderpool", namespace, chart_values(settings, "monitoring.coreos.com" in seen.api_groups)
        ),
        objects=[
            *namespaces(networks, (), settings.namespace_labels),
            *map(pool_object, networks),
            *(network_object(network, settings) for network in networks),
        ],
        networks=[attachment(network) for network in networks],
        ready=workloads(settings, [node["name"] for node in seen.nodes]),
        crds=CRDS,
        accepted=[PROBE],
        pods=pods_on(networks) or [{"namespace": namespace}],
        remnants=[*seen.definitions, *home(namespace)],
        paths=[*STACKS["spiderpool"].files, *([] if others or not seen.installations else multus_paths(settings))],
    )


# What is refused


def check_ours(installations: t.Sequence[t.Mapping[str, t.Any]]) -> None:
    """Refuse if there are installations of others: a removal would delete their definitions too."""
    others = [f"{each['namespace']}/{each['name']}" for each in installations if not each["ours"]]
    if others:
        raise FabricError(
            "Only a Spiderpool that this collection has installed is removed, with its definitions, and only when there"
            " is no other.",
            "Deployments of the cluster",
            f"{', '.join(others)} in the cluster, installed by somebody else",
            "Leave it, or have those who installed it remove it first.",
            code="not-ours",
        )


def check_grafana(settings: Settings, seen: Seen) -> None:
    if settings.dashboards and "grafana.integreatly.org" not in seen.api_groups:
        raise FabricError(
            "Dashboards need Grafana's operator.",
            "spiderpool_dashboards",
            "the cluster does not know GrafanaDashboards (grafana.integreatly.org)",
            "Install Grafana's operator first, or set spiderpool_dashboards to false.",
            code="not-found",
        )


def check_networks(networks: t.Sequence[PlannedNetwork]) -> None:
    for network in networks:
        for seen, step in network_problems(network):
            raise FabricError(
                "Spiderpool can't create a network.", f"network {network['name']}", seen, step, code="invalid-input"
            )


# What it waits for, and what it leaves on hosts


def workloads(settings: Settings, nodes: t.Sequence[str]) -> t.List[Object]:
    """What must be ready. Until the coordinator knows the cluster's CIDRs, the agent refuses every pod."""
    found: t.List[Object] = [
        {"kind": "Deployment", "name": "spiderpool-controller", "namespace": settings.namespace},
        {"kind": "DaemonSet", "name": "spiderpool-agent", "namespace": settings.namespace},
    ]
    # The device plugin runs on every node, but keeps running only if the kernel has RDMA.
    if settings.rdma_resources and (not settings.rdma_nodes or not set(nodes) - set(settings.rdma_nodes)):
        name = "spiderpool-rdma-shared-device-plugin"
        found.append({"kind": "DaemonSet", "name": name, "namespace": settings.namespace})
    coordinator = (settings.values.get("coordinator") or {}).get("name") or "default"
    synced = {"kind": "SpiderCoordinator", "name": coordinator, "field": "status.phase", "value": "Synced"}
    return [*found, {"api_version": API, **synced}]


def multus_paths(settings: Settings) -> t.List[str]:
    """What the chart's multus leaves: its configuration is in the usual directory, whatever the values say."""
    return [
        "/etc/cni/net.d/00-multus.conf",
        "/etc/cni/net.d/multus.d",
        f"{settings.cni_bin_directory or '/opt/cni/bin'}/multus",
        "/var/lib/cni/multus",
        "/var/log/multus.log",
    ]


# Networks


def ranges(runs: t.Iterable[netaddr.IPRange]) -> t.List[str]:
    """Ranges in Spiderpool's notation: `a` or `a-b`."""
    return [str(run) if run.size > 1 else str(run[0]) for run in runs]


def pool_object(network: PlannedNetwork) -> Object:
    """The SpiderIPPool; its gateway becomes the default route of the rail's own routing table."""
    pool, subnet = pool_of(network), network["subnet"]
    if not subnet or not pool.capacity:
        raise FabricError(
            "A Spiderpool network needs addresses for pods.",
            f"network {network['name']}",
            f"all of the first {POOL_MAX} of its range are excluded",
            "Set `share` in fabric_networks to another part of the subnet.",
            code="invalid-input",
        )
    spec = {
        "ipVersion": pool.version,
        "subnet": subnet["cidr"],
        "ips": ranges([pool.span]),
        "excludeIPs": ranges(pool.excluded.iter_ipranges()),
        **({"gateway": subnet["gateway"]} if subnet.get("gateway") else {}),
    }
    return {"apiVersion": API, "kind": "SpiderIPPool", "metadata": {"name": pool.name}, "spec": spec}


def network_object(network: SpiderpoolNetwork, settings: Settings) -> Object:
    """The SpiderMultusConfig, from which the controller creates a NetworkAttachmentDefinition of the same name."""
    pool = pool_of(network)
    macvlan: Object = {
        "master": [network["master"]],
        "vlanID": network.get("vlan") or 0,
        "mtu": network.get("mtu") or 0,
        "ippools": {f"ipv{pool.version}": [pool.name]},
    }
    if network.get("rdma"):
        macvlan["rdmaResourceName"] = network["resource"]
    metadata: Object = {"name": network["name"], "namespace": network.get("namespace") or "default"}
    if settings.inject and settings.inject_value:
        # The first of these names is refused for a network without an RDMA resource.
        kind = "rdma-resource-inject" if network.get("rdma") else "network-resource-inject"
        metadata["annotations"] = {f"cni.spidernet.io/{kind}": settings.inject_value}
    spec: Object = {
        "cniType": "macvlan",
        "enableCoordinator": True,
        "macvlan": macvlan,
        "coordinator": dict(settings.coordinator),
    }
    if not network.get("accept_ra", True):
        spec["chainCNIJsonData"] = [json.dumps({"type": "tuning", "sysctl": NO_ADVERTISEMENTS})]
    return {"apiVersion": API, "kind": "SpiderMultusConfig", "metadata": metadata, "spec": spec}


def attachment(network: SpiderpoolNetwork) -> Attachment:
    """The NetworkAttachmentDefinition that the network should have; Spiderpool names its VLAN interfaces so."""
    vlan = network.get("vlan")
    return {
        "name": network["name"],
        "namespace": network.get("namespace") or "default",
        "master": f"{network['master']}.{vlan}" if vlan else network["master"],
        "mode": "bridge",
        "mtu": network.get("mtu") or 0,
        "ipam": {**ipam(network)},
    }


# The chart


def chart_values(settings: Settings, service_monitors: bool) -> Object:
    """Values of the chart; those not set keep its defaults."""
    monitor = {"install": settings.metrics and service_monitors}
    metrics: Object = {"enabled": settings.metrics, "serviceMonitor": monitor}
    inject = {
        "enabled": settings.inject,
        "namespacesInclude": list(settings.inject_namespaces),
        # Sorted, because a different order would upgrade the release.
        "namespacesExclude": sorted({*settings.inject_namespaces_exclude, *NEVER_INJECTED, settings.namespace}),
    }
    subnets = [network.get("subnet") for network in settings.networks]
    ipam_options = {
        # This makes hosts forward IPv6.
        "enableIPv6": any(":" in subnet["cidr"] for subnet in subnets if subnet),
        "enableGatewayDetection": settings.detect_gateway,
        "enableIPConflictDetection": settings.detect_ip_conflict,
    }
    secrets = [{"name": name} for name in settings.image_pull_secrets]
    image = {"image": {"imagePullSecrets": secrets}} if secrets else {}
    rdma = device_plugin(settings.rdma_resources)
    own: Object = {
        "rdma": {
            "rdmaSharedDevicePlugin": {
                "install": bool(settings.rdma_resources),
                "deviceConfig": rdma,
                "podAnnotations": {CONFIG: fingerprint(rdma)},
            }
        },
        "multus": {"multusCNI": {"install": settings.multus}},
        "plugins": {"installCNI": settings.cni_plugins, **dict.fromkeys(OTHER_PLUGINS, False)},
        "ipam": ipam_options,
        "spiderpoolAgent": {
            "prometheus": {**metrics, "enabledRdmaMetric": metrics["enabled"]},
            "podAnnotations": {CONFIG: fingerprint(ipam_options)},
            **image,
        },
        "spiderpoolController": {
            "prometheus": metrics,
            "podResourceInject": inject,
            "podAnnotations": {CONFIG: fingerprint([inject, ipam_options["enableIPv6"]])},
            **image,
        },
        "grafanaDashboard": {"install": settings.dashboards},
    }
    places = {
        "imageRegistryOverride": settings.registry,
        "cniBinHostPath": settings.cni_bin_directory,
        "cniConfHostPath": settings.cni_network_directory,
    }
    chosen = {name: place for name, place in places.items() if place}
    return merge_values({**own, **({"global": chosen} if chosen else {})}, settings.values)
