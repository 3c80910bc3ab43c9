# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks as text for a terminal, as JSON, as JUnit, and as one HTML page that needs nothing else. Pure."""

from __future__ import annotations

import html
import itertools
import json
import textwrap
import typing as t
import xml.etree.ElementTree as ET

from ansible_collections.ipu.fabric.plugins.module_utils._verify import matrix
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import (
    AREAS,
    FAILED,
    KINDS,
    PASSED,
    SKIPPED,
    Check,
)
from ansible_collections.ipu.fabric.plugins.module_utils._verify.checks import counts, summary

WIDTH = 80
FEW = 10  # failures of one check that are told one by one in the terminal
MATRIX_NODES = 32  # beyond it a matrix is wider than a screen, and mostly empty


class Head(t.NamedTuple):
    """What a report says about the run."""

    time: str
    seconds: float
    cluster: str
    version: str


def subject(check: Check) -> str:
    """What a check was about, apart from its network."""
    return " - ".join(check.pair) if check.pair else " ".join(filter(None, [check.node, check.subject]))


# Terminal


def table(checks: t.Sequence[Check]) -> str:
    """At most WIDTH columns: like results in one row, each failure with what to do; the counts in the last line."""
    lines: t.List[str] = []
    reasons = {check.seen for check in checks}
    if len(reasons) == 1 and all(check.status == SKIPPED for check in checks):
        return "\n".join([*textwrap.wrap(f"Nothing was proven: {reasons.pop()}.", WIDTH), "", summary(checks)])
    for area in AREAS:
        mine = [check for check in checks if KINDS[check.check].area == area]
        if mine:
            lines += ["", area.upper(), *list(itertools.chain.from_iterable(rows(mine)))]
    for each in matrix.matrices(checks):
        if each.check in matrix.MEASURED:
            lines += ["", *matrix.as_text(each, WIDTH)]
    return "\n".join([*lines[1:], "", summary(checks)])


def rows(checks: t.Sequence[Check]) -> t.Iterator[t.List[str]]:
    """One group of lines for all checks of a kind, network and status."""
    groups: t.Dict[t.Tuple[str, str, str, str], t.List[Check]] = {}
    for check in checks:
        reason = check.seen if check.status == SKIPPED else ""
        groups.setdefault((check.check, check.network, check.status, reason), []).append(check)
    for (kind, network, status, reason), group in groups.items():
        if status == FAILED:
            yield from (failure(check) for check in group[:FEW])
            if len(group) > FEW:
                yield row(FAILED, KINDS[kind].title, network, f"and {len(group) - FEW} more: see report.html")
        else:
            yield row(status, KINDS[kind].title, where(group, network), reason or seen(group))


def where(group: t.Sequence[Check], network: str) -> str:
    """The one subject, or how many there are."""
    first = subject(group[0])
    if len(group) > 1:
        first = f"{len(group)} {'pairs' if group[0].pair else 'nodes' if group[0].node else 'objects'}"
    return ", ".join(filter(None, [network, first]))


def seen(group: t.Sequence[Check]) -> str:
    """What was seen: once when it is the same, from least to most for figures, else the first few."""
    texts = list(dict.fromkeys(check.seen for check in group))
    values = [check.value for check in group if check.value is not None]
    if len(texts) > 1 and len(values) == len(group):
        return f"{min(values):g} - {max(values):g} {group[0].unit}"
    return "; ".join(texts[:3]) + (f"; ... ({len(texts)} values)" if len(texts) > 3 else "")


def failure(check: Check) -> t.List[str]:
    place = ", ".join(filter(None, [check.network, subject(check)]))
    lines = row(FAILED, KINDS[check.check].title, place, check.seen)
    for label, text in (("expected", check.expected), ("next", check.next)):
        if text:
            lines += textwrap.wrap(f"{label}: {text}", WIDTH, initial_indent=" " * 10, subsequent_indent=" " * 12)
    return lines


