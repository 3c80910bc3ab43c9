"""Matrices of pairs: as data, for a terminal, and in the page."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check, Head
from ansible_collections.ipu.fabric.plugins.module_utils._verify import matrix, report
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import result, skip

HEAD = Head("2026-11-21T16:00:00Z", 4.2, "10.80.0.11:6443", "v1.35.4")
UNITS = {"write_bandwidth": "Gb/s", "read_latency": "us", "rping": "pings", "ping": "ms"}


def measured(kind: str, a: str, b: str, value: t.Optional[float], good: bool = True, network: str = "rail-1") -> Check:
    seen = f"{value} {UNITS[kind]}" if value is not None else "client: Unable to connect (retries = 3)"
    return result(kind, good, "", seen, network=network, pair=(a, b), value=value, unit=UNITS[kind])


CHECKS = [
    measured("write_bandwidth", "w1", "w2", 97.79),
    measured("write_bandwidth", "w2", "w1", 40.12, good=False),
    measured("write_bandwidth", "w1", "w3", 97.5),
    measured("write_bandwidth", "w3", "w2", None, good=False),
]


def test_a_terminal_shows_each_direction() -> None:
    lines = report.table(CHECKS).splitlines()
    start = next(number for number, line in enumerate(lines) if "rows are clients" in line)
    assert lines[start : start + 5] == [
        "  rail-1: ib_write_bw, Gb/s: rows are clients, columns servers",
        "              1      2      3",
        "    1 w1      -   97.8   97.5",
        "    2 w2  !40.1      -      .",
        "    3 w3      .    !no      -",
    ]
    assert lines[-1] == "failed: 2 passed, 2 failed, 0 skipped"


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [("write_bandwidth", "a -> b", "n09 -> n10"), ("read_latency", "a -> b", "n39 -> n00")],
)
def test_what_is_too_wide_tells_the_worst(kind: str, first: str, second: str) -> None:
    nodes = [f"n{number:02}" for number in range(40)]
    ring = zip(nodes, nodes[1:] + nodes[:1])
    checks = [measured(kind, x, y, 1 if x == "n09" else 100.0 + number) for number, (x, y) in enumerate(ring)]
    if kind == "read_latency":
        checks[9] = checks[9]._replace(value=0.5)
    checks.append(measured(kind, "a", "b", 50.0, good=False))
    (found,) = matrix.matrices(checks)
    lines = matrix.as_text(found, 80)
    assert lines[0].endswith(": the worst of 41 pairs, from client to server")
    assert lines[1].endswith(first)
    assert "!50" in lines[1]
    assert lines[2].endswith(second)
    assert lines[1 + matrix.FEW :] == ["    points to path a -> b"]


def test_nodes_are_in_the_order_of_their_numbers() -> None:
    (found,) = matrix.matrices([measured("ping", "w10", "w9", 1.0)])
    assert found.nodes == ["w9", "w10"]


@pytest.mark.parametrize("count", [2, 7, 8, 9, 10, 64])
@pytest.mark.parametrize("name", ["w{}", "a-node-with-a-very-long-name-{}.example.com"])
def test_no_line_is_wider_than_a_terminal(count: int, name: str) -> None:
    nodes = [name.format(number) for number in range(count)]
    checks = [
        measured("read_latency", a, b, 12345.678, good=False, network="n" * 63) for a in nodes for b in nodes if a != b
    ]
    (found,) = matrix.matrices(checks)
    assert max(map(len, matrix.as_text(found, 80))) <= 80


def test_a_ping_needs_no_matrix_in_a_terminal() -> None:
    assert "rows are clients" not in report.table([measured("ping", "w1", "w2", 0.08)])


def test_json_has_the_figures_as_data() -> None:
    found = json.loads(report.to_json([*CHECKS, skip("rping", "no tool", pair=("w1", "w2"), network="rail-1")], HEAD))
    assert found["matrices"] == [
        {
            "network": "rail-1",
            "check": "write_bandwidth",
            "unit": "Gb/s",
            "nodes": ["w1", "w2", "w3"],
            "suspects": ["path w2 -> w1", "path w3 -> w2"],
            "figures": {
                "w1": {"w2": {"status": "passed", "value": 97.79}, "w3": {"status": "passed", "value": 97.5}},
                "w2": {"w1": {"status": "failed", "value": 40.12}},
                "w3": {"w2": {"status": "failed", "value": None}},
            },
        }
    ]
