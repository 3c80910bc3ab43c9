# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a backup may be restored on these hosts, and how, for the playbook restore."""

from __future__ import annotations

import dataclasses
import typing as t

from .._common.result import FabricError
from .._model.plan import Plan
from .._plan.restoring import Backup, RestorePlan, plan_restore
from .settings import NoSettings as Settings

Answer = t.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Seen:
    """The backup, the plan, and the hosts."""

    path: str
    about: Backup
    plan: Plan
    hosts: t.Sequence[str]
    facts: t.Sequence[Answer]  # what ipu.fabric.host_info returned, in this order
    control_planes: t.Sequence[str]
    states: t.Sequence[Answer]  # what ipu.fabric.control_plane_restore read, in this order
    named: str  # the cluster that may be replaced, as the user gave it
    now: str  # time; becomes part of the name of a new restore


def decide(settings: Settings, seen: Seen) -> RestorePlan:
    """Raise FabricError with every reason not to restore."""
    hosts = {name: answer["host"] for name, answer in zip(seen.hosts, seen.facts) if "host" in answer}
    read = zip(seen.control_planes, seen.states)
    states: t.Dict[str, t.Any] = {name: state if "restoring" in state else None for name, state in read}
    plan = plan_restore(seen.about, seen.plan, hosts, states, (seen.named, seen.now))
    if plan["problems"]:
        raise FabricError(
            f"The backup {seen.path} can't be restored on these hosts.",
            ", ".join(seen.control_planes),
            " ".join(plan["problems"]).rstrip("."),
            "Solve these problems, then run again.",
            code="unsafe",
        )
    return plan
