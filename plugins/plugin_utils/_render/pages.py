# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""plan.html and report.html from their templates: one file each, which loads nothing from anywhere."""

from __future__ import annotations

import typing as t

from ...module_utils._common.text import shorten_list
from ...module_utils._model.checks import Check, Head
from ...module_utils._model.plan import HostWord, Plan
from ...module_utils._model.probe import Probe
from ...module_utils._plan.changes import WORDS, change_lines
from ...module_utils._plan.report import (
    count,
    drift_headline,
    drift_mark,
    facts,
    host_rows,
    made_text,
    since_headline,
    split_drift,
    why_left,
)
from ...module_utils._verify.again import live_object, look_command, repeat_command
from ...module_utils._verify.baseline import EMPTY, Baseline
from ...module_utils._verify.catalog import (
    ACCEPTED,
    AREAS,
    CHECK_TYPES,
    FAILED,
    PASSED,
    PROVED,
    SKIPPED,
    STATUSES,
    UNPROVEN,
)
from ...module_utils._verify.checks import counts, outcome, shown_counts, summary
from ...module_utils._verify.history import Run, this_run
from ...module_utils._verify.matrix import MEASURED, Matrix, matrices, worst
from ...module_utils._verify.report import notes, place_text, seen_text, subject
from . import heat
from .address_bars import LEAST, bars
from .html import render
from .sparks import charts
from .topology import ALONE, PADDING, topology
from .versions import images, versions

WIDEST = 32  # nodes; a larger matrix is wider than a screen, and mostly empty
CELLS = 8_000  # of all matrices on a page
PAIRS = 20  # of a matrix that is not drawn: the worst
FEW_HOSTS = 40  # that plan.html lists at once; more of them are folded
FEW_NETWORKS = 2  # likewise
LISTED = 50  # results of one check that need work: nobody reads more
ROWS = 400  # of all checks of a status that need work; each check has its share
ALIKE = 10  # likewise, of those that need none
LEVELS = {PROVED: PASSED, FAILED: FAILED, UNPROVEN: UNPROVEN}  # outcomes, by the class of their colour
AREA_TITLES = {area: area.upper() if area in ("ipu", "rdma", "gpu") else area.capitalize() for area in AREAS}


