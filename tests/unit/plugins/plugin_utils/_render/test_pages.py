"""The pages for a browser: whole, escaped, and without anything from elsewhere."""

from __future__ import annotations

import html
import itertools
import re
import typing as t
from html.parser import HTMLParser

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check, Expect, Head, Place
from ansible_collections.ipu.fabric.plugins.module_utils._model.probe import Probe
from ansible_collections.ipu.fabric.plugins.module_utils._verify import baseline
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import result, skip, unproven
from ansible_collections.ipu.fabric.plugins.module_utils._verify.checks import check_fabric
from ansible_collections.ipu.fabric.plugins.module_utils._verify.matrix import matrices
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.pages import (
    ALIKE,
    CELLS,
    LISTED,
    PAIRS,
    WIDEST,
    merged,
    plan_page,
    report_page,
    squares,
    verdict,
)
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.sparks import CHARTS, spark
from ansible_collections.ipu.fabric.tests.bench import sites as bench
from ansible_collections.ipu.fabric.tests.unit.fixtures import pages
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites

HEAD = Head("2026-11-21T16:00:00Z", 4.2, "10.80.0.11:6443", "v1.35.4")
PASSED = result("mtu", True, "1500", "1500", node="w1", network="rdma-net")
FAILED = result("memlock_user", False, "unlimited", "8 MiB", node="w1")
SKIPPED = skip("rping", "planned without RDMA", network="rdma-net")
OPEN = unproven("rping", "needs two nodes", "Add a node.", network="rdma-net")
VOID = {"meta", "br"}


def ping(a: str, b: str, good: bool = True, value: float = 0.08) -> Check:
    return result("ping", good, "answers", "2 of 2 answered", pair=(a, b), network="rdma-net", value=value, unit="ms")


CHECKS = [PASSED, FAILED, SKIPPED, ping("cp1", "w1")]


