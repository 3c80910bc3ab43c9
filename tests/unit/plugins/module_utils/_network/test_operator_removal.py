"""The order in which the network operator's objects go, on a cluster in memory with a garbage collector."""

import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._network import operator_removal
from ansible_collections.ipu.fabric.tests.unit.fixtures import objects
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module
from ansible_collections.ipu.fabric.tests.unit.fixtures.objects import obj

KEY = "k8s.v1.cni.cncf.io/networks"
OPERATOR = "nvidia-network-operator"
MULTUS = [{"image": "ghcr.io/k8snetworkplumbingwg/multus-cni:v4"}]


class Memory(objects.Memory):
    """Deleting an object takes those that it owns along, some looks later."""

    def __init__(self, *objects, lag=0):
        super().__init__(*objects)
        self.doomed, self.lag = {}, lag

    def items(self, path, **query):
        for name, looks in list(self.doomed.items()):
            self.doomed[name] = looks - 1
            if looks <= 0:
                self.objects.pop(name, None)
        return super().items(path, **query)

    def delete(self, path):
        self.deleted.append(self.objects[path]["kind"])
        self.doom(path)
        return True

    def doom(self, path):
        self.doomed[path] = self.lag
        for other in self.owned(path):
            self.doom(other)


def pod(name, namespace="default", owner=None, labels=None, **annotations):
    return obj("Pod", name, namespace, owner, metadata={"annotations": annotations, "labels": labels or {}})


SERVED = [
    obj("NicClusterPolicy", "nic-cluster-policy"),
    obj("MacvlanNetwork", "rdma-net"),
    obj("NetworkAttachmentDefinition", "rdma-net", "default", ("MacvlanNetwork", "rdma-net"), by="network-operator"),
    obj("IPPool", "rdma-net", OPERATOR),
    obj(
        "DaemonSet",
        "kube-multus-ds",
        OPERATOR,
        ("NicClusterPolicy", "nic-cluster-policy"),
        by="network-operator",
        spec={"selector": {"matchLabels": {"name": "multus"}}, "template": {"spec": {"containers": MULTUS}}},
    ),
    pod("kube-multus-ds-x", OPERATOR, ("DaemonSet", "kube-multus-ds"), {"name": "multus"}),
    pod("operator", OPERATOR),
]
THEIR_NETWORK = obj("MacvlanNetwork", "theirs", by="kubectl")
THEIR_NAD = obj("NetworkAttachmentDefinition", "theirs", "jobs", ("MacvlanNetwork", "theirs"), by="network-operator")
FOREIGN_NAD = obj("NetworkAttachmentDefinition", "foreign", "jobs", by="kubectl")


def remove(cluster, monkeypatch, check=False, force=False, timeout=5):
    monkeypatch.setattr(operator_removal, "connect", lambda module: cluster)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return operator_removal.remove_networks(Module(force=force, timeout=timeout, check_mode=check))


@pytest.mark.parametrize("lag", [0, 3])
def test_each_is_gone_before_the_next_goes(monkeypatch, lag):
    cluster = Memory(*SERVED, lag=lag)
    result = remove(cluster, monkeypatch)
    assert cluster.deleted == ["MacvlanNetwork", "IPPool", "NicClusterPolicy"]
    assert result["objects"] == [
        "MacvlanNetwork rdma-net",
        f"IPPool {OPERATOR}/rdma-net",
        "NicClusterPolicy nic-cluster-policy",
    ]
    assert (result["attachments"], result["needed_by"]) == ([], [])
    assert cluster.names() == {"operator"}
    assert not remove(cluster, monkeypatch)["changed"]


def test_networks_of_every_type_go_before_what_serves_them(monkeypatch):
    made = [
        obj("SriovNetwork", "a", OPERATOR),
        obj("IPoIBNetwork", "b"),
        obj("HostDeviceNetwork", "c"),
        obj("SriovNetworkNodePolicy", "a", OPERATOR),
        obj("SriovNetwork", "theirs", "elsewhere", by="kubectl"),  # of another SR-IOV operator
    ]
    cluster = Memory(*SERVED, *made)
    assert remove(cluster, monkeypatch)["needed_by"] == []
    kinds = ["MacvlanNetwork", "IPoIBNetwork", "HostDeviceNetwork", "SriovNetwork"]
    assert cluster.deleted == [*kinds, "IPPool", "SriovNetworkNodePolicy", "NicClusterPolicy"]
    assert cluster.names() == {"operator", "theirs"}


