# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin around the checks: what it writes, and what it leaves alone."""

from __future__ import annotations

import json
import types
import typing as t
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible_collections.ipu.fabric.plugins.action import fabric_report
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Expect
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import CHECK_TYPES
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify import test_checks as fabrics

PROBE = {"probed": False, "reason": "no cluster"}


@pytest.fixture
def run(tmp_path: Path) -> t.Callable[..., t.Dict[str, t.Any]]:
    def call(check: bool = False, **params: t.Any) -> t.Dict[str, t.Any]:
        options = {"plan": {"cluster": {"endpoint": "cp1:6443"}}, "probe": PROBE, **params}
        task = types.SimpleNamespace(
            args=options, check_mode=check, async_val=0, action="ipu.fabric.fabric_report", diff=False
        )
        loader = DataLoader()
        loader.set_basedir(str(tmp_path / "playbooks"))
        nobody: t.Any = None
        connection: t.Any = types.SimpleNamespace(_shell=types.SimpleNamespace(tmpdir=""))
        plugin = fabric_report.ActionModule(task, connection, nobody, loader, nobody, nobody)
        return plugin.run(task_vars={})

    return call


def test_three_reports_are_written_and_that_is_no_change(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    result = run(artifacts_dir=str(tmp_path / "new"))
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["junit.xml", "report.html", "report.json"]
    assert sorted(result["reports"]) == sorted(str(path) for path in (tmp_path / "new").iterdir())
    assert (result["changed"], result["failed_checks"]) == (False, 0)
    assert result["summary"] == f"not run: 0 passed, 0 failed, {len(CHECK_TYPES)} skipped"
    assert json.loads((tmp_path / "new/report.json").read_text())["cluster"] == "cp1:6443"


def test_a_link_in_place_of_a_report_is_replaced_and_not_written_through(
    run: t.Callable[..., t.Any], tmp_path: Path
) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "report.json").symlink_to(tmp_path / "victim")
    run(artifacts_dir=str(tmp_path))
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "report.json").is_symlink()


