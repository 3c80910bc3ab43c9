# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade of Kubernetes: what the cluster says of its nodes, and in which turns they go."""

from __future__ import annotations

import typing as t

from .plan import Finding


class SeenNode(t.TypedDict):
    """A node, as cluster_info returns it."""

    name: str
    ready: bool
    version: str  # of its kubelet that runs, without v
    components: t.Dict[str, str]  # releases of its static pods: API server, scheduler, controller manager, etcd
    own_labels: t.List[str]  # keys of the labels that this collection has set


class SeenCluster(t.TypedDict):
    """The cluster that the kubeconfig leads to."""

    version: str  # of the API server that answered; empty: none did
    nodes: t.List[SeenNode]


class Upgrade(t.TypedDict):
    """Hosts have their inventory names."""

    to: str  # the wanted release, without v
    servers: t.List[str]  # releases of the API servers, the oldest first
    control_planes: t.List[str]  # that are due, in their turns
    workers: t.List[str]  # that are due
    done: t.List[str]  # that run the wanted release, all of them
    behind: t.Dict[str, str]  # of those that are due: what is not on the release, for a message
    begun: bool  # whether a control plane is done: kubeadm upgrade apply was, too
    marked: t.List[str]  # of those that are done: still cordoned by an interrupted upgrade
    versions: t.Dict[str, str]  # of kubelets
    nodes: t.Dict[str, str]  # names of the nodes
    findings: t.List[Finding]  # errors first
