"""From a folder without artifacts: a sentence says so, and what to do."""

import pytest
from ansible.parsing.splitter import parse_kv
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import make_stage, play


@pytest.mark.parametrize("name", ["native-training", "native-inference", "mpi-horovod", "mpi-compare"])
def test_an_example_that_needs_the_plan(tmp_path, name):
    path = ROOT / f"docs/examples/{name}.yml"
    done = play(tmp_path, str(path), {}, {}, example_network="", example_image="a")
    assert done.code != 0
    assert "No artifacts here: this needs the plan." in done.said, done.text
    assert f"{tmp_path}/artifacts/plan.json" in done.text
    assert done.calls == []


def test_an_example_that_needs_the_kubeconfig(tmp_path):
    make_stage(tmp_path, {}, {}, {})
    action = tmp_path / "collections/ansible_collections/ipu/fabric/plugins/action/ipujob.py"
    action.unlink()
    action.symlink_to(ROOT / "plugins/action/ipujob.py")
    done = play(tmp_path, str(ROOT / "docs/examples/mnist.yml"), {}, {})
    assert done.code != 0
    assert "There is no kubeconfig here." in done.said, done.text
    assert "Name the file: fabric_kubeconfig for playbooks" in done.said


def test_a_shell_line_stays_whole_as_the_guide_writes_it():
    """Without the inner quotes Ansible takes the first word."""
    text = (ROOT / "docs/workloads.md").read_text(encoding="utf-8")
    written = text.partition('-e "example_training=')[2].partition('"')[0]
    assert parse_kv(f"example_training={written}") == {"example_training": "echo trained"}