def test_earlier_proofs_of_the_whole_site_are_remembered(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    def prove(**options: t.Any) -> t.List[t.Dict[str, t.Any]]:
        plan = fabrics.plan()
        for network in plan["networks"]:
            network["hosts"] = list(plan["hosts"])
        run(**{"plan": plan, "probe": fabrics.probe(), "artifacts_dir": str(tmp_path), **options})
        return json.loads((tmp_path / "history.json").read_text())["runs"]

    assert [entry["outcome"] for entry in prove(ipu_partition="p1")] == ["proved"]
    assert "Earlier runs" not in (tmp_path / "report.html").read_text()
    runs = prove(ipu_partition="p1", rdma_bandwidth=98.5)
    assert [entry["outcome"] for entry in runs] == ["failed", "proved"]
    assert runs[0]["counts"]["failed"] == 1
    assert "Earlier runs" in (tmp_path / "report.html").read_text()
    assert prove(nodes=["w1"]) == runs  # a proof of one node
    assert prove(probe=PROBE) == runs  # no proof at all
    (tmp_path / "history.json").write_text("{")
    assert len(prove(ipu_partition="p1")) == 1


def test_some_checks_alone_prove_nothing_and_leave_the_reports(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    plan = fabrics.plan()
    for network in plan["networks"]:
        network["hosts"] = list(plan["hosts"])
    options = {"plan": plan, "probe": fabrics.probe(), "artifacts_dir": str(tmp_path), "ipu_partition": "p1"}
    run(**options)
    before = {path: path.read_text() for path in tmp_path.iterdir()}
    done = run(**options, checks=["mtu"])
    assert {check["check"] for check in done["checks"]} == {"mtu"}
    assert (done["outcome"], done["refusal"], done["reports"]) == ("partial", "", [])
    assert "proved" not in done["table"]
    assert {path: path.read_text() for path in tmp_path.iterdir()} == before
    failed = run(**options, checks=["write_bandwidth"], rdma_bandwidth=98.5)
    assert failed["refusal"].startswith("failed: 0 passed, 1 failed, 0 skipped. ")


def test_a_check_that_the_plan_does_not_have_is_not_repeated(run: t.Callable[..., t.Any]) -> None:
    plan = fabrics.plan()
    for network in plan["networks"]:
        network["hosts"] = list(plan["hosts"])
    done = run(plan=plan, probe=fabrics.probe(), checks=["gpudirect"])
    assert "gpudirect: not made. Seen: GPU checks are off. Next: leave out verify_checks" in done["refusal"]
    assert "no check named mtuu (did you mean mtu?)" in run(checks=["mtuu"])["msg"]


def test_a_relative_folder_starts_at_the_playbook(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    assert str(tmp_path / "playbooks/out/report.json") in run(artifacts_dir="out")["reports"]
    assert (tmp_path / "playbooks/out/report.json").exists()


@pytest.mark.parametrize("params", [{"check": True}, {"artifacts_dir": ""}])
def test_nothing_is_written(run: t.Callable[..., t.Any], tmp_path: Path, params: t.Dict[str, t.Any]) -> None:
    assert run(**{"artifacts_dir": str(tmp_path / "new"), **params})["reports"] == []
    assert not (tmp_path / "new").exists()


def test_a_place_that_cannot_be_written_is_said(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run(artifacts_dir=str(tmp_path / "file"))
    assert result["failed"]
    assert result["error"]["where"] == str(tmp_path / "file")
    assert "artifacts_dir" in result["error"]["next_step"]
    assert result["msg"].startswith(result["error"]["what"])


@pytest.mark.parametrize(
    ("options", "failed"),
    [
        ({"rdma_bandwidth": "90", "rdma_latency": "5", "host_traffic": 20, "ipu_partition": "p1"}, 0),
        ({"rdma_bandwidth": 98.5, "ipu_partition": "p1"}, 1),
        ({"rdma_latency": 1, "host_traffic": 30, "ipu_partition": "p1"}, 2),
    ],
)
def test_what_the_site_expects_counts(
    run: t.Callable[..., t.Any], options: t.Dict[str, t.Any], failed: int, tmp_path: Path
) -> None:
    result = run(plan=fabrics.plan(), probe=fabrics.probe(), artifacts_dir=str(tmp_path), **options)
    assert result["failed_checks"] == failed
    assert len([check for check in result["checks"] if check["status"] == "failed"]) == failed
    assert ("<h2>Failed</h2>" in (tmp_path / "report.html").read_text()) == bool(failed)


@pytest.mark.parametrize(
    ("allow", "outcome", "statuses"),
    [
        ([], "unproven", {"unproven"}),
        (["rping"], "unproven", {"unproven", "accepted"}),
        (["rping", "write_bandwidth", "read_latency", "rdma_counters", "ping"], "proved", {"accepted"}),
    ],
)
def test_rdma_that_could_not_be_tested_is_not_proved(
    run: t.Callable[..., t.Any], allow: t.List[str], outcome: str, statuses: t.Set[str], tmp_path: Path
) -> None:
    probe = fabrics.probe()
    for test in probe["traffic"]:
        test["missing"] = True
    result = run(plan=fabrics.plan(), probe=probe, artifacts_dir=str(tmp_path), allow_unproven=allow)
    assert (result["outcome"], result["failed_checks"]) == (outcome, 0)
    assert result["summary"].startswith(f"{outcome}: ")
    assert {check["status"] for check in result["checks"]} - {"passed", "skipped"} == statuses
    assert json.loads((tmp_path / "report.json").read_text())["outcome"] == outcome
    assert f"<h1>Fabric {outcome}: " in (tmp_path / "report.html").read_text()
    missing = [(entry["checks"], "perftest" in entry["missing"]) for entry in result["unproven"]]
    waiting = [name for name in ("rping", "write_bandwidth", "read_latency", "rdma_counters") if name not in allow]
    assert missing == ([(waiting, True)] if waiting else [])


def test_only_checks_can_be_accepted(run: t.Callable[..., t.Any]) -> None:
    result = run(allow_unproven=["rping", "everything"])
    assert result["failed"]
    assert "no check named everything" in result["msg"]
    assert "verify_allow_unproven" in result["msg"]


@pytest.mark.parametrize("options", [{"probe": "text"}, {"host_traffic": "fast"}, {"unknown": 1}])
def test_options_are_validated(run: t.Callable[..., t.Any], options: t.Dict[str, t.Any]) -> None:
    result = run(**options)
    assert (result["failed"], result["error"]["code"]) == (True, "invalid-input")
    assert next(iter(options)) in result["msg"]


@pytest.mark.parametrize("text", ["fast", "-1", "nan", "inf", ""])
@pytest.mark.parametrize("option", ["rdma_bandwidth", "rdma_latency"])
def test_limits_are_auto_or_numbers(run: t.Callable[..., t.Any], option: str, text: str) -> None:
    result = run(**{option: text})
    assert result["failed"]
    assert (result["error"]["where"], result["error"]["seen"]) == (option, repr(text))


def test_every_expectation_of_a_site_is_an_option() -> None:
    assert set(Expect._fields) == set(fabric_report.ActionModule.spec) - {
        "plan",
        "probe",
        "probe_file",
        "artifacts_dir",
        "nodes",
        "checks",
        "before",
    }


def test_defaults_of_options_are_those_of_the_checks() -> None:
    spec = fabric_report.ActionModule.spec
    defaults = {name: spec[name]["default"] for name in Expect._fields}
    assert {**defaults, "allow_unproven": tuple(defaults["allow_unproven"])} == Expect._field_defaults


def test_facts_from_a_file(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    (tmp_path / "probe.json").write_text(json.dumps(PROBE))
    from_file = run(probe=None, probe_file=str(tmp_path / "probe.json"))
    assert from_file["checks"] == run()["checks"]


@pytest.mark.parametrize(
    ("options", "said"),
    [({}, "neither is given"), ({"probe_file": "/nonexistent/probe.json"}, "No such file")],
)
def test_without_facts(options: t.Dict[str, t.Any], said: str, run: t.Callable[..., t.Any]) -> None:
    result = run(probe=None, **options)
    assert result["failed"]
    assert said in result["msg"]
