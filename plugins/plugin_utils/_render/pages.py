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
from ansible_collections.ipu.fabric.plugins.module_utils._verify.report import notes, place_text, seen_text, subject
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.address_bars import LEAST, bars
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.html import render
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.topology import ALONE, PADDING, topology
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.versions import images, versions

WIDEST = 32  # nodes; a larger matrix is wider than a screen, and mostly empty
FEW_HOSTS = 40  # that plan.html lists at once; more of them are folded
FEW_NETWORKS = 2  # likewise
LISTED = 50  # pairs of a matrix that is too wide, like results of one check: nobody reads more
AREA_TITLES = {area: area.upper() if area in ("ipu", "rdma", "gpu") else area.capitalize() for area in AREAS}


def plan_page(plan: Plan, title: str = "Plan of the fabric") -> str:
    """plan.html: verdict, findings, decisions, topology, addresses, versions, hosts."""
    heading, rows = host_rows(plan)
    hosts = [
        (cells, state, next((level for level in ("error", "warning") if level in state), "ok"))
        for *cells, state in rows
    ]
    findings = [(finding, shorten_list(finding["hosts"], 20) or "all") for finding in plan["findings"]]
    pinned = images(plan)
    decisions = by_word(facts(plan))
    networks = [each for each in decisions if each[0] == "Network"]
    folded = len(networks) > FEW_NETWORKS
    digests = sum(bool(image.digest) for image in pinned)
    return render(
        "plan.html.j2",
        title=title,
        headline=headline(plan),
        level=next((finding["level"] for finding, _hosts in findings), "ok"),
        findings=findings,
        decisions=[each for each in decisions if not (folded and each in networks)],
        networks=networks if folded else [],
        drawing=topology(plan) if plan["hosts"] else None,
        padding=PADDING,
        grouped=len(plan["hosts"]) > ALONE,
        bars=bars(plan),
        least=LEAST,
        versions=versions(plan),
        images=pinned,
        pinned=f"{digests} of them known by a digest, the others by their tags",
        heading_row=[*(cell.capitalize() for cell in heading[:3]), *heading[3:-1], heading[-1].capitalize()],
        hosts=hosts,
        few=FEW_HOSTS,
    )


def by_word(lines: t.Iterable[t.Tuple[str, str]]) -> t.List[t.Tuple[str, t.List[str]]]:
    """Lines without a word belong to the one before."""
    found: t.List[t.Tuple[str, t.List[str]]] = []
    for word, text in lines:
        if word or not found:
            found.append((word, []))
        found[-1][1].append(text)
    return found


class Row(t.NamedTuple):
    """A result, or many that are alike."""

    status: str
    title: str
    network: str
    place: str
    seen: str
    next: str
    expected: str


def rows(checks: t.Sequence[Check]) -> t.Iterator[Row]:
    """A row each. Where a check has too many of one status: the first of those that need work, one row for others."""
    groups: t.Dict[t.Tuple[str, str, str], t.List[Check]] = {}
    for check in checks:
        groups.setdefault((check.check, check.network, check.status), []).append(check)
    for (name, network, status), group in groups.items():
        title, many = CHECK_TYPES[name].title, len(group) > LISTED
        if many and status not in (FAILED, UNPROVEN):
            yield Row(status, title, network, place_text(group, ""), seen_text(group), "", group[0].expected)
            continue
        for check in group[:LISTED]:
            yield Row(status, title, network, subject(check), check.seen, check.next, check.expected)
        if many:
            yield Row(status, title, network, f"and {len(group) - LISTED} more", "report.json has all", "", "")


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
        failed=[*rows([check for check in checks if check.status == FAILED])],
        unproven=[*rows([check for check in checks if check.status == UNPROVEN])],
        matrices=matrices(checks),
        areas=[(AREA_TITLES[area], [*rows(mine)]) for area, mine in by_area.items() if mine],
        types=CHECK_TYPES,
        subject=subject,
        figure=figure,
        worst=worst,
        widest=WIDEST,
        listed=LISTED,
    )
