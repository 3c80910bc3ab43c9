# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose kubelets get another configuration, and for which names and addresses kubelets get certificates."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._component.settings import pick
from ansible_collections.ipu.fabric.plugins.module_utils._model.wish import KubeletsWish, KubeletWish, NodeSeen


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role, without its name before them."""

    node_addresses: t.Mapping[str, t.Sequence[str]]  # the plan's


@dataclasses.dataclass(frozen=True)
class Seen:
    """The hosts of the run that have not failed."""

    control_planes: t.Sequence[str]  # of the inventory
    hosts: t.Sequence[str]
    nodes: t.Sequence[t.Mapping[str, t.Any]]  # theirs, in this order
    kubelets: t.Sequence[t.Mapping[str, t.Any]]  # what each of theirs becomes


def decide(settings: Settings, seen: Seen) -> KubeletsWish:
    nodes = {host: pick(NodeSeen, node) for host, node in zip(seen.hosts, seen.nodes)}
    kubelets = {host: pick(KubeletWish, wish) for host, wish in zip(seen.hosts, seen.kubelets)}
    due = [host for host in seen.hosts if kubelets[host].due]
    own = {node.name: node.address.split(",") for node in nodes.values()}
    return KubeletsWish(
        planes=[name for name in seen.control_planes if name in due],
        workers=[name for name in due if name not in seen.control_planes],
        awaited=[nodes[host].name for host in seen.hosts if kubelets[host].awaits],
        addresses=settings.node_addresses or own,
    )
