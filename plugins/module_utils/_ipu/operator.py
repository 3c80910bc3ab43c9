# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The IPU operator in a cluster: its release, whether it works, and its controllers, certificate and jobs."""

from __future__ import annotations

import re
import typing as t

from .._common.result import FabricError
from .._host.ipu_operator import CONTROLLERS, MANAGER
from .._kube.client import Cluster
from .._kube.ownership import release_is_ours
from .._kube.query import Object, query, quoted
from .._kube.readiness import condition_true
from .._model.operators import InstalledOperator, IpuFacts, LabelledNode, VipuController
from .._network.cluster_info import operator_view
from .controllers import TRACKER, label_pair, parse_controllers
from .job_info import read_jobs
from .job_spec import API, job_name
from .webhook import read_certificate

MANAGER_LABELS = "app.kubernetes.io/name=ipu-operator,app.kubernetes.io/component=controller-manager"
CHART = f"metadata.labels.{quoted('helm.sh/chart')}"


def chart_version(deployment: Object) -> str:
    """The chart's version, since the application's may have a suffix."""
    chart = re.search(r"-v?(\d+\.\d+\.\d+)", query(CHART, deployment) or "")
    return chart.group(1) if chart else operator_view(deployment)["version"].partition("-")[0]


def managers(cluster: Cluster) -> t.List[Object]:
    """The Deployments of IPU operators, in all namespaces. Before 1.1.0, their names began with the release name."""
    return [d for d in cluster.items("/apis/apps/v1/deployments") if query("metadata.name", d).endswith(MANAGER)]


def installed_operators(deployments: t.Sequence[Object]) -> t.List[InstalledOperator]:
    found: t.List[InstalledOperator] = []
    for deployment in deployments:
        view = operator_view(deployment)
        found.append(
            {
                "namespace": view["namespace"],
                "name": view["name"],
                "version": chart_version(deployment),
                "release": view["release"],
                "available": (query("status.availableReplicas", deployment) or 0) > 0,
            }
        )
    return found


def operator_fault(cluster: Cluster) -> str:
    """Why the IPU operator can't act; empty if it can, or if this user may not see its pods."""
    try:
        pods = cluster.items("/api/v1/pods", labelSelector=MANAGER_LABELS)
    except FabricError:
        return ""
    if not pods:
        return "the IPU operator does not run (no pod of its controller in any namespace)"
    if any(condition_true(pod, "Ready") for pod in pods):
        return ""
    names = ", ".join(sorted(map("/".join, query("[].metadata.[namespace, name]", pods))))
    return f"the IPU operator has no ready pod ({names})"


def labelled_nodes(cluster: Cluster, pairs: t.Set[t.Tuple[str, str]]) -> t.List[LabelledNode]:
    """The nodes with one of the labels."""
    found: t.List[LabelledNode] = []
    for node in cluster.items("/api/v1/nodes") if pairs else []:
        own = query("metadata.labels", node) or {}
        labels = {key: value for key, value in sorted(pairs) if own.get(key) == value}
        if labels:
            found.append({"name": query("metadata.name", node), "labels": labels})
    return found


def read_ipu_operator(cluster: Cluster, namespace: str, more_labels: t.Sequence[str]) -> IpuFacts:
    """The operator in a namespace, and the nodes that have labels of its controllers or `more_labels`."""
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    texts = query("data.*", cluster.get(f"{config_maps}/{CONTROLLERS}")) or []
    controllers: t.List[VipuController] = [controller for text in texts for controller in parse_controllers(text)]
    labels = [*(controller["label"] for controller in controllers), *more_labels]
    certificate = read_certificate(cluster, namespace)
    found = managers(cluster)
    return {
        "operators": installed_operators(found),
        "own": ["/".join(query("metadata.[namespace, name]", d)) for d in found if release_is_ours(cluster, d)],
        "vipu_controllers": controllers,
        "labelled": labelled_nodes(cluster, {label_pair(label) for label in labels}),
        "certificate_end": certificate["end"],
        "certificate_days": certificate["days"],
        "tracker": cluster.get(f"{config_maps}/{TRACKER}") is not None,
        "definition": cluster.resource(API, "IPUJob") is not None,
        "jobs": [job_name(job) for job in read_jobs(cluster)],
    }
