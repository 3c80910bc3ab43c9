"""Which nodes a scheduled proof takes next."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._verify import slices

HOSTS = {f"h{n}": {"node": f"n{n}", "links": {"rail": {}}, "roles": ["worker"]} for n in range(1, 6)}
RAIL = {"name": "rail", "namespace": "default", "hosts": sorted(HOSTS), "rdma": True, "resource": "roce"}
PLAN = {"hosts": HOSTS, "networks": [RAIL], "rdma_resources": []}


def pod(node, name="p", labels=None, networks="", resources=None, where="containers"):
    return {
        "metadata": {
            "name": name,
            "namespace": "jobs",
            "labels": labels,
            "annotations": {"k8s.v1.cni.cncf.io/networks": networks},
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "a"}],
            where: [{"name": "c", "resources": {"limits": resources}}],
        },
    }


@pytest.mark.parametrize(
    ("text", "nodes", "size"),
    [("3", 10, 3), ("30", 10, 10), ("0", 10, 1), ("10%", 200, 20), ("1%", 10, 1), ("33%", 10, 3), ("100%", 7, 7)],
)
def test_sizes(text, nodes, size):
    assert slices.slice_size(text, nodes) == size


@pytest.mark.parametrize("text", ["", "-1", "ten", "1.5", "101%"])
def test_what_is_no_size(text):
    with pytest.raises(FabricError, match="A slice of the nodes is a count or a percentage"):
        slices.slice_size(text, 4)


@pytest.mark.parametrize(
    ("seen", "busy"),
    [
        (pod("n2", networks="default/rail"), {"n2": "jobs/p"}),
        (pod("n2", networks='[{"name": "rail", "namespace": "default"}]'), {"n2": "jobs/p"}),
        (pod("n2", resources={"rdma/roce": "1"}), {"n2": "jobs/p"}),
        (pod("n2", resources={"rdma/roce": "1"}, where="initContainers"), {"n2": "jobs/p"}),
        (pod("n2", networks="rail"), {}),  # one of its own namespace
        (pod("n2", resources={"cpu": "1"}), {}),
        (pod(None, resources={"rdma/roce": "1"}), {}),
        (pod("n2", labels={"fabric.ipu/verify": "x"}, resources={"rdma/roce": "1"}), {}),
    ],
)
def test_who_holds_a_node(seen, busy):
    assert slices.holders(PLAN, [seen]) == busy


def test_who_holds_a_gpu_is_at_work_where_gpus_are_proved():
    train = pod("n2", resources={"nvidia.com/gpu": "1"})
    assert slices.next_slice(PLAN, [train], {}, "100%").busy == {}
    assert slices.next_slice(PLAN, [train], {}, "100%", gpu=True).busy == {"n2": "jobs/p"}


@pytest.mark.parametrize(
    ("reason", "proved"),
    [
        ("Proved", {"n1": "2026-11-20T00:00:00Z"}),
        ("PathUnclear", {"n1": "2026-11-20T00:00:00Z"}),
        ("Rebooted", {}),
        ("New", {}),
    ],
)
def test_when_a_node_was_judged(reason, proved):
    condition = {"type": "FabricProved", "reason": reason, "lastHeartbeatTime": "2026-11-20T00:00:00Z"}
    node = {"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready"}, condition]}}
    assert slices.last_proofs([node]) == proved


def test_the_oldest_proof_comes_first():
    proved = {"n1": "2026-11-20T00:00:00Z", "n2": "2026-11-19T00:00:00Z", "n4": "2026-11-18T00:00:00Z"}
    pods = [pod("n4", networks="default/rail"), pod("elsewhere", networks="default/rail")]
    found = slices.next_slice(PLAN, pods, proved, "3")
    assert found.nodes == ["n3", "n5", "n2"]
    assert found.busy == {"n4": "jobs/p"}


def test_every_node_gets_its_turn():
    proved, turns = {}, []
    for hour in range(5):
        nodes = slices.next_slice(PLAN, [], proved, "40%").nodes
        turns.append(nodes)
        proved.update(dict.fromkeys(nodes, f"2026-11-20T0{hour}:00:00Z"))
    assert turns == [["n1", "n2"], ["n3", "n4"], ["n5", "n1"], ["n2", "n3"], ["n4", "n1"]]


def test_nodes_at_work_are_no_neighbours():
    rest = slices.without_nodes(PLAN, {"n2": "jobs/p"})
    assert sorted(rest["hosts"]) == ["h1", "h3", "h4", "h5"] == rest["networks"][0]["hosts"]
    assert PLAN["networks"][0]["hosts"] == sorted(HOSTS)
