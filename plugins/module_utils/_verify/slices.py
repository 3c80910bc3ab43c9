# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes a scheduled proof takes next: those proved longest ago whose NICs no pod holds now. Pure functions."""

from __future__ import annotations

import typing as t

from .._common.admission import CONDITION, count_of
from .._kube.multus import networks_of
from .._kube.query import Object, query
from .._model.plan import Plan
from .admission import NEW, PARTS
from .narrow import plan_of_hosts
from .pods import GPUS, LABEL, resource_name, targets

UNJUDGED = {NEW, *(reason for reason, _what in PARTS.values())}


class Slice(t.NamedTuple):
    """The nodes of one scheduled proof."""

    nodes: t.List[str]
    busy: t.Dict[str, str]  # node to the pod that holds its NICs, NAMESPACE/NAME


def slice_size(wanted: str, nodes: int) -> int:
    """The number of nodes that `8` or `10%` means; at least one."""
    return max(1, min(nodes, count_of(wanted, nodes, "A slice of the nodes is", "verify_slice, verify_schedule_slice")))


def last_proofs(nodes: t.Iterable[Object]) -> t.Dict[str, str]:
    """When a proof last judged each node, ISO 8601 in UTC. Nodes that have changed since are omitted."""
    found = {}
    for node in nodes:
        condition = query(f"status.conditions[?type=='{CONDITION}'] | [0]", node) or {}
        if condition.get("reason") not in UNJUDGED:
            found[node["metadata"]["name"]] = condition.get("lastHeartbeatTime") or ""
    return found


def holders(plan: Plan, pods: t.Iterable[Object], gpu: bool = False) -> t.Dict[str, str]:
    """Nodes whose NICs are held by one of these pods (not ended ones), by a planned network or an RDMA resource.

    gpu: a GPU counts too, since a proof between GPUs takes all GPUs of a node.
    """
    networks = {(network["namespace"], network["name"]) for network in plan["networks"]}
    resources = {resource_name(plan, network) for network in plan["networks"]} - {""} | ({GPUS} if gpu else set())
    found: t.Dict[str, str] = {}
    for pod in pods:
        node, metadata = query("spec.nodeName", pod), pod["metadata"]
        if not node or LABEL in (metadata.get("labels") or {}):
            continue
        wanted = query("[spec.containers, spec.initContainers][] | [].keys(not_null(resources.limits, `{}`))[]", pod)
        if networks & networks_of(pod) or resources & set(wanted or ()):
            found.setdefault(node, f"{metadata['namespace']}/{metadata['name']}")
    return found


def next_slice(
    plan: Plan, pods: t.Iterable[Object], proved: t.Mapping[str, str], size: str, gpu: bool = False
) -> Slice:
    """The next slice. `proved` has the time of each node's last proof (ISO 8601, UTC); nodes without one come first."""
    nodes = [target.node for target in targets(plan)]
    busy = {node: pod for node, pod in holders(plan, pods, gpu).items() if node in nodes}
    idle = sorted((proved.get(node, ""), node) for node in nodes if node not in busy)
    return Slice([node for _time, node in idle[: slice_size(size, len(nodes))]], busy)


def without_nodes(plan: Plan, nodes: t.Collection[str]) -> Plan:
    """The plan of the other nodes: a test and a pod at work would slow each other down."""
    return plan_of_hosts(plan, {host for host, facts in plan["hosts"].items() if facts["node"] not in nodes})
