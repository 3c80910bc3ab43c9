"""The playbook renew_certificates on hosts that are only names: in which order, with which options, what it leaves."""

import hashlib
import json

from ansible_collections.ipu.fabric.tests.unit.fixtures import play as hosts
from ansible_collections.ipu.fabric.tests.unit.fixtures.play import Answers
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_kubernetes import node

GROUPS = {"kube_control_plane": ["cp1", "cp2", "cp3"], "kube_node": ["w1", "w2"]}
PLAYBOOK = "ipu.fabric.renew_certificates"
HERE = "kind: Config\n"
LEAVES = ["apiserver", "admin.conf"]
ADDRESSES = {name: f"192.0.2.{number}" for number, name in enumerate(("cp1", "cp2", "cp3", "w1", "w2"), 1)}
PLAN = {"cluster": {"endpoint": "192.0.2.50:6443", "service_cidr": "10.96.0.0/12"}}


def state(host, renewed=(), expired=()):
    return {
        "node": f"node-{host}",
        "renewed": list(renewed),
        "restarted": [],
        "expired": list(expired),
        "signed": False,
        "requested": False,
        "needed": bool(renewed),
        "interrupted": False,
        "table": [f"{name} ends" for name in renewed],
    }


def renew(folder, found, *arguments, groups=None, planned=True, **more):
    groups = groups or GROUPS
    folder.mkdir(exist_ok=True)
    (folder / "admin.conf").write_text(HERE)
    sha = hashlib.sha256(HERE.encode()).hexdigest()
    names = [name for members in groups.values() for name in members]
    hosts = {name: {"node": f"node-{name}", "address": ADDRESSES[name]} for name in names}
    if planned:
        (folder / "plan.json").write_text(json.dumps({"hosts": hosts, **PLAN}))
    answers = {
        "node_certificates": {host: found.get(host, state(host)) for host in names},
        "kubernetes_node_info": {
            host: {"node": {**node(host, "member"), "kubeconfig_sha256": sha if host == "cp1" else "other"}}
            for host in names
        },
        "kubeadm": {"*": {"changed": True, "client": "secret"}},
        **more.pop("answers", {}),
    }
    variables = {"fabric_artifacts_dir": str(folder), **more}
    return play(folder, PLAYBOOK, groups, answers, *arguments, **variables)


def renewals(run):
    """The calls after the first look, which is on all hosts."""
    calls = [call for call in run.calls if call.module == "node_certificates"]
    return calls[len({call.host for call in calls}) :]


def test_nothing_to_renew(tmp_path):
    run = renew(tmp_path, {})
    assert run.code == 0, run.text
    assert renewals(run) == []
    assert run.where("kubeadm") == []
    assert "changed=0" in run.said
    assert "changed=1" not in run.said


def test_nothing_begins_where_only_a_plan_could_say_which_node_a_host_is(tmp_path):
    """As in a job of AWX whose artifacts are not kept: names in the inventory differ from those of the nodes."""
    found = {"cp1": state("cp1", LEAVES), "w1": {**state("w1", LEAVES), "node": "w1"}}
    run = renew(tmp_path, found, planned=False)
    assert run.code != 0
    assert "cp1 says that it is node-cp1, but the inventory has it as cp1" in run.said, run.text
    assert "Run ipu.fabric.plan" in run.said
    assert {call.module for call in run.calls if not call.check} <= {"host_info"}
    assert renewals(run) == []


def test_control_planes_come_one_after_another_and_before_the_workers(tmp_path):
    found = {name: state(name, LEAVES) for name in GROUPS["kube_control_plane"]}
    found["w2"] = state("w2", ["kubelet-client"])
    run = renew(tmp_path, found)
    assert run.code == 0, run.text
    assert [call.host for call in renewals(run)] == ["cp1", "cp2", "cp3", "w2"]
    assert [call.options.get("wait") for call in renewals(run)][:3] == [True] * 3
    assert all(call.become for call in renewals(run))
    assert run.where("kubeadm", command="client", node_name="node-w2") == ["cp1"]
    assert renewals(run)[-1].options["client"] == "secret"
    assert "secret" not in run.text