def row(status: str, title: str, place: str, text: str) -> t.List[str]:
    """Status, check, and what was seen where; each wrapped in its own column."""
    cells = (
        [status.upper() if status == FAILED else status],
        textwrap.wrap(title, 27),
        textwrap.wrap(": ".join(filter(None, [place, text])), WIDTH - 38),
    )
    lines = itertools.zip_longest(*cells, fillvalue="")
    return ["  {:<7} {:<27} {}".format(*line).rstrip() for line in lines]


# Files


def as_dict(check: Check) -> t.Dict[str, t.Any]:
    return {
        **check._asdict(),
        "title": KINDS[check.check].title,
        "area": KINDS[check.check].area,
        "pair": list(check.pair),
    }


def to_json(checks: t.Sequence[Check], head: Head) -> str:
    report = {
        "schema": 1,
        **head._asdict(),
        "counts": counts(checks),
        "checks": [as_dict(check) for check in checks],
        "matrices": [matrix.as_data(each) for each in matrix.matrices(checks)],
    }
    return json.dumps(report, indent=2) + "\n"


def to_junit(checks: t.Sequence[Check], head: Head) -> str:
    """One suite an area, one case a check."""
    root = ET.Element("testsuites", {"name": "ipu.fabric.verify", "time": f"{head.seconds:.1f}", **tally(checks)})
    for area in AREAS:
        mine = [check for check in checks if KINDS[check.check].area == area]
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
        "errors": "0",
        "skipped": str(number[SKIPPED]),
    }


def junit_case(check: Check) -> ET.Element:
    name = " ".join(filter(None, [KINDS[check.check].title, check.network, subject(check)]))
    case = ET.Element(
        "testcase", {"classname": f"ipu.fabric.verify.{check.check}", "name": printable(name), "time": "0"}
    )
    if check.status == FAILED:
        text = f"expected: {check.expected}\nseen: {check.seen}\nnext: {check.next}"
        failed = ET.SubElement(case, "failure", {"type": check.check, "message": printable(check.seen)})
        failed.text = printable(text)
    elif check.status == SKIPPED:
        ET.SubElement(case, "skipped", {"message": printable(check.seen)})
    return case


def printable(text: str) -> str:
    """Without the control characters that XML cannot hold."""
    return "".join(c for c in text if c in "\t\n" or c.isprintable())


# HTML

STYLE = """
:root { --bg: #fff; --fg: #1c2330; --soft: #5c6675; --line: #dde2ea; --card: #f6f8fb;
  --passed: #1a7f4b; --failed: #c0392b; --skipped: #8a6d1a; --tint: 12%; }
@media (prefers-color-scheme: dark) {
  :root { --bg: #12161d; --fg: #e6eaf0; --soft: #9aa5b5; --line: #2b3340; --card: #1a202a;
    --passed: #4cc38a; --failed: #ff7b6b; --skipped: #d9b44a; --tint: 22%; }
}
* { box-sizing: border-box; }
body { background: var(--bg); color: var(--fg); font: 15px/1.5 system-ui, sans-serif;
  margin: 0 auto; max-width: 1100px; padding: 2rem 1rem; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
h3 { font-size: .95rem; margin: 1rem 0 .4rem; }
p.meta { color: var(--soft); margin: .2rem 0 1.2rem; }
.counts { display: flex; gap: .8rem; flex-wrap: wrap; }
.counts div { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .6rem 1.2rem; }
.counts b { display: block; font-size: 1.6rem; line-height: 1.2; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
table.matrix { width: auto; }
table.matrix td { text-align: center; white-space: nowrap; }
.passed { color: var(--passed); }
.failed { color: var(--failed); }
.skipped { color: var(--skipped); }
td.passed, td.failed, td.skipped { font-weight: 600; white-space: nowrap; }
table.matrix td.passed { background: color-mix(in srgb, var(--passed) var(--tint), transparent); }
table.matrix td.failed { background: color-mix(in srgb, var(--failed) var(--tint), transparent); }
.next { color: var(--soft); display: block; }
"""


