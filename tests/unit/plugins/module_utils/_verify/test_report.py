"""Reports for a person and a CI system."""

from __future__ import annotations

import json
import re
import typing as t
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check, Head
from ansible_collections.ipu.fabric.plugins.module_utils._verify import report
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import CHECK_TYPES, result, skip, unproven

HEAD = Head("2026-11-21T16:00:00Z", 4.2, "10.80.0.11:6443", "v1.35.4")
PASSED = result("mtu", True, "1500", "1500", node="w1", network="rdma-net")
FAILED = result("memlock_user", False, "unlimited", "8 MiB", node="w1")
SKIPPED = skip("rping", "planned without RDMA", network="rdma-net")


def ping(a: str, b: str, good: bool = True, value: float = 0.08) -> Check:
    return result("ping", good, "answers", "2 of 2 answered", pair=(a, b), network="rdma-net", value=value, unit="ms")


CHECKS = [PASSED, FAILED, SKIPPED, ping("cp1", "w1")]


OPEN = unproven("write_bandwidth", "ib_write_bw is not in the image", "Set verify_rdma_image.")


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ([PASSED, SKIPPED], ""),
        ([SKIPPED], ""),
        (
            CHECKS,
            "1 skipped. The table above says what to do about each failure. Reports: r.html",
        ),
        (
            [PASSED, OPEN],
            "write_bandwidth: ib_write_bw is not in the image. Set verify_rdma_image. To accept",
        ),
    ],
)
def test_why_a_playbook_fails(checks: t.List[Check], said: str) -> None:
    found = report.refusal(checks, ["r.html"])
    assert said in found
    assert bool(found) is bool(said)


def test_why_a_playbook_fails_that_compares() -> None:
    assert report.refusal_worse([], ["w1"]) == ""
    found = report.refusal_worse([FAILED, *(ping("cp1", "w1", good=False) for _each in range(10))], ["w1", "w2"])
    assert found.startswith(
        "The fabric is worse than before on w1, w2. memlock_user (w1): expected unlimited, seen 8 MiB. Run the"
    )
    assert "ping (rdma-net cp1 w1): expected answers, seen 2 of 2 answered." in found
    assert found.endswith("And 1 more.")


# Terminal


def test_the_counts_are_the_last_line() -> None:
    assert report.table(CHECKS).splitlines()[-1] == "failed: 2 passed, 1 failed, 1 skipped"


def test_a_failure_says_what_was_expected_and_what_to_do() -> None:
    lines = report.table([FAILED]).splitlines()
    assert lines[:5] == [
        "LIMITS",
        "  FAILED   Locked memory, uid 1000     w1: 8 MiB",
        "           expected: unlimited",
        "           next: Run the playbook ipu.fabric.site with --tags",
        "             memlock, then recreate the node's pods. If that changes",
    ]


def test_no_line_is_wider_than_a_terminal() -> None:
    long = "a-node-with-a-very-long-name.example.com"
    checks = [
        check
        for kind in CHECK_TYPES
        for check in (
            result(kind, False, "e" * 90, "seen " * 40, node=long, network="a-network-of-many-words"),
            result(kind, True, "", "/a/path/without/any/place/to/break/it/" * 3, node=long),
            skip(kind, "reason " * 30, network="n"),
        )
    ]
    wide = [line for line in report.table(checks).splitlines() if len(line) > report.WIDTH]
    # Commands are for copying: one that does not fit has a line of its own.
    assert [line for line in wide if not re.fullmatch(r" *[^ `]*`[^`]+`[^ `]*", line)] == []


def test_what_is_skipped_for_one_reason_is_one_row() -> None:
    """GPU checks are off: that was said three times."""
    checks = [PASSED, *(skip(check, "GPU checks are off") for check in ("gpudirect", "gdrcopy", "gpu_bandwidth"))]
    text = " ".join(report.table(checks).split())
    assert text.count("GPU checks are off") == 1
    assert all(CHECK_TYPES[check.check].title.split()[0] in text for check in checks)
    per_node = [skip("gdrcopy", "why", node=node) for node in ("w1", "w2")]
    assert "gdrdrv on the node 2 nodes: why" in " ".join(report.table([PASSED, *per_node]).split())