@pytest.mark.parametrize(
    ("theirs", "named"),
    [
        ([THEIR_NETWORK, THEIR_NAD], ["MacvlanNetwork theirs"]),
        ([obj("HostDeviceNetwork", "theirs", by="kubectl")], ["HostDeviceNetwork theirs"]),
        ([obj("IPPool", "theirs", "ipam", by="kubectl")], ["IPPool ipam/theirs"]),
        ([obj("NicNodePolicy", "theirs", by="kubectl")], ["NicNodePolicy theirs"]),
        # Its multus is the only one.
        ([FOREIGN_NAD], ["NetworkAttachmentDefinition jobs/foreign"]),
    ],
)
def test_what_others_have_keeps_the_operator(monkeypatch, theirs, named):
    cluster = Memory(*SERVED, *theirs, pod("stranger", "jobs", **{KEY: "theirs, foreign"}))
    result = remove(cluster, monkeypatch)
    assert cluster.deleted == ["MacvlanNetwork", "IPPool"]
    assert {each["metadata"]["name"] for each in theirs} <= cluster.names()
    assert {"nic-cluster-policy", "kube-multus-ds", "stranger"} <= cluster.names()
    assert result["needed_by"] == named
    again = remove(cluster, monkeypatch)
    assert (again["changed"], again["needed_by"]) == (False, named)


def test_the_policy_of_others_stays(monkeypatch):
    theirs = obj("NicClusterPolicy", "nic-cluster-policy", by="helm")
    cluster = Memory(*SERVED[1:], theirs)
    result = remove(cluster, monkeypatch)
    assert cluster.deleted == ["MacvlanNetwork", "IPPool"]
    assert result["needed_by"] == ["NicClusterPolicy nic-cluster-policy"]


def test_networks_with_another_multus_do_not_need_the_operator(monkeypatch):
    other = obj("DaemonSet", "multus", "kube-system", by="kubectl", spec={"template": {"spec": {"containers": MULTUS}}})
    cluster = Memory(*SERVED, FOREIGN_NAD, other)
    result = remove(cluster, monkeypatch)
    assert (result["attachments"], result["needed_by"]) == (["jobs/foreign"], [])
    assert cluster.names() == {"operator", "foreign", "multus"}


def test_pods_on_other_networks_that_take_from_our_pool_keep_it(monkeypatch):
    config = {"type": "macvlan", "ipam": {"type": "nv-ipam", "poolName": "rdma-net"}}
    theirs = obj("NetworkAttachmentDefinition", "theirs", "jobs", by="kubectl", spec={"config": json.dumps(config)})
    cluster = Memory(*SERVED, theirs, pod("worker", "jobs", **{KEY: "theirs"}))
    with pytest.raises(FabricError, match="1 pods have an address on them: jobs/worker"):
        remove(cluster, monkeypatch)
    assert cluster.deleted == []


def test_pods_on_networks_of_others_are_named_apart(monkeypatch):
    cluster = Memory(*SERVED, THEIR_NETWORK, THEIR_NAD, pod("stranger", "jobs", **{KEY: "theirs"}))
    result = remove(cluster, monkeypatch, check=True, force=True)
    assert (result["pods"], result["other_pods"]) == ([], ["jobs/stranger"])


def test_check_mode_changes_nothing(monkeypatch):
    cluster = Memory(*SERVED)
    result = remove(cluster, monkeypatch, check=True)
    assert result["changed"]
    assert len(result["objects"]) == 3
    assert cluster.deleted == []


@pytest.mark.parametrize("check", [True, False])
def test_pods_that_use_a_network_keep_it(monkeypatch, check):
    user = pod("worker", "jobs", **{KEY: json.dumps([{"name": "rdma-net", "namespace": "default"}])})
    cluster = Memory(*SERVED, user)
    with pytest.raises(FabricError, match="1 pods have an address on them: jobs/worker"):
        remove(cluster, monkeypatch, check=check)
    assert cluster.deleted == []


def test_a_pod_that_is_ending_is_waited_for(monkeypatch):
    ending = pod("worker", "jobs", **{KEY: "default/rdma-net"})
    ending["metadata"]["deletionTimestamp"] = "2026-11-27T16:46:00Z"
    cluster = Memory(*SERVED, ending)
    checked = remove(cluster, monkeypatch, check=True)
    assert (checked["pods"], [name for name in checked["objects"] if name.startswith("Pod")]) == ([], [])
    with pytest.raises(FabricError, match="Run again when these pods have ended"):
        remove(cluster, monkeypatch, timeout=0)
    assert cluster.deleted == []
    cluster.doomed[cluster.path_of(ending)] = 3  # looks until its kubelet has stopped it
    remove(cluster, monkeypatch)
    assert cluster.deleted == ["MacvlanNetwork", "IPPool", "NicClusterPolicy"]


def test_pods_go_first_when_forced(monkeypatch):
    cluster = Memory(*SERVED, pod("worker", **{KEY: "rdma-net"}), lag=2)
    assert remove(cluster, monkeypatch, force=True)["pods"] == ["default/worker"]
    assert cluster.deleted[:2] == ["Pod", "MacvlanNetwork"]


def test_what_does_not_go_is_named(monkeypatch):
    cluster = Memory(*SERVED, lag=10**6)
    with pytest.raises(FabricError, match="MacvlanNetwork rdma-net still exists; NetworkAttachmentDefinition default/"):
        remove(cluster, monkeypatch, timeout=0)
    assert cluster.deleted == ["MacvlanNetwork"]


def test_a_cluster_without_the_operator(monkeypatch):
    monkeypatch.setattr(Memory, "resource", lambda *unused: None)
    assert not remove(Memory(), monkeypatch)["changed"]
