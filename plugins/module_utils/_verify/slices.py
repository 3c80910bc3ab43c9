# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes a scheduled proof takes next: those proved longest ago that no pod needs right now. Pure."""

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
    busy: t.Dict[str, str]  # node to the pod that holds its NICs, as NAMESPACE/NAME


def slice_size(wanted: str, nodes: int) -> int:
    """How many nodes `8` or `10%` are; at least one."""
    return max(1, min(nodes, count_of(wanted, nodes, "A slice of the nodes is", "verify_slice, verify_schedule_slice")))


def last_proofs(nodes: t.Iterable[Object]) -> t.Dict[str, str]:
    """When each node was last judged by a proof, ISO 8601 in UTC. One that has changed since is not among them."""
    found = {}
    for node in nodes:
        condition = query(f"status.conditions[?type=='{CONDITION}'] | [0]", node) or {}
        if condition.get("reason") not in UNJUDGED:
            found[node["metadata"]["name"]] = condition.get("lastHeartbeatTime") or ""
    return found


def holders(plan: Plan, pods: t.Iterable[Object], gpu: bool = False) -> t.Dict[str, str]:
    """Nodes whose NICs one of these pods, which have not ended, holds: by a planned network, or by an RDMA resource.

    gpu: a GPU counts too, since a proof between GPUs takes all of a node.
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
    """`proved` has the time of each node's last proof, ISO 8601 in UTC; a node without one comes first."""
    nodes = [target.node for target in targets(plan)]
    busy = {node: pod for node, pod in holders(plan, pods, gpu).items() if node in nodes}
    idle = sorted((proved.get(node, ""), node) for node in nodes if node not in busy)
    return Slice([node for _time, node in idle[: slice_size(size, len(nodes))]], busy)


def without_nodes(plan: Plan, nodes: t.Collection[str]) -> Plan:
    """The plan of the other nodes: a pod at work there would be slowed down, and slow down the test."""
    return plan_of_hosts(plan, {host for host, facts in plan["hosts"].items() if facts["node"] not in nodes})
