"""A proof against earlier ones: quiet runs are quiet, and what got worse is found."""

from __future__ import annotations

import itertools
import json
import math
import random
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check, Head
from ansible_collections.ipu.fabric.plugins.module_utils._verify import baseline
from ansible_collections.ipu.fabric.plugins.module_utils._verify.baseline import EMPTY, Baseline, Verdict
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import result, skip, unproven
from ansible_collections.ipu.fabric.plugins.module_utils._verify.history import KEPT
from ansible_collections.ipu.fabric.plugins.module_utils._verify.report import to_json

NODES = ("w1", "w2", "w3", "w4")
PAIRS = tuple(itertools.permutations(NODES, 2))
GROUPS = {node: ["rail0", "worker"] for node in NODES}
UNITS = {"write_bandwidth": ("Gb/s", 390.0), "read_latency": ("us", 4.0), "host_traffic": ("Gb/s", 90.0)}
Noise = t.Callable[[str], float]


def figure(check: str, pair: t.Tuple[str, str], value: float, status: str = "passed") -> Check:
    return Check(check, status, "", f"{value:g}", pair=pair, network="rail0", value=value, unit=UNITS[check][0])


def figures(noise: Noise, pairs: t.Sequence[t.Tuple[str, str]] = PAIRS) -> t.List[Check]:
    checks = ("write_bandwidth", "read_latency")
    return [figure(check, pair, UNITS[check][1] * noise(check)) for check in checks for pair in pairs]


def mtu(node: str, status: str = "passed", network: str = "rail0") -> Check:
    return Check("mtu", status, "9000", "9000", node=node, network=network)


class Site:
    """Proofs, one after another."""

    def __init__(self, soft: bool = False) -> None:
        self.base, self.soft, self.runs = EMPTY, soft, 0

    def prove(
        self,
        checks: t.Sequence[Check],
        groups: t.Optional[t.Dict[str, t.List[str]]] = None,
        accepted: bool = False,
        against: t.Optional[Baseline] = None,
    ) -> t.List[Check]:
        """What fails by comparison alone."""
        self.runs += 1
        head = Head(f"2026-11-{self.runs:02}T16:00:00Z", 4.2, "", "", groups=GROUPS if groups is None else groups)
        soft = {baseline.key_of(check._asdict()) for check in checks} if self.soft else set()
        verdict: Verdict = baseline.as_they_are(checks)
        if self.base.times or against:
            verdict = baseline.compare(checks, head.groups or {}, against or self.base, self.base, soft, True)
        self.base = baseline.read_baseline(
            baseline.to_json(baseline.remember(self.base, head, verdict.checks, verdict, accepted))
        )
        known = {baseline.key_of(check._asdict()) for check in checks if check.status == "failed"}
        return [c for c in verdict.checks if c.status == "failed" and baseline.key_of(c._asdict()) not in known]


def test_the_first_proof_has_nothing_to_compare_with() -> None:
    assert Site().prove(figures(lambda check: 1.0)) == []
    said = baseline.as_they_are([], baseline.NO_PROOF).checks
    assert [(check.check, check.status, check.seen) for check in said] == [("regression", "skipped", baseline.NO_PROOF)]


# What a link and its software do by themselves: standard deviations of a figure's logarithm.
QUIET = {"hardware": {"write_bandwidth": 0.03, "read_latency": 0.15}, "soft": dict.fromkeys(UNITS, 0.4)}


def noisy(random_numbers: random.Random, quiet: t.Mapping[str, float]) -> Noise:
    return lambda check: math.exp(random_numbers.gauss(0, quiet[check]))


@pytest.mark.parametrize("kind", list(QUIET))
def test_quiet_proofs_have_no_regressions(kind: str) -> None:
    """With as much noise as hardware has: none in 1,100 proofs. Of 6,600, one had one."""
    alarms = 0
    for seed in range(100):
        site, noise = Site(kind == "soft"), noisy(random.Random(seed), QUIET[kind])
        alarms += sum(bool(site.prove(figures(noise))) for _run in range(11))
    assert alarms == 0


@pytest.mark.parametrize(
    ("kind", "check", "factor"),
    [
        ("hardware", "write_bandwidth", 0.85),
        ("hardware", "read_latency", 2.0),
        ("soft", "write_bandwidth", 0.05),
        ("soft", "read_latency", 400.0),
    ],
)
@pytest.mark.parametrize("runs", [10, 19, 30])
def test_a_node_that_got_slower_is_found(kind: str, check: str, factor: float, runs: int) -> None:
    """With bandwidth that differs by 2.5 % and latency that differs by 12 %: in 50 of 50 sites."""
    for seed in range(50):
        numbers = random.Random(seed)
        site = Site(kind == "soft")
        noise = noisy(numbers, {"write_bandwidth": 0.025, "read_latency": 0.12} if kind == "hardware" else QUIET[kind])
        for _run in range(runs):
            site.prove(figures(noise))
        slow = [
            one._replace(value=(one.value or 0) * (factor if one.check == check and "w3" in one.pair else 1))
            for one in figures(noise)
        ]
        found = site.prove(slow)
        assert found, seed
        assert all("w3" in one.pair and one.check == check for one in found)


