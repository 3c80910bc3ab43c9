"""Bandwidth and latency by default: what ports and PCIe carry, the other pairs, and which node it is."""

from __future__ import annotations

import itertools
import statistics
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check, Expect
from ansible_collections.ipu.fabric.plugins.module_utils._verify.gpu_checks import check_gpu_bandwidth
from ansible_collections.ipu.fabric.plugins.module_utils._verify.speed_checks import SAYS_NOTHING, Others
from ansible_collections.ipu.fabric.plugins.module_utils._verify.traffic_checks import check_traffic
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify import test_checks as fabrics
from hypothesis import given, settings
from hypothesis import strategies as st

Facts = t.Dict[str, t.Any]
Figures = t.Mapping[t.Tuple[str, str], float]
UNITS = {
    "write_bandwidth": ("ib_write_bw", "Gb/s"),
    "read_latency": ("ib_read_lat", "us"),
    "gpu_bandwidth": ("ib_write_bw", "Gb/s"),
}


def judged(
    figures: Figures,
    kind: str = "write_bandwidth",
    *,
    rates: t.Optional[t.Mapping[str, t.Any]] = None,  # by node, in Gb/s
    pcie: t.Optional[t.Mapping[str, t.Any]] = None,
    software: bool = False,
    **expect: str,
) -> t.Dict[t.Tuple[str, ...], Check]:
    """The checks of these figures; ports have 100 Gb/s and PCIe 126."""
    planned, facts = fabrics.plan(), fabrics.probe()
    template = planned["hosts"]["w1"]
    facts["traffic"], facts["host_traffic"] = [], []
    for node in {node for pair in figures for node in pair}:
        link = {
            **template["links"]["rdma-net"],
            "rate_gbps": (rates or {}).get(node, 100.0),
            "pcie_gbps": (pcie or {}).get(node, 126.0),
        }
        planned["hosts"][node] = {**template, "node": node, "links": {"rdma-net": link}}
        facts["pods"][node] = {**fabrics.pod("w1"), "host": node}
        if software:
            facts["pods"][node]["rdma"]["classes"].remove("infiniband/mlx5_0/device")
    tool, unit = UNITS[kind]
    for (client, server), value in figures.items():
        test = fabrics.traffic(kind, tool, value, unit, messages=1000, size=2)
        facts["traffic"].append({**test, "from": client, "to": server})
    wanted = Expect(ipu=False, gpu=True, **expect)
    checks = [*check_traffic(planned, facts, wanted), *check_gpu_bandwidth(planned, facts, wanted)]
    return {check.pair: check for check in checks if check.check == kind}


def matrix(usual: float, nodes: str = "abcd", **others: float) -> t.Dict[t.Tuple[str, str], float]:
    """All pairs with the usual figure; `ab` for one pair, or `a` for all pairs of a node, with another."""
    pairs = t.cast(t.List[t.Tuple[str, str]], list(itertools.permutations(nodes, 2)))
    found = dict.fromkeys(pairs, usual)
    for key, value in others.items():
        found.update({pair: value for pair in pairs if (key in pair if len(key) == 1 else key == "".join(pair))})
    return found


def failed(checks: t.Mapping[t.Tuple[str, ...], Check]) -> t.Dict[str, str]:
    """What each failure points to."""
    bad = {pair: check.seen for pair, check in checks.items() if check.status == "failed"}
    return {"".join(pair): seen[seen.index("(") + 1 : -1] for pair, seen in bad.items()}


def test_figures_of_a_good_fabric_pass() -> None:
    assert {(check.status, check.seen) for check in judged(matrix(97.8)).values()} == {("passed", "97.8 Gb/s")}
    assert not failed(judged(matrix(2.9, ab=3.4, a=4.0), "read_latency"))


@pytest.mark.parametrize(
    ("figures", "options", "expected"),
    [
        # A port at half its speed: both directions of one node, which the plan may not know.
        (matrix(97.8, a=48.0), {}, dict.fromkeys(["ab", "ba", "ac", "ca", "ad", "da"], "node a")),
        (matrix(97.8, ab=48.0), {}, {"ab": "path"}),
        (matrix(48.0), {}, {"".join(pair): "all" for pair in matrix(1)}),
        # Enough for its port, and less than the others reach.
        (matrix(97.8, ab=87.0), {}, {"ab": "path"}),
        (matrix(97.8, ab=88.5), {}, {}),
        # PCIe is the limit, and the plan says so: a finding there, and no failure here.
        (matrix(97.8, a=52.0), {"pcie": {"a": 63.0}}, {}),
        (matrix(97.8, a=40.0), {"pcie": {"a": 63.0}}, dict.fromkeys(["ab", "ba", "ac", "ca", "ad", "da"], "node a")),
        # Two pairs are too few to compare; what their ports can is known.
        (matrix(97.8, "ab", ba=70.0), {}, {"ba": "path"}),
        (matrix(97.8, "ab", ba=85.0), {}, {}),
        # Nothing is known of a port: the others are.
        (matrix(97.8, ab=48.0), {"rates": {"c": None}}, {"ab": "path"}),
        (matrix(9.7, ab=7.0), {"rdma_bandwidth": "8"}, {"ab": "path"}),
        (matrix(9.7, ab=8.1), {"rdma_bandwidth": "8"}, {}),
    ],
)
def test_bandwidth(figures: Figures, options: Facts, expected: t.Dict[str, str]) -> None:
    assert failed(judged(figures, **options)) == expected


