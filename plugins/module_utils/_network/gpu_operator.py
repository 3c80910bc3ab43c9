# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU operators of a cluster: who installed them, and what uses them."""

from __future__ import annotations

import typing as t

from .._kube.client import Cluster
from .._kube.query import Object, query
from .._model.operators import GpuFacts, GpuLabels
from .cluster_info import installations
from .removal import RUNNING, name_of

IMAGE = "gpu-operator"
RESOURCES = "nvidia.com/"
DRIVERS = ("nvidia.com/v1alpha1", "NVIDIADriver")
# Labels that the operator itself sets. Those of GPU Feature Discovery are removed with it.
LABELS = ("nvidia.com/gpu.deploy.", "nvidia.com/gpu.present")


def uses_gpus(pod: Object) -> bool:
    """Whether a container of a pod requests a GPU or a part of one."""
    limits = query("spec.[initContainers, containers][][].resources.limits", pod) or []
    return any(name.startswith(RESOURCES) for each in limits for name in each)


def labelled_nodes(cluster: Cluster) -> t.List[GpuLabels]:
    found: t.List[GpuLabels] = []
    for node in cluster.items("/api/v1/nodes"):
        labels = [name for name in query("metadata.labels", node) or {} if name.startswith(LABELS)]
        if labels:
            found.append({"name": node["metadata"]["name"], "labels": dict.fromkeys(sorted(labels))})
    return found


def read_gpu_operator(cluster: Cluster) -> GpuFacts:
    operators = installations(cluster, IMAGE)
    homes = {operator["namespace"] for operator in operators}
    running = cluster.items("/api/v1/pods", fieldSelector=RUNNING)
    # The operator's own validators request GPUs as well.
    pods = [pod for pod in running if uses_gpus(pod) and pod["metadata"]["namespace"] not in homes]
    resource = cluster.resource(*DRIVERS)
    return {
        "operators": operators,
        "pods": sorted("/".join(name_of(pod)) for pod in pods),
        "drivers": [driver["metadata"]["name"] for driver in cluster.items(resource.path())] if resource else [],
        "labelled": labelled_nodes(cluster),
    }
