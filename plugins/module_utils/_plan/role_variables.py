# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role variables that an inventory sets, for the record: roles decide by them beside the plan. Pure."""

from __future__ import annotations

import collections
import typing as t

from .._model.observation import Observations
from .._model.plan import Plan, PlannedHost


def with_role_variables(plan: Plan, observations: Observations) -> Plan:
    """The plan with those of most hosts."""
    usual = {name: _usual(values) for name, values in _by_name(observations).items()}
    common = {name: value for name, value in usual.items() if value is not None}
    return {**plan, "role_variables": common} if common else plan


def with_own_variables(planned: t.Mapping[str, PlannedHost], observations: Observations) -> t.Dict[str, PlannedHost]:
    """The planned hosts, each with the role variables in which it differs from most."""
    own: t.Dict[str, t.Dict[str, t.Optional[str]]] = {}
    for name, values in _by_name(observations).items():
        usual = _usual(values)
        for host, value in values.items():
            if value != usual:
                own.setdefault(host, {})[name] = value
    return {
        name: {**host, "role_variables": own[name]} if name in own else host  # most hosts differ in nothing
        for name, host in planned.items()
    }


def _by_name(observations: Observations) -> t.Dict[str, t.Dict[str, t.Optional[str]]]:
    """The value of each variable by host; None: not set there."""
    given = {host: observation.get("decided", {}) for host, observation in observations.items()}
    names = sorted({name for mine in given.values() for name in mine})
    return {name: {host: mine.get(name) for host, mine in given.items()} for name in names}


def _usual(values: t.Mapping[str, t.Optional[str]]) -> t.Optional[str]:
    return collections.Counter(values.values()).most_common(1)[0][0]
