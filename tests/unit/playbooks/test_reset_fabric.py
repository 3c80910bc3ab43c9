"""reset.yml of the fabric: what it says before, and what is left in the folder of the run afterwards."""

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures import site
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_api import answers, run

STEPS = {"ANSIBLE_STDOUT_CALLBACK": "ipu.fabric.steps"}
REPORTS = ("junit.xml", "probe.json", "report.html", "report.json", "cluster/baseline.json")


@pytest.fixture
def folder(tmp_path):
    """Where site has left its plan and its reports."""
    (tmp_path / "artifacts/cluster").mkdir(parents=True)  # of prove_cluster
    for name in (*REPORTS, "plan.json"):
        (tmp_path / "artifacts" / name).write_text("{}")
    return tmp_path


def left(folder):
    place = folder / "artifacts"
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}


def test_a_table_says_what_there_is(folder):
    found = answers()
    found["fabric_stack"]["*"].update(objects=["MacvlanNetwork a", "MacvlanNetwork b"], pods=["default/user"])
    done = run(folder, "ipu.fabric.reset", found, environment=STEPS, fabric_reset="")
    assert done.code != 0
    assert "STOPPED Remove the fabric from the cluster what Not confirmed" in done.said
    assert "what Not confirmed: nothing is removed unless it is asked for." in done.said
    assert "for the reason above: no task reported a change." in done.said
    table = [line.strip(" -'") for line in done.text.splitlines()]
    for line in (
        "objects                     MacvlanNetwork a",
        "MacvlanNetwork b",
        f"files of this machine       {folder}/artifacts/junit.xml",
        f"{folder}/artifacts/report.html",
        "network operator stays for  none",
        "pods on the networks        default/user",
        "IPUJobs                     none",
    ):
        assert line in table, done.text
    assert "run it again with -e fabric_reset=fabric" in done.said
    assert set(REPORTS) <= left(folder)


def test_a_request_that_means_nothing_is_refused_before_hosts_are_asked(folder):
    done = run(folder, "ipu.fabric.reset", answers(), fabric_reset="clustr")
    assert done.code != 0
    assert "Seen: fabric_reset is clustr. Next: run it with -e fabric_reset=fabric" in done.said
    assert "Read which cluster the hosts are in" not in done.text


def test_nothing_left_is_no_error(folder):
    done = run(folder, "ipu.fabric.reset", answers(), fabric_reset="")
    assert done.code == 0, done.text
    assert "Nothing of this fabric is left in the cluster." in done.said
    assert set(REPORTS) <= left(folder)


def test_the_mpi_operator_stays_and_is_named(folder):
    found = answers()
    found["cluster_info"]["*"]["mpi"]["ours"] = True
    done = run(folder, "ipu.fabric.reset", found, fabric_reset="")
    assert done.code == 0, done.text
    assert "-e mpi_operator_state=absent -e fabric_metrics=false removes it" in done.said


def test_hosts_without_a_cluster_have_no_fabric(folder):
    """Nobody waits a minute for an API that is gone."""
    found = answers()
    found["host_info"] = site.observed(site.site())
    done = run(folder, "ipu.fabric.reset", found)
    assert done.code == 0, done.text
    assert "No host of this inventory is in a cluster, so there is no fabric to remove." in done.said
    assert {call.module for call in done.calls} == {"host_info"}


def test_reports_go_with_what_they_prove(folder):
    """In check mode: there is no helm here to uninstall with."""
    done = run(folder, "ipu.fabric.reset", answers(), "--check")
    assert done.code == 0, done.text
    for name in REPORTS:
        assert f"changed: [cp1 -> localhost] => (item={folder}/artifacts/{name})" in done.text
        assert done.text.count(f"{folder}/artifacts/{name}") > 1  # in the table too
    assert "artifacts/applied.json" not in done.text  # there is none
    assert left(folder) == {*REPORTS, "plan.json"}
