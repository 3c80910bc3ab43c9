"""A lying host: w1 says that it is another one. Nothing is signed, approved, drained, reset or deleted for that."""

import copy
import hashlib

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import GROUPS, finished, observed

CA, NAME = "ab", "10.88.0.11:6443"
INVENTORY = {"kube_control_plane": ["cp1"], "kube_node": ["w1", "w2"]}
VIP = "10.88.0.50"
SHA256 = hashlib.sha256(b"").hexdigest()  # of the kubeconfig: cp1's is on the controller
CHANGING = {
    "apt_packages",
    "etcd_member",
    "fabric_stack",
    "helm_release",
    "host_reset",
    "kube_apply",
    "kubeadm",
    "cluster_kubelets",
    "node_certificates",
    "node_drain",
    "systemd_units",
}


def bed():
    """What the modules answer on a site where nobody lies. Hosts are called as in the inventory."""
    hosts = finished()
    for name, seen in hosts.items():
        seen["host"]["hostname"] = name
    ids = {name: seen["host"]["machine_id"] for name, seen in hosts.items()}
    nodes = [
        {
            "name": name,
            "machine_id": ids[name],
            "addresses": [hosts[name]["host"]["default_address"]],
            "ready": True,
            "control_plane": name == "cp1",
            "version": "1.36.2",
            "own_labels": [],
        }
        for name in GROUPS
    ]
    found = {"renewed": ["kubelet-client"], "expired": [], "signed": True, "requested": True, "needed": True}
    mark = {"name": NAME, "server": NAME, "ca": CA, "serves": False}
    return {
        "host_info": observed(hosts),
        "cluster_info": {"*": {"present": True, "ca": CA, "version": "1.36.2", "nodes": nodes, "ipu": {"jobs": []}}},
        "node_drain": {"*": {"left": []}},
        "kubeadm": {"*": {"changed": True, "client": "secret"}},
        "cluster_kubelets": {"*": {"changed": True, "approved": []}},
        "kubernetes_node_info": {"*": {"node": {"membership": "member", "kubeconfig_sha256": SHA256, "name": "cp1"}}},
        "node_certificates": {
            name: {**found, "node": name, "interrupted": False, "restarted": [], "table": []} for name in hosts
        },
        "host_reset": {
            name: {
                "cluster": {**mark, "hostname": name, "machine_id": ids[name]},
                "removed": {"links": ["cni0"]},
                "kept": [],
            }
            for name in hosts
        },
    }


def lie(**said):
    """What w1 says of itself, to every module that asks."""
    found = copy.deepcopy(bed())
    found["host_info"]["w1"]["host"].update({key: value for key, value in said.items() if key != "node"})
    mark = {key: said[key] for key in ("hostname", "machine_id") if key in said}
    found["host_reset"]["w1"]["cluster"].update(mark)
    if "hostname" in said:
        found["node_certificates"]["w1"].update(node=said["hostname"], addresses=[VIP], expired=["apiserver"])
    return found


def run(folder, playbook, found, **variables):
    (folder / "admin.conf").write_text("")
    ips = {name: {"ip": f"10.88.0.{number}"} for number, name in enumerate(GROUPS, 11)}
    given = {"fabric_artifacts_dir": str(folder), "fabric_probe_ports": False, **variables}
    return play(folder, playbook, INVENTORY, found, host_vars=ips, **given)


def changes(done):
    """Calls that change something, and for whom."""
    return [
        (call.module, call.host, call.options.get("node_name") or call.options.get("name") or "")
        for call in done.calls
        if call.module in CHANGING and not call.check and call.options.get("addresses") != []
    ]


CP1 = {"hostname": "cp1", "machine_id": f"{11:032x}", "default_address": "10.88.0.11"}
CLONE = {"machine_id": f"{13:032x}"}


@pytest.mark.parametrize(
    ("playbook", "said", "variables", "seen"),
    [
        ("remove_node", CLONE, {"fabric_remove_nodes": "w2"}, "w1 has its machine-id; w2 has its name"),
        ("remove_node", CP1, {"fabric_remove_nodes": "w1"}, "w1 says that it is cp1, but that name is taken by cp1"),
        ("reset", CP1, {"fabric_reset": "fabric"}, "w1 says that it is cp1, but that name is taken by cp1"),
        (
            "reset",
            CLONE,
            {"fabric_reset": "cluster", "fabric_reset_name": NAME},
            "w1, w2 have the machine-id",
        ),
        (
            "upgrade",
            CP1,
            {"fabric_kubernetes_version": "1.36.3"},
            "w1 says that it is cp1, but that name is taken by cp1",
        ),
    ],
)
def test_nothing_is_changed_for_another(tmp_path, playbook, said, variables, seen):
    done = run(tmp_path, f"ipu.fabric.{playbook}", lie(**said), **variables)
    assert done.code != 0, done.text
    assert seen in done.said, done.text
    assert changes(done) == []


def test_nothing_is_signed_for_another(tmp_path):
    """The others are renewed, each under the name that the inventory has, by the first control plane that answers."""
    done = run(tmp_path, "ipu.fabric.renew_certificates", lie(**CP1), fabric_control_plane_vip=VIP)
    assert done.code != 0
    assert "Seen: w1 says that it is cp1, but the inventory has it as w1." in done.said, done.text
    names = [(host, name) for module, host, name in changes(done) if module == "kubeadm"]
    assert names == [("cp1", "w2")], done.text
    renewed = [(host, name) for module, host, name in changes(done) if module == "node_certificates"]
    assert renewed == [("cp1", "cp1"), ("w2", "w2")]
    approved = [call.options["nodes"] for call in done.calls if call.module == "cluster_kubelets"]
    assert approved[0] == {"cp1": ["10.88.0.11"], "w2": ["10.88.0.13"]}
    assert "w1" not in {host for _module, host, _name in changes(done)}


def test_nothing_is_approved_in_another_cluster(tmp_path):
    found = bed()
    found["cluster_info"]["*"]["ca"] = "cd"
    done = run(tmp_path, "ipu.fabric.renew_certificates", found)
    assert done.code != 0
    assert "must lead to the cluster that the hosts of this inventory are in" in done.said, done.text
    assert done.where("cluster_kubelets") == []
