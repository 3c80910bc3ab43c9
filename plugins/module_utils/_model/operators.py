# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operators of a cluster and what depends on them, as ipu.fabric.cluster_info returns them."""

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
    """A node and its labels, in the form in which node_labels removes them."""

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
    """A node, and its labels that select a V-IPU controller."""

    name: str
    labels: t.Dict[str, str]


class SeenIpuOperator(Operator):
    """An IPU operator that a cluster had before the plan, as installed by Helm."""

    ours: bool  # this collection installed it
    values: t.Dict[str, str]  # values of its release by path, such as worker.hostNetwork; secrets are blank
    defaults: t.Dict[str, str]  # the chart's own values
    controllers: t.List[str]  # host:port:label=value, as its ConfigMap has them now


class SeenIpuJob(t.TypedDict):
    """An IPUJob that has not ended."""

    name: str  # NAMESPACE/NAME
    networks: str  # that its workers request; empty: none


class SeenIpu(t.TypedDict):
    """What a cluster that defines IPUJobs has of the IPU operator."""

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
    definition: bool  # the cluster defines the kind IPUJob
    jobs: t.List[str]  # NAMESPACE/NAME


class MpiFacts(t.TypedDict):
    ours: bool  # whether this collection applied the MPIJob definition
    jobs: t.List[str]  # NAMESPACE/NAME