def test_like_results_share_a_row() -> None:
    checks = [PASSED._replace(node=f"w{i}") for i in range(200)]
    assert report.table(checks).splitlines()[1] == "  passed   MTU of the interface        rdma-net, 200 nodes: 1500"


def test_only_nodes_are_counted_as_nodes() -> None:
    """The labels of nodes are checked on each, and against the operator's ConfigMap."""
    labels = [result("ipu_labels", True, "a=b", "a=b", node=name) for name in ("w1", "w2")]
    config = result("ipu_labels", True, "a=b", "c:1:a=b", subject="ipu-operator-vipu-controllers")
    assert "2 nodes: " in report.table([*labels, config])
    assert "IPU node labels             w1: " in report.table([labels[0], config])
    ports = [result("vipu", True, "open", "open", node="w1", subject=each) for each in ("a:1", "b:1")]
    assert "w1: open" in report.table(ports)


def test_figures_are_a_span() -> None:
    checks = [ping("a", "b", value=0.05)._replace(seen="x"), ping("a", "c", value=0.3)._replace(seen="y")]
    assert report.table(checks).splitlines()[1:3] == [
        "  passed   Pods reach each other       rdma-net, 2 pairs: 0.05 - 0.3",
        " " * 39 + "ms",
    ]


def test_many_values_are_cut_short() -> None:
    checks = [PASSED._replace(node=f"w{i}", seen=f"10.5.0.{i}") for i in range(9)]
    assert "(9 values)" in " ".join(report.table(checks).split())


def test_many_failures_are_told_in_part() -> None:
    text = report.table([FAILED._replace(node=f"w{i}", seen=f"{i} KiB") for i in range(200)])
    assert text.count("FAILED") == report.FEW + 1
    assert "and 190 more: see report.html" in text
    assert text.count("next: as above") == report.FEW - 1


def test_nodes_that_fail_alike_share_a_row_and_checks_their_advice() -> None:
    root = FAILED._replace(check="memlock_root")
    text = report.table([check._replace(node=node) for check in (root, FAILED) for node in ("w1", "w2")])
    lines = [line.strip() for line in text.splitlines()]
    assert [line for line in lines if "FAILED" in line] == [
        "FAILED   Locked memory, uid 0        w1, w2: 8 MiB",
        "FAILED   Locked memory, uid 1000     w1, w2: 8 MiB",
    ]
    assert [line for line in lines if line.startswith("next: ")] == [
        "next: Run the playbook ipu.fabric.site with --tags",
        "next: the same as for Locked memory, uid 0",
    ]


def test_many_nodes_that_fail_alike_are_named_in_part() -> None:
    text = " ".join(report.table([FAILED._replace(node=f"w{i}") for i in range(200)]).split())
    assert "w8, w9 and 190 more: 8 MiB" in text


def test_one_reason_for_everything_is_one_line() -> None:
    text = report.table([skip(kind, "check mode creates no pods") for kind in CHECK_TYPES])
    assert (
        text
        == f"Nothing was proven: check mode creates no pods.\n\nnot run: 0 passed, 0 failed, {len(CHECK_TYPES)} skipped"
    )


# What is unproven

TOOLS = "Set verify_rdma_image to an image that has rping."
UNPROVEN = [
    unproven("rping", "rping is not in the image small", TOOLS, pair=("w1", "w2"), network="rdma-net"),
    unproven("rping", "rping is not in the image small", TOOLS, pair=("w2", "w1"), network="rdma-net"),
    unproven("read_latency", "ib_read_lat is not in the image small", TOOLS, network="rdma-net"),
]


def test_what_is_missing_is_told_once_with_the_names_that_can_be_accepted() -> None:
    assert report.table([PASSED, *UNPROVEN]).splitlines()[3:] == [
        "RDMA",
        "  UNPROVEN rping from pod to pod       rdma-net, 2 pairs: rping is",
        "                                       not in the image small",
        "  UNPROVEN ib_read_lat                 rdma-net: ib_read_lat is not",
        "                                       in the image small",
        "",
        "UNPROVEN (verify_allow_unproven takes these names)",
        "  rping, read_latency",
        f"    {TOOLS}",
        "",
        "unproven: 1 passed, 0 failed, 3 unproven, 0 skipped",
    ]


