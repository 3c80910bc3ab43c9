"""A restore: nothing is touched unless the backup fits and no cluster lives; then the first host, then the others."""

import json
import os

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures import site
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play

GROUPS = {"kube_control_plane": ["cp1", "cp2"], "kube_node": ["w1"]}
CA, ENDPOINT, NAME, SUM = "0123456789abcdef", "10.88.0.9:6443", "20261123T004500Z", "0" * 64
STATE = {"aside": "", "files": True}
CHANGING = {"apt_packages", "control_plane_restore", "kernel_settings", "kubeadm", "systemd_units"}
ABOUT = {
    "format": 1,
    "name": NAME,
    "control_plane": "cp2",
    "etcd": {"revision": 77},
    "cluster": {
        "name": ENDPOINT,
        "ca": CA,
        "version": "1.36.3",
        "pod_cidr": "10.244.0.0/16",
        "service_cidr": "10.96.0.0/12",
        "nodes": ["node1", "node2", "node3"],
    },
}


def answers(answered=False, restoring="", membership="none"):
    hosts = {f"{name}": site.host(number, []) for number, name in enumerate(("cp1", "cp2", "w1"), 1)}
    for seen in hosts.values():
        seen["host"]["kubelet"].update(server=ENDPOINT, cluster=CA, version="v1.36.3")
    hosts["cp1"]["host"]["cluster"].update(present=True, answered=answered, version="1.36.3", endpoint=ENDPOINT)
    node = {
        "membership": membership,
        "seen": "",
        "kubelet": "1.36.3",
        "containerd": "2.2.1",
        "distribution": "debian",
        "release": "bookworm",
        "images": ["registry.k8s.io/etcd:3.6.6-0", "registry.k8s.io/pause:3.10.1"],
        "kubeconfig_sha256": "",
        "taints": [],
    }
    return {
        "host_info": site.observed(hosts),
        "control_plane_backup": {
            "*": {"path": "/backups/" + NAME, "about": ABOUT, "sums": {"control-plane.tar.gz": SUM}}
        },
        # For every state.
        "control_plane_restore": {"*": {**STATE, "restoring": restoring, "going_on": bool(restoring), "set_aside": ""}},
        "kubernetes_node_info": {
            name: {"node": {**node, "name": f"node{number}", "address": f"10.88.0.{number}"}}
            for number, name in enumerate(("cp1", "cp2", "w1"), 1)
        },
    }


def restore(folder, found, *arguments, **variables):
    given = {
        "fabric_probe_ports": False,
        "fabric_control_plane_endpoint": ENDPOINT,
        "fabric_cni": "flannel",
        "fabric_backup": "/backups/" + NAME,
        **variables,
    }
    return play(folder, "ipu.fabric.restore", GROUPS, found, *arguments, **given)


def states(done):
    return [(call.host, call.options["state"]) for call in done.calls if call.module == "control_plane_restore"]


@pytest.mark.parametrize(
    ("found", "arguments", "seen"),
    [
        (answers(answered=True), {}, f"name the cluster with -e fabric_restore={ENDPOINT}"),
        (answers(), {"fabric_runtime": "docker"}, "Seen: fabric_runtime is docker"),
        (
            {**answers(), "control_plane_backup": {"*": {"failed": True, "msg": "backup.json has changed"}}},
            {},
            "has changed",
        ),
    ],
)
def test_nothing_is_changed(tmp_path, found, arguments, seen):
    done = restore(tmp_path, found, **arguments)
    assert done.code != 0
    assert seen in done.said, done.text
    assert set(states(done)) <= {("cp1", "read"), ("cp2", "read")}
    assert {call.module for call in done.calls} & CHANGING <= {"control_plane_restore"}


@pytest.mark.parametrize("found", [answers(), answers(answered=True)])
def test_check_mode_says_what_would_be_done(tmp_path, found):
    done = restore(tmp_path, found, "--check", fabric_restore=ENDPOINT)
    assert done.code == 0, done.text
    assert f"A run without --check would restore /backups/{NAME} on cp1: etcd of cp2 at revision 77" in done.said
    assert {call.module for call in done.calls} & CHANGING <= {"control_plane_restore"}


def test_a_restore_that_is_continued_is_said_to_be(tmp_path):
    begun = f"{NAME} begun 20261127T010000Z"
    found = answers(answered=True, restoring=begun)
    found["control_plane_restore"]["cp2"] = {**STATE, "aside": begun, "restoring": "", "going_on": False}
    done = restore(tmp_path, found, "--check", fabric_restore=ENDPOINT)
    assert done.code == 0, done.text
    assert f"on cp1, where {begun} has put it back already: that restore is continued" in done.said


def hosts_to_restore(folder):
    """Answers, and a backup with its archive: enough for the first control plane to be prepared."""
    found, saved = answers(), folder / "saved"
    saved.mkdir()
    (saved / "control-plane.tar.gz").write_bytes(b"keys")
    found["control_plane_backup"]["*"]["path"] = str(saved)
    found["apt_packages"] = {"*": {"versions": {"containerd.io": "2.2.1"}}}
    found["systemd_units"] = {"*": {"stale": []}}
    return found


