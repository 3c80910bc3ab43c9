# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether nodes are Ready, and why not."""

from __future__ import annotations

import typing as t

from .query import Object, query

PRESSURE = (
    "Free what the node is short of: for DiskPressure, disk space or inodes (`df -h`, `df -i`, `crictl rmi --prune`; or"
    " lower evictionHard in kubernetes_kubelet_config); for MemoryPressure, memory; for PIDPressure, processes"
    " (`ps -eLf | wc -l`). The kubelet accepts pods again a few minutes later."
)


def why_not_ready(node: Object) -> str:
    """Why a node is not Ready, in one line; empty if it is."""
    condition = query("status.conditions[?type=='Ready'] | [0]", node)
    if condition is None:
        return "its kubelet has not reported yet"
    if condition["status"] == "True":
        return ""
    return f"{condition.get('reason', 'not Ready')}: {condition.get('message', '')}".rstrip(": ")


def pressures(node: t.Mapping[str, object]) -> t.List[str]:
    """What a node, Ready or not, is short of: its kubelet then accepts no new pods, and evicts some."""
    found = query("status.conditions[?status=='True' && ends_with(type, 'Pressure')]", node) or []
    return [f"{each['type']}: {each.get('message', '')}".rstrip(": ") for each in found]


def not_ready(nodes: t.Sequence[Object], names: t.Sequence[str]) -> t.Dict[str, str]:
    """Reasons by name, for the requested nodes, or for all if no names are given."""
    seen = {node["metadata"]["name"]: why_not_ready(node) for node in nodes}
    reasons = {name: seen.get(name, "the cluster has no such node") for name in names or seen}
    return {name: reason for name, reason in sorted(reasons.items()) if reason}
