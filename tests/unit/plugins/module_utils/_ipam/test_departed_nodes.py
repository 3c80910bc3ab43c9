import copy

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipam import departed_nodes
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module
from kubernetes.client.exceptions import ApiException

POOLS = f"{departed_nodes.WHEREABOUTS}/ippools"
RESERVATIONS = f"{departed_nodes.WHEREABOUTS}/overlappingrangeipreservations"


def entry(pod):
    return {"id": f"container-{pod}", "ifname": "net1", "podref": pod}


def pool(**allocations):
    return {
        "metadata": {"name": "10.5.0.0-24", "namespace": "kube-system", "resourceVersion": "1"},
        "spec": {
            "range": "10.5.0.0/24",
            "allocations": {offset[1:]: entry(pod) for offset, pod in allocations.items()},
        },
    }


def reservation(address, pod):
    metadata = {"name": address, "namespace": "kube-system"}
    return {"metadata": metadata, "spec": {"podref": pod}}


def pod(name, node):
    return {
        "metadata": {"namespace": "jobs", "name": name, "uid": f"uid-{name}"},
        "spec": {"nodeName": node},
        "status": {"phase": "Running"},
    }


class Memory:
    """A cluster with w1 and w2. Its nv-ipam takes back the block of a node after `delay` looks."""

    present = True

    def __init__(self, conflicts=0, delay=1):
        self.nodes = ["w1", "w2"]
        self.pods = [pod("stays", "w1"), pod("lost", "w2")]
        self.pools = [pool(_1="jobs/stays", _2="jobs/lost", _3="jobs/older")]
        self.reservations = [reservation("10.5.0.1", "jobs/stays"), reservation("10.5.0.2", "jobs/lost")]
        self.conflicts, self.delay = conflicts, delay

    def get(self, path, **query):
        if path.startswith(f"{departed_nodes.NODES}/"):
            name = path.rpartition("/")[2]
            return {"metadata": {"name": name}} if name in self.nodes else None
        return {"items": self.items(path, **query)}

    def items(self, path, **query):
        if path == departed_nodes.PODS:
            node = query.get("fieldSelector", "").partition("spec.nodeName=")[2]
            return [each for each in self.pods if not node or each["spec"]["nodeName"] == node]
        if path == departed_nodes.NODES:
            return [{"metadata": {"name": name}} for name in self.nodes]
        if path == departed_nodes.NV_IPAM:
            if "w2" not in self.nodes:
                self.delay -= 1
            names = ["w1", "w2"] if self.delay >= 0 else self.nodes
            blocks = [{"nodeName": name, "startIP": "10.6.0.1", "endIP": "10.6.0.8"} for name in names]
            return [
                {"metadata": {"name": "blocks"}, "status": {"allocations": blocks}, "spec": {"subnet": "10.6.0.0/24"}}
            ]
        return copy.deepcopy({POOLS: self.pools, RESERVATIONS: self.reservations}.get(path, []))

    def delete(self, path):
        name = path.rpartition("/")[2]
        self.nodes = [node for node in self.nodes if node != name]
        self.reservations = [each for each in self.reservations if each["metadata"]["name"] != name]
        return True

    def request(self, verb, path, body):
        assert (verb, body["gracePeriodSeconds"]) == ("delete", 0)
        self.pods = [each for each in self.pods if each["metadata"]["uid"] != body["preconditions"]["uid"]]

    def patch(self, path, body):
        assert path == f"{departed_nodes.WHEREABOUTS}/namespaces/kube-system/ippools/10.5.0.0-24"
        assert body["metadata"] == {"resourceVersion": "1"}
        if self.conflicts:
            self.conflicts -= 1
            raise ApiException(409)
        for offset, value in body["spec"]["allocations"].items():
            assert value is None
            del self.pools[0]["spec"]["allocations"][offset]


@pytest.fixture
def remove(monkeypatch):
    monkeypatch.setattr(departed_nodes.time, "sleep", lambda seconds: None)

    def run(cluster, name, check_mode=False, timeout=60):
        monkeypatch.setattr(departed_nodes, "connect", lambda module: cluster)
        module = Module(check_mode=check_mode, name=name, timeout=timeout, settle=0)
        return departed_nodes.remove_node(module)

    return run


def test_a_node_its_pods_and_their_addresses(remove):
    cluster = Memory()
    result = remove(cluster, "w2")
    assert result["changed"]
    assert result["left"] == []
    assert cluster.nodes == ["w1"]
    assert [each["metadata"]["name"] for each in cluster.pods] == ["stays"]
    assert list(cluster.pools[0]["spec"]["allocations"]) == ["1"]
    assert [each["metadata"]["name"] for each in cluster.reservations] == ["10.5.0.1"]
    assert result["diff"]["before"] == {
        "nodes": ["w2"],
        "pods": ["jobs/lost"],
        "addresses": ["10.5.0.2 (jobs/lost)", "10.5.0.3 (jobs/older)"],
    }
    again = remove(cluster, "w2")
    assert (again["changed"], again["diff"]["before"]) == (False, again["diff"]["after"])


def test_check_mode(remove):
    cluster, untouched = Memory(), Memory()
    assert remove(cluster, "w2", check_mode=True)["changed"]
    assert (cluster.nodes, cluster.pods, cluster.pools) == (untouched.nodes, untouched.pods, untouched.pools)


def test_without_a_name_no_node_is_removed(remove):
    """The path of a node without a name is that of all nodes."""
    cluster = Memory()
    with pytest.raises(FabricError, match="no name"):
        remove(cluster, "")
    assert cluster.nodes == ["w1", "w2"]


def test_blocks_that_are_not_taken_back_in_time(remove):
    result = remove(Memory(delay=1000), "w2", timeout=0)
    assert result["left"] == ["nv-ipam blocks 10.6.0.1-10.6.0.8 (w2)"]


def test_a_pool_that_changes_meanwhile_is_read_again(remove):
    cluster = Memory(conflicts=2)
    remove(cluster, "w2")
    assert list(cluster.pools[0]["spec"]["allocations"]) == ["1"]
    with pytest.raises(FabricError, match="something else changed the pool"):
        remove(Memory(conflicts=100), "w2")


def test_an_address_that_another_pod_has_by_now_stays():
    """Its entry is another's: address and pod have to be those that leaked."""
    assert departed_nodes.offsets_of(pool(_2="jobs/new"), {("10.5.0.2", "jobs/lost")}) == []


def test_blocks_of_calico():
    affinities = [
        {"spec": {"cidr": "10.244.1.0/26", "node": "w2"}},
        {"spec": {"cidr": "10.244.2.0/26", "node": "w1"}},
        {"spec": {"cidr": "10.244.3.0/26", "node": "w2", "deleted": "true"}},
    ]
    assert departed_nodes.blocks_of(["w2"], [], affinities) == ["Calico 10.244.1.0/26 (w2)"]
