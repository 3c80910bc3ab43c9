# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admission by proof: what nodes carry, and how many of them a proof may close. Pure."""

from __future__ import annotations

import re
import typing as t

from .result import FabricError

CONDITION = "FabricProved"  # of nodes
RECORD = "ipu.fabric/proof"  # annotation: when a node was proved, and what it was then
TAINT = {"key": "ipu.fabric/unproved", "effect": "NoSchedule"}
TOLERATION = {**TAINT, "operator": "Exists"}
ENFORCE = "enforce"
PROVER = "prover"  # service account of scheduled proofs
PROVER_STEP = f"For a scheduled proof run ipu.fabric.verify, which applies the ClusterRole ipu-fabric-{PROVER}. Else: "


def count_of(wanted: t.Union[int, str], nodes: int, what: str, where: str) -> int:
    """How many of the nodes a count or a percentage is: of a percentage at least one. FabricError for anything else."""
    count = re.fullmatch(r"\s*(\d{1,6})\s*(%?)\s*", str(wanted))
    if not count or (count.group(2) and int(count.group(1)) > 100):
        step = "Write a number such as 2, or a percentage such as 10%."
        raise FabricError(f"{what} a count or a percentage.", where, repr(wanted), step, code="invalid-input")
    number = int(count.group(1))
    return max(1, nodes * number // 100) if count.group(2) and number else number


def at_most(wanted: t.Union[int, str], nodes: int) -> int:
    """How many of the nodes fabric_max_unproved allows."""
    return count_of(wanted, nodes, "The most nodes that a failed proof may close are", "fabric_max_unproved")


def with_unproved(mode: str, tolerations: t.Sequence[t.Mapping[str, t.Any]]) -> t.List[t.Mapping[str, t.Any]]:
    """Tolerations of what a proof needs on a node: with enforce it runs on those that are not proved yet."""
    return [*tolerations, *([TOLERATION] if mode == ENFORCE else [])]


def nfd_tolerations(mode: str) -> t.Dict[str, t.Any]:
    """Values of a chart that brings Node Feature Discovery; its own are NoSchedule too, and are replaced."""
    worker = {"tolerations": [{"operator": "Exists", "effect": TAINT["effect"]}]}
    return {"node-feature-discovery": {"worker": worker}} if mode == ENFORCE else {}
