# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How control planes are hardened: kubeadm's ClusterConfiguration for a level, and the files that it names."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from .._host.cri import SOCKETS
from .._kube.query import Object
from .._kubeadm import hardening
from .._model.wish import HardeningWish, NodeSeen
from .kubernetes_encryption import KeysSeen, plan_keys
from .settings import pick

with contextlib.suppress(ImportError):  # Ansible, which makes these decisions, has it
    import yaml

ENCRYPTION, KUBELET_CA = "encryption", "kubelet-ca"


@dataclasses.dataclass(frozen=True)
class Level:
    """Variables of the role, without its name as a prefix, that decide how a cluster is hardened."""

    version: str
    hardening: str
    hardening_left_out: t.Sequence[str]
    pod_security_exempt: t.Sequence[str]
    cluster_config: Object


@dataclasses.dataclass(frozen=True)
class Settings(Level):
    """More variables of the role, in addition to the inherited ones."""

    runtime: str
    kubeadm_timeouts: Object


@dataclasses.dataclass(frozen=True)
class Seen:
    """What was read from an existing cluster."""

    configuration: str  # kubeadm's
    control_planes: t.Sequence[str]  # of the inventory
    planes: t.Mapping[str, t.Mapping[str, t.Any]]  # their facts, as the run found them
    live: t.Sequence[str] = ()  # those that are in the cluster by now, and in this run
    keys: t.Sequence[t.Mapping[str, t.Any]] = ()  # keys for Secrets that were read on these, in their order
    nodes: t.Sequence[str] = ()  # of the inventory
    hosts: t.Sequence[str] = ()  # hosts of the run that have not failed
    signed: t.Sequence[str] = ()  # hosts whose kubelets have a certificate signed by the cluster


def decide(settings: Settings, seen: Seen) -> HardeningWish:
    """Raise FabricError if control planes have keys that do not match."""
    # Keys change only when all control planes are in the run, not with --limit.
    whole = len(seen.live) == len(seen.control_planes)
    signed = bool(seen.nodes) and {*seen.nodes} <= {*seen.signed} & {*seen.hosts}
    met = [ENCRYPTION] * whole + [KUBELET_CA] * (signed and settings.hardening == hardening.CIS)
    before: hardening.ClusterConfiguration = yaml.safe_load(seen.configuration) or {}
    release = hardening.parse_release(settings.version)
    hardened = harden(settings, before, met)
    changed = hardened.configuration != before
    there = hardening.present(before)
    encrypts = whole and ENCRYPTION in (setting.name for setting in hardened.applied)
    nodes = {name: pick(NodeSeen, seen.planes[name]) for name in seen.live}
    return HardeningWish(
        text=yaml.safe_dump(hardened.configuration, width=1 << 20) if changed else seen.configuration,
        uploads=changed,
        files=hardening.files(hardened.applied, release, settings.pod_security_exempt),
        super_admin=settings.hardening != hardening.CIS,
        present=[setting.name for setting in there],
        present_files=hardening.files(there, release, settings.pod_security_exempt),
        live=seen.live,
        documents={name: documents(settings, node, hardened.configuration) for name, node in nodes.items()},
        rollout=plan_keys({name: pick(KeysSeen, keys) for name, keys in zip(seen.live, seen.keys)})
        if encrypts
        else None,
    )


def harden(level: Level, configuration: hardening.ClusterConfiguration, met: t.Collection[str]) -> hardening.Hardened:
    wanted = hardening.Wanted(
        level.hardening,
        hardening.parse_release(level.version),
        frozenset(met),
        frozenset(level.hardening_left_out),
    )
    return hardening.harden(configuration, wanted, t.cast(hardening.ClusterConfiguration, level.cluster_config))


def documents(
    settings: Settings, node: NodeSeen, configuration: hardening.ClusterConfiguration
) -> t.List[t.Mapping[str, t.Any]]:
    """kubeadm's documents, from which it rewrites the files of a running control plane."""
    about = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": node.address},
        "nodeRegistration": {"name": node.name, "criSocket": f"unix://{SOCKETS[settings.runtime]}"},
        "timeouts": settings.kubeadm_timeouts,
    }
    return [about, configuration]
