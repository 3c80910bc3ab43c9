import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube import pod_resources

WAITS = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def pod(name, *limits, status=None, key="containers"):
    containers = [{"name": str(number), "resources": {"limits": each}} for number, each in enumerate(limits)]
    return {"metadata": {"name": name}, "spec": {key: containers}, "status": WAITS if status is None else status}


def node(**capacity):
    return {"metadata": {"name": "w1"}, "status": {"capacity": {"cpu": "4", "memory": "8Gi", **capacity}}}


@pytest.mark.parametrize(
    ("limits", "capacities", "unknown"),
    [
        ([{"rdma/a": "1"}], [{}], ["rdma/a"]),
        ([{"rdma/a": "1"}], [{"rdma/a": "0"}], []),  # its device plugin restarts
        ([{"rdma/a": "1"}], [{}, {"rdma/a": "63"}], []),
        ([{"rdma/a": "1"}], [{"rdma/b": "63"}], ["rdma/a"]),
        ([{"cpu": "900", "memory": "1Ti", "hugepages-2Mi": "1Gi"}], [{}], []),  # another node may bring them
        ([{"rdma/a": "1"}, {"nvidia.com/gpu": "1", "rdma/a": "1"}], [{}], ["nvidia.com/gpu", "rdma/a"]),
        ([{}], [{}], []),
    ],
)
@pytest.mark.parametrize("key", ["containers", "initContainers"])
def test_what_no_node_has(limits, capacities, unknown, key):
    found = pod_resources.unknown_resources([pod("p", *limits, key=key)], [node(**each) for each in capacities])
    assert [problem.text.split()[4].strip(",") for problem in found] == unknown
    assert all(problem.fault for problem in found)


class Cluster:
    """Counts how often its nodes are read."""

    def __init__(self, nodes):
        self.nodes, self.reads = nodes, 0

    def items(self, path, **_query):
        assert path == "/api/v1/nodes"
        self.reads += 1
        if isinstance(self.nodes, Exception):
            raise self.nodes
        return self.nodes


def test_nodes_are_read_now_and_then_and_only_while_a_pod_waits():
    cluster, now = Cluster([node()]), [0.0]
    resources = pod_resources.NodeResources(cluster, lambda: now[0])
    assert resources.problems([pod("p", {"rdma/a": "1"}, status={"phase": "Running"})]) == []
    assert cluster.reads == 0
    for now[0] in (1, 2, 15):
        assert len(resources.problems([pod("p", {"rdma/a": "1"})])) == 1
    assert cluster.reads == 1
    now[0], cluster.nodes = 16, [node(**{"rdma/a": "63"})]
    assert resources.problems([pod("p", {"rdma/a": "1"})]) == []
    assert cluster.reads == 2


def test_who_may_not_read_nodes_waits_on():
    resources = pod_resources.NodeResources(Cluster(FabricError("reading", "nodes", "forbidden", "ask")))
    assert resources.problems([pod("p", {"rdma/a": "1"})]) == []
