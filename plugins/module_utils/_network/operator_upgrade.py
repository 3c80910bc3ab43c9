# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Upgrades of the network operator from release to release: the vendor's steps, and what is refused."""

from __future__ import annotations

import typing as t

from .ipu_release import Refusal
from .releases import NETWORK_OPERATORS, parse

ANOTHER = (  # what is wrong with a second operator, and what to do
    "The cluster has a network operator already, and two of them undo each other's work.",
    "Set network_operator_namespace to its namespace if helm calls it network-operator, or remove it first.",
)
CHECK = "network-operator-upgrade"


def upgrade_steps(installed: str, wanted: str) -> t.Tuple[str, t.List[str]]:
    """The kind of change from one release to another, and the releases to install, one after the other.

    The vendor supports upgrades within a line and to the next line, so each line in between is a separate step.
    """
    old, new = parse(installed), parse(wanted)
    if not installed:
        return "install", [wanted]
    if old == new:
        return "keep", []
    if old > new:
        return "downgrade", []
    between = sorted(line for line in NETWORK_OPERATORS if old[:2] < line < new[:2]) if old else []
    return "skip" if between or not old else "upgrade", [*(NETWORK_OPERATORS[line].newest for line in between), wanted]


def upgrade_refusal(installed: str, wanted: str) -> t.Optional[Refusal]:
    """Why the change is refused; skipping lines may be allowed, a downgrade may not."""
    change, steps = upgrade_steps(installed, wanted)
    if change == "skip":
        first, rest = steps[0], ", then ".join(steps[1:])
        return Refusal(
            f"From network operator {installed}, the vendor supports upgrades to the next release line only.",
            wanted,
            f"Set fabric_network_operator_version to {first} and run site, then do the same with {rest}, each on a"
            " Kubernetes that it supports."
            if rest
            else f"Find out which release that is, and whether the vendor supports its upgrade to {wanted}.",
        )
    if change == "downgrade":
        return Refusal(
            f"Network operator {installed} is installed, and the vendor has no downgrade.",
            f"{wanted}, which is older",
            f"Set fabric_network_operator_version to {installed}, or uninstall with network_operator_state=absent and"
            " install again.",
        )
    return None
