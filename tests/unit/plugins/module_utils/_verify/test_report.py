# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports for a person, a browser and a CI system."""

from __future__ import annotations

import json
import typing as t
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._verify import report
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import KINDS, Check, result, skip

HEAD = report.Head("2026-11-21T16:00:00Z", 4.2, "10.80.0.11:6443", "v1.35.4")
PASSED = result("mtu", True, "1500", "1500", node="w1", network="rdma-net")
FAILED = result("memlock_user", False, "unlimited", "8 MiB", node="w1")
SKIPPED = skip("rping", "planned without RDMA", network="rdma-net")
VOID = {"meta", "br"}


def ping(a: str, b: str, good: bool = True, value: float = 0.08) -> Check:
    return result("ping", good, "answers", "2 of 2 answered", pair=(a, b), network="rdma-net", value=value, unit="ms")


CHECKS = [PASSED, FAILED, SKIPPED, ping("cp1", "w1")]


# Terminal


def test_the_counts_are_the_last_line() -> None:
    assert report.table(CHECKS).splitlines()[-1] == "2 passed, 1 failed, 1 skipped"


def test_a_failure_says_what_was_expected_and_what_to_do() -> None:
    lines = report.table([FAILED]).splitlines()
    assert lines[:4] == [
        "LIMITS",
        "  FAILED  Locked memory, uid 1000     w1: 8 MiB",
        "          expected: unlimited",
        "          next: Apply the role ipu.fabric.memlock to this host, then make new",
    ]


def test_no_line_is_wider_than_a_terminal() -> None:
    long = "a-node-with-a-very-long-name.example.com"
    checks = [
        check
        for kind in KINDS
        for check in (
            result(kind, False, "e" * 90, "seen " * 40, node=long, network="a-network-of-many-words"),
            result(kind, True, "", "/a/path/without/any/place/to/break/it/" * 3, node=long),
            skip(kind, "reason " * 30, network="n"),
        )
    ]
    assert max(len(line) for line in report.table(checks).splitlines()) <= report.WIDTH


def test_like_results_share_a_row() -> None:
    checks = [PASSED._replace(node=f"w{i}") for i in range(200)]
    assert report.table(checks).splitlines()[1] == "  passed  MTU of the interface        rdma-net, 200 nodes: 1500"


def test_figures_are_a_span() -> None:
    checks = [ping("a", "b", value=0.05)._replace(seen="x"), ping("a", "c", value=0.3)._replace(seen="y")]
    assert "rdma-net, 2 pairs: 0.05 - 0.3 ms" in report.table(checks)


def test_many_values_are_cut_short() -> None:
    checks = [PASSED._replace(node=f"w{i}", seen=f"10.5.0.{i}") for i in range(9)]
    assert "(9 values)" in " ".join(report.table(checks).split())


def test_many_failures_are_told_in_part() -> None:
    text = report.table([FAILED._replace(node=f"w{i}") for i in range(200)])
    assert text.count("FAILED") == report.FEW + 1
    assert "and 190 more: see report.html" in text


def test_one_reason_for_everything_is_one_line() -> None:
    text = report.table([skip(kind, "check mode makes no pods") for kind in KINDS])
    assert text == f"Nothing was proven: check mode makes no pods.\n\n0 passed, 0 failed, {len(KINDS)} skipped"


# JSON


def test_json_holds_every_field() -> None:
    found = json.loads(report.to_json(CHECKS, HEAD))
    assert (found["schema"], found["version"], found["counts"]) == (
        1,
        "v1.35.4",
        {"passed": 2, "failed": 1, "skipped": 1},
    )
    assert found["checks"][3]["pair"] == ["cp1", "w1"]
    assert set(found["checks"][0]) == {*Check._fields, "title", "area"}


# JUnit: the schema that Jenkins, GitLab and others read


def junit(checks: t.Sequence[Check]) -> ET.Element:
    return ET.fromstring(report.to_junit(checks, HEAD).encode())


SCHEMA = {
    "testsuites": ({"name", "time", "tests", "failures", "errors", "skipped"}, {"testsuite"}),
    "testsuite": (
        {"name", "time", "tests", "failures", "errors", "skipped", "timestamp", "hostname"},
        {"testcase"},
    ),
    "testcase": ({"name", "classname", "time"}, {"failure", "skipped"}),
    "failure": ({"message", "type"}, set()),
    "skipped": ({"message"}, set()),
}


