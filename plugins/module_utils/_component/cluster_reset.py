# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the removal of a cluster takes off its hosts, for the playbook reset."""

from __future__ import annotations

import dataclasses
import typing as t

from .._plan.cluster_reset import ClusterAnswer, Confirmation, FoundOnHost, ResetPlan, Site, plan_reset
from .settings import NoSettings as Settings


@dataclasses.dataclass(frozen=True)
class Seen:
    """The hosts, what is on them, and what the user said about their cluster."""

    hosts: t.Sequence[str]
    found: t.Sequence[FoundOnHost]  # from ipu.fabric.host_reset in check mode, in this order; empty for a silent host
    answer: ClusterAnswer
    jobs: t.Sequence[str]  # jobs that hold IPUs
    name: str  # the cluster's name as the user gave it
    force: bool  # whether jobs may be removed with it
    kubeconfig_ca: str  # digest; of the cluster that answers with the site's kubeconfig
    reports: t.Sequence[str]  # paths on the controller: records of what was proved and applied


def decide(settings: Settings, seen: Seen) -> ResetPlan:
    """Plan the reset. A refusal is part of the plan, so that it can follow the list of what would be removed."""
    found = {host: answer or FoundOnHost() for host, answer in zip(seen.hosts, seen.found)}
    site = Site(seen.kubeconfig_ca, seen.reports)
    return plan_reset(found, seen.answer, seen.jobs, site, Confirmation(seen.name, seen.force))
