import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube import start_pods
from ansible_collections.ipu.fabric.plugins.module_utils._kube.start_pods import PodWatch, choose_node
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._kube.test_wait import wait_for

OURS = [{"manager": "ipu.fabric", "operation": "Apply"}]
PLAIN, RAIL = ({"name": name, "namespace": "jobs", "hosts": ["w2"]} for name in ("", "rail"))
NO_IMAGE = {"phase": "Pending", "podIP": "10.1.0.7"}
FOUND = json.dumps([{"name": "cbr0", "default": True}, {"name": "jobs/rail"}])
STATUS = "k8s.v1.cni.cncf.io/network-status"


def node(name, ready="True", **more):
    conditions = [{"type": "Ready", "status": ready, "reason": "NodeStatusUnknown"}]
    return {"metadata": {"name": name}, "spec": more, "status": {"conditions": conditions}}


class Kubelet:
    """A cluster whose kubelet gives each new pod this status, and these annotations."""

    present = True

    def __init__(self, status=None, events=(), stays=False, refuses=0, pods=(), **annotations):
        self.status, self.events, self.stays, self.refuses = status or {}, events, stays, refuses
        self.annotations, self.applied = annotations, []
        self.pods = {pod["metadata"]["name"]: pod for pod in pods}

    def items(self, path, **query):
        if path == "/api/v1/nodes":
            return [node("w1"), node("w2")]
        if path.endswith("/events"):
            return self.events
        assert (path, query) == ("/api/v1/namespaces/jobs/pods", {"labelSelector": "fabric.ipu/start"})
        return list(self.pods.values())

    def read(self, obj):
        return self.pods.get(obj["metadata"]["name"])

    def apply(self, pod):
        self.refuses -= 1
        if self.refuses >= 0:
            raise FabricError("", "", "no service account", "")
        self.applied.append(pod)
        metadata = {**pod["metadata"], "uid": "new", "managedFields": OURS}
        metadata["annotations"] = {**metadata["annotations"], **self.annotations}
        self.pods[metadata["name"]] = {**pod, "metadata": metadata, "status": self.status}

    def delete(self, path):
        if not self.stays:
            del self.pods[path.rpartition("/")[2]]


def start(monkeypatch, cluster, *wanted, **params):
    return wait_for(monkeypatch, cluster=cluster, pods=list(wanted), **{"timeout": 60, **params})


@pytest.mark.parametrize(
    ("nodes", "hosts", "chosen"),
    [
        ([node("cp1", taints=[{"key": "a"}]), node("w2"), node("w1")], [], "w1"),
        ([node("w1"), node("w2")], ["w2", "w3"], "w2"),
        ([node("w1"), node("w2", ready="Unknown")], ["w2"], ""),
        ([node("w1"), node("w2")], ["w1.site"], "w1"),
        ([], [], ""),
    ],
)
def test_the_node(nodes, hosts, chosen):
    assert choose_node(nodes, hosts) == chosen


@pytest.mark.parametrize(("wanted", "annotations"), [(PLAIN, {}), (RAIL, {STATUS: FOUND})])
def test_a_pod_that_has_its_addresses_has_started_and_goes(monkeypatch, wanted, annotations):
    cluster = Kubelet(NO_IMAGE, refuses=2, **annotations)
    assert not start(monkeypatch, cluster, wanted, patience=60)["changed"]
    (pod,) = cluster.applied
    assert pod["metadata"]["annotations"].get("k8s.v1.cni.cncf.io/networks", "") == ("jobs/rail" if annotations else "")
    assert (pod["spec"]["nodeName"], cluster.pods) == ("w2", {})


def failed(uid, message):
    return {"involvedObject": {"name": "ipu-fabric-start-rail", "uid": uid}, "message": message}


@pytest.mark.parametrize(
    ("cluster", "seen", "fault"),
    [
        (
            Kubelet({"phase": "Pending"}, [failed("new", "no eth1"), failed("old", "no token")]),
            "its network could not be set up yet: no eth1",
            False,
        ),
        (Kubelet({"phase": "Pending"}, [failed("old", "no token")]), "has no address yet", False),
        (Kubelet(NO_IMAGE, **{STATUS: "[]"}), "multus did not attach rail", False),
        (Kubelet({"phase": "Failed", "reason": "OutOfpods", "message": "full"}), "OutOfpods: full", True),
        (Kubelet(refuses=2), "no service account", True),
    ],
)
def test_why_a_pod_has_not_started(cluster, seen, fault):
    watch = PodWatch(cluster, [RAIL], 60)
    with watch:
        watch.problems()
        (problem,) = watch.problems()
    assert (problem.text.endswith(f" {seen}"), problem.fault) == (True, fault), problem.text
    assert cluster.pods == {}


@pytest.mark.parametrize("stays", [False, True])
def test_a_pod_that_does_not_start_goes_too(monkeypatch, stays):
    """Why it did not start is said, even if it does not go either."""
    monkeypatch.setattr(start_pods, "REMOVAL", 0)
    cluster = Kubelet(stays=stays)
    with pytest.raises(FabricError, match="ipu-fabric-start-rail on w2 has just been created"):
        start(monkeypatch, cluster, RAIL, timeout=0)
    assert bool(cluster.pods) == stays


def test_what_a_killed_run_left_goes_first(monkeypatch):
    """Also of a network that is no longer planned."""
    monkeypatch.setattr(start_pods, "REMOVAL", 0)
    left = {"metadata": {"name": "ipu-fabric-start-old", "managedFields": OURS}}
    cluster = Kubelet(NO_IMAGE, pods=[left])
    start(monkeypatch, cluster, PLAIN)
    assert cluster.pods == {}
    with pytest.raises(FabricError, match="ipu-fabric-start-old"):
        start(monkeypatch, Kubelet(NO_IMAGE, pods=[left], stays=True), PLAIN)


def test_a_pod_of_somebody_else_stays(monkeypatch):
    cluster = Kubelet(pods=[{"metadata": {"name": "ipu-fabric-start"}}])
    with pytest.raises(FabricError, match="is somebody else's"):
        start(monkeypatch, cluster, PLAIN, patience=0)
    assert cluster.pods


def test_nothing_is_created_in_check_mode(monkeypatch):
    cluster = Kubelet(NO_IMAGE)
    assert start(monkeypatch, cluster, PLAIN, check=True)["pending"] == cluster.applied == []
