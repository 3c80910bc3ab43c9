# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operators of a cluster and what would miss them, as ipu.fabric.cluster_info returns them."""

from __future__ import annotations

import typing as t


class Operator(t.TypedDict):
    """An operator, by its Deployment."""

    namespace: str
    name: str
    version: str
    release: str  # its name in helm


class Installation(Operator):
    """An operator of the cluster, by its Deployment."""

    ours: bool


class GpuLabels(t.TypedDict):
    """A node, and its labels as node_labels takes them to remove them."""

    name: str
    labels: t.Dict[str, None]


class GpuFacts(t.TypedDict):
    operators: t.List[Installation]
    pods: t.List[str]  # NAMESPACE/NAME
    drivers: t.List[str]
    labelled: t.List[GpuLabels]


class InstalledOperator(Operator):
    """An IPU operator of the cluster."""

    available: bool  # a controller runs


class _Named(t.TypedDict):
    label: str  # key=value


class VipuController(_Named, total=False):
    """A controller. Without `nodes`, the labels of its nodes are not managed."""

    host: str
    port: t.Union[int, str]  # 8090 if missing
    nodes: t.Optional[t.Sequence[str]]


class LabelledNode(t.TypedDict):
    """A node, and those of its labels that are a controller's."""

    name: str
    labels: t.Dict[str, str]


class SeenIpuOperator(Operator):
    """An IPU operator that is in a cluster before the plan, as helm has installed it."""

    ours: bool  # by this collection
    values: t.Dict[str, str]  # that it was installed with, by path, such as worker.hostNetwork; secrets are blank
    defaults: t.Dict[str, str]  # of its chart
    controllers: t.List[str]  # host:port:label=value, as its ConfigMap has them now


class SeenIpuJob(t.TypedDict):
    """An IPUJob that has not ended."""

    name: str  # NAMESPACE/NAME
    networks: str  # that its workers ask for; empty: none


class SeenIpu(t.TypedDict):
    """What a cluster has of the IPU operator, where it has the definition of IPUJobs."""

    operators: t.List[SeenIpuOperator]
    jobs: t.List[SeenIpuJob]


class IpuFacts(t.TypedDict):
    operators: t.List[InstalledOperator]
    own: t.List[str]  # NAMESPACE/NAME
    vipu_controllers: t.List[VipuController]
    labelled: t.List[LabelledNode]
    certificate_end: str
    certificate_days: t.Optional[int]
    tracker: bool
    definition: bool  # IPUJobs are a kind of the cluster
    jobs: t.List[str]  # NAMESPACE/NAME


class MpiFacts(t.TypedDict):
    ours: bool  # the definition of MPIJobs is
    jobs: t.List[str]  # NAMESPACE/NAME
