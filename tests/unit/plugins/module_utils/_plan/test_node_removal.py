"""Clusters of three control planes and two workers, in which some hosts are down."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._plan.node_removal import asked_names, plan_removal

CA = "0123456789abcdef"
PLANES = ("cp1", "cp2", "cp3")
WORKERS = ("w1", "w2")
ADDRESSES = {"cp1": "10.88.0.11", "cp2": "10.88.0.12", "cp3": "10.88.0.13", "w1": "10.88.0.21", "w2": "10.88.0.22"}
ENDPOINT = "10.88.0.1:6443"


def node(name, ready=True):
    return {
        "name": name,
        "machine_id": f"id-{name}",
        "ready": ready,
        "control_plane": name in PLANES,
        "addresses": [ADDRESSES[name]],
    }


def observation(name, machine_id=None, ca=CA, answered=None, endpoint=ENDPOINT):
    plane = name in PLANES
    return {
        "groups": ["kube_control_plane" if plane else "kube_node"],
        "address": "",
        "errors": [],
        "host": {
            "hostname": name,
            "machine_id": machine_id or f"id-{name}",
            "kubelet": {"server": ENDPOINT if ca else "", "cluster": ca},
            "cluster": {"answered": plane if answered is None else answered, "endpoint": endpoint if plane else ""},
        },
    }


def silent(name):
    group = "kube_control_plane" if name in PLANES else "kube_node"
    return {"groups": [group], "address": ADDRESSES[name], "errors": [{"what": "unreachable"}]}


def member(name, alive=True):
    return {"name": name, "id": f"{len(name)}f", "addresses": [ADDRESSES[name]], "alive": alive}


def plan(asked, dead=(), members=PLANES, nodes=(*PLANES, *WORKERS), **hosts):
    """Remove `asked` from the cluster; hosts in `dead` are down."""
    seen = {name: silent(name) if name in dead else observation(name) for name in ADDRESSES}
    seen.update(hosts)
    known = None if members is None else [member(name, name not in dead) for name in members]
    return plan_removal(asked_names(asked), seen, CA, [node(name, name not in dead) for name in nodes], known)


@pytest.mark.parametrize(
    ("given", "names"),
    [("w2", ["w2"]), ("w2, cp3,w2,", ["w2", "cp3"]), (["w2"], ["w2"]), (None, []), ("", [])],
)
def test_names(given, names):
    assert asked_names(given) == names


def test_a_worker():
    result = plan("w2")
    assert result["table"] == ["w2 (worker): drain, reset host w2, delete the node and its addresses"]
    assert result["notes"] == [
        "Take w2 out of the inventory (kube_node) afterwards: site would join it again, and plans addresses for it."
    ]
    assert (result["nodes"][0]["alive"], result["nodes"][0]["reset"]) == (True, True)


def test_the_last_worker():
    assert plan(list(WORKERS))["notes"][0].startswith("Then only control planes are left, and none is in kube_node:")
    plane = observation("cp1")
    plane["groups"].append("kube_node")
    first = plan(list(WORKERS), cp1=plane)["notes"][0]
    assert first == "Then only control planes are left. Pods run on those that are in kube_node too: cp1."


def test_a_worker_whose_host_is_dead():
    result = plan("w2", dead=["w2"])
    assert result["table"] == [
        "w2 (worker): drain, delete the node and its addresses"
        " (its host was not reached: before it is on the network again, reinstall it or run kubeadm reset on its"
        " console)"
    ]
    assert not result["nodes"][0]["alive"]


def test_a_dead_control_plane():
    result = plan("cp1", dead=["cp1"])
    assert result["nodes"][0]["member"] == ["10.88.0.11"]
    assert (result["through"], result["through_node"]) == ("cp2", "cp2")
    assert "etcd then has 2 members: it survives no more losses than with 1." in result["notes"]


def test_workers_leave_first_and_dead_members_before_those_that_live():
    result = plan("cp3,cp1,w2", dead=["cp1"])
    assert [each["name"] for each in result["nodes"]] == ["w2", "cp1", "cp3"]


def test_a_node_that_has_left():
    result = plan("w2", nodes=(*PLANES, "w1"), w2=observation("w2", ca=""))
    assert result["table"] == ["w2: is not in the cluster"]
    assert not result["nodes"][0]["reset"]


def test_a_killed_run_is_finished():
    """The host was reset, and its node is still there; it is Ready for half a minute more."""
    result = plan("w2", w2=observation("w2", ca=""))
    assert (result["nodes"][0]["alive"], result["nodes"][0]["reset"]) == (False, True)
    # The node was deleted by hand, and its host was not reset.
    result = plan("w2", nodes=(*PLANES, "w1"))
    assert result["table"] == ["w2 (worker): reset host w2"]
    # The member of a control plane whose node is gone.
    result = plan("cp3", dead=["cp3"], nodes=("cp1", "cp2", *WORKERS))
    assert "remove etcd member 10.88.0.13" in result["table"][0]


def test_a_reinstalled_host_stays_as_it_is():
    other = observation("w2", machine_id="new", ca="")
    result = plan_removal(["w2"], {**{n: observation(n) for n in PLANES}, "w2": other}, CA, [node("w2", False)], [])
    assert not result["nodes"][0]["reset"]
    assert "host w2 answers and is not this node: it stays as it is" in result["table"][0]


def test_a_node_is_found_by_the_name_that_its_host_has_in_the_inventory():
    seen = {**{name: observation(name) for name in (*PLANES, "w1")}, "rack1-w2": observation("w2")}
    result = plan_removal(["rack1-w2"], seen, CA, [node(name) for name in ADDRESSES], [])
    assert [(each["name"], each["host"]) for each in result["nodes"]] == [("w2", "rack1-w2")]
    # By its address, while it is down.
    seen["rack1-w2"] = silent("w2")
    result = plan_removal(["rack1-w2"], seen, CA, [node(name, name != "w2") for name in ADDRESSES], [])
    assert [(each["name"], each["host"]) for each in result["nodes"]] == [("w2", "rack1-w2")]


@pytest.mark.parametrize(
    ("asked", "dead", "seen"),
    [
        ("", [], "the cluster has cp1, cp2, cp3, w1, w2"),
        ("w7", [], "neither the cluster nor the inventory has w7"),
        ("cp1,cp2,cp3", [], "its control planes are cp1, cp2, cp3"),
        ("cp2", ["cp1"], "1 of 2 members answer; silent: cp1"),  # a living one, while another is dead
        ("cp2", ["cp1", "cp3"], "none of these control planes has an api server"),
        ("cp1", ["cp1", "cp3"], "1 of 3 members answer; silent: cp1, cp3"),  # lost already
    ],
)
def test_refused(asked, dead, seen):
    with pytest.raises(FabricError) as caught:
        plan(asked, dead)
    assert seen in str(caught.value).lower()
    assert caught.value.next_step


def test_a_node_that_is_ready_and_out_of_reach_is_refused():
    """Its kubelet would run on."""
    with pytest.raises(FabricError, match="Node w2 is Ready, and its host can't be reset"):
        plan("w2", w2=silent("w2"))


def test_the_address_of_the_api_is_kept():
    hosts = {name: observation(name, endpoint="10.88.0.11:6443") for name in PLANES}
    with pytest.raises(FabricError, match=r"Node cp1 has the address of the API that all nodes use"):
        plan("cp1", **hosts)
    assert plan("cp2", **hosts)["nodes"]


@pytest.mark.parametrize(
    ("name", "nodes", "asks"),
    [("w2", (*PLANES, *WORKERS), False), ("cp2", (*PLANES, *WORKERS), True), ("cp2", ("cp1", "cp3", *WORKERS), True)],
)
def test_etcd_is_asked_for_control_planes(name, nodes, asks):
    """Also for one whose node somebody has deleted."""
    assert plan(name, members=None, nodes=nodes)["asks_etcd"] == asks


def test_before_etcd_was_asked():
    """Only then is it known through which control plane."""
    assert plan("cp2", dead=["cp1"], members=None)["through"] == "cp3"


def lying(name, **said):
    seen = observation(name)
    return {**seen, "host": {**seen["host"], **said}}


@pytest.mark.parametrize(
    ("asked", "hosts", "seen"),
    [
        # Two machines of one template, and the cluster has seen only one of them.
        (
            "w2",
            {"w1": lying("w1", machine_id="id-w2")},
            "w1 has its machine-id; w2 has its name and machine-id. Next: Give each host",
        ),
        ("w1", {"w2": lying("w2", machine_id="id-w1")}, "w1 has its name and machine-id; w2 has its machine-id"),
        ("w2", {"w1": lying("w1", hostname="w2")}, "w1 has its name; w2 has its name and machine-id"),
        (
            "w2",
            {"w1": lying("w1", hostname="w2", machine_id="id-w2"), "w2": silent("w2")},
            "w2 has its name and address",
        ),
        ("w2", {"w2": lying("w2", machine_id="other")}, "w2 with the machine-id other; the cluster has w2 with id-w2"),
        # Only control planes speak for the cluster.
        (
            "cp2",
            {"cp1": silent("cp1"), "cp3": silent("cp3"), "w1": lying("w1", hostname="cp3")},
            "none of these control planes has an api server",
        ),
    ],
)
def test_a_host_that_may_be_another_node_is_refused(asked, hosts, seen):
    for host in hosts.values():
        host.get("host", {}).get("cluster", {}).update(answered=True)
    with pytest.raises(FabricError) as caught:
        plan(asked, **hosts)
    assert seen.lower() in str(caught.value).lower()
    assert caught.value.next_step


def test_clones_that_the_cluster_knows_are_refused():
    seen = {name: observation(name, machine_id="cloned" if name in WORKERS else None) for name in ADDRESSES}
    nodes = [{**node(name), "machine_id": "cloned" if name in WORKERS else f"id-{name}"} for name in ADDRESSES]
    with pytest.raises(FabricError, match="w1 has its machine-id; w2 has its name and machine-id"):
        plan_removal(["w2"], seen, CA, nodes, None)


def test_a_host_that_the_cluster_has_no_node_of_may_not_lead_to_another():
    """Asked for the host w2, whose node is gone, and which calls itself w1."""
    with pytest.raises(FabricError, match="w1 has its name and machine-id; w2 has its name"):
        plan("w2", nodes=(*PLANES, "w1"), w2=lying("w2", hostname="w1"))


def test_a_name_that_is_two_nodes_is_refused():
    seen = {**{name: observation(name) for name in ADDRESSES}, "a": lying("w1", machine_id="id-w2")}
    with pytest.raises(FabricError, match="it has the name of w1; it has the machine-id of w2"):
        plan_removal(["a"], seen, CA, [node(name) for name in ADDRESSES], None)


@pytest.mark.parametrize("also", [{}, {"w3": observation("w3")}])
def test_the_host_of_a_node_that_was_renamed_and_joined_again_stays(also):
    """Node w2 is stale: its machine is w1 now. Or the kubelet of w2 has claimed what w1 has."""
    seen = {**{name: observation(name) for name in (*PLANES, "w1")}, **also}
    stale = {**node("w2", False), "machine_id": "id-w1", "addresses": [ADDRESSES["w1"]]}
    cluster = [*(node(name) for name in (*PLANES, "w1")), stale]
    result = plan_removal(["w2"], seen, CA, cluster, [])
    assert result["table"] == [
        "w2 (worker): drain, delete the node and its addresses (host w1 has its machine-id, but calls itself w1,"
        " and may be node w1: it stays as it is)"
    ]
    assert not any("Take w1 out" in each for each in result["notes"])
    [leaving] = result["nodes"]
    assert (leaving["host"], leaving["alive"], leaving["reset"]) == ("", False, False)
    # Its own node still leaves with its host.
    [leaving] = plan_removal(["w1"], seen, CA, cluster, [])["nodes"]
    assert (leaving["host"], leaving["reset"]) == ("w1", True)
    # A kubelet that still runs is not left behind.
    with pytest.raises(FabricError, match="Node w2 is Ready, and its host can't be reset") as caught:
        plan_removal(["w2"], seen, CA, [*cluster[:-1], {**stale, "ready": True}], [])
    assert "host w1 has its machine-id, but calls itself w1" in caught.value.seen


@pytest.mark.parametrize("shared", [{"machine_id": "id-w2"}, {"addresses": [ADDRESSES["w2"]]}])
def test_a_renamed_host_that_may_be_either_of_two_nodes_stays(shared):
    seen = {**{name: observation(name) for name in PLANES}, "w2": lying("w2", hostname="w9")}
    seen["w2"]["reached"] = ADDRESSES["w2"]
    cluster = [*(node(name) for name in PLANES), {**node("w1"), **shared}, node("w2", False)]
    result = plan_removal(["w2"], seen, CA, cluster, [])
    assert not result["nodes"][0]["reset"]
    assert "but calls itself w9, and may be node w1: it stays as it is" in result["table"][0]
    cluster[-2] = node("w1")
    assert plan_removal(["w2"], seen, CA, cluster, [])["nodes"][0]["reset"]


def test_a_worker_with_the_address_of_a_control_plane_takes_no_member_of_etcd():
    """Kubelets report addresses; only the label of control planes is out of their reach."""
    cluster = [*(node(name) for name in (*PLANES, "w1")), {**node("w2", False), "addresses": [ADDRESSES["cp2"]]}]
    seen = {name: observation(name) if name in PLANES else silent(name) for name in ADDRESSES}
    members = [member(name) for name in PLANES]
    result = plan_removal(["w2"], seen, CA, cluster, members)
    assert (result["nodes"][0]["member"], result["nodes"][0]["control_plane"]) == ([], False)
    # Nor does a control plane take another's; its own may have no name, or another one.
    cluster[0]["addresses"], cluster[0]["ready"] = [ADDRESSES["cp1"], ADDRESSES["cp2"]], False
    seen["cp1"] = silent("cp1")
    for name in ("cp1", "", "former"):
        members[0] = {**member("cp1", False), "name": name}
        assert plan_removal(["cp1"], seen, CA, cluster, members)["nodes"][0]["member"] == [ADDRESSES["cp1"]]
