# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which nodes are rebooted: control planes one at a time, then workers in batches."""

from __future__ import annotations

import dataclasses
import typing as t


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role, without its name as a prefix."""

    reboot_workers: int  # how many at a time


@dataclasses.dataclass(frozen=True)
class Seen:
    """What the hosts of the play returned."""

    hosts: t.Sequence[str]
    results: t.Sequence[t.Mapping[str, t.Any]]  # of ipu.fabric.rdma_host, in the same order; empty: none
    control_planes: t.Sequence[str]


@dataclasses.dataclass(frozen=True)
class Turns:
    """Batches of hosts; each begins when the previous one is done."""

    turns: t.Sequence[t.Sequence[str]]


def decide(settings: Settings, seen: Seen) -> Turns:
    waiting = [host for host, result in zip(seen.hosts, seen.results) if result.get("node") and result.get("reboot")]
    planes = [[host] for host in waiting if host in seen.control_planes]
    workers = [host for host in waiting if host not in seen.control_planes]
    size = settings.reboot_workers
    return Turns([*planes, *(workers[start : start + size] for start in range(0, len(workers), size))])