@pytest.mark.parametrize(
    ("figures", "options", "expected"),
    [
        (matrix(96.4), {}, {}),
        (matrix(96.4, ab=48.0), {}, {"ab": "path"}),
        (matrix(61.0), {}, {"".join(pair): "all" for pair in matrix(1)}),
        (matrix(61.0), {"gpu_bandwidth": "60"}, {}),
        (matrix(61.0), {"rdma_bandwidth": "60"}, {"".join(pair): "all" for pair in matrix(1)}),
    ],
)
def test_bandwidth_between_gpus_has_an_expectation_of_its_own(
    figures: Figures, options: Facts, expected: t.Dict[str, str]
) -> None:
    found = judged(figures, "gpu_bandwidth", **options)
    assert failed(found) == expected
    assert all("verify_gpu_bandwidth" in check.next for check in found.values() if check.status == "failed")


def test_a_failure_says_what_was_expected_and_what_to_do() -> None:
    check = judged(matrix(97.8, b=60.0, ab=48.0), pcie={"b": 63.0})["a", "b"]
    assert check.expected == ">= 50.4 Gb/s, 80% of b's PCIe; >= 54 Gb/s, 90% of the others' median"
    assert check.next.startswith("Both nodes do well with others")
    assert "PCIe" in judged(matrix(97.8, a=48.0))["a", "b"].next


@pytest.mark.parametrize(
    ("figures", "options", "expected"),
    [
        (matrix(2.9, ab=8.0), {}, {"ab": "path"}),
        (matrix(2.9, ab=7.5), {}, {}),
        (matrix(8.0, ab=15.5), {}, {}),
        (matrix(8.0, ab=16.5), {}, {"ab": "path"}),
        (matrix(25.0), {}, {"".join(pair): "all" for pair in matrix(1)}),
        (matrix(2.9, "ab", ba=21.0), {}, {"ba": "path"}),
        (matrix(2.9, ab=6.0), {"rdma_latency": "5"}, {"ab": "path"}),
        (matrix(25.0), {"rdma_latency": "30"}, {}),
    ],
)
def test_latency(figures: Figures, options: Facts, expected: t.Dict[str, str]) -> None:
    assert failed(judged(figures, "read_latency", **options)) == expected


@pytest.mark.parametrize(
    ("kind", "figures", "expected"),
    [
        ("write_bandwidth", matrix(0.03, ab=0.02), {}),
        ("write_bandwidth", matrix(0.03, ab=0.005), {"ab": "path"}),
        ("write_bandwidth", matrix(0.03, "ab"), {}),
        ("read_latency", matrix(1051.4, ab=4000.0), {}),
        ("read_latency", matrix(1051.4, ab=9000.0), {"ab": "path"}),
    ],
)
def test_software_is_compared_with_itself_only(kind: str, figures: Figures, expected: t.Dict[str, str]) -> None:
    checks = judged(figures, kind, software=True, rates=dict.fromkeys("abcd", 1.0))
    assert failed(checks) == expected
    assert all(check.expected.endswith(SAYS_NOTHING) for check in checks.values() if check.status == "passed")


@pytest.mark.parametrize("options", [{"rates": dict.fromkeys("ab")}, {"rdma_bandwidth": "0"}])
def test_what_is_only_measured_is_unproven(options: Facts) -> None:
    check = judged(matrix(97.8, "ab"), **options)["a", "b"]
    assert (check.status, check.value, check.unit) == ("unproven", 97.8, "Gb/s")
    assert "Set verify_rdma_bandwidth to what this site expects" in check.next


def test_nics_of_different_rates_are_compared_by_what_they_can() -> None:
    rates = {"a": 25.0}
    assert not failed(judged(matrix(97.8, a=24.4), rates=rates))
    assert failed(judged(matrix(97.8, a=24.4, ab=21.0), rates=rates)) == {"ab": "path"}


@settings(deadline=None)
@given(st.lists(st.floats(min_value=0, max_value=1000), min_size=1, max_size=20), st.data())
def test_the_median_of_the_others(figures: t.List[float], data: st.DataObject) -> None:
    place = data.draw(st.integers(min_value=0, max_value=len(figures) - 1))
    rest = figures[:place] + figures[place + 1 :]
    expected = statistics.median(rest) if len(rest) >= 3 else None
    assert Others(figures).median(figures[place]) == expected
