# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade of Kubernetes: what the cluster says of its nodes, and in which order they are upgraded."""

from __future__ import annotations

import typing as t

from .plan import Finding


class SeenNode(t.TypedDict):
    """A node, as cluster_info returns it."""

    name: str
    ready: bool
    version: str  # of its running kubelet, without v
    components: t.Dict[str, str]  # releases of its static pods: API server, scheduler, controller manager, etcd
    own_labels: t.List[str]  # keys of the labels that this collection set


class SeenCluster(t.TypedDict):
    """The cluster that the kubeconfig leads to."""

    ca: str  # digest; empty if the API does not tell
    version: str  # of the API server that answered; empty: none did
    nodes: t.List[SeenNode]


class Upgrade(t.TypedDict):
    """What an upgrade has to do. Hosts have their inventory names."""

    to: str  # the target release, without v
    servers: t.List[str]  # releases of the API servers, oldest first
    control_planes: t.List[str]  # those to upgrade, in their order
    workers: t.List[str]  # those to upgrade
    done: t.List[str]  # those that run the target release completely
    behind: t.Dict[str, str]  # what is not on the target release yet, by host to upgrade, for a message
    begun: bool  # whether a control plane is done, and so kubeadm upgrade apply too
    marked: t.List[str]  # hosts in `done` that an interrupted upgrade left cordoned
    versions: t.Dict[str, str]  # of kubelets
    nodes: t.Dict[str, str]  # names of the nodes
    findings: t.List[Finding]  # errors first
