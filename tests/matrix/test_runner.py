"""What runs the playbooks in place of ansible-playbook: ansible-runner, as AWX does, and ansible-navigator."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.matrix.cell import Cell, Cells, ended_well, stage_in
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

PROJECT = ROOT / "docs/examples/awx/project"
NAVIGATOR = ROOT / "docs/examples/execution-environment/ansible-navigator.yml"
STEPS = "[defaults]\nstdout_callback = ipu.fabric.steps\n"


@pytest.fixture
def cell(cells: Cells) -> Cell:
    return cells("core-2.19", "3.12", "ansible-navigator", "ansible-runner")


def test_a_job_of_ansible_runner(cell: Cell, tmp_path: Path) -> None:
    """Its own callback writes the events, also where ansible.cfg asks for steps."""
    stage = stage_in(cell, tmp_path / "stage")
    private = tmp_path / "job"
    shutil.copytree(PROJECT, private / "project")
    (private / "project/ansible.cfg").write_text(STEPS)
    (private / "env").mkdir()
    (private / "env/cmdline").write_text(" ".join(stage.arguments))
    runner = str(cell.python.parent / "ansible-runner")
    run = ended_well(stage.run(runner, "run", str(private), "--playbook", "plan.yml", "--ident", "1"))
    events = [json.loads(path.read_text()) for path in (private / "artifacts/1/job_events").glob("*.json")]
    said = {event["event"] for event in events}
    assert said >= {"playbook_on_start", "playbook_on_task_start", "runner_on_ok", "playbook_on_stats"}
    assert {event["event_data"].get("task_action") for event in events} >= {"ipu.fabric.fabric_plan"}
    assert (private / "artifacts/1/rc").read_text() == "0"
    assert "PLAY RECAP" in run.text


def test_navigator_without_an_image(cell: Cell, tmp_path: Path) -> None:
    """Its settings are those of the example. The image itself has to be had from a registry."""
    stage = stage_in(cell, tmp_path)
    shutil.copy(NAVIGATOR, tmp_path)
    shutil.copytree(PROJECT, tmp_path, dirs_exist_ok=True)
    navigator = str(cell.python.parent / "ansible-navigator")
    run = ended_well(stage.run(navigator, "run", "plan.yml", "--execution-environment", "false", *stage.arguments))
    assert sorted(run.read("artifacts/plan.json")["hosts"]) == ["cp1", "w1", "w2"]
    assert "PLAY RECAP" in run.text
