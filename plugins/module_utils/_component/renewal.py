# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which certificates of a cluster are renewed, and whether it goes on meanwhile: for renew_certificates."""

from __future__ import annotations

import dataclasses
import typing as t

from .settings import NoSettings as Settings


@dataclasses.dataclass(frozen=True)
class Seen:
    """What ipu.fabric.node_certificates has found on hosts in check mode, in their order; of a silent one nothing."""

    planes: t.Sequence[str]  # control planes of the inventory
    hosts: t.Sequence[str]
    found: t.Sequence[t.Mapping[str, t.Any]]


@dataclasses.dataclass(frozen=True)
class RenewalWish:
    """Names of the inventory, but for the first."""

    wait: bool  # for each control plane, before the next one is renewed
    kubeconfigs: t.Sequence[str]  # hosts whose kubeconfig of the administrator is renewed
    signed: t.Sequence[str]  # hosts whose kubelets have certificates that the cluster signs
    requested: t.Sequence[str]  # of them, those that have to ask for another one


def decide(settings: Settings, seen: Seen) -> RenewalWish:
    """etcd and the API need a majority. Where that has expired, or a run was killed that was renewing it, no control
    plane gets ready before the others are renewed too."""
    found = {host: answer for host, answer in zip(seen.hosts, seen.found) if "renewed" in answer}
    known = [found[plane] for plane in seen.planes if plane in found]
    valid = [each for each in known if not each["expired"] and not each["interrupted"]]
    return RenewalWish(
        wait=len(seen.planes) == 1 or len(valid) > len(seen.planes) // 2,
        kubeconfigs=[host for host, answer in found.items() if "admin.conf" in answer["renewed"]],
        signed=[host for host, answer in found.items() if answer.get("signed")],
        requested=[host for host, answer in found.items() if answer.get("requested")],
    )
