# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admission by proof: marks on nodes, and how many nodes a proof may close. Pure functions."""

from __future__ import annotations

import re
import typing as t

from .result import FabricError

CONDITION = "FabricProved"  # condition of nodes
RECORD = "ipu.fabric/proof"  # annotation: when a node was proved, and its state then
TAINT = {"key": "ipu.fabric/unproved", "effect": "NoSchedule"}
TOLERATION = {**TAINT, "operator": "Exists"}
ENFORCE = "enforce"
PROVER = "prover"  # service account of the scheduled proof
PROVER_STEP = f"For a scheduled proof run ipu.fabric.verify, which applies the ClusterRole ipu-fabric-{PROVER}. Else: "


def count_of(wanted: t.Union[int, str], nodes: int, what: str, where: str) -> int:
    """A count or percentage as a number of nodes: at least one for a percentage. FabricError for anything else."""
    count = re.fullmatch(r"\s*(\d{1,6})\s*(%?)\s*", str(wanted))
    if not count or (count.group(2) and int(count.group(1)) > 100):
        step = "Write a number such as 2, or a percentage such as 10%."
        raise FabricError(f"{what} a count or a percentage.", where, repr(wanted), step, code="invalid-input")
    number = int(count.group(1))
    return max(1, nodes * number // 100) if count.group(2) and number else number


def at_most(wanted: t.Union[int, str], nodes: int) -> int:
    """How many nodes fabric_max_unproved allows."""
    return count_of(wanted, nodes, "The number of nodes that a failed proof may close has to be", "fabric_max_unproved")


def with_unproved(mode: str, tolerations: t.Sequence[t.Mapping[str, t.Any]]) -> t.List[t.Mapping[str, t.Any]]:
    """Tolerations of what a proof needs on a node: with enforce, it also runs on nodes that are not proved yet."""
    return [*tolerations, *([TOLERATION] if mode == ENFORCE else [])]


def nfd_tolerations(mode: str) -> t.Dict[str, t.Any]:
    """Values for a chart that contains Node Feature Discovery; they replace its own tolerations, also of NoSchedule."""
    worker = {"tolerations": [{"operator": "Exists", "effect": TAINT["effect"]}]}
    return {"node-feature-discovery": {"worker": worker}} if mode == ENFORCE else {}
