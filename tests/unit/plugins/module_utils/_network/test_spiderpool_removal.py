"""The order in which Spiderpool's objects go, on a cluster in memory with a garbage collector and finalizers."""

import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._network import cluster_info, spiderpool_removal
from ansible_collections.ipu.fabric.plugins.modules import fabric_stack
from ansible_collections.ipu.fabric.tests.unit.fixtures import objects
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module
from ansible_collections.ipu.fabric.tests.unit.fixtures.objects import obj

KEY = "k8s.v1.cni.cncf.io/networks"
HELD = ["spiderpool.spidernet.io"]


class Memory(objects.Memory):
    """Deleting an object takes those that it owns along; finalizers hold it, but for those of pools."""

    def get(self, path, **query):
        return self.objects.get(path)

    def patch(self, path, body):
        assert body == {"metadata": {"finalizers": None}}
        assert not any(obj["kind"] == "Deployment" for obj in self.objects.values()), "its webhook would put it back"
        return self.objects.pop(path)

    def delete(self, path):
        obj = self.objects[path]
        self.deleted.append(obj["kind"])
        if obj["metadata"].get("finalizers") and obj["kind"] != "SpiderIPPool":
            return True
        for gone in [*self.owned(path), path]:
            del self.objects[gone]
        return True


def workload(kind, name, namespace, *images):
    template = {"spec": {"containers": [{"image": f"ghcr.io/x/{image}:v1.2.2"} for image in images]}}
    return obj(kind, name, namespace, by="helm", spec={"template": template})


def nad(name, namespace="training", owner=None, ipam="host-local", by="kubectl"):
    config = json.dumps({"type": "macvlan", "ipam": {"type": ipam}})
    return obj("NetworkAttachmentDefinition", name, namespace, owner, by=by, spec={"config": config})


def pod(name, namespace="training", **annotations):
    return obj("Pod", name, namespace, by="kubelet", metadata={"annotations": annotations})


def crd(name, group="spiderpool.spidernet.io", kind="SpiderIPPool"):
    spec = {"group": group, "names": {"kind": kind}, "versions": [{"name": "v1"}]}
    return obj("CustomResourceDefinition", f"{name}.{group}", spec=spec)


INSTALLED = [
    workload("Deployment", "spiderpool-controller", "spiderpool", "spiderpool-controller"),
    workload("DaemonSet", "spiderpool-agent", "spiderpool", "spiderpool-agent", "multus-cni"),
]
ITS_OWN = [
    obj("SpiderCoordinator", "default", by="spiderpool-init", metadata={"finalizers": HELD}),
    obj("SpiderMultusConfig", "calico", "spiderpool", by="spiderpool-init"),
    nad("calico", "spiderpool", ("SpiderMultusConfig", "calico"), by="spiderpool-controller"),
]
NETWORKS = [
    obj("SpiderMultusConfig", "rail-0", "training"),
    nad("rail-0", owner=("SpiderMultusConfig", "rail-0"), ipam="spiderpool", by="spiderpool-controller"),
    obj("SpiderIPPool", "rail-0-v4", metadata={"finalizers": HELD}),
]
CRDS = [
    crd("spiderippools"),
    crd("sriovnetworks", "sriovnetwork.openshift.io", "SriovNetwork"),
    crd("network-attachment-definitions", "k8s.cni.cncf.io", "NetworkAttachmentDefinition"),
    crd("widgets", "example.org", "Widget"),
]
SERVED = [*INSTALLED, *ITS_OWN, *NETWORKS, *CRDS]
# A second network, and a plan that has only that one.
KEPT = [
    obj("SpiderMultusConfig", "rail-1", "training"),
    nad("rail-1", owner=("SpiderMultusConfig", "rail-1"), ipam="spiderpool", by="spiderpool-controller"),
    obj("SpiderIPPool", "rail-1-v4", metadata={"finalizers": HELD}),
]
PLANNED = [{"kind": each["kind"], "metadata": each["metadata"]} for each in (KEPT[0], KEPT[2])]
THEIRS = [obj("SpiderIPPool", "theirs", by="kubectl"), obj("SpiderMultusConfig", "theirs", "jobs", by="kubectl")]


def ask(cluster, monkeypatch, body, **params):
    monkeypatch.setattr(spiderpool_removal, "connect", lambda module: cluster)
    monkeypatch.setattr(cluster_info, "release_is_ours", lambda cluster, workload: True)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    module = Module(timeout=1, **{"force": False, "check_mode": False, **params})
    return body(module), module.warnings


