import json
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube import client, drain
from kubernetes.client.exceptions import ApiException

BUDGET = {
    "message": "Cannot evict pod as it would violate the pod's disruption budget.",
    "details": {"causes": [{"message": "The disruption budget train needs 1 healthy pods and has 1 currently"}]},
}


def pod(name, owner="ReplicaSet", **more):
    metadata = {"namespace": "jobs", "name": name, "uid": f"uid-{name}"}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner}]
    return {"metadata": {**metadata, **more.pop("metadata", {})}, "spec": {}, "status": {"phase": "Running"}, **more}


class Memory:
    """Two nodes, and the pods of w1. `refusals` are answers to evictions by pod, one after another."""

    present = True

    def __init__(self, pods=(), refusals=None, lingering=(), mark="", cordoned=False):
        self.pods, self.refusals, self.lingering = list(pods), refusals or {}, lingering
        labels = {drain.MARK: mark} if mark else {}
        spec = {"unschedulable": True} if cordoned else {}
        self.nodes = {"w1": {"metadata": {"name": "w1", "labels": labels}, "spec": spec}}
        self.writes = []

    def get(self, path, **query):
        return self.nodes.get(path.rpartition("/")[2])

    def items(self, path, **query):
        if path == "/api/v1/pods":
            assert query == {"fieldSelector": "spec.nodeName=w1"}
            return list(self.pods)
        marked = query["labelSelector"].partition("=")[2]
        return [node for node in self.nodes.values() if node["metadata"]["labels"].get(drain.MARK) == marked]

    def patch(self, path, body):
        self.writes.append(("patch", path.rpartition("/")[2], body))

    def request(self, verb, path, body=None, **query):
        name = body["metadata"]["name"]
        assert path == f"/api/v1/namespaces/jobs/pods/{name}/eviction"
        assert body["deleteOptions"] == {"preconditions": {"uid": f"uid-{name}"}}
        left = self.refusals.get(name, [])
        if left:
            answer = left.pop(0) if len(left) > 1 else left[0]
            if answer is not None:
                error = ApiException(status=answer[0], reason="refused")
                error.body = json.dumps(answer[1])
                raise error
        if query["dryRun"]:
            return
        self.writes.append(("evict", name))
        if name in self.lingering:
            next(each for each in self.pods if each["metadata"]["name"] == name)["metadata"]["deletionTimestamp"] = (
                "now"
            )
        else:
            self.pods = [each for each in self.pods if each["metadata"]["name"] != name]


def module(cluster, monkeypatch, check=False, **params):
    now = [0.0]
    monkeypatch.setattr(drain, "connect", lambda _module: cluster)
    clock = {"monotonic": lambda: now[0], "sleep": lambda seconds: now.__setitem__(0, now[0] + seconds)}
    monkeypatch.setattr(drain, "time", types.SimpleNamespace(**clock))
    options = {"name": "w1", "owner": "test", "timeout": 10, "force": False, "wait": True, **params}
    made = types.SimpleNamespace(params=options, check_mode=check, warnings=[])
    made.warn = made.warnings.append
    return made


def test_pods_go_and_the_nodes_own_stay(monkeypatch):
    own = [
        pod("ds", owner="DaemonSet", spec={"volumes": [{"name": "a", "emptyDir": {}}]}),
        pod("etcd", owner="Node"),
        pod("static", owner="", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}),
        pod("done", owner="", status={"phase": "Succeeded"}),
    ]
    cluster = Memory([pod("web"), *own])
    result = drain.drain_node(module(cluster, monkeypatch))
    assert cluster.writes == [
        ("patch", "w1", {"metadata": {"labels": {drain.MARK: "test"}}, "spec": {"unschedulable": True}}),
        ("evict", "web"),
    ]
    assert result["changed"]
    assert (result["pods"], result["foreign"]) == (["jobs/web"], False)


def test_a_budget_is_waited_for(monkeypatch):
    cluster = Memory([pod("web")], {"web": [(429, BUDGET), (429, BUDGET), None]})
    assert drain.drain_node(module(cluster, monkeypatch))["changed"]
    assert cluster.writes[-1] == ("evict", "web")


