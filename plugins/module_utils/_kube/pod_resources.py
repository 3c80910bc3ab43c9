# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that request a resource that no node has, such as an RDMA device: waiting does not help."""

from __future__ import annotations

import time
import typing as t

from .._common.result import FabricError
from .client import Cluster
from .pod_problems import UNSCHEDULABLE, Problem
from .query import Object, query

INTERVAL = 15  # seconds between two reads of the nodes


def device_resources(amounts: t.Iterable[str]) -> t.Set[str]:
    """Resources of device plugins: unlike the kubelet's own, their names contain a domain."""
    return {name for name in amounts if "/" in name}


def unknown_resources(pods: t.Sequence[Object], nodes: t.Sequence[Object]) -> t.List[Problem]:
    """Resources that unscheduled pods request and that no node has ever had.

    If a device plugin is down, the node keeps its resource at 0: that is temporary, and not reported here.
    """
    known: t.Set[str] = set().union(*(device_resources(query("status.capacity", node) or {}) for node in nodes))
    there = ", ".join(sorted(known)) or "nothing of that kind"
    found = []
    for pod in pods:
        limits = query("spec.[initContainers, containers][][].resources.limits", pod) or []
        for name in sorted(set().union(*map(device_resources, limits)) - known):
            text = f"pod {pod['metadata']['name']} asks for {name}, which no node has; the nodes have {there}"
            found.append(Problem(text, True))
    return found


class NodeResources:
    """The resources of the nodes, read again from time to time while there are unscheduled pods."""

    def __init__(self, cluster: Cluster, clock: t.Callable[[], float] = time.monotonic) -> None:
        self.cluster, self.clock = cluster, clock
        self.nodes: t.List[Object] = []
        self.asked: t.Optional[float] = None

    def problems(self, pods: t.Sequence[Object]) -> t.List[Problem]:
        unscheduled = [pod for pod in pods if query(UNSCHEDULABLE, pod)]
        if unscheduled and (self.asked is None or self.clock() - self.asked >= INTERVAL):
            self.asked = self.clock()
            try:
                self.nodes = self.cluster.items("/api/v1/nodes", resourceVersion="0")
            except FabricError:  # without the right to read nodes, the scheduler's message must do
                self.nodes = []
        return unknown_resources(unscheduled, self.nodes) if self.nodes else []