def steady(value: float, check: str = "write_bandwidth") -> t.List[Check]:
    return [figure(check, PAIRS[0], value)]


def test_a_regression_says_both_figures_and_stays_until_it_is_repaired() -> None:
    site = Site()
    for value in (390.0, 391.0, 389.0, 390.0):
        assert site.prove(steady(value)) == []
    (found,) = site.prove(steady(331.0))
    assert (found.seen, found.pair, found.check) == ("331", PAIRS[0], "write_bandwidth")
    assert "fabric_baseline=accept" in found.next
    assert found.expected.startswith(">= 3")
    assert "usually 390 (earlier proofs: 4)" in found.expected
    for _run in range(KEPT + 5):  # a figure that stays bad does not become the usual one
        assert site.prove(steady(331.0))
    assert site.prove(steady(389.0)) == []
    assert len(site.prove(steady(331.0))) == 1


def test_a_regression_that_is_accepted_is_the_new_usual() -> None:
    site = Site()
    for _run in range(5):
        site.prove([*steady(390.0), mtu("w1"), mtu("w2")])
    worse = [*steady(195.0), mtu("w1"), skip("mtu", "the plan has no MTU", node="w2", network="rail0")]
    assert len(site.prove(worse)) == 2
    site.prove(worse, accepted=True)
    assert site.prove(worse) == []
    assert site.prove([*steady(100.0), *worse[1:]])


def test_two_figures_are_few_and_only_a_deep_fall_counts() -> None:
    site = Site()
    site.prove(steady(390.0))
    assert site.prove(steady(345.0)) == []
    assert site.prove(steady(195.0))
    soft = Site(soft=True)
    soft.prove(steady(10.0))
    assert soft.prove(steady(0.5)) == []


def test_a_figure_that_was_as_bad_before_is_no_regression() -> None:
    site = Site()
    for value in (390.0, 390.0, 331.0, 390.0, 390.0, 390.0, 390.0):
        site.base = Baseline(site.base.times, site.base.groups, site.base.passed, {})  # only what is remembered below
        site.prove(steady(value))
    values: t.List[t.Optional[float]] = [390.0, 390.0, 331.0, 390.0, 390.0, 390.0, 390.0]
    site.base.figures[baseline.key_of(steady(1.0)[0]._asdict())] = baseline.Series(values)
    assert site.prove(steady(332.0)) == []
    assert site.prove(steady(329.0))


def test_pairs_that_are_not_tested_each_time_have_gaps_and_no_regression() -> None:
    site = Site()
    ring = [pair for pair in PAIRS if pair != ("w1", "w3")]
    site.prove(figures(lambda check: 1.0))
    assert site.prove(figures(lambda check: 1.0, ring)) == []
    key = baseline.key_of(figure("write_bandwidth", ("w1", "w3"), 1)._asdict())
    assert site.base.figures[key].shown == [None, 390.0]


@pytest.mark.parametrize(
    ("now", "seen"),
    [
        (lambda: [mtu("w1"), unproven("mtu", "no `ip`", "Set it.", node="w2", network="rail0")], "unproven: no `ip`"),
        (lambda: [mtu("w1"), skip("mtu", "the plan has no MTU", node="w2", network="rail0")], "skipped: the plan"),
        (lambda: [mtu("w1")], "not run (w2)"),
        (lambda: [mtu("w1"), skip("mtu", "planned without a fabric network")], "not run (w2)"),
    ],
)
def test_a_check_that_passed_and_is_not_made_any_more(now: t.Callable[[], t.List[Check]], seen: str) -> None:
    site = Site()
    site.prove([mtu("w1"), mtu("w2")])
    for _run in range(3):
        (found,) = site.prove(now())
        assert (found.subject, found.network, found.expected) == ("mtu", "rail0", "passed, as in earlier proofs")
        assert found.seen.startswith(seen)
        assert "w2" in found.seen
    assert site.prove([mtu("w1"), mtu("w2")]) == []


def test_a_check_that_failed_before_or_is_accepted_is_no_regression() -> None:
    site = Site()
    site.prove([mtu("w1", "failed"), mtu("w2")])
    assert site.prove([unproven("mtu", "", "", node="w1", network="rail0"), mtu("w2", "accepted")]) == []