def remove(cluster, monkeypatch, check=False, force=False):
    return ask(cluster, monkeypatch, spiderpool_removal.remove_networks, check_mode=check, force=force)[0]


def prune(cluster, monkeypatch, unplanned="remove", **params):
    return ask(cluster, monkeypatch, spiderpool_removal.prune_networks, unplanned=unplanned, planned=PLANNED, **params)


def defined(result):
    return {each["metadata"]["name"].partition(".")[0] for each in result["definitions"]}


def test_networks_go_before_their_pools_and_the_controller_stays_for_them(monkeypatch):
    cluster = Memory(*SERVED)
    result = remove(cluster, monkeypatch)
    assert cluster.deleted == ["SpiderMultusConfig", "SpiderIPPool"]
    assert result["objects"] == ["SpiderMultusConfig training/rail-0", "SpiderIPPool rail-0-v4"]
    assert {"default", "calico", "spiderpool-controller"} <= cluster.names()
    assert defined(result) == {"spiderippools", "sriovnetworks", "network-attachment-definitions"}
    assert [(each["release"], each["ours"]) for each in result["installations"]] == [("", True)]
    assert not remove(cluster, monkeypatch)["changed"]


def test_what_spiderpool_made_for_itself_goes_when_it_is_uninstalled(monkeypatch):
    cluster = Memory(*ITS_OWN, *CRDS)
    assert set(remove(cluster, monkeypatch)["objects"]) == {
        "SpiderCoordinator default",
        "SpiderMultusConfig spiderpool/calico",
    }
    assert not {"default", "calico"} & cluster.names()
    assert not remove(cluster, monkeypatch)["changed"]


def test_check_mode_says_it_and_removes_nothing(monkeypatch):
    cluster = Memory(*SERVED)
    assert remove(cluster, monkeypatch, check=True)["changed"]
    assert cluster.deleted == []


@pytest.mark.parametrize(
    "user",
    [
        [pod("train", **{KEY: "rail-0"})],
        # A webhook gave it the network, or it names the pool itself.
        [
            pod("train"),
            obj(
                "SpiderEndpoint",
                "train",
                "training",
                by="spiderpool-agent",
                status={"current": {"ips": [{"ipv4Pool": "rail-0-v4", "ipv6Pool": None}]}},
            ),
        ],
    ],
)
def test_pods_on_the_networks_stop_the_removal_unless_forced(monkeypatch, user):
    cluster = Memory(*SERVED, *user)
    with pytest.raises(FabricError, match="training/train"):
        remove(cluster, monkeypatch)
    assert cluster.deleted == []
    result = remove(cluster, monkeypatch, force=True)
    assert result["pods"] == ["training/train"]
    assert cluster.deleted == ["Pod", "SpiderMultusConfig", "SpiderIPPool"]


def test_a_pod_that_is_ending_is_waited_for(monkeypatch):
    ending = pod("train", **{KEY: "rail-0"})
    ending["metadata"]["deletionTimestamp"] = "2026-11-27T16:46:00Z"
    cluster = Memory(*SERVED, ending)
    assert remove(cluster, monkeypatch, check=True)["pods"] == []
    with pytest.raises(FabricError, match="Pod training/train still exists"):
        remove(cluster, monkeypatch)
    assert cluster.deleted == []


def test_a_pod_of_another_pool_is_no_user(monkeypatch):
    status = {"current": {"ips": [{"ipv4Pool": "theirs"}]}}
    endpoint = obj("SpiderEndpoint", "other", "training", by="spiderpool-agent", status=status)
    assert remove(Memory(*SERVED, pod("other"), endpoint), monkeypatch)["pods"] == []


@pytest.mark.parametrize(
    ("theirs", "named"),
    [
        ([obj("SpiderIPPool", "theirs", by="kubectl")], ["SpiderIPPool theirs"]),
        ([obj("SpiderSubnet", "theirs", by="kubectl")], ["SpiderSubnet theirs"]),
        ([obj("SpiderReservedIP", "theirs", by="kubectl")], ["SpiderReservedIP theirs"]),
        (
            [
                obj("SpiderMultusConfig", "theirs", "jobs", by="kubectl"),
                nad("theirs", "jobs", ("SpiderMultusConfig", "theirs"), by="spiderpool-controller"),
            ],
            ["SpiderMultusConfig jobs/theirs"],
        ),
        # Its multus is the only one.
        ([nad("foreign", "jobs")], ["NetworkAttachmentDefinition jobs/foreign"]),
    ],
)
def test_what_others_have_keeps_spiderpool(monkeypatch, theirs, named):
    cluster = Memory(*SERVED, *theirs)
    result = remove(cluster, monkeypatch)
    assert cluster.deleted == ["SpiderMultusConfig", "SpiderIPPool"]
    assert (result["needed_by"], result["definitions"]) == (named, [])
    assert {each["metadata"]["name"] for each in theirs} <= cluster.names()


