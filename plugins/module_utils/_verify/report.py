# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks as text for a terminal, as JSON and as JUnit; pages.py creates the HTML. Pure functions."""

from __future__ import annotations

import itertools
import json
import textwrap
import typing as t
import xml.etree.ElementTree as ET

from .._common.text import printable, shorten_list, wrapped
from .._model.checks import Check, Head, Missing
from . import matrix
from .catalog import ACCEPTED, AREAS, CHECK_TYPES, FAILED, LATER, NOT_RUN, PASSED, SKIPPED, UNPROVEN
from .checks import counts, outcome, summary
from .pods import SECOND, node_of

WIDTH = 69  # columns: ansible.builtin.debug adds 11 to each line, and a terminal has 80
NO_PROOF = "Only some checks were run: the reports are still those of the last proof."
FEW = 10  # failures of one check that the terminal shows, and names in one of them


def subject(check: Check) -> str:
    """The subject of a check, without its network."""
    return " - ".join(check.pair) if check.pair else " ".join(filter(None, [check.node, check.subject]))


def missing(checks: t.Sequence[Check]) -> t.List[Missing]:
    """What would prove the rest, each entry with the checks that need it."""
    found: t.Dict[str, Missing] = {}
    for check in checks:
        if check.status == UNPROVEN:
            names = found.setdefault(check.next, Missing(check.next, check.seen, [])).checks
            names += [check.check] if check.check not in names else []
    return list(found.values())


def notes(checks: t.Sequence[Check]) -> t.List[str]:
    """What a reader must know before trusting the result: what was not tested."""
    shared = {(check.network, node_of(key)) for check in checks for key in check.pair if key.endswith(SECOND)}
    found = [
        f"{network}: two pods on {node} stand in for two nodes. They prove the NIC and the pods, not a path."
        for network, node in sorted(shared)
    ]
    for each in matrix.matrices(checks):
        possible = len(each.nodes) * (len(each.nodes) - 1)
        if each.check == "rping" and len(each.pairs) < possible:
            found.append(
                f"{each.network}: RDMA was tested on {len(each.pairs):,} of {possible:,} pairs, in each direction. "
                "verify_rdma_seconds says how long it may take."
            )
    later = dict.fromkeys(check.check for check in checks if check.status == SKIPPED and check.next == LATER)
    if later:
        found.append(
            f"Not checked yet: {', '.join(later)}. They did not exist yet when the hosts were observed;"
            " ipu.fabric.verify checks them."
        )
    return found


# Terminal


def refusal(checks: t.Sequence[Check], reports: t.Sequence[str], only: t.Sequence[str] = ()) -> str:
    """Why a playbook that proves the fabric, or makes some checks, fails; empty if it does not."""
    said, where = f"{summary(checks)}. ", f"Reports: {', '.join(reports)}" if reports else ""
    if only and outcome(checks) == NOT_RUN:
        why = "; ".join(sorted({check.seen for check in checks})) or "the plan has none of them for these nodes"
        return f"{said}{', '.join(only)}: not run. Seen: {why}. Next: leave out verify_checks, or name other checks."
    if outcome(checks) == FAILED:
        return f"{said}The table above says what to do about each failure. {where}".rstrip()
    if outcome(checks) != UNPROVEN:
        return ""
    entries = " ".join(f"{', '.join(each.checks)}: {each.seen}. {each.missing}" for each in missing(checks))
    return (
        f"{said}Nothing failed, but not all that the plan asks for could be tested. {entries} "
        f"To accept checks unproven, name them in verify_allow_unproven. {where}"
    ).rstrip()


def refusal_worse(worse: t.Sequence[Check], nodes: t.Sequence[str]) -> str:
    """Why a playbook that must not make the fabric worse fails; empty if it does not."""
    if not worse:
        return ""
    told = []
    for check in worse[:FEW]:
        place = " ".join(filter(None, [check.network, check.node, check.subject, *check.pair]))
        told.append(f"{check.check} ({place or 'cluster'}): expected {check.expected}, seen {check.seen}. {check.next}")
    told += [f"And {len(worse) - FEW} more."] if len(worse) > FEW else []
    return " ".join([f"The fabric is worse than before{' on ' + ', '.join(nodes) if nodes else ''}.", *told])


