# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which certificates of a cluster are renewed, and whether the cluster works meanwhile, for renew_certificates."""

from __future__ import annotations

import dataclasses
import typing as t

from .settings import NoSettings as Settings


@dataclasses.dataclass(frozen=True)
class Seen:
    """What ipu.fabric.node_certificates found on hosts in check mode, in their order; empty for a silent host."""

    planes: t.Sequence[str]  # control planes of the inventory
    hosts: t.Sequence[str]
    found: t.Sequence[t.Mapping[str, t.Any]]


@dataclasses.dataclass(frozen=True)
class RenewalWish:
    """What is renewed. Hosts have their inventory names."""

    wait: bool  # whether to wait for each control plane before the next one is renewed
    kubeconfigs: t.Sequence[str]  # hosts whose administrator's kubeconfig is renewed
    signed: t.Sequence[str]  # hosts whose kubelets have certificates signed by the cluster
    requested: t.Sequence[str]  # those of them that have to request a new one


def decide(settings: Settings, seen: Seen) -> RenewalWish:
    """Decide what to renew, and whether to wait between control planes.

    etcd and the API need a majority. If it has expired, or a killed run was renewing it, no control plane becomes ready
    before the others are renewed too.
    """
    found = {host: answer for host, answer in zip(seen.hosts, seen.found) if "renewed" in answer}
    known = [found[plane] for plane in seen.planes if plane in found]
    valid = [each for each in known if not each["expired"] and not each["interrupted"]]
    return RenewalWish(
        wait=len(seen.planes) == 1 or len(valid) > len(seen.planes) // 2,
        kubeconfigs=[host for host, answer in found.items() if "admin.conf" in answer["renewed"]],
        signed=[host for host, answer in found.items() if answer.get("signed")],
        requested=[host for host, answer in found.items() if answer.get("requested")],
    )
