# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Earlier reports of a site: their time, outcome, and number of checks by status. Pure functions."""

from __future__ import annotations

import json
import typing as t

from .._model.checks import Check, Head
from .catalog import STATUSES
from .checks import counts, outcome

KEPT = 20  # reports


class Run(t.NamedTuple):
    """One report."""

    time: str  # UTC, ISO 8601
    outcome: str
    counts: t.Dict[str, int]  # by status


def this_run(checks: t.Sequence[Check], head: Head) -> Run:
    return Run(head.time, outcome(checks), counts(checks))


def read_history(text: str) -> t.List[Run]:
    """The runs, newest first. An invalid history counts as empty: it is only for display."""
    try:
        entries = json.loads(text)["runs"]
        return [
            Run(str(entry["time"]), str(entry["outcome"]), {name: int(entry["counts"][name]) for name in STATUSES})
            for entry in entries
        ][:KEPT]
    except (KeyError, TypeError, ValueError):
        return []


def to_json(runs: t.Sequence[Run]) -> str:
    return json.dumps({"schema": 1, "runs": [run._asdict() for run in runs[:KEPT]]}, indent=2) + "\n"
