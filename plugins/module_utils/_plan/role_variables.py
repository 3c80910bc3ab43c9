# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role variables that an inventory sets, for the record: roles decide by them beside the plan. Pure."""

from __future__ import annotations

import collections
import typing as t

from .._model.observation import Observations
from .._model.plan import Plan, PlannedHost


def with_role_variables(plan: Plan, observations: Observations) -> Plan:
    """The plan with those of most hosts, and each host with those in which it differs."""
    given = {host: observation.get("decided", {}) for host, observation in observations.items()}
    common: t.Dict[str, str] = {}
    own: t.Dict[str, t.Dict[str, t.Optional[str]]] = {}
    for name in sorted({name for mine in given.values() for name in mine}):
        values = {host: mine.get(name) for host, mine in given.items()}  # None: not set there
        usual = collections.Counter(values.values()).most_common(1)[0][0]
        if usual is not None:
            common[name] = usual
        for host, value in values.items():
            if value != usual:
                own.setdefault(host, {})[name] = value
    hosts: t.Dict[str, PlannedHost] = {
        name: {**host, "role_variables": own[name]} if name in own else host for name, host in plan["hosts"].items()
    }
    found: Plan = {**plan, "hosts": hosts}
    return {**found, "role_variables": common} if common else found
