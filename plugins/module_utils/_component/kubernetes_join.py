# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How hosts join a cluster: control planes one by one, then workers in batches, with a token that lasts long enough.

Which host creates the cluster is decided in kubernetes_cluster.py.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .._common.text import first_of
from .._model.wish import JoinWish, NodeSeen
from .settings import pick

TURN = 10  # minutes that one host may take


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role, without its name as a prefix."""

    token_ttl: str  # in Go's notation for durations
    join_throttle: int
    node_addresses: t.Mapping[str, t.Sequence[str]]  # from the plan, by node name


@dataclasses.dataclass(frozen=True)
class Seen:
    """Hosts of the run that have not failed, as they were when the run began."""

    control_plane: bool  # whether control planes join now, or workers
    control_planes: t.Sequence[str]  # of the inventory
    hosts: t.Sequence[str]
    nodes: t.Sequence[t.Mapping[str, t.Any]]  # theirs, in this order
    forks: int  # hosts that Ansible handles at a time


def decide(settings: Settings, seen: Seen) -> JoinWish:
    nodes = {name: pick(NodeSeen, node) for name, node in zip(seen.hosts, seen.nodes)}
    joining = [name for name in seen.hosts if (name in seen.control_planes) is seen.control_plane]
    throttle = 1 if seen.control_plane else settings.join_throttle
    turns = -(-len(joining) // min(throttle, seen.forks))
    # Hosts without any Kubernetes. The cluster may still have their nodes, and etcd their members.
    bare = [nodes[name] for name in joining if nodes[name].membership == "none"]
    # Go adds up the parts of a duration; a plain 0 means no end.
    ttl = settings.token_ttl
    return JoinWish(
        throttle=throttle,
        ttl=ttl if ttl == "0" else f"{ttl}{TURN * turns}m",
        rejoining=[node.name for node in bare],
        addresses=[address for node in bare if seen.control_plane for address in addresses_of(settings, node)],
    )


def addresses_of(settings: Settings, node: NodeSeen) -> t.Sequence[str]:
    """Those of the plan: a host must not choose whose etcd member is removed. The role alone has only its answer."""
    return settings.node_addresses.get(node.name) or [first_of(node.address)]