class Page(HTMLParser):
    """Cells of every table, whether tags match, and whatever is loaded from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: t.List[str] = []
        self.tables: t.List[t.List[t.List[str]]] = []
        self.links: t.List[str] = []
        self.titles: t.List[str] = []
        self.summaries: t.List[str] = []
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
        elif self.open and self.open[-1] == "summary":
            self.summaries.append(data)


def test_html_is_whole_and_needs_nothing_else() -> None:
    text = report_page(CHECKS, HEAD)
    page = Page(text)
    assert "prefers-color-scheme: dark" in text
    assert page.open == []
    assert page.links == []
    assert not any(word in text for word in ("http:", "https:", "@import", "url(", "<script"))


def test_html_tells_failures_first() -> None:
    page = Page(report_page(CHECKS, HEAD))
    assert page.titles[:2] == ["Fabric failed: 1 of 3 checks failed.", "Failed"]
    assert page.tables[0] == [["Where", "Seen", "Expected"], ["w1", "8 MiB", "unlimited"]]


def test_a_failure_says_what_to_do_what_was_seen_and_how_to_repeat_it() -> None:
    """What to do stands before the table, once for all that failed alike; figures that are zero are not red."""
    checks = [FAILED, FAILED._replace(node="w2"), PASSED]
    probe = t.cast(Probe, {"pods": {"w1": {"user": {"uid": 1000, "memlock": {"soft": "8388608"}}}}})
    text = report_page(checks, HEAD, (), probe)
    section = text.partition('<section class="failure">')[2].partition("</section>")[0]
    assert section.index("Locked memory, uid 1000") < section.index('class="next"') < section.index("<table")
    assert section.count('class="next"') == 1
    assert "&#34;soft&#34;: &#34;8388608&#34;" in section
    options = '{"verify_checks": ["memlock_user"], "verify_nodes": ["w1", "w2"]}'
    command = f"ansible-playbook -i inventory ipu.fabric.verify -e '{options}'"
    assert f"<code>{command}</code>" in html.unescape(section)
    assert '<b class="failed">2</b>failed' in text
    assert '<b class="soft">0</b>failed' in report_page([PASSED], HEAD)


def test_a_legend_has_what_is_drawn() -> None:
    """None without figures."""
    key = report_page([ping("w1", "w2"), ping("w2", "w1", value=0.0801)], HEAD).partition('class="key"')[2]
    assert "up to 5 % worse" in key.partition("</ul>")[0]
    assert "unproven" not in key.partition("</ul>")[0]
    assert '<ul class="key">' not in report_page([PASSED], HEAD)


@pytest.mark.parametrize(
    ("checks", "text"),
    [
        ([PASSED], "Fabric proved: all 1 checks passed."),
        ([PASSED, SKIPPED], "Fabric proved without RDMA: all 1 checks passed."),
        ([PASSED, FAILED], "Fabric failed: 1 of 2 checks failed."),
        ([FAILED, OPEN], "Fabric failed: 1 of 1 checks failed, and 1 could not be made."),
        ([PASSED, OPEN], "Fabric unproven: of 2 checks none failed, but 1 could not be made."),
        (
            [PASSED, OPEN._replace(status="accepted")],
            "Fabric proved: all 1 checks passed, and 1 that could not be made are accepted.",
        ),
        ([SKIPPED], "Fabric not run: no check was made."),
    ],
)
def test_the_verdict_is_a_sentence(checks: t.List[Check], text: str) -> None:
    assert verdict(checks) == text


def test_what_is_said_of_each_network_is_said_once() -> None:
    assert merged(["a: slow", "b: slow", "c: fast"]) == ["a, b: slow", "c: fast"]


def test_as_many_matrices_are_drawn_as_a_page_takes_and_failures_first() -> None:
    nodes = [f"n{i}" for i in range(WIDEST)]
    checks = [ping(a, b)._replace(network=f"rail{n:02}") for n in range(12) for a, b in zip(nodes, nodes[1:])]
    checks[-1] = checks[-1]._replace(status="failed", value=None)
    drawn = squares(matrices(checks))
    assert sum(drawn) == CELLS // WIDEST**2 < len(drawn)
    assert drawn[-1]


@pytest.mark.parametrize("missing", [True, False])
def test_reports_of_large_sites_are_small_even_if_nothing_works(missing: bool) -> None:
    plan = pages.hall()
    probe = bench.proof(plan)
    for test in probe["traffic"]:
        test.update({"missing": True} if missing else {"value": 1.0})
    checks = check_fabric(plan, probe, Expect(ipu=False, rdma_bandwidth="90"))
    text = report_page(checks, HEAD)
    assert len(text) < 1_000_000


def test_html_tells_what_is_missing_before_everything_else() -> None:
    missing = "Add a second node with a NIC on this network."
    text = report_page([PASSED, unproven("rping", "needs two nodes", missing, network="rdma-net")], HEAD)
    page = Page(text)
    assert page.titles[:2] == ["Fabric unproven: of 2 checks none failed, but 1 could not be made.", "Unproven"]
    assert page.tables[0][1][:3] == ["unproven", "rping from pod to pod", "rdma-net"]
    assert f'needs two nodes<span class="next">{missing}</span>' in text


def test_a_pair_on_one_node_is_said() -> None:
    text = report_page([ping("w1", "w1 (second pod)")], HEAD)
    assert '<p class="note">rdma-net: two pods on w1 stand in for two nodes.' in text
    assert '<p class="note">' not in report_page(CHECKS, HEAD)


def test_a_figure_that_proves_nothing_has_its_cell_in_the_matrix() -> None:
    figure = unproven("read_latency", "3 us", "x", pair=("a", "b"), network="n", value=3.0, unit="us")
    assert '<td class="open" title="3 us">3<b>unproven</b></td>' in report_page([figure], HEAD)


def test_html_escapes() -> None:
    text = report_page([FAILED._replace(seen="<script>alert(1)</script>", node='"><b>')], HEAD)
    assert "<script" not in text
    assert '"><b>' not in text


def test_the_matrix_shows_each_pair_in_both_directions() -> None:
    checks = [ping("a", "b", value=0.05), ping("a", "c", good=False)._replace(value=None), ping("b", "c", value=0.2)]
    page = Page(report_page(checks, HEAD))
    matrix = next(table for table in page.tables if table[0] == ["", "a", "b", "c"])
    assert matrix[1:] == [["a", "", "0.05", "no"], ["b", "0.05", "", "0.2"], ["c", "no", "0.2", ""]]


def test_there_is_a_matrix_for_each_test_that_ran_on_each_network() -> None:
    bandwidth = result(
        "write_bandwidth", True, "", "97.8 Gb/s", pair=("a", "b"), network="rail-1", value=97.8, unit="Gb/s"
    )
    left_out = unproven("rping", "rping is not in the image", "x", pair=("a", "b"), network="rail-1")
    page = Page(report_page([ping("a", "b"), bandwidth, left_out], HEAD))
    assert page.summaries[:4] == ["rdma-net ", "Pods reach each other, ms ", "rail-1 ", "ib_write_bw, Gb/s "]


def test_many_nodes_make_a_list_with_failures_first() -> None:
    nodes = [f"n{i:03}" for i in range(200)]
    checks = [ping(a, b, value=i / 100) for i, (a, b) in enumerate(zip(nodes, nodes[1:]))]
    checks[100] = checks[100]._replace(status="failed", value=None)
    text = report_page(checks, HEAD)
    page = Page(text)
    pairs = next(table for table in page.tables if table[0][0] == "n100 - n101")
    assert pairs[0] == ["n100 - n101", "no"]
    assert pairs[1] == ["n198 - n199", "1.98"]
    assert len(pairs) == PAIRS
    assert f"The first {PAIRS} of 199 pairs" in text


def test_large_reports_are_small() -> None:
    checks = [PASSED._replace(node=f"w{i}", network=f"rail-{i % 8}") for i in range(40_000)]
    text = report_page(checks, HEAD)
    assert len(text) < 1_000_000
    assert [row[2:5] for row in Page(text).tables[-1][1:]] == [[f"rail-{n}", "5000 nodes", "1500"] for n in range(8)]


def test_as_many_results_as_a_person_reads_have_a_row_each() -> None:
    few = [PASSED._replace(node=f"w{i}") for i in range(ALIKE)]
    assert [row[3] for row in Page(report_page(few, HEAD)).tables[0][1:]] == [check.node for check in few]


def test_figures_from_run_to_run_are_small_charts_of_which_a_page_takes_so_many() -> None:
    """200 nodes with 8 rails, two figures of four pairs each, in twenty proofs: the worst ones are drawn."""
    nodes, checks = [f"node-{number:03}" for number in range(200)], []
    for rail, step, (place, a) in itertools.product(range(8), (1, 100), enumerate(nodes)):
        where: Place = {"network": f"rail-{rail}", "pair": (a, nodes[(place + step) % len(nodes)])}
        checks.append(result("write_bandwidth", True, "", "", value=390 + place / 100, unit="Gb/s", **where))
        checks.append(result("read_latency", True, "", "", value=4.0, unit="us", **where))
    base = baseline.EMPTY
    for run in range(20):
        base = baseline.remember(base, HEAD._replace(time=str(run)), checks, baseline.as_they_are(checks), False)
    slow = checks[0]._replace(value=330.0)
    verdict = baseline.compare([slow, *checks[1:]], {}, base, base, set(), whole=True)
    text = report_page(verdict.checks, HEAD, (), None, baseline.remember(base, HEAD, checks, verdict, False))
    assert len(baseline.to_json(base)) < 2_000_000
    assert len(text) - len(report_page(verdict.checks, HEAD)) < 250_000
    assert text.count("<svg") <= CHARTS
    charts = text.partition("Figures from run to run")[2]
    assert charts.count("<details open>") == 1  # that of the regression
    assert "rail-0: ib_write_bw, Gb/s <span>400 figures, 1 worse" in charts
    assert Page(text).open == []


def test_a_chart_says_in_words_what_it_draws() -> None:
    """A gap where the pair was not tested; noise is drawn flat."""
    key = baseline.Key("write_bandwidth", "rail-0", "w1>w2")
    drawn = spark(key, baseline.Series([390.0, None, 391.0, 390.0]), "Gb/s", False)
    assert drawn.alternative == "390, 391, none, 390 Gb/s, oldest first"
    assert drawn.path.count("M") == 2
    heights = [float(y) for y in re.findall(r" ([\d.]+)", drawn.path)]
    assert max(heights) - min(heights) < 1
    assert (drawn.name, drawn.now, drawn.usual, drawn.change) == ("w1 → w2", "390", "390", "+0 %")


def test_many_failures_are_cut_short_and_say_so() -> None:
    page = Page(report_page([FAILED._replace(node=f"w{i}") for i in range(4000)], HEAD))
    failures = page.tables[0][1:]
    assert [row[0] for row in failures[-2:]] == [f"w{LISTED - 1}", f"and {4000 - LISTED} more"]
    assert failures[-1][1] == "report.json has all"


def test_each_direction_of_a_measurement_has_its_cell() -> None:
    good, bad = (
        result("write_bandwidth", v > 90, "", f"{v} Gb/s", pair=pair, network="rail-1", value=v, unit="Gb/s")
        for v, pair in ((97.79, ("w1", "w2")), (40.12, ("w2", "w1")))
    )
    page = report_page([good, bad], HEAD)
    assert '<tr><th>w1</th><td class="self"></td><td class="heat0">97.8</td>' in page
    assert '<tr><th>w2</th><td class="bad" title="40.12 Gb/s">40.1<b>failed</b></td><td class="self"></td>' in page


@pytest.mark.parametrize(("count", "is_list"), [(WIDEST, False), (WIDEST + 1, True)])
def test_a_matrix_is_a_square_as_long_as_it_fits(count: int, is_list: bool) -> None:
    nodes = [f"n{i:03}" for i in range(count)]
    text = report_page([ping(a, b) for a, b in zip(nodes, nodes[1:])], HEAD)
    matrix = next(table for table in Page(text).tables if table[-1][0].startswith("n0"))
    assert (matrix[0][0] == "n000 - n001") == is_list
    assert len(matrix) == (PAIRS if is_list else count + 1)


# The plan


def test_the_plan_is_whole_and_needs_nothing_else() -> None:
    text = plan_page(sites.plan(sites.site()))
    page = Page(text)
    assert "prefers-color-scheme: dark" in text
    assert (page.open, page.links) == ([], [])
    assert not any(word in text for word in ("http", "@import", "url(", "<script"))
    assert page.titles == ["Plan of the fabric", "Decisions", "Topology", "Addresses", "Versions", "Hosts"]
    assert page.tables[-1][0] == ["Host", "Change", "Address", "Roles", "rdma-net", "Findings"]
    assert page.tables[-1][1][:2] == ["cp1", "+ install"]
    assert page.tables[-1][2] == ["w1", "+ install", "10.88.0.12", "worker, ipu", "ens1f0 10.5.0.12/24", "ok"]
    assert "<dt>V-IPU</dt><dd><ul><li>10.5.0.20:8090" in text


def test_the_plan_shows_findings_with_their_level() -> None:
    hosts = sites.site()
    sites.change(("host", "memory_mb"), 100)(hosts)
    text = plan_page(sites.plan(hosts))
    page = Page(text)
    assert page.titles[:3] == ["Plan of the fabric", "Findings", "Decisions"]
    assert page.tables[-1][2][-1] == "1 error"
    assert '<td class="error">1 error</td>' in text
    assert page.tables[0][1][:3] == ["error", "memory", "w1"]
    assert page.tables[0][1][4]


def test_the_plan_escapes() -> None:
    hosts = sites.site()
    sites.change(("host", "distribution"), "<script>")(hosts)
    page = plan_page(sites.plan(hosts))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_plan_of_many_hosts_names_each_of_them() -> None:
    many = {f"w{number}": sites.host(number, ["kube_node"]) for number in range(300, 500)}
    many["cp1"] = sites.host(299, ["kube_control_plane"])
    page = Page(plan_page(sites.plan(many)))
    assert len(page.tables[-1]) == 1 + 201


def test_drift_is_shown_where_somebody_has_looked():
    plan = sites.plan(sites.site())
    assert "<h2>Drift" not in plan_page(plan)
    assert "Of the running cluster, seen NOW: site would change nothing." in plan_page(
        {**plan, "drift": [], "drift_time": "NOW"}
    )
    changed = {"object": "IPPool n/<a>", "change": "change", "ours": True, "fields": ["mtu: 1 now, 2 planned"]}
    left = {"object": "IPPool lab/x", "change": "leave", "ours": False, "fields": []}
    shown = plan_page({**plan, "drift": [changed, left]})
    assert "site would change 1 object of the cluster; 1 object outside the plan would stay." in shown
    assert ["~ change", "IPPool n/<a>"] in [row[:2] for table in Page(shown).tables for row in table]
    assert "mtu: 1 now, 2 planned" in shown
    assert 'IPPool lab/x <span class="soft">made by others</span>' in shown
