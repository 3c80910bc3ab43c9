"""Plans of recorded sites: no host is asked, and no other playbook runs with a recording."""

from __future__ import annotations

import gzip
import json
import os

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.plan import Plan
from ansible_collections.ipu.fabric.plugins.module_utils._plan.approved import decisions
from ansible_collections.ipu.fabric.tests.unit.fixtures import recorded
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.playbooks import test_api

MISTAKES = [check for *_rest, check in recorded.ON_HOSTS] + [
    "unknown-group",
    "unknown-variable",
    "cidr",
    "control-plane-count",
    "endpoint",  # of two control planes, too
]
FINDINGS = {
    "mistakes": sorted(MISTAKES),
    "rack": ["pcie-link"],
    "hall": [],
    "one-host": [],
    "vsphere": ["pvrdma"],
    "k3s": [],
}
HOSTS = {"mistakes": 11, "rack": 19, "hall": 200, "one-host": 1, "vsphere": 5, "k3s": 3}
OTHERS = sorted({path.stem for path in (ROOT / "playbooks").glob("*.yml")} - {"plan", "site"})
GROUPS = {"kube_control_plane": ["cp1"], "kube_node": ["w1"]}


def inventory_of(name):
    own = ROOT / f"inventories/recorded/{name}"
    return own if own.exists() else ROOT / f"inventories/{name}"


def plan_of(folder, name, *arguments, playbook="ipu.fabric.plan", **variables):
    recording = os.path.relpath(ROOT / f"inventories/recorded/{name}.json.gz", folder)
    given = {"fabric_observations": recording, **variables}
    return play(folder, playbook, {}, {}, *arguments, inventory=inventory_of(name), **given)


@pytest.mark.parametrize("name", FINDINGS)
def test_a_recorded_site(tmp_path, name):
    done = plan_of(tmp_path, name)
    plan: Plan = done.read("artifacts/recorded/plan.json")
    assert sorted(finding["check"] for finding in plan["findings"]) == FINDINGS[name], done.text
    assert done.code == (2 if name == "mistakes" else 0)
    assert len(plan["hosts"]) == HOSTS[name]
    assert plan["recorded"] == recorded.TIME
    assert f"Recorded {recorded.TIME}: no host was asked" in done.said
    assert "Files in " in done.said
    assert "artifacts/recorded" in done.said
    assert done.calls == []
    # The site's own plan, and what its hosts reported, stay as they are.
    assert sorted(path.name for path in (tmp_path / "artifacts").iterdir()) == ["recorded"]
    assert sorted(path.name for path in (tmp_path / "artifacts/recorded").iterdir()) == ["plan.html", "plan.json"]


def test_all_is_planned_with_a_limit(tmp_path):
    done = plan_of(tmp_path, "k3s", "--limit", "node3")
    assert done.code == 0, done.text
    assert len(done.read("artifacts/recorded/plan.json")["hosts"]) == 3


def test_what_a_setting_would_change(tmp_path):
    assert plan_of(tmp_path, "rack").code == 0
    before = (tmp_path / "artifacts/recorded/plan.json").read_text(encoding="utf-8")
    done = plan_of(tmp_path, "rack", fabric_pods_per_node=16, fabric_plan_file="artifacts/recorded/plan.json")
    assert done.code == 0, done.text
    assert "WARNING plan-moved" in done.said
    assert "Network rail-0 has to be as in the approved plan" in done.said
    assert (tmp_path / "artifacts/recorded/plan.json").read_text(encoding="utf-8") == before


def test_a_site_is_planned_again_from_what_its_hosts_reported(tmp_path):
    given = {"fabric_manage_kubernetes": False, "fabric_probe_ports": False}
    assert play(tmp_path, "ipu.fabric.plan", test_api.GROUPS, test_api.answers(), **given).code == 0
    asked = tmp_path / "artifacts"
    kept = {path.name: path.read_bytes() for path in asked.iterdir()}
    done = play(
        tmp_path, "ipu.fabric.plan", test_api.GROUPS, {}, fabric_observations="artifacts/observations.json", **given
    )
    assert done.code == 0, done.text
    assert decisions(done.read("artifacts/recorded/plan.json")) == decisions(done.read("artifacts/plan.json"))
    assert {path.name: path.read_bytes() for path in asked.iterdir() if path.is_file()} == kept
    assert done.calls == []


def test_make_try_shows_a_plan_and_a_proof(tmp_path):
    """The proof agrees with the plan of today's rules, and finds what the plan warns of."""
    folder = tmp_path / "artifacts/recorded"
    folder.mkdir(parents=True)
    probe = ROOT / "inventories/recorded/rack.probe.json.gz"
    (folder / "probe.json").write_bytes(gzip.decompress(probe.read_bytes()))
    artifacts = {"fabric_artifacts_dir": str(tmp_path / "artifacts")}
    done = plan_of(tmp_path, "rack", playbook=str(ROOT / "hack/rack.yml"), **artifacts)
    assert done.code == 0, done.text
    report = done.read("artifacts/recorded/report.json")
    failed = [check for check in report["checks"] if check["status"] in ("failed", "unproven")]
    found = {(check["check"], check["network"]) for check in failed}
    assert found == {("write_bandwidth", "rail-2"), ("gpu_bandwidth", "rail-2")}
    assert all("gpu11" in check["pair"] for check in failed)
    assert "failed: " in done.said
    assert (folder / "report.html").is_file()


OF_A_CLUSTER = ("prove_cluster", "prove_slice")  # they read neither hosts nor an inventory


@pytest.mark.parametrize("name", ["site", *(name for name in OTHERS if name not in OF_A_CLUSTER)])
def test_no_other_playbook_runs_with_a_recording(tmp_path, name):
    arguments = {"fabric_observations": "o.json", "fabric_backup": "x", "fabric_remove_nodes": "w1", "pod": "a/b"}
    done = play(tmp_path, f"ipu.fabric.{name}", GROUPS, {}, **arguments)
    assert done.code != 0, done.text
    assert "Only ipu.fabric.plan works with a recording." in done.said
    assert "run ipu.fabric.plan with it" in done.said
    assert done.calls == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file or directory"),
        ("{", "it is not JSON"),
        (json.dumps({"cp1": {"when": "2026-11-23", "host": {"hostname": "cp1"}}}), "cp1: host.architecture is missing"),
        (json.dumps({"x1": recorded.recording("one-host")["poplar1"]}), "the recording is of x1"),
    ],
)
def test_a_file_that_does_not_do(tmp_path, text, said):
    if text is not None:
        (tmp_path / "seen.json").write_text(text, encoding="utf-8")
    done = play(tmp_path, "ipu.fabric.plan", GROUPS, {}, fabric_observations="seen.json")
    assert done.code != 0
    assert said in done.said, done.text
    assert "Where: fabric_observations: " in done.said
    assert " Next: Give the " in done.said
    assert done.calls == []
