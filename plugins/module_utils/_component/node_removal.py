# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How nodes leave a cluster, for the playbook remove_node."""

from __future__ import annotations

import dataclasses
import typing as t

from .._kubeadm.etcd import MemberFacts
from .._model.observation import Observations
from .._plan.node_removal import ClusterNode, RemovalPlan, asked_names, plan_removal
from .settings import NoSettings as Settings


@dataclasses.dataclass(frozen=True)
class Seen:
    """The cluster, its hosts, and which of its nodes should leave it."""

    asked: t.Union[str, t.Sequence[str], None]
    observations: Observations
    ca: str  # digest
    nodes: t.Sequence[ClusterNode]
    members: t.Optional[t.Sequence[MemberFacts]] = None  # of etcd; None: not asked yet


def decide(settings: Settings, seen: Seen) -> RemovalPlan:
    return plan_removal(asked_names(seen.asked), seen.observations, seen.ca, seen.nodes, seen.members)