@pytest.mark.parametrize(
    ("pods", "refusals", "lingering", "seen"),
    [
        ([pod("web")], {"web": [(429, BUDGET)]}, (), "pod jobs/web: The disruption budget train needs 1 healthy"),
        (
            [pod("web")],
            {"web": [(500, {"message": "This pod has more than one PodDisruptionBudget"})]},
            (),
            "pod jobs/web: This pod has more than one PodDisruptionBudget",
        ),
        ([pod("slow")], {}, ("slow",), "pod jobs/slow: it is ending"),
    ],
)
def test_what_blocks_is_named_in_time(monkeypatch, pods, refusals, lingering, seen):
    cluster = Memory(pods, refusals, lingering)
    with pytest.raises(FabricError) as error:
        drain.drain_node(module(cluster, monkeypatch))
    assert error.value.where == "node w1, after 10 s"
    assert seen in error.value.seen


def test_of_a_dead_node_nothing_is_waited_for(monkeypatch):
    cluster = Memory([pod("slow")], lingering=("slow",))
    assert drain.drain_node(module(cluster, monkeypatch, wait=False))["pods"] == ["jobs/slow"]


@pytest.mark.parametrize(
    ("lost", "seen"),
    [
        (pod("bare", owner=""), "no controller would recreate it"),
        (pod("data", spec={"volumes": [{"name": "a", "emptyDir": {}}]}), "data in an emptyDir"),
    ],
)
def test_a_loss_is_refused_before_the_node_is_touched(monkeypatch, lost, seen):
    cluster = Memory([lost, pod("web")])
    with pytest.raises(FabricError, match=seen):
        drain.drain_node(module(cluster, monkeypatch))
    assert cluster.writes == []
    drain.drain_node(module(cluster, monkeypatch, force=True))
    assert cluster.pods == []


@pytest.mark.parametrize(
    ("mark", "patched"), [("", False), ("test", False), ("other", True)], ids=["somebody", "us", "another"]
)
def test_a_cordoned_node(monkeypatch, mark, patched):
    cluster = Memory(mark=mark, cordoned=True)
    result = drain.drain_node(module(cluster, monkeypatch))
    assert bool(cluster.writes) is patched
    assert result["changed"] is patched
    assert result["foreign"] is (mark == "")


def test_check_mode_says_what_blocks(monkeypatch):
    cluster = Memory([pod("web"), pod("job")], {"web": [(429, BUDGET)]})
    checked = module(cluster, monkeypatch, check=True)
    result = drain.drain_node(checked)
    assert cluster.writes == []
    assert result["changed"]
    assert result["blocked"] == ["jobs/web: The disruption budget train needs 1 healthy pods and has 1 currently"]
    assert "jobs/web" in checked.warnings[0]


@pytest.mark.parametrize(("name", "said"), [("", "no name"), ("w9", "no such node")])
def test_who_is_not_there(monkeypatch, name, said):
    with pytest.raises(FabricError, match=said):
        drain.drain_node(module(Memory(), monkeypatch, name=name))


@pytest.mark.parametrize(
    ("mark", "name", "nodes"),
    [
        ("test", "w1", ["w1"]),
        ("test", "", ["w1"]),
        ("", "w1", []),
        ("other", "w1", []),
        ("other", "", []),
        ("", "w9", []),
    ],
)
@pytest.mark.parametrize("check", [False, True])
def test_only_what_was_cordoned_for_this_is_put_back(monkeypatch, mark, name, nodes, check):
    cluster = Memory(mark=mark, cordoned=True)
    result = drain.uncordon_nodes(module(cluster, monkeypatch, name=name, check=check))
    back = {"metadata": {"labels": {drain.MARK: None}}, "spec": {"unschedulable": None}}
    assert cluster.writes == ([] if check else [("patch", each, back) for each in nodes])
    assert result["nodes"] == nodes
    assert result["changed"] is bool(nodes)


def test_a_refused_eviction_is_not_sent_again_by_the_client():
    error = ApiException(status=429, reason="Too Many Requests")
    error.body = json.dumps(BUDGET)
    assert not client.is_transient(error)
