"""reset.yml with fabric_reset=cluster, on hosts that are only names."""

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import site

GROUPS = {"kube_control_plane": ["cp1", "cp2"], "kube_node": ["w1"]}
CA, NAME = "0123456789abcdef", "10.88.0.1:6443"
NODES = [{"name": name, "machine_id": f"id-{name}"} for name in ("cp1", "cp2", "w1")]
UNREACHABLE = {"unreachable": True, "msg": "Connection timed out"}


def found(name, **more):
    mark = {"name": NAME, "server": NAME, "ca": CA, "hostname": name, "machine_id": f"id-{name}", "serves": False}
    return {"changed": True, "cluster": mark, "removed": {"links": ["cni0"]}, "kept": [], **more}


def reset(folder, *arguments, hosts=None, jobs=(), answers=None, **variables):
    answers = {
        "host_reset": {name: found(name) for name in ("cp1", "cp2", "w1")} | (hosts or {}),
        "cluster_info": {"*": {"present": True, "ca": CA, "nodes": NODES, "ipu": {"jobs": list(jobs)}}},
        **(answers or {}),
    }
    return play(folder, "ipu.fabric.reset", GROUPS, answers, *arguments, fabric_reset="cluster", **variables)


def resets(run):
    """Calls beside those that only look."""
    return [call.host for call in run.calls if call.module == "host_reset" and "ca" in call.options]


def test_workers_first(tmp_path):
    (tmp_path / "artifacts").mkdir()
    report = tmp_path / "artifacts/report.html"
    report.write_text("proved")
    begun = tmp_path / "artifacts/upgrade-1.36.3.json"
    begun.write_text("{}")
    kubeconfig = tmp_path / "artifacts/admin.conf"
    kubeconfig.write_text("of this cluster")
    run = reset(tmp_path, fabric_reset_name=NAME)
    assert (report.exists(), begun.exists()) == (False, False)  # they were of this cluster
    assert (kubeconfig.exists(), kubeconfig.with_name("admin.conf.removed").exists()) == (False, True), run.text
    assert run.code == 0, run.text
    assert resets(run)[0] == "w1"
    assert sorted(resets(run)[1:]) == ["cp1", "cp2"]
    [worker] = [call for call in run.calls if call.host == "w1" and "ca" in call.options]
    assert (worker.options, worker.become) == ({"ca": CA, "installed": True}, True)
    assert {call.module for call in run.calls} == {"host_reset", "host_info", "cluster_info"}


def test_bare_hosts_cost_another_cluster_nothing(tmp_path):
    """A second run, or the wrong inventory: nothing is asked, so nothing may go."""
    files = [tmp_path / "artifacts" / name for name in ("admin.conf", "report.html")]
    files[0].parent.mkdir()
    for file in files:
        file.write_text("of another cluster")
    mark = {"name": "", "server": "", "ca": "", "serves": False}
    hosts = {name: found(name) for name in ("cp1", "cp2", "w1")}
    bare = {name: {**each, "cluster": {**each["cluster"], **mark}, "removed": {}} for name, each in hosts.items()}
    run = reset(tmp_path, hosts=bare)
    assert run.code == 0, run.text
    assert all(file.exists() for file in files), run.text
    assert "this machine" not in run.said


@pytest.mark.parametrize(
    ("hosts", "arguments", "variables", "said"),
    [
        ({}, [], {}, f"again with -e fabric_reset=cluster -e fabric_reset_name={NAME}."),
        ({}, ["--limit", "w1"], {"fabric_reset_name": NAME}, "Seen: --limit w1"),
        (
            {"w1": UNREACHABLE},
            [],
            {"fabric_reset_name": NAME},
            "Every host has to answer. Seen: w1: Connection timed out",
        ),
        ({}, [], {"fabric_reset_name": NAME, "fabric_manage_kubernetes": False}, "is managed elsewhere"),
        ({}, [], {"fabric_reset_name": NAME, "jobs": ["train/a"]}, "IPUJobs hold IPUs"),
    ],
)
def test_refused(tmp_path, hosts, arguments, variables, said):
    run = reset(tmp_path, *arguments, hosts=hosts, **variables)
    assert run.code != 0
    assert said in run.said, run.text
    assert resets(run) == []


def test_a_cluster_that_others_built_is_not_taken_away(tmp_path):
    """Also where the site has forgotten fabric_manage_kubernetes: its name was printed, to be confirmed."""
    seen = site()["cp1"]["host"]
    answers = {"host_info": {"cp1": {"host": {**seen, "cluster": {**seen["cluster"], "built_elsewhere": True}}}}}
    run = reset(tmp_path, fabric_reset_name=NAME, answers=answers)
    assert run.code != 0
    assert "This cluster is managed elsewhere" in run.said, run.text
    assert "the control plane lacks /etc/sysctl.d/99-z-kubernetes.conf" in run.said, run.text
    assert resets(run) == []


def test_a_host_that_can_not_be_read_stops_it(tmp_path):
    run = reset(tmp_path, hosts={"w1": {"failed": True, "msg": "dpkg is broken"}}, fabric_reset_name=NAME)
    assert run.code != 0
    assert "Every host has to answer. Seen: w1: dpkg is broken." in run.said, run.text
    assert resets(run) == []


@pytest.mark.parametrize(
    ("arguments", "variables", "code"), [(["--check"], {"fabric_reset_name": NAME}, 0), ([], {}, 2)]
)
def test_what_goes_is_listed(tmp_path, arguments, variables, code):
    """Reports on this machine went without a word."""
    report = tmp_path / "artifacts/report.html"
    report.parent.mkdir()
    report.write_text("proved")
    run = reset(tmp_path, *arguments, **variables)
    assert run.code == code, run.text
    assert "w1: links: cni0" in run.said
    assert "this machine: files:" in run.said, run.text
    assert f"'  {report}'" in run.text
    assert report.exists()
