# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kubelets get a new configuration, and the names and addresses for which kubelets get certificates."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from .._common.result import FabricError
from .._kube.query import Object
from .._model.wish import KubeletsWish, KubeletWish, NodeSeen
from . import kubernetes_kubelet
from .settings import pick


@dataclasses.dataclass(frozen=True)
class Settings(kubernetes_kubelet.Settings):
    """More variables of the role, in addition to the inherited ones."""

    node_addresses: t.Mapping[str, t.Sequence[str]]  # from the plan


@dataclasses.dataclass(frozen=True)
class Seen:
    """The hosts of the run that have not failed."""

    control_planes: t.Sequence[str]  # of the inventory
    hosts: t.Sequence[str]
    nodes: t.Sequence[t.Mapping[str, t.Any]]  # their nodes, in this order
    settings: t.Sequence[Object]  # that their kubelets must have
    kubelets: t.Sequence[t.Mapping[str, t.Any]]  # what ipu.fabric.kubelet_config found
    check_mode: bool = False


def decide(settings: Settings, seen: Seen) -> KubeletsWish:
    nodes = {host: pick(NodeSeen, node) for host, node in zip(seen.hosts, seen.nodes)}
    found = {host: pick(kubernetes_kubelet.Seen, kubelet) for host, kubelet in zip(seen.hosts, seen.kubelets)}
    decided: t.Dict[str, KubeletWish] = {}
    for host, wanted in zip(seen.hosts, seen.settings):
        with contextlib.suppress(FabricError):
            decided[host] = kubernetes_kubelet.configure(wanted, found[host])
    due = [host for host, wish in decided.items() if wish.due]
    awaits = [host for host, wish in decided.items() if wish.awaits]
    own = {nodes[host].name: nodes[host].address.split(",") for host in decided}
    return KubeletsWish(
        settings=kubernetes_kubelet.kubelet_settings(settings),
        planes=[name for name in seen.control_planes if name in due],
        workers=[name for name in due if name not in seen.control_planes],
        contents={host: decided[host].content for host in due},
        refused=[host for host in seen.hosts if host not in decided],
        awaited=[nodes[host].name for host in awaits],
        signed=[host for host in decided if found[host].serves or (host in awaits and not seen.check_mode)],
        addresses=settings.node_addresses or own,
    )
