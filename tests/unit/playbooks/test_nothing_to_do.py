"""`site` where there is nothing to do: how many tasks it shows, which take time each, and what tags leave out."""

import hashlib
import re

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._component import kubernetes_hardening
from ansible_collections.ipu.fabric.tests.unit.fixtures import playbooks, site
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.control_plane import CONFIGURATION, NO_KEYS
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_api import OURS, answers
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_kubernetes import node

GROUPS = {"kube_control_plane": ["cp1"], "kube_node": ["w1"]}
NAMES = {"cp1": "node11", "w1": "node12"}
LISTENER = {"name": "x", "tcp": [], "udp": [], "ip": []}
REPORT = {"bare": False, "proofs": [], "refusal": "", "table": "proved", "time": "", "sha256": ""}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`site` on two hosts that are in the cluster, or that are bare."""
    # The report of a proof would need all that a probe sees.
    monkeypatch.setattr(playbooks, "REAL", tuple(name for name in playbooks.REAL if name != "fabric_report"))

    def once(*arguments, playbook="site", membership="member"):
        hosts = site.finished() if membership == "member" else site.site()
        del hosts["w2"]
        for seen in hosts.values():
            if membership == "member":
                seen["host"]["kubelet"]["cluster"] = OURS
                seen["host"]["cluster"]["pod_networks"] = [
                    {"name": "flannel", "seen": "DaemonSet kube-flannel/kube-flannel-ds"}
                ]
        (tmp_path / "artifacts").mkdir()
        (tmp_path / "artifacts/admin.conf").write_text("kind: Config\n")
        (tmp_path / "config.toml").write_text("version = 3\n")
        ours = {
            "architecture": "x86_64",
            "kubelet": "1.36.3",
            "containerd_files": [str(tmp_path / "config.toml")],
            "kubeconfig_sha256": hashlib.sha256(b"kind: Config\n").hexdigest(),
        }
        nodes = {
            host: {
                **node(name, membership),
                **ours,
                "address": f"10.88.0.{name[4:]}",
                "is_control_plane": host == "cp1",
            }
            for host, name in NAMES.items()
        }
        settings = defaults("kubernetes", "kubernetes_hardening", version="1.36.3")
        seen = kubernetes_hardening.Seen(CONFIGURATION, ["cp1"], {"cp1": nodes["cp1"]})
        found = {
            **answers(),
            "host_info": site.observed(hosts),
            "kubernetes_node_info": {host: {"node": each} for host, each in nodes.items()},
            "control_plane": {
                "*": {"configuration": kubernetes_hardening.decide(settings, seen).text, "encryption": NO_KEYS}
            },
            "apt_packages": {"*": {"versions": {"containerd.io": "2.2.1"}}},
            "kubeadm": {"*": {"discovery": {"endpoint": "", "token": "", "ca_hashes": []}}},
            "systemd_units": {"*": {"stale": []}},
            "memlock": {"*": {"restartable": []}},
            "rdma_host": {host: {"reboot": [], "node": name} for host, name in NAMES.items()},
            "macvlan_network": {"*": {"removed": []}},
            "port_probe": {"*": {"lacking": [], "listener": LISTENER, "listened": "x", "probes": []}},
            "fabric_probe": {"*": {"probe": {"probed": True}, "nodes": []}},
            "fabric_report": {"*": REPORT},
        }
        given = {"fabric_cni": "flannel", "fabric_ipu": False}
        return playbooks.play(tmp_path, f"ipu.fabric.{playbook}", GROUPS, found, *arguments, **given)

    return once


def test_a_finished_site_is_left_after_few_tasks(run):
    done = run()
    assert done.code == 0, done.text
    assert len(re.findall(r"^TASK \[", done.text, re.MULTILINE)) <= 69, done.text
    assert re.findall(r"changed=([1-9]\d*)", done.text) == []


def test_one_host_of_a_finished_site_keeps_the_settings_of_the_cluster(run):
    done = run("--limit", "w1", playbook="kubernetes")
    assert done.code == 0, done.text
    (future,) = [call.options["settings"] for call in done.calls if call.module == "cluster_kubelets"]
    assert future == {}
    (flannel,) = [call.options["objects"] for call in done.calls if call.module == "kube_apply"]
    assert "10.244.0.0/16" in str(flannel)


PARTS = {"kubernetes": "kernel_settings", "memlock": "memlock", "rdma_host": "rdma_host", "macvlan": "macvlan_network"}


@pytest.mark.parametrize("role", ["kubernetes", "memlock", "macvlan"])
def test_one_role_is_left_out_and_no_other(run, role):
    done = run("--skip-tags", role)
    assert done.code == 0, done.text
    called = {call.module for call in done.calls}
    assert {name for name, module in PARTS.items() if module in called} == PARTS.keys() - {role}, done.text


def test_the_tag_of_a_role_reaches_the_tasks_that_only_bare_hosts_need(run):
    done = run("--tags", "kubernetes", playbook="kubernetes", membership="none")
    assert done.code == 0, done.text
    assert (done.where("kubeadm", command="init"), done.where("kubeadm", command="join")) == (["cp1"], ["w1"])
    called = {call.module for call in done.calls}
    assert {name for name, module in PARTS.items() if module in called} == {"kubernetes"}