def to_html(checks: t.Sequence[Check], head: Head) -> str:
    """Failures first, then a matrix for each network and test of pairs, then everything."""
    number = counts(checks)
    title = "Fabric proof: " + summary(checks)
    tiles = "".join(f'<div><b class="{s}">{number[s]}</b>{s}</div>' for s in (PASSED, FAILED, SKIPPED))
    meta = " &middot; ".join(
        [esc(head.cluster), f"Kubernetes {esc(head.version)}", esc(head.time), f"{head.seconds:g} s"]
    )
    parts = [f"<h1>{esc(title)}</h1>", f'<p class="meta">{meta}</p>', f'<div class="counts">{tiles}</div>']
    failed = [check for check in checks if check.status == FAILED]
    if failed:
        parts += ["<h2>Failed</h2>", check_table(failed)]
    parts += matrices(checks)
    for area in AREAS:
        mine = [check for check in checks if KINDS[check.check].area == area]
        if mine:
            parts += [
                f"<h2>{esc(area.capitalize() if area not in ('ipu', 'rdma') else area.upper())}</h2>",
                check_table(mine),
            ]
    return page(title, "\n".join(parts))


def page(title: str, body: str) -> str:
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{esc(title)}</title>'
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n'
    )


def esc(text: t.Any) -> str:
    return html.escape(str(text))


def check_table(checks: t.Sequence[Check]) -> str:
    lines = ["<tr><th>Result</th><th>Check</th><th>Network</th><th>Where</th><th>Seen</th><th>Expected</th></tr>"]
    for check in checks:
        more = f'<span class="next">{esc(check.next)}</span>' if check.next else ""
        cells = (KINDS[check.check].title, check.network, subject(check))
        lines.append(
            f'<tr><td class="{check.status}">{check.status}</td>'
            + "".join(f"<td>{esc(cell)}</td>" for cell in cells)
            + f"<td>{esc(check.seen)}{more}</td><td>{esc(check.expected)}</td></tr>"
        )
    return '<div class="scroll"><table>' + "\n".join(lines) + "</table></div>"


def matrices(checks: t.Sequence[Check]) -> t.List[str]:
    """For each network and test of pairs that ran: who reached whom."""
    parts: t.List[str] = []
    for each in matrix.matrices(checks):
        parts.append(f"<h3>{esc(each.network)}: {esc(KINDS[each.check].title)}</h3>")
        parts.append(square(each) if len(each.nodes) <= MATRIX_NODES else pair_list(each))
    note = '<p class="meta">Rows are clients, columns are servers.</p>'
    return ["<h2>From pod to pod</h2>", note, *parts] if parts else []


def cell(check: t.Optional[Check]) -> str:
    """The figure where there is one, else the result; nothing for a pair that was not tried."""
    if check is None:
        return "<td></td>"
    text = f"{check.value:g} {check.unit}" if check.value is not None else {PASSED: "yes", FAILED: "no"}[check.status]
    return f'<td class="{check.status}" title="{esc(check.seen)}">{esc(text)}</td>'


def square(found: matrix.Matrix) -> str:
    lines = ["<tr><th></th>" + "".join(f"<th>{esc(node)}</th>" for node in found.nodes) + "</tr>"]
    for client in found.nodes:
        cells = "".join(cell(found.at(client, server)) for server in found.nodes)
        lines.append(f"<tr><th>{esc(client)}</th>{cells}</tr>")
    return '<div class="scroll"><table class="matrix">' + "\n".join(lines) + "</table></div>"


def pair_list(found: matrix.Matrix) -> str:
    """Many nodes: failures first, then the worst of those that passed."""
    worst = matrix.worst(found)
    lines = [f"<tr><th>{esc(subject(check))}</th>{cell(check)}</tr>" for check in worst[:50]]
    note = (
        f'<p class="meta">The first 50 of {len(worst)} pairs, failures first; report.json has all.</p>'
        if len(worst) > 50
        else ""
    )
    return note + '<div class="scroll"><table class="matrix">' + "\n".join(lines) + "</table></div>"