def plan_page(plan: Plan, title: str = "") -> str:
    """plan.html: verdict, findings, decisions, topology, addresses, versions, hosts."""
    heading, rows = host_rows(plan)
    hosts = [
        (cells, state, next((level for level in ("error", "warning") if level in state), "ok"))
        for *cells, state in rows
    ]
    findings = [(finding, shorten_list(finding["hosts"], 20) or "all") for finding in plan["findings"]]
    pinned = images(plan)
    decisions = [each for each in by_word(facts(plan)) if each[0] != "Made"]  # the page's head has it
    networks = [each for each in decisions if each[0] == "Network"]
    folded = len(networks) > FEW_NETWORKS
    digests = sum(bool(image.digest) for image in pinned)
    drift, left = split_drift(plan["drift"] or [])
    summary, since = plan["summary"], plan["since"]
    levels = [finding["level"] for finding in plan["findings"]]
    return render(
        "plan.html.j2",
        title=title or f"Plan of {plan['made']['site'] or 'the fabric'}",
        made=made_text({**plan["made"], "site": ""}) if plan["made"]["by"] else "",
        line=summary["line"],
        counts=[(WORDS[t.cast(HostWord, word)], number) for word, number in summary["counts"].items()],
        reasons=change_lines({name: one for name, one in summary["hosts"].items() if one["why"]}, 20),
        since=since,
        since_headline=since_headline(since) if since else "",
        most=LISTED,
        drift_time=plan["drift_time"],
        told=", ".join(count(levels.count(level), level) for level in ("error", "warning") if level in levels),
        level=next((finding["level"] for finding, _hosts in findings), "ok"),
        findings=findings,
        decisions=[each for each in decisions if not (folded and each in networks)],
        networks=networks if folded else [],
        drift_headline="" if plan["drift"] is None else drift_headline(plan["drift"]),
        drift=[(drift_mark(one), one) for one in drift],
        left=[(one["object"], why_left(one)) for one in left],
        drawing=topology(plan) if plan["hosts"] else None,
        padding=PADDING,
        grouped=len(plan["hosts"]) > ALONE,
        bars=bars(plan),
        least=LEAST,
        versions=versions(plan),
        images=pinned,
        pinned=f"of the pod network and the network operator, {digests} known by a digest, the others by their tags",
        # Names of networks are lower case, and stay as they are.
        heading_row=[cell.capitalize() if cell.isupper() else cell for cell in heading],
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
    """A row each. If a check has too many of one status, the first that need work, and one row for the others."""
    groups: t.Dict[t.Tuple[str, str, str], t.List[Check]] = {}
    for check in checks:
        groups.setdefault((check.check, check.network, check.status), []).append(check)
    for (name, network, status), group in groups.items():
        title, most = CHECK_TYPES[name].title, max(3, min(LISTED, ROWS // len(groups)))
        if len(group) > ALIKE and status not in (FAILED, UNPROVEN):
            yield Row(status, title, network, place_text(group, ""), seen_text(group), "", group[0].expected)
            continue
        for check in group[:most]:
            yield Row(status, title, network, subject(check), check.seen, check.next, check.expected)
        if len(group) > most:
            yield Row(status, title, network, f"and {len(group) - most} more", "report.json has all", "", "")


class Failure(t.NamedTuple):
    """All failures of one check on one network, and what to do about them."""

    title: str
    network: str
    steps: t.List[str]
    look: str  # command that shows the object
    again: str  # command that repeats the check
    live: str  # the object as the probe has seen it; empty: it has not
    rows: t.List[Row]


def failures(checks: t.Sequence[Check], probe: t.Optional[Probe]) -> t.List[Failure]:
    """Failures in the order of the checks, in which causes come before their consequences."""
    groups: t.Dict[t.Tuple[str, str], t.List[Check]] = {}
    for check in checks:
        if check.status == FAILED:
            groups.setdefault((CHECK_TYPES[check.check].title, check.network), []).append(check)
    listed: t.Dict[t.Tuple[str, str], t.List[Row]] = {}
    for row in rows([check for group in groups.values() for check in group]):
        listed.setdefault((row.title, row.network), []).append(row)
    found = []
    derived = bool(probe and probe.get("any_cluster"))
    for (title, network), group in groups.items():
        steps = list(dict.fromkeys(check.next for check in group if check.next))
        mine = listed[title, network]
        if len(steps) == 1:  # said once for all
            mine = [row._replace(next="") for row in mine]
        first = group[0]
        live = live_object(first, probe) if probe else ""
        shown = steps if len(steps) == 1 else []
        again = repeat_command(group, derived)
        found.append(Failure(title, network, shown, look_command(first), again, live, mine))
    return found


class Pairs(t.NamedTuple):
    """One test on one network: a heat map, or its worst pairs where that is too large."""

    network: str
    name: str  # of the test, with its unit
    summary: str
    suspects: t.List[str]
    open: bool
    map: t.Optional[heat.Map]
    pairs: t.List[t.Tuple[str, heat.Cell]]
    total: int


def squares(found: t.Sequence[Matrix]) -> t.List[bool]:
    """Which matrices are drawn whole: as many as a page of less than a megabyte takes, first those that failed."""
    room, whole = CELLS, [False] * len(found)

    def interest(number: int) -> t.Tuple[bool, bool]:
        return not found[number].suspects(), found[number].check not in MEASURED

    for number in sorted(range(len(found)), key=interest):
        nodes = len(found[number].nodes)
        whole[number] = nodes <= WIDEST and nodes**2 <= room
        room -= nodes**2 if whole[number] else 0
    return whole


def pairs_of(matrix: Matrix, square: bool, few: bool) -> Pairs:
    """A matrix is unfolded if it has suspects or, if there are few networks, if it shows measurements."""
    suspects = matrix.suspects()
    listed = [] if square else worst(matrix)[:PAIRS]
    usual = heat.median(matrix)
    return Pairs(
        network=matrix.network,
        name=heat.title(matrix),
        summary=heat.summary(matrix),
        suspects=suspects,
        open=bool(suspects) or (few and square and matrix.check in MEASURED),
        map=heat.of_pairs(matrix) if square else None,
        pairs=[(subject(check), heat.cell(check, matrix.check, usual)) for check in listed],
        total=len(matrix.pairs),
    )


class Rail(t.NamedTuple):
    """All tests of pairs on one network."""

    name: str
    tests: t.List[Pairs]
    few: bool  # networks: then none is folded

    @property
    def open(self) -> bool:
        return self.few or any(test.suspects for test in self.tests)

    @property
    def summary(self) -> str:
        failed = sum(bool(test.suspects) for test in self.tests)
        return f"{count(len(self.tests), 'test')}, {f'failures in {failed}' if failed else 'no failures'}"


def merged(lines: t.Iterable[str]) -> t.List[str]:
    """`network: text`, once for all networks with the same text."""
    texts: t.Dict[str, t.List[str]] = {}
    for line in lines:
        network, _colon, text = line.partition(": ")
        texts.setdefault(text, []).append(network)
    return [f"{', '.join(names)}: {text}" for text, names in texts.items()]


def verdict(checks: t.Sequence[Check]) -> str:
    """The whole report in a sentence. It says if a site has no RDMA, since its checks are skipped then."""
    number, word = counts(checks), outcome(checks)
    rdma = {check.status for check in checks if CHECK_TYPES[check.check].area == "rdma"}
    without = " without RDMA" if word == PROVED and rdma == {SKIPPED} else ""
    made, missing = number[PASSED] + number[FAILED], f"{number[UNPROVEN]:,} could not be made"
    if word == FAILED:
        said = f"{number[FAILED]:,} of {made:,} checks failed" + (f", and {missing}" if number[UNPROVEN] else "")
    elif word == UNPROVEN:
        said = f"of {made + number[UNPROVEN]:,} checks none failed, but {missing}"
    elif word == PROVED:
        said = f"all {made:,} checks passed"
        said += f", and {number[ACCEPTED]:,} that could not be made are accepted" if number[ACCEPTED] else ""
    else:
        said = "no check was made"
    return f"Fabric {word}{without}: {said}."


def area_rows(checks: t.Sequence[Check]) -> t.Iterator[t.Tuple[str, str, t.List[Row]]]:
    """Checks that need no work, by area."""
    for area in AREAS:
        mine = [check for check in checks if CHECK_TYPES[check.check].area == area]
        rest = [check for check in mine if check.status not in (FAILED, UNPROVEN)]
        if rest:
            said = ", ".join(f"{n:,} {status}" for status, n in shown_counts(rest).items() if n)
            yield AREA_TITLES[area], said, [*rows(rest)]


def used_key(maps: t.Iterable[heat.Map]) -> t.List[t.Tuple[str, str]]:
    """The legend of what is drawn."""
    styles = {cell.style for drawn in maps for _name, cells in drawn.rows for cell in cells}
    return [(style, text) for style, text in heat.KEY if style in styles]


def report_page(
    checks: t.Sequence[Check],
    head: Head,
    earlier: t.Sequence[Run] = (),
    probe: t.Optional[Probe] = None,
    base: Baseline = EMPTY,
) -> str:
    """report.html: verdict, failures, what is unproven, heat maps, all other checks, and earlier runs.

    probe: what was seen, for the objects of failed checks; base: the figures of this proof and of earlier ones.
    """
    found = matrices(checks)
    networks, nodes = (
        dict.fromkeys(matrix.network for matrix in found),
        {node for matrix in found for node in matrix.nodes},
    )
    few = len(networks) <= FEW_NETWORKS
    shown = [pairs_of(matrix, square, few) for matrix, square in zip(found, squares(found))]
    overview = heat.of_nodes(found) if len(networks) > 1 or len(nodes) > WIDEST else []
    return render(
        "report.html.j2",
        title=f"Fabric {summary(checks)}",
        verdict=verdict(checks),
        level=LEVELS.get(outcome(checks), SKIPPED),
        levels=LEVELS,
        head=head,
        counts=shown_counts(checks),
        notes=merged(notes(checks)),
        failures=failures(checks, probe),
        unproven=[*rows([check for check in checks if check.status == UNPROVEN])],
        suspects=[
            (f"{matrix.network}: {CHECK_TYPES[matrix.check].title}", each.suspects)
            for matrix, each in zip(found, shown)
            if each.suspects
        ],
        overview=overview,
        networks=[Rail(name, [each for each in shown if each.network == name], few) for name in networks],
        key=used_key([*overview, *(each.map for each in shown if each.map)]),
        areas=[*area_rows(checks)],
        widest=WIDEST,
        charts=charts(checks, base),
        history=[this_run(checks, head), *earlier] if earlier else [],
        statuses=STATUSES,
    )
