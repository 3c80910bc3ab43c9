# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens to a network operator that is already installed."""

from __future__ import annotations

import typing as t

from .._common.findings import Findings
from .._model.plan import Releases
from .._model.settings import Settings
from .._model.stacks import STACKS
from .._network.operator_upgrade import ANOTHER, CHECK, upgrade_refusal, upgrade_steps
from .._network.releases import NETWORK_OPERATORS, parse, show
from .running_cluster import Running, stack_home

CHART = "network-operator-"  # followed by the release, in the label of its Deployment


def check_only_one(settings: Settings, running: t.Optional[Running], releases: Releases, findings: Findings) -> None:
    """Refuse a second operator, as the role would after it has changed hosts."""
    if not running or releases["stack"] != "network_operator":
        return
    own = f"{stack_home(settings, 'network_operator')}/{STACKS['network_operator'].release}"
    others = [each for each in running.facts.get("network_operators", []) if each != own]
    if others:
        why, step = ANOTHER
        findings.error("cluster-stack", [running.host], why, f"{', '.join(others)} (namespace/release)", step)


def check_network_operator(running: t.Optional[Running], releases: Releases, findings: Findings) -> None:
    """Announce the upgrade of an operator before it happens, whether the site or others installed it."""
    charts = (running.facts.get("charts") or []) if running else []
    installed = next((chart[len(CHART) :] for chart in charts if chart.startswith(CHART)), "")
    if not running or not installed or releases["stack"] != "network_operator":
        return
    if findings.has_error("network-operator-version"):  # there is no such release
        return
    wanted = releases["network_operator"]
    change, _steps = upgrade_steps(installed, wanted)
    refusal = upgrade_refusal(installed, wanted)
    if refusal:
        check = CHECK if change == "skip" else "network-operator-version"
        findings.error(check, [running.host], *refusal)
    elif change == "upgrade":
        kubernetes = parse(running.facts["version"])[:2]
        row = NETWORK_OPERATORS.get(parse(installed)[:2])
        stays = row is None or not kubernetes or row.kubernetes[0] <= kubernetes <= row.kubernetes[1]
        findings.warning(
            CHECK,
            [running.host],
            "site upgrades the installed network operator.",
            f"{installed} becomes {wanted}",
            f"To stay, set fabric_network_operator_version to {installed}."
            if stays
            else f"Let site upgrade it: {installed} is not for Kubernetes {show(kubernetes)}. Its DaemonSets restart.",
        )
