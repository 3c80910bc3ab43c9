"""`site -e fabric_plan_file=FILE` applies that plan, or changes nothing."""

import copy
import json
import re

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_api import GROUPS, READERS, answers

ANSWERS = {**answers(), "memlock": {"*": {"restartable": []}}}
GIVEN = {"fabric_manage_kubernetes": False, "fabric_probe_ports": False}
FILE = "artifacts/plan.json"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the plan of its site, and its text."""
    folder = tmp_path_factory.mktemp("site")
    done = play(folder, "ipu.fabric.plan", GROUPS, ANSWERS, **GIVEN)
    assert done.code == 0, done.text
    return folder, (folder / FILE).read_text(encoding="utf-8")


def moved():
    found = copy.deepcopy(ANSWERS)
    found["host_info"]["w1"]["rdma"]["links"][1].update(netdev="ens2f0", rdma_netdevs=["ens2f0"])
    return found


def words(text):
    """Without line ends and what stands around a line: a long path is wrapped elsewhere than a short one."""
    return re.sub(r"[^\w/.:,]+", " ", text)


@pytest.mark.parametrize(
    ("arguments", "called"),
    [
        (("--check",), {"helm_release", "kube_apply", "memlock", "fabric_probe"}),
        (("--check", "--limit", "w1", "--tags", "memlock"), {"memlock"}),
    ],
)
def test_a_plan_that_still_holds_is_applied(site, arguments, called):
    folder, approved = site
    done = play(folder, "ipu.fabric.site", GROUPS, ANSWERS, *arguments, fabric_plan_file=FILE, **GIVEN)
    assert done.code == 0, done.text
    assert words(f"Plan, as in {folder / FILE}: 3 hosts, ") in words(done.text), done.text
    assert called <= {call.module for call in done.calls}
    assert (folder / FILE).read_text(encoding="utf-8") == approved


@pytest.mark.parametrize(("playbook", "arguments"), [("ipu.fabric.plan", ("--limit", "w2")), ("ipu.fabric.site", ())])
def test_nothing_is_changed_where_the_world_has_moved(site, playbook, arguments):
    """Nor is the file: a refused run does not approve what it has seen."""
    folder, approved = site
    done = play(folder, playbook, GROUPS, moved(), *arguments, fabric_plan_file=FILE, **GIVEN)
    assert done.code != 0
    assert "plan-moved: w1" in done.said, done.text
    assert "netdev: ens1f0 in the file, ens2f0 now" in done.said
    assert "Errors in the plan: " in done.said
    assert {call.module for call in done.calls} <= set(READERS)
    assert (folder / FILE).read_text(encoding="utf-8") == approved


def test_a_file_that_is_no_plan_of_these_hosts(tmp_path):
    """The path is one from the folder of the run, as with the other files of a site."""
    (tmp_path / "other.json").write_text(json.dumps({"schema": 1, "hosts": {"x1": {}}}), encoding="utf-8")
    done = play(tmp_path, "ipu.fabric.site", GROUPS, ANSWERS, "--check", fabric_plan_file="other.json", **GIVEN)
    assert done.code != 0
    assert "plan-file: all" in done.said, done.text
    assert "seen: it is a plan of other hosts: x1" in done.said
    assert {call.module for call in done.calls} <= set(READERS)
