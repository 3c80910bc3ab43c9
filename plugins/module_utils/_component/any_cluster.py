# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Derives the plan of any cluster from its API: nothing is written, and no host is asked."""

from __future__ import annotations

import typing as t

from .._host.cluster import MULTUS_IMAGES, image_names
from .._host.nic_policies import KINDS
from .._ipam.own_pools import PATH as OWN_POOLS
from .._ipam.pool_audit import running_pods
from .._kube.client import Cluster
from .._kube.multus import ATTACHMENTS, read_ipams
from .._kube.query import Object, query
from .._kube.rights import TO_PROVE, require_rights, served_rights
from .._model.plan import Plan
from .._model.profiles import BY_KIND
from .._network.address_sources import listed_pools
from .._network.unplanned import VF_POLICIES
from .._plan.derived import ClusterObjects, derive_plan
from .._plan.derived_addresses import Pools

NETWORKS = {
    **{kind: BY_KIND[kind].path for kind in ("MacvlanNetwork", "HostDeviceNetwork", "SriovNetwork")},
    "SpiderMultusConfig": f"{OWN_POOLS}/spidermultusconfigs",
}
POLICIES = {
    **KINDS,
    "SriovNetworkNodePolicy": VF_POLICIES,
}
# ConfigMaps of multus, and of the RDMA shared device plugin when installed by its own manifests, without an operator.
CONFIGS = ("rdma-devices", "multus-daemon-config")


def read_kinds(cluster: Cluster, paths: t.Mapping[str, str]) -> t.List[Object]:
    return [{**item, "kind": kind} for kind, path in paths.items() for item in cluster.items(path)]


def named_config_maps(cluster: Cluster) -> t.List[Object]:
    return [
        found
        for name in CONFIGS
        for found in cluster.items("/api/v1/configmaps", fieldSelector=f"metadata.name={name}")
    ]


def read_objects(cluster: Cluster) -> ClusterObjects:
    """Objects of the cluster. Pods are read only if a network may have a single address that one of them holds."""
    attachments = cluster.items(ATTACHMENTS)
    fixed = any(ipam.get("type") == "static" for each in attachments for ipam in read_ipams(each))
    version = query("gitVersion", cluster.get("/version")) or ""
    daemonsets = cluster.items("/apis/apps/v1/daemonsets")
    host = cluster.client.configuration.host if cluster.present else ""
    return ClusterObjects(
        version=version.lstrip("v"),
        endpoint=host.partition("://")[2],
        nodes=cluster.items("/api/v1/nodes"),
        attachments=attachments,
        networks=read_kinds(cluster, NETWORKS),
        pools=Pools(listed_pools(cluster), cluster.items(f"{OWN_POOLS}/spiderippools")),
        policies=read_kinds(cluster, POLICIES),
        config_maps=named_config_maps(cluster),
        multus=[each for each in daemonsets if set(image_names(each)) & set(MULTUS_IMAGES)],
        pods=list(running_pods(cluster)) if fixed else [],
    )


def plan_of(cluster: Cluster, only: t.Sequence[str]) -> Plan:
    """The plan of what the cluster has. FabricError with all rights this user lacks, or if nothing can be proved."""
    require_rights(
        cluster,
        served_rights(cluster, TO_PROVE),
        "The proof of a cluster needs rights in it.",
        "Give this user the ClusterRole ipu-fabric-prove of"
        " https://github.com/ipu-fabric/ipu.fabric/blob/main/docs/any-cluster.md, or name another kubeconfig in"
        " fabric_kubeconfig.",
    )
    return derive_plan(read_objects(cluster), only)