def test_a_failure_fails_once_and_says_that_it_passed() -> None:
    """What can't be tested on a node because of it is no failure of its own."""
    site = Site()
    pod = result("pod", True, "running", "running", node="w2")
    site.prove([pod, mtu("w2"), *steady(390.0)])
    broken = pod._replace(status="failed", seen="CrashLoopBackOff")
    checks = [broken, mtu("w2", "unproven"), figure("write_bandwidth", PAIRS[0], 20, "failed")]
    verdict = baseline.compare(checks, GROUPS, site.base, site.base, set(), True)
    assert [check.seen for check in verdict.checks if check.status == "failed"] == [
        "CrashLoopBackOff; earlier it passed",
        "20; earlier it passed with 390",
    ]
    assert site.prove([pod, mtu("w2", "unproven"), *steady(390.0)])  # it is one once nothing else explains it


def test_what_a_failed_node_leaves_unproven_in_the_cluster_is_no_regression() -> None:
    site = Site()
    pod, unique = (result(name, True, "", "", **place) for name, place in (("pod", {"node": "w2"}), ("unique", {})))
    site.prove([pod, unique])
    late = unique._replace(status="unproven")
    checks = baseline.compare([pod._replace(status="failed"), late], GROUPS, site.base, site.base, set(), True).checks
    assert [check.check for check in checks if check.status == "failed"] == ["pod"]
    checks = baseline.compare([pod, late], GROUPS, site.base, site.base, set(), True).checks
    assert [check.check for check in checks if check.status == "failed"] == ["regression"]


def test_a_node_that_moved_is_said_once() -> None:
    site = Site()
    site.prove([mtu(node) for node in NODES])
    (found,) = site.prove([mtu(node) for node in NODES if node != "w2"], {**GROUPS, "w2": ["worker"]})
    assert (found.node, found.subject, found.expected, found.seen) == ("w2", "groups", "rail0, worker", "worker")


def test_a_node_or_a_network_that_left_the_plan_is_no_regression() -> None:
    site = Site()
    rails = {node: ["rail0", "rail1", "worker"] for node in NODES}
    site.prove([mtu(node, network=network) for network in ("rail0", "rail1") for node in NODES], rails)
    assert site.prove([mtu(node) for node in NODES[1:]], {node: GROUPS[node] for node in NODES[1:]}) == []


def test_a_new_node_is_no_regression() -> None:
    site = Site()
    second = [mtu("w1"), mtu("w1 (second pod)")]
    site.prove(second, {"w1": GROUPS["w1"]})
    assert site.prove([mtu("w1"), mtu("w2")], {"w1": GROUPS["w1"], "w2": GROUPS["w2"]}) == []


def test_of_a_proof_of_some_nodes_only_figures_are_compared() -> None:
    site = Site()
    for _run in range(4):
        site.prove([mtu("w1"), mtu("w2"), *figures(lambda check: 1.0)])
    some = figures(lambda check: 1.0, PAIRS[:2])
    verdict = baseline.compare(some, {}, site.base, site.base, set(), whole=False)
    assert [(check.status, check.seen) for check in verdict.checks[len(some) :]] == [("passed", "4 figures compared")]
    slow = [check._replace(value=200.0) if check.check == "write_bandwidth" else check for check in some]
    verdict = baseline.compare(slow, {}, site.base, site.base, set(), whole=False)
    assert [check.pair for check in verdict.checks if check.status == "failed"] == list(PAIRS[:2])
    verdict = baseline.compare([mtu("w1")], {}, site.base, site.base, set(), whole=False)
    assert verdict.checks == [mtu("w1")]


def test_a_report_that_is_pinned() -> None:
    site = Site()
    for value in (390.0, 391.0, 389.0, 390.0):
        site.prove(steady(value))
    pinned = baseline.of_report(to_json(steady(470.0), Head("2026-10-01T00:00:00Z", 1, "", "", groups=GROUPS)), "p")
    (found,) = site.prove(steady(390.0), against=pinned)
    assert "usually 470 (earlier proofs: 1)" in found.expected


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("", "no such file"),
        ("{", "not a report.json"),
        ("[]", "not a report.json"),
        (json.dumps({"checks": [], "nodes": ["w1"], "time": ""}), "it is a proof of w1 only"),
    ],
)
def test_what_is_no_report_of_a_whole_site_is_refused(text: str, seen: str) -> None:
    with pytest.raises(FabricError, match=seen):
        baseline.of_report(text, "old.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"times": 1}', '{"runs": []}'])
def test_what_is_no_baseline_is_none(text: str) -> None:
    assert baseline.read_baseline(text) == EMPTY


def test_as_many_proofs_are_kept_as_history_has() -> None:
    site = Site()
    for _run in range(KEPT + 3):
        site.prove(steady(390.0))
    assert [len(series.shown) for series in site.base.figures.values()] == [KEPT]
    assert len(site.base.times) == KEPT