def test_what_a_site_accepts_is_shown_and_misses_nothing() -> None:
    text = report.table([PASSED, *(check._replace(status="accepted") for check in UNPROVEN)])
    assert "  accepted ib_read_lat                 rdma-net: ib_read_lat is not" in text
    assert text.endswith("\n\nproved: 1 passed, 0 failed, 3 accepted, 0 skipped")
    assert "UNPROVEN" not in text


ALONE = ping("w1", "w1 (second pod)")


def test_two_pods_on_a_node_are_no_two_nodes() -> None:
    text = report.table([PASSED, PASSED._replace(node="w1 (second pod)")])
    assert "rdma-net, 2 pods: 1500" in text


def test_a_pair_on_one_node_is_said() -> None:
    said = "NOTE rdma-net: two pods on w1 stand in for two nodes. They prove the NIC and the pods, not a path."
    assert said in " ".join(report.table([PASSED, ALONE]).split())
    assert json.loads(report.to_json([PASSED, ALONE], HEAD))["notes"] == [said[len("NOTE ") :]]
    assert "NOTE " not in report.table(CHECKS)


# JSON


def test_json_holds_every_field() -> None:
    found = json.loads(report.to_json(CHECKS, HEAD))
    assert (found["schema"], found["version"], found["counts"]) == (
        1,
        "v1.35.4",
        {"passed": 2, "failed": 1, "unproven": 0, "accepted": 0, "skipped": 1},
    )
    assert found["checks"][3]["pair"] == ["cp1", "w1"]
    assert set(found["checks"][0]) == {*Check._fields, "title", "area"}
    assert (found["outcome"], found["unproven"]) == ("failed", [])


def test_json_says_what_is_missing() -> None:
    found = json.loads(report.to_json([PASSED, *UNPROVEN], HEAD))
    waiting = {"checks": ["rping", "read_latency"], "seen": "rping is not in the image small", "missing": TOOLS}
    assert (found["outcome"], found["unproven"]) == ("unproven", [waiting])


# JUnit: the schema that Jenkins, GitLab and others read


def junit(checks: t.Sequence[Check]) -> ET.Element:
    return ET.fromstring(report.to_junit(checks, HEAD).encode())


SCHEMA = {
    "testsuites": ({"name", "time", "tests", "failures", "errors", "skipped"}, {"testsuite"}),
    "testsuite": (
        {"name", "time", "tests", "failures", "errors", "skipped", "timestamp", "hostname"},
        {"testcase"},
    ),
    "testcase": ({"name", "classname", "time"}, {"failure", "error", "skipped"}),
    "failure": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
    "skipped": ({"message"}, set()),
}


def test_junit_has_the_elements_and_attributes_of_the_schema() -> None:
    for element in junit([*CHECKS, *UNPROVEN]).iter():
        attributes, children = SCHEMA[element.tag]
        assert set(element.attrib) == attributes
        assert {child.tag for child in element} <= children


def test_junit_counts_are_those_of_its_cases() -> None:
    root = junit([*CHECKS, *UNPROVEN, UNPROVEN[0]._replace(status="accepted", network="other")])
    assert (root.attrib["errors"], root.attrib["skipped"]) == ("3", "2")
    for suite in [root, *root]:
        assert int(suite.attrib["tests"]) == len(list(suite.iter("testcase")))
        assert int(suite.attrib["failures"]) == len(list(suite.iter("failure")))
        assert int(suite.attrib["errors"]) == len(list(suite.iter("error")))
        assert int(suite.attrib["skipped"]) == len(list(suite.iter("skipped")))


def test_junit_names_are_unique_and_failures_tell_all() -> None:
    names = [(case.attrib["classname"], case.attrib["name"]) for case in junit(CHECKS).iter("testcase")]
    assert len(set(names)) == len(names) == len(CHECKS)
    text = next(junit(CHECKS).iter("failure")).text or ""
    lines = text.splitlines()
    assert lines[:2] == ["expected: unlimited", "seen: 8 MiB"]
    assert lines[2].startswith("next: Run")


@pytest.mark.parametrize("seen", ["a\x00b\x1b[31m", "<&>\"'", "ü → ∞", "\ud800"])
def test_junit_survives_any_text(seen: str) -> None:
    assert len(junit([FAILED._replace(seen=seen)])) == 1
