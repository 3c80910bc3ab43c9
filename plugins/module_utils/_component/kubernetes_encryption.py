# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps that replace the key for Secrets in etcd. What an interrupted run began is completed first."""

from __future__ import annotations

import dataclasses
import typing as t

from .._common.result import FabricError
from .._kubeadm.encryption import check_same, find_source, plan_steps, refuse_foreign
from .._model.wish import KeysWish
from .settings import pick


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role, without its name as a prefix."""

    rotate_encryption_key: bool


@dataclasses.dataclass(frozen=True)
class KeysSeen:
    """What ipu.fabric.secrets_encryption read on a control plane."""

    order: t.Sequence[str] = ()
    digests: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    foreign: t.Sequence[str] = ()
    used: bool = False


@dataclasses.dataclass(frozen=True)
class Seen:
    """A cluster whose key is to be replaced."""

    control_planes: t.Sequence[str]  # of the inventory
    members: t.Sequence[str]  # those of them that are in the cluster
    live: t.Sequence[str]  # those that are in this run and have not failed
    keys: t.Sequence[t.Mapping[str, t.Any]]  # what was read on them, in this order


def decide(settings: Settings, seen: Seen) -> KeysWish:
    """Raise FabricError if a control plane would be left behind, or if the keys are not of this collection."""
    missing = [name for name in seen.control_planes if name not in seen.live or name not in seen.members]
    if missing:
        raise FabricError(
            "All control planes need the new key before one of them writes with it.",
            "kube_control_plane",
            f"no member of the cluster, or not in this run: {', '.join(missing)}",
            "Start them, or remove those that are gone for good with ipu.fabric.remove_node. Then run without --limit.",
            code="wrong-state",
        )
    keys = {name: pick(KeysSeen, read) for name, read in zip(seen.live, seen.keys)}
    if not all(each.used for each in keys.values()):
        raise FabricError(
            "Secrets of this cluster are not encrypted with keys of this collection, so there is none to rotate.",
            ", ".join(keys),
            "no /etc/kubernetes/hardening/encryption.yaml that the API servers use",
            "Set fabric_hardening to cis and run ipu.fabric.site, or rotate your own keys by hand.",
            code="not-found",
        )
    return plan_keys(keys, settings.rotate_encryption_key)


def plan_keys(planes: t.Mapping[str, KeysSeen], rotate: bool = False) -> KeysWish:
    """The steps that control planes with these keys have to take."""
    digests = {name: seen.digests for name, seen in planes.items()}
    check_same(digests)
    steps = plan_steps({name: list(seen.order) for name, seen in planes.items()}, True, rotate)
    if steps["before"]:
        refuse_foreign({name: seen.foreign for name, seen in planes.items()})
    return KeysWish(
        before=steps["before"],
        after=steps["after"],
        steps=[*steps["before"], *steps["after"]],
        new=steps["new"],
        source=find_source(digests),
        generate=not any(steps["new"] in names for names in digests.values()),
    )
