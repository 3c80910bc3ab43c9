# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node of a host, which has to be drained before the host is rebooted."""

from __future__ import annotations

import dataclasses
import typing as t

from .._common.result import FabricError


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role rdma_host, without its name as a prefix."""

    api_host: str
    kubeconfig: str


@dataclasses.dataclass(frozen=True)
class Seen:
    """What the host reports of itself, and what the API reports of its node."""

    host: str
    node: str  # the name by which the host calls itself
    machine_id: str
    found: t.Sequence[t.Mapping[str, t.Any]]  # nodes of that name
    error: str  # of the API; empty: it answered


@dataclasses.dataclass(frozen=True)
class Node:
    """The node of the host."""

    name: str
    boot_id: str  # before the reboot


def decide(settings: Settings, seen: Seen) -> Node:
    """Raise FabricError before the reboot if the node is not found, or belongs to another host in that cluster."""
    info = seen.found[0]["status"]["nodeInfo"] if seen.found else {}
    node_id = info.get("machineID") or ""
    another = bool(node_id and seen.machine_id and node_id != seen.machine_id)
    if seen.found and not another:
        return Node(seen.found[0]["metadata"]["name"], info["bootID"])
    said = seen.error or "no such node in that cluster"
    if another:
        said = f"its machine-id is {node_id}, but that of the host is {seen.machine_id}"
    otherwise = "run kubeadm reset on a host that is in no cluster any more"
    if seen.error:
        otherwise = "start its API; if certificates have expired, run ipu.fabric.renew_certificates"
    raise FabricError(
        "A node is drained before it is rebooted.",
        f"node {seen.node}, by {settings.api_host} with {settings.kubeconfig or 'its own kubeconfig'}",
        f"{said}. {seen.host} was not rebooted",
        "Set fabric_kubeconfig (for the role alone, rdma_host_kubeconfig) to a kubeconfig of its cluster:"
        f" ipu.fabric.site fetches one when it runs without rdma_host_reboot. Or {otherwise}.",
        code="api-unreachable" if seen.error else "other-cluster" if another else "not-found",
    )
