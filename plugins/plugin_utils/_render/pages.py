# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""plan.html and report.html from their templates: one file each, which loads nothing from anywhere."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.text import shorten_list
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check, Head
from ansible_collections.ipu.fabric.plugins.module_utils._model.plan import Plan
from ansible_collections.ipu.fabric.plugins.module_utils._plan.report import facts, headline, host_rows
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import (
    AREAS,
    CHECK_TYPES,
    FAILED,
    PASSED,
    UNPROVEN,
)
from ansible_collections.ipu.fabric.plugins.module_utils._verify.checks import shown_counts, summary
from ansible_collections.ipu.fabric.plugins.module_utils._verify.matrix import matrices, worst
from ansible_collections.ipu.fabric.plugins.module_utils._verify.report import notes, subject
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.html import render

WIDEST = 32  # nodes; a larger matrix is wider than a screen, and mostly empty
LISTED = 50  # pairs that stand for a matrix that is too wide
AREA_TITLES = {area: area.upper() if area in ("ipu", "rdma", "gpu") else area.capitalize() for area in AREAS}


def plan_page(plan: Plan, title: str = "Plan of the fabric") -> str:
    """plan.html: decisions, hosts, findings."""
    heading, rows = host_rows(plan)
    hosts = [
        (cells, state, next((level for level in ("error", "warning") if level in state), "ok"))
        for *cells, state in rows
    ]
    findings = [(finding, shorten_list(finding["hosts"], 20) or "all") for finding in plan["findings"]]
    return render(
        "plan.html.j2",
        title=title,
        headline=headline(plan),
        decisions=facts(plan),
        heading=heading,
        hosts=hosts,
        findings=findings,
    )


def figure(check: Check) -> str:
    """What was measured, or whether it worked."""
    return f"{check.value:g} {check.unit}" if check.value is not None else {PASSED: "yes", FAILED: "no"}[check.status]


def report_page(checks: t.Sequence[Check], head: Head) -> str:
    """report.html: failures first, then what is unproven, a matrix for each network and test of pairs, and all."""
    by_area = {area: [check for check in checks if CHECK_TYPES[check.check].area == area] for area in AREAS}
    return render(
        "report.html.j2",
        title=f"Fabric {summary(checks)}",
        head=head,
        counts=shown_counts(checks),
        notes=notes(checks),
        failed=[check for check in checks if check.status == FAILED],
        unproven=[check for check in checks if check.status == UNPROVEN],
        matrices=matrices(checks),
        areas=[(AREA_TITLES[area], mine) for area, mine in by_area.items() if mine],
        types=CHECK_TYPES,
        subject=subject,
        figure=figure,
        worst=worst,
        widest=WIDEST,
        listed=LISTED,
    )
