"""The action plugin around the checks: what it writes, and what it leaves alone."""

from __future__ import annotations

import hashlib
import json
import subprocess
import types
import typing as t
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible_collections.ipu.fabric.plugins.action import fabric_report
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Expect
from ansible_collections.ipu.fabric.plugins.module_utils._verify import baseline
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import CHECK_TYPES
from ansible_collections.ipu.fabric.plugins.plugin_utils._artifacts import plan_text, write_files
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


@pytest.fixture
def prove(run: t.Callable[..., t.Any], tmp_path: Path) -> t.Callable[..., t.Dict[str, t.Any]]:
    """A proof of a site that is well, with this bandwidth; the reports are in tmp_path."""

    def call(bandwidth: float = 97.8, **options: t.Any) -> t.Dict[str, t.Any]:
        plan, probe = fabrics.plan(), fabrics.probe()
        for network in plan["networks"]:
            network["hosts"] = list(plan["hosts"])
        probe["traffic"][1]["value"] = bandwidth
        return run(**{"plan": plan, "probe": probe, "artifacts_dir": str(tmp_path), "ipu_partition": "p1", **options})

    return call


def of_regressions(done: t.Dict[str, t.Any]) -> t.List[t.Tuple[str, str, str]]:
    """Of `regression`, and of figures that fail by comparison."""
    checks = [(c["status"], c["subject"], c["seen"]) for c in done["checks"] if c["check"] == "regression"]
    return checks + [(c["status"], c["check"], c["seen"]) for c in done["checks"] if "usually" in c["expected"]]


def test_the_first_proof_says_that_there_is_no_baseline(prove: t.Callable[..., t.Any]) -> None:
    first = prove()
    assert first["outcome"] == "proved"
    assert of_regressions(first) == [("skipped", "", baseline.NO_PROOF)]
    assert "No worse than before" in first["table"]
    assert [status for status, _subject, _seen in of_regressions(prove())] == ["passed"]


def test_a_figure_and_a_check_that_got_worse_are_failures(prove: t.Callable[..., t.Any], tmp_path: Path) -> None:
    for _run in range(4):
        assert prove()["outcome"] == "proved"
    done = prove(82.0)
    assert (done["outcome"], done["failed_checks"]) == ("failed", 1)
    assert of_regressions(done) == [("failed", "write_bandwidth", "82 Gb/s")]
    page = (tmp_path / "report.html").read_text()
    assert "Figures from run to run" in page
    assert 'aria-label="97.8, 97.8, 97.8, 97.8, 82 Gb/s, oldest first"' in page
    missing = fabrics.probe()
    missing["traffic"][2]["missing"] = True
    (lost,) = of_regressions(prove(probe=missing, allow_unproven=["rdma_counters"]))
    assert lost[:2] == ("failed", "read_latency")
    assert prove()["outcome"] == "proved"


def test_a_partial_proof_is_no_baseline_and_is_not_compared_with_the_whole(
    prove: t.Callable[..., t.Any], tmp_path: Path
) -> None:
    for _run in range(4):
        prove()
    before = (tmp_path / "baseline.json").read_text()
    assert of_regressions(prove(nodes=["w1"])) == [("passed", "", "2 figures compared")]
    assert of_regressions(prove(82.0, nodes=["w1"])) == [("failed", "write_bandwidth", "82 Gb/s")]
    assert of_regressions(prove(checks=["mtu"])) == []
    repeated = prove(82.0, checks=["write_bandwidth"])
    assert (repeated["outcome"], repeated["failed_checks"]) == ("failed", 1)
    assert "this check only compares the results of others" in prove(checks=["regression"])["refusal"]
    assert (tmp_path / "baseline.json").read_text() == before


def test_a_site_says_what_to_compare_with(prove: t.Callable[..., t.Any], tmp_path: Path) -> None:
    for _run in range(4):
        prove()
    (tmp_path / "golden.json").write_bytes((tmp_path / "report.json").read_bytes())
    assert of_regressions(prove(82.0, baseline="none")) == [("skipped", "", baseline.SWITCHED_OFF)]
    assert prove(82.0, baseline=str(tmp_path / "golden.json"))["outcome"] == "failed"
    assert of_regressions(prove(82.0, baseline="accept")) == [("skipped", "", baseline.ACCEPTED_NOW)]
    assert prove(82.0)["outcome"] == "proved"
    missing = prove(baseline="old.json")
    assert (missing["failed"], missing["error"]["seen"]) == (True, "no such file")


def of_cluster(digest: str) -> t.Any:
    return {**fabrics.probe(), "ca": digest}


def test_earlier_proofs_of_another_cluster_do_not_count(prove: t.Callable[..., t.Any], tmp_path: Path) -> None:
    """Its names are those of the one that was reset, and its fabric is new."""
    for _run in range(4):
        prove(probe=of_cluster("aa"))
    missing = of_cluster("bb")
    missing["traffic"][2]["missing"] = True
    new = prove(probe=missing, allow_unproven=["read_latency", "rdma_counters"])
    assert of_regressions(new) == [("skipped", "", baseline.OTHER_CLUSTER)]
    assert json.loads((tmp_path / "baseline.json").read_text())["ca"] == "bb"
    assert [status for status, _subject, _seen in of_regressions(prove(probe=of_cluster("bb")))] == ["passed"]
    partial = prove(82.0, probe={**of_cluster("cc"), "traffic": fabrics.probe()["traffic"]}, nodes=["w1"])
    assert of_regressions(partial) == []
    assert json.loads((tmp_path / "baseline.json").read_text())["ca"] == "bb"


