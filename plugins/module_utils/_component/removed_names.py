# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the nodes given to the playbook remove_node exist, checked before any host is asked."""

from __future__ import annotations

import dataclasses
import typing as t

from .._plan.node_removal import ClusterNode, asked_names, check_names
from .settings import NoSettings as Settings


@dataclasses.dataclass(frozen=True)
class Seen:
    """What was requested, and the names that are possible."""

    asked: t.Union[str, t.Sequence[str], None]
    hosts: t.Sequence[str]  # of the inventory
    nodes: t.Sequence[ClusterNode]


@dataclasses.dataclass(frozen=True)
class Wish:
    """The requested names, without duplicates."""

    names: t.List[str]


def decide(settings: Settings, seen: Seen) -> Wish:
    names = asked_names(seen.asked)
    check_names(names, seen.hosts, [node["name"] for node in seen.nodes])
    return Wish(names)