def test_junit_has_the_elements_and_attributes_of_the_schema() -> None:
    for element in junit(CHECKS).iter():
        attributes, children = SCHEMA[element.tag]
        assert set(element.attrib) == attributes
        assert {child.tag for child in element} <= children


def test_junit_counts_are_those_of_its_cases() -> None:
    root = junit(CHECKS)
    for suite in [root, *root]:
        assert int(suite.attrib["tests"]) == len(list(suite.iter("testcase")))
        assert int(suite.attrib["failures"]) == len(list(suite.iter("failure")))
        assert int(suite.attrib["skipped"]) == len(list(suite.iter("skipped")))


def test_junit_names_are_unique_and_failures_tell_all() -> None:
    names = [(case.attrib["classname"], case.attrib["name"]) for case in junit(CHECKS).iter("testcase")]
    assert len(set(names)) == len(names) == len(CHECKS)
    text = next(junit(CHECKS).iter("failure")).text or ""
    assert all(part in text for part in ("expected: unlimited", "seen: 8 MiB", "next: Apply"))


@pytest.mark.parametrize("seen", ["a\x00b\x1b[31m", "<&>\"'", "ü → ∞", "\ud800"])
def test_junit_survives_any_text(seen: str) -> None:
    assert len(junit([FAILED._replace(seen=seen)])) == 1


# HTML


class Page(HTMLParser):
    """Cells of every table, whether tags match, and whatever is loaded from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: t.List[str] = []
        self.tables: t.List[t.List[t.List[str]]] = []
        self.links: t.List[str] = []
        self.titles: t.List[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: t.List[t.Tuple[str, t.Optional[str]]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data
        elif self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.titles.append(data)


def test_html_is_whole_and_needs_nothing_else() -> None:
    text = report.to_html(CHECKS, HEAD)
    page = Page(text)
    assert page.open == []
    assert page.links == []
    assert not any(word in text for word in ("http:", "https:", "@import", "url(", "<script"))


def test_html_tells_failures_first() -> None:
    page = Page(report.to_html(CHECKS, HEAD))
    assert page.titles[:2] == ["Fabric proof: 2 passed, 1 failed, 1 skipped", "Failed"]
    assert page.tables[0][1][:4] == ["failed", "Locked memory, uid 1000", "", "w1"]


def test_html_escapes() -> None:
    text = report.to_html([FAILED._replace(seen="<script>alert(1)</script>", node='"><b>')], HEAD)
    assert "<script" not in text
    assert '"><b>' not in text


def test_the_matrix_shows_each_pair_in_both_directions() -> None:
    checks = [ping("a", "b", value=0.05), ping("a", "c", good=False)._replace(value=None), ping("b", "c", value=0.2)]
    page = Page(report.to_html(checks, HEAD))
    matrix = next(table for table in page.tables if table[0] == ["", "a", "b", "c"])
    assert matrix[1:] == [["a", "", "0.05 ms", "no"], ["b", "0.05 ms", "", "0.2 ms"], ["c", "no", "0.2 ms", ""]]


def test_there_is_a_matrix_for_each_test_that_ran_on_each_network() -> None:
    bandwidth = result(
        "write_bandwidth", True, "", "97.8 Gb/s", pair=("a", "b"), network="rail-1", value=97.8, unit="Gb/s"
    )
    left_out = skip("rping", "rping is not in the image", pair=("a", "b"), network="rail-1")
    page = Page(report.to_html([ping("a", "b"), bandwidth, left_out], HEAD))
    assert [title for title in page.titles if ":" in title][1:] == [
        "rdma-net: Pods reach each other",
        "rail-1: ib_write_bw",
    ]


def test_many_nodes_make_a_list_with_failures_first() -> None:
    nodes = [f"n{i:03}" for i in range(200)]
    checks = [ping(a, b, value=i / 100) for i, (a, b) in enumerate(zip(nodes, nodes[1:]))]
    checks[100] = checks[100]._replace(status="failed", value=None)
    text = report.to_html(checks, HEAD)
    page = Page(text)
    pairs = next(table for table in page.tables if table[0][0] == "n100 - n101")
    assert pairs[0] == ["n100 - n101", "no"]
    assert pairs[1] == ["n198 - n199", "1.98 ms"]
    assert len(pairs) == 50
    assert "The first 50 of 199 pairs" in text


def test_large_reports_are_quick_and_small() -> None:
    checks = [PASSED._replace(node=f"w{i}") for i in range(4000)]
    assert len(report.to_html(checks, HEAD)) < 1_000_000
