"""remove_node.yml on hosts that are only names: what is called where, in which order, and what is refused before."""

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import site

CA = "0123456789abcdef"
ADDRESSES = {"cp1": "10.88.0.11", "cp2": "10.88.0.12", "cp3": "10.88.0.13", "w1": "10.88.0.21", "w2": "10.88.0.22"}
GROUPS = {"kube_control_plane": ["cp1", "cp2", "cp3"], "kube_node": ["w1", "w2"]}
UNREACHABLE = {"unreachable": True, "msg": "Connection timed out"}
CHANGES = ["node_drain", "etcd_member", "host_reset"]


def host(name):
    plane = name.startswith("cp")
    seen = site()["w1"]["host"]
    return {
        **seen,
        "hostname": name,
        "machine_id": f"id-{name}",
        "kubelet": {**seen["kubelet"], "server": "10.88.0.1:6443", "cluster": CA},
        "cluster": {**seen["cluster"], "answered": plane, "endpoint": "10.88.0.1:6443" if plane else ""},
    }


def node(name, ready):
    return {
        "name": name,
        "machine_id": f"id-{name}",
        "ready": ready,
        "control_plane": name.startswith("cp"),
        "addresses": [ADDRESSES[name]],
    }


def remove(folder, names, *arguments, dead=(), answers=None, **variables):
    """Run the playbook while the hosts in `dead` are down."""
    members = [
        {"name": name, "id": name, "addresses": [ADDRESSES[name]], "alive": name not in dead}
        for name in GROUPS["kube_control_plane"]
    ]
    cluster = {"present": True, "ca": CA, "nodes": [node(name, name not in dead) for name in ADDRESSES]}
    found = {
        "host_info": {name: UNREACHABLE if name in dead else {"host": host(name)} for name in ADDRESSES},
        "cluster_info": {"*": cluster},
        "etcd_member": {"*": {"members": members}},
        "node_drain": {"*": {"left": []}},
        **(answers or {}),
    }
    given = {"fabric_remove_nodes": names, **variables}
    return play(folder, "ipu.fabric.remove_node", GROUPS, found, *arguments, **given)


def steps(run):
    """What was changed, where: the first call of etcd_member only reads."""
    calls = [call for call in run.calls if call.module in CHANGES and call.options.get("addresses") != []]
    return [("deletion" if is_deletion(call) else call.module, call.host) for call in calls]


def is_deletion(call):
    return call.module == "node_drain" and call.options.get("state") == "absent"


def test_a_worker(tmp_path):
    run = remove(tmp_path, "w2")
    assert run.code == 0, run.text
    assert steps(run) == [("node_drain", "localhost"), ("host_reset", "w2"), ("deletion", "localhost")]
    [reset] = [call for call in run.calls if call.module == "host_reset"]
    assert (reset.options, reset.become) == ({"ca": CA}, True)
    assert "Take w2 out of the inventory (kube_node) afterwards" in run.said


def test_a_dead_control_plane(tmp_path):
    """The first of the inventory, from which tasks of all hosts start."""
    run = remove(tmp_path, "cp1", dead=["cp1"])
    assert run.code == 0, run.text
    assert steps(run) == [("node_drain", "localhost"), ("etcd_member", "cp2"), ("deletion", "localhost")]
    drain = run.calls[[call.module for call in run.calls].index("node_drain")]
    assert (drain.options["wait"], drain.options["force"]) == (False, True)
    [member] = [call for call in run.calls if call.module == "etcd_member" and call.options["addresses"]]
    assert member.options == {"state": "absent", "addresses": ["10.88.0.11"], "alive": False, "node_name": "cp2"}
    note = "before it is on the network again, reinstall it or run kubeadm reset on its console"
    assert f"its host was not reached: {note}" in run.said


def test_a_frozen_host_is_like_a_dead_one(tmp_path):
    frozen = {"failed": True, "msg": "Timed out after 300 second(s).", "timedout": {"period": 300}}
    answers = {"host_info": {name: frozen if name == "w2" else {"host": host(name)} for name in ADDRESSES}}
    run = remove(tmp_path, "w2", dead=["w2"], answers=answers)
    assert run.code == 0, run.text
    assert steps(run) == [("node_drain", "localhost"), ("deletion", "localhost")]


def test_a_living_control_plane(tmp_path):
    run = remove(tmp_path, ["cp1"], "--check")
    assert run.code == 0, run.text
    assert steps(run) == [
        ("node_drain", "localhost"),
        ("etcd_member", "cp2"),
        ("host_reset", "cp1"),
        ("deletion", "localhost"),
    ]


def test_a_node_that_can_not_be_drained_stays(tmp_path):
    blocked = {"node_drain": {"*": {"failed": True, "msg": "pod a/b: the disruption budget x needs 1 healthy pods"}}}
    run = remove(tmp_path, "w2", answers=blocked)
    assert run.code != 0
    assert "was not removed: pod a/b: the disruption budget x needs 1 healthy pods" in run.said, run.text
    assert {name for name, _host in steps(run)} == {"node_drain"}


@pytest.mark.parametrize(
    ("names", "dead", "arguments", "said"),
    [
        ("", [], [], "The nodes to remove have to be named"),
        ("w2", [], ["--limit", "w2"], "Seen: --limit w2"),
        ("w7", [], [], "w7"),
        ("cp2", ["cp1"], [], "etcd keeps a majority of its members"),
    ],
)
def test_refused(tmp_path, names, dead, arguments, said):
    run = remove(tmp_path, names, *arguments, dead=dead)
    assert run.code != 0
    assert said in run.said, run.text
    assert "Finalization of task args" not in run.text
    assert steps(run) == []
    if names in ("", "w7"):
        assert run.where("host_info") == []  # at once: with 1,000 hosts asking takes minutes


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("cp1", {"fabric_api_host": "cp1"}, "cp1 connects to the API (fabric_api_host)"),
        ("w2", {"fabric_manage_kubernetes": False}, "is managed elsewhere"),
    ],
)
def test_what_stays(tmp_path, name, settings, said):
    run = remove(tmp_path, name, **settings)
    assert run.code != 0
    assert said in run.said, run.text
    assert steps(run) == []