@pytest.mark.parametrize("lost", ["failed", "unreachable"])
def test_a_control_plane_that_was_not_set_aside(tmp_path, lost):
    """It may go on with the old cluster: the first one is not restored beside it."""
    found = hosts_to_restore(tmp_path)
    found["control_plane_restore"]["cp2 aside"] = {lost: True, "msg": "still listening"}
    done = restore(tmp_path, found, _kubernetes_put_back=str(tmp_path / "put/control-plane.tar.gz"))
    assert done.code != 0
    assert states(done)[2:] == [("cp1", "verified"), ("cp2", "aside")], done.text


def test_a_backup_that_the_first_control_plane_can_not_take(tmp_path):
    """Its disk is full, or it lacks etcd's image: no other control plane was stopped for it."""
    found = hosts_to_restore(tmp_path)
    found["control_plane_restore"]["cp1 verified"] = {"failed": True, "msg": "A restore needs free space"}
    done = restore(tmp_path, found, _kubernetes_put_back=str(tmp_path / "put/control-plane.tar.gz"))
    assert done.code != 0
    assert "A restore needs free space" in done.said
    assert sorted(states(done)) == [("cp1", "read"), ("cp1", "verified"), ("cp2", "read")]


def test_no_bundle_is_written_for_docker(tmp_path):
    """Of the other playbooks, this one refuses it too: its images are for containerd."""
    plan = {
        "cluster": {"runtime": {"name": "docker"}},
        "findings": [],
        "sources": [],
        "no_proxy": {"everything": []},
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    # The plan is looked for in the working directory.
    given = {"fabric_bundle": str(tmp_path / "bundle"), "fabric_bundle_plan": "plan.json"}
    done = play(tmp_path, "ipu.fabric.bundle", GROUPS, {}, **given)
    assert done.code != 0
    assert "the plan has fabric_runtime docker" in done.said, done.text
    assert not (tmp_path / "bundle").exists()


def test_no_limit(tmp_path):
    done = restore(tmp_path, answers(), "--limit", "cp1")
    assert done.code != 0
    assert "Seen: --limit cp1" in done.said
    assert not done.calls


def test_the_first_control_plane_then_the_others(tmp_path, monkeypatch):
    found = hosts_to_restore(tmp_path)
    kubectl, saved = tmp_path / "bin/kubectl", tmp_path / "saved"
    kubectl.parent.mkdir()
    calls = tmp_path / "kubectl-calls"
    kubectl.write_text(f"#!/bin/sh\necho \"$*\" >>{calls}\nprintf 'node1 True\\nnode2 Unknown\\nnode3 Unknown\\n'\n")
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(kubectl.parent), prepend=os.pathsep)
    held = [{"pod": f"default/{name}", "node": "node3", "address": "10.5.0.130"} for name in ("one", "two")]
    (saved / "objects.json").write_text(json.dumps({"digests": {}, "addresses": held, "objects": []}))
    (tmp_path / "admin.conf").write_text("clusters: [{cluster: {certificate-authority-data: QQ==}}]\nusers: []\n")
    found["host_info"]["w1"]["host"]["kubelet"]["server"] = ""  # reinstalled
    found["kubeadm"] = {"*": {"discovery": {"token": "t"}, "changed": True}}
    compared = {"count": 9, "missing": [], "different": ["ConfigMap default/a"], "moved": []}
    found["cluster_info"] = {"*": {"present": True, "ca": CA, "nodes": [], **compared}}
    found["memlock"] = {"*": {"restartable": []}}
    done = restore(
        tmp_path,
        found,
        _kubernetes_put_back=str(tmp_path / "put/control-plane.tar.gz"),
        _kubernetes_admin_kubeconfig=str(tmp_path / "admin.conf"),
    )
    assert done.code == 0, done.text
    steps = [
        (call.host, call.options.get("command") or call.options["state"])
        for call in done.calls
        if call.module in ("kubeadm", "control_plane_restore")
    ]
    put_back = steps.index(("cp1", "restored"))
    assert sorted(steps[:2]) == [("cp1", "read"), ("cp2", "read")]
    verified = [("cp1", "images"), ("cp1", "verified")]
    assert steps[2:put_back] == [*verified, ("cp2", "aside"), ("cp1", "read"), ("cp1", "images")]
    assert steps[put_back + 1] == ("cp1", "init")
    assert ("cp2", "join") in steps[put_back + 2 :]
    assert ("w1", "join") in steps[put_back + 2 :]
    assert steps[-1] == ("cp1", "done")
    assert (tmp_path / "put/control-plane.tar.gz").stat().st_mode & 0o777 == 0o600
    [restored] = [call.options for call in done.calls if call.options.get("state") == "restored"]
    assert restored["image"] == "registry.k8s.io/etcd:3.6.6-0"
    assert (restored["backup"], restored["sha256"], restored["node_name"]) == (NAME, SUM, "node1")
    [aside] = [call.options for call in done.calls if call.options.get("state") == "aside"]
    assert restored["restore"] == aside["restore"]
    assert restored["restore"].startswith(f"{NAME} begun 2")
    [init] = [call.options for call in done.calls if call.options.get("command") == "init"][:1]
    assert "DirAvailable--var-lib-etcd" in init["documents"][0]["nodeRegistration"]["ignorePreflightErrors"]
    assert "9 objects. Different: ConfigMap default/a." in done.said
    # kubectl takes resources before annotations.
    assert "annotate pod --namespace default one two k8s.v1.cni.cncf.io/network-status-" in calls.read_text()