def table(checks: t.Sequence[Check], partial: bool = False) -> str:
    """At most WIDTH columns: similar results in one row, each failure with its next step; counts in the last line."""
    lines: t.List[str] = []
    reasons = {check.seen for check in checks}
    if len(reasons) == 1 and all(check.status == SKIPPED for check in checks):
        return "\n".join([*textwrap.wrap(f"Nothing was proven: {reasons.pop()}.", WIDTH), "", summary(checks, partial)])
    for area in AREAS:
        mine = [check for check in checks if CHECK_TYPES[check.check].area == area]
        if mine:
            lines += ["", area.upper(), *list(itertools.chain.from_iterable(rows(mine)))]
    for each in matrix.matrices(checks):
        if each.check in matrix.MEASURED:
            lines += ["", *matrix.as_text(each, WIDTH)]
    for note in notes(checks):
        lines += ["", *textwrap.wrap(f"NOTE  {note}", WIDTH, subsequent_indent="  ")]
    rest = missing(checks)
    if rest:
        lines += ["", "UNPROVEN (verify_allow_unproven takes these names)", *itertools.chain(*map(to_prove, rest))]
    if partial:
        lines += ["", *textwrap.wrap(f"NOTE  {NO_PROOF}", WIDTH, subsequent_indent="  ")]
    return "\n".join([*lines[1:], "", summary(checks, partial)])


def rows(checks: t.Sequence[Check]) -> t.Iterator[t.List[str]]:
    """One group of lines per type, network and status; one group for all that are skipped for the same reason."""
    groups: t.Dict[t.Tuple[str, str, str, str], t.List[Check]] = {}
    advised: t.Dict[str, str] = {}  # the check for which a next step was first shown
    for check in checks:
        made = check.status in (PASSED, FAILED) or check.value is not None
        reason = "" if made else check.seen
        name = "" if check.status == SKIPPED and reason and not subject(check) else check.check
        groups.setdefault((name, check.network, check.status, reason), []).append(check)
    for (name, network, status, reason), group in groups.items():
        if status == FAILED:
            kinds = alike(group)
            yield from (failure(same, advised) for same in kinds[:FEW])
            if len(kinds) > FEW:
                more = sum(map(len, kinds[FEW:]))
                yield row(FAILED, CHECK_TYPES[name].title, network, f"and {more} more: see report.html")
        else:
            titles = dict.fromkeys(CHECK_TYPES[check.check].title for check in group)
            place = place_text(group, network) if name else network
            yield row(status, ", ".join(titles), place, reason or seen_text(group))


def alike(checks: t.Sequence[Check]) -> t.List[t.List[Check]]:
    """Failures of one check, grouped if they differ only in their subject."""
    found: t.Dict[t.Tuple[str, str, str], t.List[Check]] = {}
    for check in checks:
        found.setdefault((check.seen, check.expected, check.next), []).append(check)
    return list(found.values())


def join_place(network: str, what: str) -> str:
    """Network and subject; a pool with the name of its network is named once."""
    return ", ".join(filter(None, dict.fromkeys([network, what])))


def place_text(group: t.Sequence[Check], network: str) -> str:
    """The subject, or the number of subjects."""
    first = subject(group[0])
    nodes = list(dict.fromkeys(check.node for check in group if check.node))
    if len(group) > 1 and nodes:
        kind = "pods" if any(node.endswith(SECOND) for node in nodes) else "nodes"
        first = f"{len(nodes)} {kind}" if len(nodes) > 1 else nodes[0]
    elif len(group) > 1:
        first = f"{len(group)} {'pairs' if group[0].pair else 'objects'}"
    return join_place(network, first)


def seen_text(group: t.Sequence[Check]) -> str:
    """What was seen: once if equal, as a range for figures, else the first few."""
    texts = list(dict.fromkeys(check.seen for check in group))
    values = [check.value for check in group if check.value is not None]
    if len(texts) > 1 and len(values) == len(group):
        return f"{min(values):g} - {max(values):g} {group[0].unit}"
    return "; ".join(texts[:3]) + (f"; ... ({len(texts)} values)" if len(texts) > 3 else "")


def to_prove(entry: Missing) -> t.List[str]:
    names = textwrap.wrap(", ".join(entry.checks), WIDTH, initial_indent="  ", subsequent_indent="  ")
    return names + textwrap.wrap(entry.missing, WIDTH, initial_indent="    ", subsequent_indent="    ")