@pytest.mark.parametrize(("ipam", "needed"), [("host-local", []), ("spiderpool", 1)])
def test_with_another_multus_only_its_addresses_are_needed(monkeypatch, ipam, needed):
    other = workload("DaemonSet", "multus", "kube-system", "multus-cni")
    result = remove(Memory(*SERVED, other, nad("foreign", "jobs", ipam=ipam)), monkeypatch)
    assert bool(result["needed_by"]) == bool(needed)
    assert "network-attachment-definitions" not in defined(result)


def test_definitions_that_an_sriov_operator_uses_stay(monkeypatch):
    network = obj("SriovNetwork", "theirs", "sriov", by="kubectl")
    assert defined(remove(Memory(*SERVED, network), monkeypatch)) == {
        "spiderippools",
        "network-attachment-definitions",
    }


@pytest.mark.parametrize("objects", [[], [nad("foreign", "jobs"), CRDS[2]]])
def test_a_cluster_without_spiderpool_is_left_alone(monkeypatch, objects):
    cluster = Memory(*objects)
    result = remove(cluster, monkeypatch)
    assert (result["changed"], result["needed_by"], result["definitions"]) == (False, [], [])
    assert len(cluster.objects) == len(objects)


def test_networks_that_outlived_spiderpool_go_without_it(monkeypatch):
    cluster = Memory(*NETWORKS, *ITS_OWN)
    assert remove(cluster, monkeypatch)["changed"]
    assert not cluster.objects


LEFT = ["SpiderMultusConfig training/rail-0", "SpiderIPPool rail-0-v4"]


def test_networks_that_left_the_plan_go_with_their_pools(monkeypatch):
    cluster = Memory(*SERVED, *KEPT, *THEIRS, pod("train", **{KEY: "rail-1"}))
    result, warnings = prune(cluster, monkeypatch)
    assert (result["objects"], result["changed"], warnings) == (LEFT, True, [])
    assert cluster.deleted == ["SpiderMultusConfig", "SpiderIPPool"]
    assert {"rail-1", "rail-1-v4", "theirs", "default", "calico", "train"} <= cluster.names()
    assert not {"rail-0", "rail-0-v4"} & cluster.names()
    assert not prune(cluster, monkeypatch)[0]["changed"]


def test_a_network_of_the_same_name_in_another_namespace_is_another_one(monkeypatch):
    cluster = Memory(*SERVED, *KEPT, obj("SpiderMultusConfig", "rail-1", "former"))
    assert "SpiderMultusConfig former/rail-1" in prune(cluster, monkeypatch)[0]["objects"]


@pytest.mark.parametrize(("params", "changed"), [({"unplanned": "check"}, False), ({"check_mode": True}, True)])
def test_networks_that_left_the_plan_are_named(monkeypatch, params, changed):
    cluster = Memory(*SERVED, *KEPT)
    result, warnings = prune(cluster, monkeypatch, **params)
    assert (result["objects"], result["changed"], cluster.deleted) == (LEFT, changed, [])
    assert [all(name in text for name in LEFT) for text in warnings] == ([] if changed else [True])


def test_pods_on_a_network_that_left_the_plan_keep_it(monkeypatch):
    cluster = Memory(*SERVED, *KEPT, pod("train", **{KEY: "rail-0"}))
    with pytest.raises(FabricError, match="training/train"):
        prune(cluster, monkeypatch)
    assert cluster.deleted == []
    assert prune(cluster, monkeypatch, unplanned="check")[1]


@pytest.mark.parametrize(("stack", "state"), [("spiderpool", "rendered"), ("network_operator", "pruned")])
def test_a_state_that_a_stack_does_not_have_is_refused(stack, state):
    with pytest.raises(FabricError, match="one of its states: absent"):
        fabric_stack.serve(Module(stack=stack, state=state))