@pytest.mark.parametrize(("before", "now"), [("", "bb"), ("aa", ""), ("aa", "aa")])
def test_what_is_not_known_of_a_cluster_is_no_difference(
    prove: t.Callable[..., t.Any], tmp_path: Path, before: str, now: str
) -> None:
    """A baseline of an earlier release names none, and a scheduled proof may not read it."""
    prove(probe=of_cluster(before))
    assert [status for status, _subject, _seen in of_regressions(prove(probe=of_cluster(now)))] == ["passed"]
    assert json.loads((tmp_path / "baseline.json").read_text())["ca"] == (now or before)


def test_an_upgrade_compares_with_its_own_proof_only(prove: t.Callable[..., t.Any]) -> None:
    for _run in range(4):
        before = prove()["checks"]
    done = prove(82.0, before=before)
    assert (of_regressions(done), done["refusal"]) == ([], "")


def test_the_report_says_what_was_proved_of_what(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    plan = fabrics.plan()
    write_files(str(tmp_path), {"plan.json": plan_text(plan), "probe.json": json.dumps(fabrics.probe())}, "")
    run(plan=plan, probe=None, probe_file=str(tmp_path / "probe.json"), artifacts_dir=str(tmp_path))
    digests = json.loads((tmp_path / "report.json").read_text())["digests"]
    for name in ("plan", "probe"):
        assert digests[name] == hashlib.sha256((tmp_path / f"{name}.json").read_bytes()).hexdigest()
    assert digests["inventory"] == hashlib.sha256(b"{}").hexdigest()


KINDS = {
    "EC": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "RSA": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
}


def make_key(path: Path, kind: str, *more: str) -> str:
    arguments = KINDS.get(kind, ["-algorithm", kind])
    subprocess.run(["openssl", "genpkey", *arguments, *more, "-out", path], check=True, capture_output=True)
    path.chmod(0o640)
    return str(path)


@pytest.mark.parametrize("kind", list(KINDS))
def test_openssl_verifies_the_signature(kind: str, prove: t.Callable[..., t.Any], tmp_path: Path) -> None:
    key = make_key(tmp_path / "report.key", kind)
    prove(report_key=key)
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", tmp_path / "report.pub"], check=True)
    verify = ["openssl", "dgst", "-sha256", "-verify", "report.pub", "-signature", "report.json.sig", "report.json"]
    assert subprocess.run(verify, cwd=tmp_path, check=False, capture_output=True).stdout == b"Verified OK\n"
    (tmp_path / "report.json").write_text((tmp_path / "report.json").read_text().replace("proved", "Proved"))
    assert subprocess.run(verify, cwd=tmp_path, check=False, capture_output=True).returncode == 1
    prove()
    assert not (tmp_path / "report.json.sig").exists()  # it would be another report's


@pytest.mark.parametrize(
    ("make", "seen"),
    [
        (lambda key: key.chmod(0o644), "its mode is 0644"),
        (lambda key: key.chmod(0o660), "its mode is 0660"),
        (lambda key: key.write_text("nothing"), "it is not a private key"),
        (lambda key: key.unlink(), "No such file"),
        (lambda key: make_key(key, "ED25519"), "neither RSA nor EC"),
        (lambda key: make_key(key, "EC", "-aes256", "-pass", "pass:word"), "it has a passphrase"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused(
    make: t.Callable[[Path], object], seen: str, prove: t.Callable[..., t.Any], tmp_path: Path
) -> None:
    key = tmp_path / "report.key"
    make_key(key, "EC")
    make(key)
    refused = prove(report_key=str(key))
    assert refused["failed"]
    assert seen in refused["error"]["seen"]
    assert not (tmp_path / "report.json").exists()


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
    assert "gpudirect: not run. Seen: GPU checks are off. Next: leave out verify_checks" in done["refusal"]
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
        "baseline",
        "report_key",
    }


def test_defaults_of_options_are_those_of_the_checks() -> None:
    spec = fabric_report.ActionModule.spec
    defaults = {name: spec[name]["default"] for name in Expect._fields}
    assert {**defaults, "allow_unproven": tuple(defaults["allow_unproven"])} == Expect._field_defaults


@pytest.mark.parametrize("installed", [True, False])
def test_a_cluster_without_the_fabric_is_told_apart(run: t.Callable[..., t.Any], installed: bool) -> None:
    facts = fabrics.probe()
    if not installed:
        networks = {"rdma-net": {"state": None, "attachment": None}}
        facts.update(releases=[], kinds=[], networks=networks)
    assert run(plan=fabrics.plan(), probe=facts)["bare"] is not installed


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
