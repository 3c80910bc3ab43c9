# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who creates the cluster, if anyone may, and through which control plane others join; or which one a host is in.

In which order the others join is decided in kubernetes_join.py.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible.module_utils.parsing.convert_bool import boolean

from .._common.result import FabricError
from .._model.wish import ClusterWish, NodeSeen
from .settings import pick

Answer = t.Mapping[str, t.Any]
TAINT = "node-role.kubernetes.io/control-plane"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role, without its name as a prefix."""

    version: str
    allow_new_cluster: bool
    schedulable: str
    node_addresses: t.Mapping[str, t.Sequence[str]]  # from the plan, by node name


@dataclasses.dataclass(frozen=True)
class Seen:
    """The inventory, and what ipu.fabric.kubernetes_node_info found before anything is changed."""

    host: str
    groups: t.Mapping[str, t.Sequence[str]]
    run: t.Sequence[str]  # hosts of this run, including those that have failed
    answered: t.Sequence[str]  # control planes of this run that have not failed
    nodes: t.Sequence[Answer]  # their nodes, in this order
    left_out: t.Mapping[str, Answer]  # results of control planes outside this run
    node: Answer  # the host's own
    joins: bool  # whether the host is to become a node; if not, nothing is refused
    check_mode: bool
    kubeconfig_sha256: str  # of the kubeconfig on the controller; if there is none, of an empty file
    renewed: t.Sequence[str] = ()  # control planes whose kubeconfig would be renewed, in check mode


def decide(settings: Settings, seen: Seen) -> ClusterWish:
    """Raise FabricError for a host that must not join, and for a cluster that must not be created."""
    group = seen.groups["kube_control_plane"]
    planes = read_planes(group, seen)
    members = [name for name in group if planes[name].membership == "member"]
    # Members first: a reinstalled first control plane joins its cluster instead of creating another.
    first = [*members, *group][0]
    # A new cluster would take over the endpoint of an unseen one: planes that may be members of one forbid it.
    doubtful = [name for name in group if planes[name].membership != "none"]
    if planes[first].membership == "unfinished":
        doubtful.remove(first)
    may_begin = first in seen.run and (settings.allow_new_cluster or not doubtful)
    if seen.joins:
        check_host(settings.version.lstrip("v"), seen.host, pick(NodeSeen, seen.node))
        if seen.host in group:
            check_address(settings.node_addresses, seen.host, pick(NodeSeen, seen.node))
        if not members and not may_begin:
            refuse_cluster(settings, first, planes, doubtful)
    hosts = {*group, *seen.groups.get("kube_node", ())}
    workers = {*seen.groups.get("kube_node", ()), *seen.groups.get("ipu_node", ())}
    runs_pods = seen.host in workers or len(hosts) == 1
    digests = {name: planes[name].kubeconfig_sha256 for name in group}
    schedulable = runs_pods if settings.schedulable == "auto" else boolean(settings.schedulable, strict=False)
    differs = bool(members) or not seen.check_mode
    return ClusterWish(
        first=first,
        first_node=planes[first],
        is_first=seen.host == first,
        running=bool(members),
        planes=planes,
        members=members,
        schedulable=schedulable,
        untaints=schedulable and TAINT in pick(NodeSeen, seen.node).taints,
        fetches=differs and seen.kubeconfig_sha256 not in digests.values(),
        renews=seen.kubeconfig_sha256 not in [digests[name] for name in group if name not in seen.renewed],
    )


def read_planes(group: t.Sequence[str], seen: Seen) -> t.Dict[str, NodeSeen]:
    """All control planes of the inventory; one that has not answered may be in any state."""
    planes = dict.fromkeys(group, NodeSeen())
    for name, answer in seen.left_out.items():
        node = answer.get("node")
        planes[name] = pick(NodeSeen, node) if node else NodeSeen(seen=str(answer.get("msg", "")))
    return {**planes, **{name: pick(NodeSeen, node) for name, node in zip(seen.answered, seen.nodes)}}


def check_host(version: str, host: str, node: NodeSeen) -> None:
    """Stop at a host that is neither a future node nor a node of this release."""
    step = f"{node.next_step} Then run again."
    if node.membership == "expired":
        raise FabricError(
            f"Certificates of the cluster that {host} is in have expired.", host, node.seen, step, code="expired"
        )
    if node.membership == "broken":
        raise FabricError(
            f"{host} has parts of a Kubernetes node, but its cluster does not confirm that it is one.",
            host,
            node.seen,
            step,
            code="wrong-state",
        )
    if node.membership == "member" and node.kubelet != version:
        raise FabricError(
            f"{host} is a node of another release than {version}, which is planned.",
            host,
            f"Kubernetes {node.kubelet}",
            f"Run ipu.fabric.upgrade, or set fabric_kubernetes_version to {node.kubelet} (for the role alone,"
            " kubernetes_version).",
            code="wrong-state",
        )


def check_address(planned: t.Mapping[str, t.Sequence[str]], host: str, node: NodeSeen) -> None:
    """Stop at a host that would join with the address of another, whose etcd member would be removed."""
    known = planned.get(node.name)
    if node.membership != "member" and known and not {*node.address.split(",")} <= {*known}:
        raise FabricError(
            f"{host} has to have the address that was planned for it.",
            host,
            f"it says {node.address}; planned is {','.join(known)}",
            "Check the address of that host in the inventory: another host answered.",
            code="unsafe",
        )


def refuse_cluster(
    settings: Settings, first: str, planes: t.Mapping[str, NodeSeen], doubtful: t.Sequence[str]
) -> t.NoReturn:
    if doubtful and not settings.allow_new_cluster:
        why = {name: f" ({planes[name].seen})" * bool(planes[name].seen) for name in doubtful}
        raise FabricError(
            "A new cluster would begin, but control planes of this inventory may be in one already.",
            first,
            "; ".join(f"{name}: {planes[name].membership}{why[name]}" for name in doubtful),
            "Bring them back, or remove those that are gone for good from kube_control_plane, and run again. If there"
            " is no cluster to keep, run once with -e kubernetes_allow_new_cluster=true.",
            code="unsafe",
        )
    raise FabricError(
        f"{first} becomes the first control plane, but it is in no cluster yet.",
        first,
        planes[first].membership,
        f"Run without --limit, or with {first} in it.",
        code="wrong-state",
    )
