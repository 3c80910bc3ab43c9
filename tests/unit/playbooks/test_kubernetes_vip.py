"""The role kubernetes with a virtual address: which hosts get keepalived, and when the role would rather stop."""

import hashlib
import re

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play

PLANES = {"cp1": "10.88.0.11", "cp2": "10.88.0.12", "cp3": "10.88.0.13"}
GROUPS = {"kube_control_plane": list(PLANES), "kube_node": ["w1"]}
PLAY = [
    {
        "hosts": "all",
        "gather_facts": False,
        "roles": ["ipu.fabric.kubernetes"],
        "vars": {
            "kubernetes_cni": "none",
            "kubernetes_version": "1.35.4",
        },
    }
]
UNREACHABLE = {"unreachable": True, "msg": "Connection timed out"}
MEMBERS = dict.fromkeys((*PLANES, "w1"), "member")


def node(host, membership):
    return {
        "name": host,
        "address": PLANES.get(host, "10.88.0.14"),
        "interface": "eno1",
        "distribution": "debian",
        "release": "bookworm",
        "kubelet": "1.35.4",
        "containerd": "2.2.1",
        "images": ["registry.k8s.io/pause:3.10.1"],
        "kubeconfig_sha256": hashlib.sha256(b"").hexdigest(),
        "membership": membership,
        "seen": "",
        "next_step": "",
        "answered": membership == "member",
        "registered": membership == "member",
        "is_control_plane": membership == "member" and host in PLANES,
        "taints": [],
    }


@pytest.fixture
def install(tmp_path):
    """Run the role on hosts that are in these states; none of them has a file of keepalived yet."""

    def run(found, *arguments, **variables):
        states = {
            host: {"node": node(host, state)} if isinstance(state, str) else state for host, state in found.items()
        }
        answers = {
            "kubernetes_node_info": states,
            "apt_packages": {"*": {"versions": {"containerd.io": "2.2.1"}}},
            "systemd_units": {"*": {"stale": []}},
            "kubeadm": {"*": {"discovery": {"endpoint": "", "token": "", "ca_hashes": []}}},
        }
        settings = {
            "kubernetes_control_plane_vip": "10.88.0.50",
            "kubernetes_kubeconfig": str(tmp_path / "admin.conf"),
            **variables,
        }
        return play(tmp_path, PLAY, GROUPS, answers, *arguments, **settings)

    return run


def with_keepalived(run):
    """What keepalived is told, by host."""
    calls = [call for call in run.calls if call.module == "systemd_units"]
    return {
        call.host: {file["path"].rpartition("/")[2]: file for file in call.options["files"]}
        for call in calls
        if any(unit["name"] == "keepalived" for unit in call.options["units"])
    }


def test_every_control_plane_keeps_it_and_no_worker(install):
    run = install(MEMBERS)
    assert run.code == 0, run.text
    told = with_keepalived(run)
    assert sorted(told) == list(PLANES)
    for host, files in told.items():
        assert f"unicast_src_ip {PLANES[host]}\n" in files["keepalived.conf"]["content"]
    packages = {call.host: call.options["packages"] for call in run.calls if call.module == "apt_packages"}
    wanted = [{"name": name, "version": "", "hold": False} for name in ("keepalived", "python3")]
    assert sorted(host for host, names in packages.items() if names[-2:] == wanted) == list(PLANES)


def test_check_mode_on_bare_hosts(install):
    run = install(dict.fromkeys(MEMBERS, "none"), "--check")
    assert sorted(with_keepalived(run)) == list(PLANES), run.text
    assert run.where("kubeadm", command="init") == ["cp1"]
    waited = run.text.partition("Wait until this host has the address")[2].partition("TASK")[0]
    assert set(re.findall(r"^(\w+): \[", waited, re.MULTILINE)) <= {"skipping"}


def test_a_new_control_plane_that_the_others_do_not_hear_of(install):
    """They would not tell it that they hold the address."""
    run = install({**MEMBERS, "cp3": "none"}, "--limit", "cp3")
    assert run.where("kubeadm") == []
    assert with_keepalived(run) == {}
    assert "cp1, cp2 outside --limit" in run.said, run.text


def test_a_control_plane_that_is_down_keeps_nobody_from_joining(install):
    run = install({**MEMBERS, "cp1": UNREACHABLE, "cp3": "none"}, "--limit", "!cp1")
    assert run.where("kubeadm", command="join") == ["cp3"], run.text
    assert sorted(with_keepalived(run)) == ["cp2", "cp3"]
