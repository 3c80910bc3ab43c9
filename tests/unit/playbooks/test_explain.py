"""The playbook explain: with an inventory and without one, with a plan and without."""

import json

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play

GROUPS = {"kube_control_plane": ["cp1"], "kube_node": ["w1"]}
PLAN = {"hosts": {"w1": {"node": "w1"}}}
ANSWERS = {"pod_explain": {"*": {"text": ["Pod vision/a has all that RDMA needs."], "lacks": []}}}


@pytest.mark.parametrize(
    ("groups", "variables", "plan", "where"),
    [
        ({}, {}, {}, "localhost"),
        ({}, {"container": "main"}, PLAN, "localhost"),
        (GROUPS, {}, PLAN, "localhost"),
        (GROUPS, {"fabric_api_host": "cp1"}, {}, "cp1"),
    ],
)
def test_explain(tmp_path, groups, variables, plan, where):
    if plan:
        (tmp_path / "artifacts").mkdir()
        (tmp_path / "artifacts/plan.json").write_text(json.dumps(plan))
    done = play(tmp_path, "ipu.fabric.explain", groups, ANSWERS, pod="vision/a", **variables)
    assert done.code == 0, done.text
    [call] = done.calls
    assert (call.module, call.host) == ("pod_explain", where)
    assert (call.options["pod"], call.options["plan"]) == ("vision/a", plan)
    assert call.options["container"] == variables.get("container", "")
    assert "Pod vision/a has all that RDMA needs." in done.said


def test_a_pod_has_to_be_named(tmp_path):
    done = play(tmp_path, "ipu.fabric.explain", {}, ANSWERS)
    assert done.code != 0
    assert "add -e pod=NAMESPACE/NAME" in done.said
    assert done.calls == []