def failure(same: t.Sequence[Check], advised: t.Dict[str, str]) -> t.List[str]:
    """Checks that failed alike. A next step that was shown before is not repeated."""
    check = same[0]
    title = CHECK_TYPES[check.check].title
    where = join_place(check.network, shorten_list(filter(None, map(subject, same)), FEW))
    lines = row(FAILED, title, where, check.seen)
    told = advised.get(check.next, "")
    advised.setdefault(check.next, title)
    again = "as above" if told == title else f"the same as for {told}"
    step, first, then = again if told else check.next, " " * 11, " " * 13
    if check.expected:
        lines += textwrap.wrap(f"expected: {check.expected}", WIDTH, initial_indent=first, subsequent_indent=then)
    return [*lines, *(wrapped(f"next: {step}", WIDTH, first, then) if step else [])]


def row(status: str, title: str, place: str, text: str) -> t.List[str]:
    """Status, check, and what was seen where; each wrapped in its own column."""
    cells = (
        [status.upper() if status in (FAILED, UNPROVEN) else status],
        textwrap.wrap(title, 27),
        textwrap.wrap(": ".join(filter(None, [place, text])), WIDTH - 39),
    )
    lines = itertools.zip_longest(*cells, fillvalue="")
    return ["  {:<8} {:<27} {}".format(*line).rstrip() for line in lines]


# Files


def as_dict(check: Check) -> t.Dict[str, object]:
    return {
        **check._asdict(),
        "title": CHECK_TYPES[check.check].title,
        "area": CHECK_TYPES[check.check].area,
        "pair": list(check.pair),
    }


def to_json(checks: t.Sequence[Check], head: Head) -> str:
    report = {
        "schema": 1,
        **head._asdict(),
        "outcome": outcome(checks),
        "unproven": [entry._asdict() for entry in missing(checks)],
        "notes": notes(checks),
        "counts": counts(checks),
        "checks": [as_dict(check) for check in checks],
        "matrices": [matrix.as_data(each) for each in matrix.matrices(checks)],
    }
    return json.dumps(report, indent=2) + "\n"


def to_junit(checks: t.Sequence[Check], head: Head) -> str:
    """One suite per area, one case per check."""
    root = ET.Element("testsuites", {"name": "ipu.fabric.verify", "time": f"{head.seconds:.1f}", **tally(checks)})
    for area in AREAS:
        mine = [check for check in checks if CHECK_TYPES[check.check].area == area]
        if not mine:
            continue
        attributes = {"name": area, "timestamp": head.time, "time": "0", "hostname": head.cluster, **tally(mine)}
        suite = ET.SubElement(root, "testsuite", attributes)
        for check in mine:
            suite.append(junit_case(check))
    ET.indent(root) if hasattr(ET, "indent") else None
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def tally(checks: t.Sequence[Check]) -> t.Dict[str, str]:
    number = counts(checks)
    return {
        "tests": str(len(checks)),
        "failures": str(number[FAILED]),
        "errors": str(number[UNPROVEN]),
        "skipped": str(number[SKIPPED] + number[ACCEPTED]),
    }


def junit_case(check: Check) -> ET.Element:
    name = " ".join(filter(None, [CHECK_TYPES[check.check].title, check.network, subject(check)]))
    case = ET.Element(
        "testcase", {"classname": f"ipu.fabric.verify.{check.check}", "name": printable(name), "time": "0"}
    )
    if check.status == FAILED:
        text = f"expected: {check.expected}\nseen: {check.seen}\nnext: {check.next}"
        failed = ET.SubElement(case, "failure", {"type": check.check, "message": printable(check.seen)})
        failed.text = printable(text)
    elif check.status == UNPROVEN:  # neither passed nor failed: JUnit calls that an error
        error = ET.SubElement(case, "error", {"type": check.check, "message": printable(check.seen)})
        error.text = printable(f"unproven: {check.seen}\nmissing: {check.next}")
    elif check.status in (SKIPPED, ACCEPTED):
        note = "accepted unproven: " if check.status == ACCEPTED else ""
        ET.SubElement(case, "skipped", {"message": printable(note + check.seen)})
    return case
