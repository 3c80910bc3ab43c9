"""An archive of every fault of tests/faults.md: its judgement names the checks that plan and proof name at the site."""

from __future__ import annotations

import io
import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Head
from ansible_collections.ipu.fabric.plugins.module_utils._support.archive import Files, pack, unpack
from ansible_collections.ipu.fabric.plugins.module_utils._support.contents import Collected, contents
from ansible_collections.ipu.fabric.plugins.module_utils._support.judge import as_text, judge
from ansible_collections.ipu.fabric.plugins.module_utils._support.scan import leaks
from ansible_collections.ipu.fabric.plugins.module_utils._verify.checks import check_fabric
from ansible_collections.ipu.fabric.plugins.module_utils._verify.report import to_json
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify import test_checks as fabrics
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify import test_faults as catalogue

FINDING = {"level": "error", "hosts": [], "what": "", "seen": "", "next": ""}
NOTHING: t.Dict[str, t.Any] = {"cluster": {"objects": {}, "logs": {}, "gaps": []}}


def archive(artifacts: t.Mapping[str, t.Any], cluster: t.Optional[t.Dict[str, t.Any]] = None, **hosts: t.Any) -> Files:
    """As support_archive makes it and reads it."""
    texts = {name: data if isinstance(data, str) else json.dumps(data) for name, data in artifacts.items()}
    files = contents(
        Collected(texts, "artifacts", cluster or NOTHING, hosts), "2026-11-24T23:06:46Z", {"ipu.fabric": "0"}
    )
    found = unpack(io.BytesIO(pack("support-1", files, 0)), "here")
    assert leaks(found) == []
    return found


def of_fault(fault: catalogue.Fault) -> Files:
    planned, probe = catalogue.proof_inputs(fault)
    checks = catalogue.compared(check_fabric(planned, probe, fabrics.EXPECT), planned)
    report = to_json(checks, Head("", 0, "", "", fabrics.EXPECT._asdict()))
    findings = catalogue.planned_site(fault)["findings"]
    whole = {
        "plan.json": {**planned, "findings": findings},
        "report.json": report,
        "probe.json": probe,
        "observations.json": {},
    }
    return archive(whole)


@pytest.mark.parametrize("name", catalogue.FAULTS)
def test_a_fault_is_named_as_at_the_site(name: str) -> None:
    fault = catalogue.FAULTS[name]
    problems = judge(of_fault(fault))
    plan = {problem.check for problem in problems if problem.source == "plan"}
    proof = {problem.check for problem in problems if problem.source == "proof" and problem.level == "error"}
    assert plan == {finding["check"] for finding in catalogue.planned_site(fault)["findings"]}
    assert proof == catalogue.found_by_verify(fault)
    # Faults before an upgrade are findings of its own plan, which no file has.
    (row,) = (row for row in catalogue.ROWS if row.fault == name)
    assert plan | proof or not row.proof
    assert [problem for problem in problems if problem.source == "archive"] == []


def test_a_good_site_shows_nothing() -> None:
    files = of_fault(catalogue.Fault())
    assert judge(files) == []
    assert as_text(files, []) == ["Archive of 2026-11-24T23:06:46Z: ipu.fabric 0", "Nothing wrong was found."]


def pod(name: str, phase: str = "Running", **status: t.Any) -> t.Dict[str, t.Any]:
    return {"metadata": {"namespace": "kube-system", "name": name}, "status": {"phase": phase, **status}}


