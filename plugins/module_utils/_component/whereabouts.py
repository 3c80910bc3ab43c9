# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whereabouts IPAM plugin from its own chart, for a network operator that does not bring it."""

from __future__ import annotations

import dataclasses
import typing as t

from .._common.result import FabricError
from .._kube.merge_values import merge_values
from .._kube.query import Object
from .._model.wish import Wish
from .objects import definitions, home, named
from .settings import ChartSettings

# The release name, and what the chart then names its objects.
RELEASE, NAME = "whereabouts", "whereabouts-whereabouts-chart"
CRDS = ("ippools.whereabouts.cni.cncf.io", "overlappingrangeipreservations.whereabouts.cni.cncf.io")
UNUSED_CRD = "nodeslicepools.whereabouts.cni.cncf.io"
# The chart's memory limit of 50Mi is too low for a node with many pods. Null removes its CPU limit of 100m, which slows
# the start of every pod.
RESOURCES = {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": None, "memory": "200Mi"}}


@dataclasses.dataclass(frozen=True)
class Settings(ChartSettings):
    """Variables of the role, without its name as a prefix."""

    reconcile: str  # cron expression
    image_pull_secrets: t.Sequence[Object]
    node_selector: t.Mapping[str, str]
    tolerations: t.Sequence[Object]
    cni_bin_directory: str
    cni_network_directory: str


@dataclasses.dataclass(frozen=True)
class Seen:
    """What ipu.fabric.cluster_info found, as NAMESPACE/NAME; empty for a bundle."""

    whereabouts: t.Sequence[str] = ()  # DaemonSets
    own: t.Sequence[str] = ()  # those that this collection installed, whatever their name
    whereabouts_networks: t.Sequence[str] = ()  # of others
    network_operators: t.Sequence[t.Mapping[str, str]] = ()


def decide(settings: Settings, seen: Seen) -> Wish:
    """Raise FabricError for a second whereabouts, and for a removal while networks of others need it."""
    operators = [operator["namespace"] for operator in seen.network_operators]
    ours = [place for place in seen.whereabouts if place in seen.own and place.endswith(f"/{NAME}")]
    # The network operator's whereabouts, which the operator no longer manages since 25.10.
    former = [place for place in seen.whereabouts if place in {f"{namespace}/whereabouts" for namespace in operators}]
    # Whereabouts keeps its pools in its own namespace. From another one it would allocate addresses already in use.
    namespace = [*ours, *former, settings.namespace][0].partition("/")[0]
    if settings.state == "absent":
        check_unused(seen.whereabouts_networks)
    else:
        check_only_one([place for place in seen.whereabouts if place not in {*former, f"{namespace}/{NAME}"}])
    strangers = set(seen.whereabouts) - set(seen.own)
    return Wish(
        release=settings.release(RELEASE, namespace, merge_values(chart_values(settings, namespace), settings.values)),
        objects=[schedule(namespace, settings.reconcile)],
        ready=[
            {"kind": "DaemonSet", "name": NAME, "namespace": namespace},
            {"kind": "Deployment", "name": f"{NAME}-reconciler", "namespace": namespace},
        ],
        crds=CRDS,
        former=[each for place in former[:1] for each in objects_of_operator(place.partition("/")[0])],
        remnants=[] if strangers else [*definitions([*CRDS, UNUSED_CRD]), *home(namespace, operators)],
        paths=[]
        if strangers
        else [f"{settings.cni_network_directory}/whereabouts.d", f"{settings.cni_bin_directory}/whereabouts"],
    )


def check_only_one(others: t.Sequence[str]) -> None:
    if others:
        raise FabricError(
            "The cluster has whereabouts already, and two of them release each other's addresses.",
            "DaemonSets of the cluster",
            ", ".join(others),
            "Remove it, but leave its CustomResourceDefinitions, or go on with that one and leave this role out.",
            code="not-ours",
        )


def check_unused(networks: t.Sequence[str]) -> None:
    if networks:
        raise FabricError(
            "Networks of others still need whereabouts.",
            "NetworkAttachmentDefinitions of the cluster",
            f"{', '.join(networks)} take addresses from it",
            "Remove these NetworkAttachmentDefinitions first, or leave whereabouts where it is.",
            code="unsafe",
        )


def chart_values(settings: Settings, namespace: str) -> t.Dict[str, t.Any]:
    return {
        "namespaceOverride": namespace,
        "image": {"tag": f"v{settings.version}"},
        "imagePullSecrets": settings.image_pull_secrets,
        "nodeSelector": settings.node_selector,
        "tolerations": settings.tolerations,
        "resources": RESOURCES,
        "cniConf": {"confDir": settings.cni_network_directory, "binDir": settings.cni_bin_directory},
        # It is for ranges split between nodes, which our networks do not have.
        "nodeSliceController": {"enabled": False},
        "reconciler": {"logLevel": "error", "resources": RESOURCES},
    }


def schedule(namespace: str, cron: str) -> Object:
    """When stale addresses are released. The chart has no value for this."""
    metadata = {"name": f"{NAME}-config", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"cron-expression": cron}}


def objects_of_operator(namespace: str) -> t.List[Object]:
    """The network operator's whereabouts, without its definitions: they hold the addresses that pods have."""
    rbac = "rbac.authorization.k8s.io/v1"
    return [
        named("v1", "ServiceAccount", "whereabouts", namespace),
        named("v1", "ConfigMap", "whereabouts-config", namespace),
        named(rbac, "ClusterRole", "whereabouts-cni"),
        named(rbac, "ClusterRoleBinding", "whereabouts"),
        named("apps/v1", "Deployment", "whereabouts-node-slice-controller", namespace),
        named("apps/v1", "DaemonSet", "whereabouts", namespace),
    ]
