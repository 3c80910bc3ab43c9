"""A plan for a change record: who made it, how a run of it ends, and what `site` leaves for the next one."""

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_api import GROUPS, answers
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_plan_file import words

ANSWERS = {**answers(), "memlock": {"*": {"restartable": []}}}
GIVEN = {"fabric_manage_kubernetes": False, "fabric_probe_ports": False}
STEPS = {"ANSIBLE_STDOUT_CALLBACK": "ipu.fabric.steps"}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder in which `site` has run, and what that said."""
    folder = tmp_path_factory.mktemp("site")
    run = play(folder, "ipu.fabric.site", GROUPS, ANSWERS, environment=STEPS, **GIVEN)
    assert run.code == 0, run.text
    return folder, run


def test_a_plan_says_who_made_it_and_changes_nothing(tmp_path):
    """Also where it differs from the last one, and no group of the inventory is missed aloud."""
    first = play(tmp_path, "ipu.fabric.plan", GROUPS, ANSWERS, environment=STEPS, **GIVEN)
    assert first.code == 0, first.text
    made = first.read("artifacts/plan.json")["made"]
    assert made["time"].endswith("Z")
    assert made["site"] == tmp_path.name
    assert "@" in made["by"]
    again = play(tmp_path, "ipu.fabric.plan", GROUPS, ANSWERS, environment=STEPS, fabric_pods_per_node=4, **GIVEN)
    assert words(f"differs from the last plan, of {made['time']}") in words(again.text)
    assert "nothing changed." in again.said
    assert "Could not match supplied host pattern" not in first.text + again.text


@pytest.mark.parametrize(
    ("broken", "pods", "code", "state"), [(False, 8, 0, "nothing"), (False, 4, 2, "changes"), (True, 8, 2, "errors")]
)
def test_the_exit_code_tells_whether_there_is_something_to_do(done, broken, pods, code, state):
    folder, _run = done
    found = {**ANSWERS, "host_info": {**ANSWERS["host_info"]}}
    if broken:
        found["host_info"]["w1"] = {"unreachable": True, "msg": "Connection timed out"}
    given = {**GIVEN, "fabric_detailed_exitcode": True, "fabric_pods_per_node": pods}
    run = play(folder, "ipu.fabric.plan", GROUPS, found, environment=STEPS, **given)
    summary = run.read("artifacts/plan.json")["summary"]
    assert (run.code, summary["state"]) == (code, state), run.text
    assert ("fabric_detailed_exitcode is set" in run.said) == (state == "changes")
    assert words(summary["line"]) in words(run.text)
    assert ("Stopped after" in run.said) == (code == 2)


def test_site_leaves_the_plan_that_it_applied_and_says_what_comes_next(done):
    folder, run = done
    assert (folder / "artifacts/applied.json").exists()
    assert f"kubectl --kubeconfig {folder}/artifacts/admin.conf get nodes" in run.text
    assert "--limit" not in run.text


def test_a_part_of_site_is_not_the_whole(tmp_path):
    run = play(tmp_path, "ipu.fabric.site", GROUPS, ANSWERS, "--tags", "memlock", **GIVEN)
    assert run.code == 0, run.text
    assert not (tmp_path / "artifacts/applied.json").exists()


def test_a_run_with_limit_says_what_it_left_out(tmp_path):
    run = play(tmp_path, "ipu.fabric.site", GROUPS, ANSWERS, "--limit", "w1", environment=STEPS, **GIVEN)
    assert run.code == 0, run.text
    assert words("Limited to w1 (--limit): this run sets up no other host.") in words(run.text), run.text
    assert words("The plan covers these too, and has read their state: cp1, w2") in words(run.text)
    assert words(f"Report: {tmp_path}/artifacts/report.html") in words(run.text)
    assert words("Next: run ipu.fabric.site without --limit.") in words(run.text)
    assert not (tmp_path / "artifacts/applied.json").exists()


def test_check_mode_ends_with_a_line_for_each_host(tmp_path):
    found = {**ANSWERS, "memlock": {"w1": {"restartable": [], "changed": True}, "*": {"restartable": []}}}
    run = play(tmp_path, "ipu.fabric.site", GROUPS, found, "--check", environment=STEPS, **GIVEN)
    assert run.code == 0, run.text
    assert "w1: Locked memory 1" in run.said, run.text
    assert [path.name for path in (tmp_path / "artifacts").iterdir()] == ["admin.conf"]