def test_of_the_cluster() -> None:
    waiting = {"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    objects = {
        "Pod": [
            pod("good", containerStatuses=[{"name": "c", "ready": True}]),
            pod("done", "Succeeded"),
            pod("pull", "Pending", containerStatuses=[waiting]),
            pod("slow", containerStatuses=[{"name": "c", "ready": False}]),
            pod("evicted", "Failed", reason="Evicted", message="low on memory"),
        ],
        "Node": [
            {"metadata": {"name": "w1"}, "status": {"conditions": [
                {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "no CNI"},
                {"type": "DiskPressure", "status": "True", "message": "full"},
            ]}},
        ],
        "Event": [
            {"type": "Warning", "reason": "FailedMount", "message": "no such secret", "count": 7,
             "lastTimestamp": "2026", "involvedObject": {"kind": "Pod", "namespace": "a", "name": "b"}},
            {"type": "Normal", "reason": "Pulled"},
        ],
    }  # fmt: skip
    files = archive({}, {"cluster": {"objects": objects, "logs": {"kube-system/pull/c": "x"}, "gaps": []}})
    assert files["cluster/logs/kube-system/pull/c.log"] == "x"
    found = [(each.level, each.source, each.where, each.seen) for each in judge(files) if each.source != "archive"]
    assert found == [
        ("error", "node", "w1", "KubeletNotReady: no CNI"),
        ("error", "pod", "kube-system/pull", "pod pull, container c: ImagePullBackOff no such image"),
        ("error", "pod", "kube-system/slow", "Running, container c"),
        ("error", "pod", "kube-system/evicted", "Failed: Evicted: low on memory"),
        ("warning", "node", "w1", "full"),
        ("warning", "event", "Pod/a/b", "no such secret (7 times, last 2026)"),
    ]


def test_what_was_not_collected_is_named() -> None:
    files = archive(
        {"plan.json": "{", "report.json": "{}", "observations.json": "{}"},
        {"failed": True, "error": {"what": "x", "seen": "connection refused"}},
        w1={"unreachable": True, "msg": "no route"},
        w3={"failed": True, "msg": "rc 127", "module_stderr": "no python3\n"},
        w4={"logs": {}},
        w2={"logs": {"kubelet": "ready"}},
    )
    assert files["hosts/w2/kubelet.log"] == "ready"
    assert {(each.where, each.seen.partition(" line")[0]) for each in judge(files)} == {
        ("plan.json (artifacts)", "Expecting property name enclosed in double quotes:"),
        ("probe.json (artifacts)", "there is no such file"),
        ("the cluster (its API)", "connection refused"),
        ("the journal (w1)", "unreachable: no route"),
        ("the journal (w3)", "rc 127: no python3"),
        ("the journal (w4)", "nothing is in it"),
    }


def test_a_report_without_its_probe_is_taken_as_it_is() -> None:
    files = dict(of_fault(catalogue.FAULTS["locked memory is limited for root"]))
    del files["probe.json"]
    assert "memlock_root" in {problem.check for problem in judge(files) if problem.source == "proof"}


@pytest.mark.parametrize(
    "text", ["[]", "{", "[" * 100_000, '{"findings": 1}', '{"probed": true}', '{"Pod": [1]}', "null"]
)
def test_a_strange_file_is_a_problem_and_no_crash(text: str) -> None:
    files = dict(of_fault(catalogue.Fault()))
    for name in files:
        problems = judge({**files, name: text})
        assert all(problem.level for problem in problems)
        assert as_text({**files, name: text}, problems)


def test_a_terminal_is_not_controlled_by_it() -> None:
    files = archive({"plan.json": {"findings": [{**FINDING, "check": "\x1b[2Ja"}]}})
    assert "\x1b" not in "".join(as_text(files, judge(files)))


def test_a_finding_of_the_plan_is_told_as_the_plan_tells_it() -> None:
    """What it is about is nothing that was expected."""
    finding = {**FINDING, "check": "swap", "hosts": ["w1"], "what": "Swap is on.", "seen": "/swap", "next": "Nothing."}
    files = archive({"plan.json": {"findings": [finding]}})
    lines = as_text(files, [problem for problem in judge(files) if problem.source == "plan"])
    assert lines[-4:] == ["ERROR plan, swap: w1", "  Swap is on.", "  seen: /swap", "  next: Nothing."]
