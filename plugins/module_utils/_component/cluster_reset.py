# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What taking a cluster away removes from its hosts, for the playbook reset."""

from __future__ import annotations

import dataclasses
import typing as t

from .._plan.cluster_reset import ClusterAnswer, Confirmation, FoundOnHost, ResetPlan, plan_reset
from .settings import NoSettings as Settings


@dataclasses.dataclass(frozen=True)
class Seen:
    """The hosts, what is on them, and what was said of their cluster."""

    hosts: t.Sequence[str]
    found: t.Sequence[FoundOnHost]  # by ipu.fabric.host_reset in check mode, in this order; of a silent one nothing
    answer: ClusterAnswer
    jobs: t.Sequence[str]  # that hold IPUs
    name: str  # that was given for the cluster
    force: bool  # whether jobs may go with it
    reports: t.Sequence[str]  # paths on this machine, of what was proved and applied


def decide(settings: Settings, seen: Seen) -> ResetPlan:
    """Its refusal is said after what would go."""
    found = {host: answer or FoundOnHost() for host, answer in zip(seen.hosts, seen.found)}
    return plan_reset(found, seen.answer, seen.jobs, seen.reports, Confirmation(seen.name, seen.force))
