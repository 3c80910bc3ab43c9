# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster has one multus: refuses a second one, or none at all, as in _plan/running_cluster.py."""

from __future__ import annotations

import typing as t

from .._common.result import FabricError
from .._plan.running_cluster import multus_problem


def check_multus(role: str, wanted: bool, others: t.Sequence[str]) -> None:
    """Raise FabricError if multus is wanted although others have one, or unwanted although nobody else has one."""
    variables = f"fabric_multus ({role}_multus)"
    why, step = multus_problem(variables, wanted, others)
    seen = ", ".join(others) or f"{role}_multus is false, and the cluster has no multus of others"
    if why:
        raise FabricError(why, "DaemonSets of the cluster", seen, step, code="not-ours" if others else "not-found")