def test_control_planes_without_a_majority_do_not_wait_for_each_other(tmp_path):
    found = {name: state(name, LEAVES, expired=LEAVES) for name in ("cp1", "cp3")}
    run = renew(tmp_path, found, "--limit", "!cp2")
    calls = [(call.host, call.options.get("wait", True)) for call in renewals(run)]
    assert calls[:2] == [("cp1", False), ("cp3", False)], run.text
    assert sorted(calls[2:]) == [("cp1", True), ("cp3", True)]


class SecondFails(Answers):
    def node_certificates(self, args):
        due = {
            "needed": True,
            "interrupted": False,
            "renewed": ["apiserver"],
            "expired": [],
            "table": [],
            "node": self.host,
        }
        return {**due, "failed": self.host == "cp2" and not self.check, "msg": "not ready"}


def test_a_control_plane_that_fails_ends_the_turns(tmp_path):
    """What it did not come to is done by the next run; the others still serve."""
    run = hosts.play(tmp_path, PLAYBOOK, SecondFails, GROUPS, fabric_artifacts_dir=str(tmp_path))
    assert run.code != 0
    renewed = [call.host for call in run.of("node_certificates") if not call.check]
    assert renewed == ["cp1", "cp2"], run.text
    assert run.of("kubernetes_node_info", "kubeadm") == []


def test_only_certificates_of_kubeadm_are_forced(tmp_path):
    run = renew(tmp_path, {}, fabric_renew_force=True, fabric_renew_days=60)
    assert sorted(run.where("node_certificates", force=True, days=60)) == ["cp1", "cp2", "cp3"], run.text
    assert sorted(run.where("node_certificates", force=False, days=60)) == ["w1", "w2"]


def test_check_mode_says_what_it_would_do(tmp_path):
    found = {"cp1": state("cp1", LEAVES), "w1": state("w1", ["kubelet-client"])}
    run = renew(tmp_path, found, "--check")
    assert run.code == 0, run.text
    assert run.where("kubeadm") == [], "no private key is made"
    assert "apiserver ends" in run.said
    assert "admin.conf would be fetched again" in run.said
    run = renew(tmp_path / "other", {"cp2": state("cp2", LEAVES)}, "--check")
    assert "would be fetched again" not in run.said, "the one on the controller is cp1's"


def test_a_signature_that_is_refused_says_why(tmp_path):
    refused = {"kubeadm": {"*": {"failed": True, "msg": "there is no /etc/kubernetes/pki/ca.key"}}}
    run = renew(tmp_path, {"w1": state("w1", ["kubelet-client"])}, answers=refused)
    assert run.code != 0
    assert "there is no /etc/kubernetes/pki/ca.key" in run.said
    assert renewals(run) == []


def test_clusters_of_others_are_left_alone(tmp_path):
    run = renew(tmp_path, {}, fabric_manage_kubernetes=False)
    assert run.code != 0
    assert run.where("node_certificates") == []
    assert "managed elsewhere" in run.said


def signed(host, requested=True):
    return {**state(host), "signed": True, "requested": requested}


def test_without_certificates_that_the_cluster_signs_the_api_is_not_asked(tmp_path):
    assert renew(tmp_path, {}).where("cluster_kubelets") == []


def test_what_kubelets_ask_for_is_approved_and_one_that_does_not_ask_is_restarted(tmp_path):
    found = {name: signed(name, name in ("w1", "w2")) for name in ("cp1", "cp2", "cp3", "w1", "w2")}
    answers = {"cluster_kubelets": {"*": {"changed": True, "approved": ["csr-1 of system:node:node-w1"]}}}
    run = renew(tmp_path, found, answers=answers)
    assert run.code == 0, run.text
    first, second = [call.options for call in run.calls if call.module == "cluster_kubelets"]
    assert first["nodes"] == {f"node-{name}": [ADDRESSES[name]] for name in found}
    assert second["requested"] == ["node-w2"]
    assert run.where("systemd_units") == ["w2"]


def test_check_mode_waits_for_no_kubelet(tmp_path):
    answers = {"cluster_kubelets": {"*": {"approved": []}}}
    run = renew(tmp_path, {"w1": signed("w1")}, "--check", answers=answers)
    assert run.code == 0, run.text
    assert run.where("cluster_kubelets") == ["localhost"]
    assert run.where("systemd_units") == ["w1"]
