"""Conditions, annotations and taints of nodes on a real API server, up to a thousand of them."""

from __future__ import annotations

import collections
import json
import time
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, Modules

MANY = [f"k{number:04}" for number in range(1000)]
KEY = "ipu.fabric/unproved"
TIME, REPORT = "2026-11-27T20:00:00Z", "ab" * 32
OF_NODE = (
    "architecture",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
)
LABEL = {"test": "admission"}
Result = t.Dict[str, t.Any]


def plan_of(names: t.Sequence[str]) -> Result:
    link = {"pci": "0000:81:00.0", "mac": "02:00:00:00:00:01", "device": "mlx5_0", "driver": "mlx5_core"}
    hosts = {name: {"node": name, "roles": ["worker"], "links": {"rdma-net": link}} for name in names}
    return {"hosts": hosts, "networks": [{"name": "rdma-net"}]}


def proofs_of(names: t.Iterable[str], status: str = "True", reason: str = "Proved") -> t.List[Result]:
    return [{"name": name, "status": status, "reason": reason, "text": "Gateway: no answer."} for name in names]


def proved(names: t.Sequence[str], proofs: t.Sequence[Result] = (), **more: t.Any) -> Result:
    """The options of a round."""
    told = {"time": TIME, "report": REPORT} if proofs else {}
    return {"mode": "enforce", "plan": plan_of(names), "proofs": list(proofs), **told, **more}


def node(name: str) -> Result:
    """As a kubelet registers it."""
    about = dict.fromkeys((*OF_NODE, "bootID", "operatingSystem", "osImage", "systemUUID"), "x")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "x"}
    status = {"nodeInfo": about, "conditions": [ready]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": LABEL}, "status": status}


def create(api: ApiServer, names: t.Sequence[str]) -> None:
    items = [node(name) for name in names]
    api.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


@pytest.fixture
def nodes(api: ApiServer) -> t.Iterator[t.List[str]]:
    names = ["w1", "w2", "w3"]
    create(api, names)
    # As the node controller does: a node that registers has it.
    api.kubectl("taint", "nodes", *names, "node.kubernetes.io/not-ready:NoSchedule-")
    yield names
    api.kubectl("delete", "nodes", *names, "--wait=false")


def shown(api: ApiServer, name: str) -> t.Tuple[str, str, bool]:
    """Status and reason of the condition, and whether there is the taint."""
    found = api.get("node", name)
    mine = [each for each in found["status"]["conditions"] if each["type"] == "FabricProved"]
    tainted = any(taint["key"] == KEY for taint in found["spec"].get("taints", []))
    return (*(mine[0]["status"], mine[0]["reason"]), tainted) if mine else ("", "", tainted)


def reboot(api: ApiServer, name: str) -> None:
    change = {"status": {"nodeInfo": {"bootID": "second"}}}
    api.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps(change))


def test_the_life_of_a_node(run: Modules, api: ApiServer, nodes: t.List[str]) -> None:
    taint = {"key": "theirs", "effect": "NoExecute", "value": "x"}
    theirs = {"spec": {"taints": [taint]}, "metadata": {"annotations": {"theirs": "x"}}}
    api.kubectl("patch", "node", "w2", "-p", json.dumps(theirs))
    new = proved(nodes)
    would = run("node_admission", check=True, **new)
    assert would["nodes"] == nodes
    assert shown(api, "w3") == ("", "", False)
    assert run("node_admission", **new)["diff"] == would["diff"]
    # The last that takes ordinary pods is left open.
    assert [shown(api, name) for name in nodes] == [("Unknown", "New", name != "w1") for name in nodes]
    assert not run("node_admission", **new)["changed"]

    done = proved(nodes, proofs_of(nodes))
    assert run("node_admission", **done)["nodes"] == nodes
    assert [shown(api, name) for name in nodes] == [("True", "Proved", False)] * 3
    described = api.kubectl("describe", "node", "w3").stdout
    assert "FabricProved" in described
    assert f"Report of {TIME}, sha256:abababababab" in described
    assert not run("node_admission", **done)["changed"]
    later = run("node_admission", **{**done, "time": "2099-01-01T20:00:00Z"})
    assert not later["changed"]
    conditions = {each["type"]: each for each in api.get("node", "w2")["status"]["conditions"]}
    assert conditions["FabricProved"]["lastHeartbeatTime"] == "2099-01-01T20:00:00Z"
    assert conditions["FabricProved"]["lastTransitionTime"] < "2099"
    assert conditions["Ready"]["reason"] == "KubeletReady"

    reboot(api, "w3")
    assert run("node_admission", check=True, **new)["nodes"] == ["w3"]
    assert run("node_admission", **new)["nodes"] == ["w3"]
    assert shown(api, "w3") == ("Unknown", "Rebooted", True)
    run("node_admission", **proved(nodes, proofs_of(["w3"])))
    assert shown(api, "w3") == ("True", "Proved", False)
    api.kubectl("label", "node", "w3", "x=y")  # a version later
    run("node_admission", **proved(nodes, proofs_of(["w3"], "False", "CheckFailed")))
    assert shown(api, "w3") == ("False", "CheckFailed", True)

    assert run("node_admission", **{**new, "mode": "warn"})["nodes"] == ["w3"]
    assert shown(api, "w3") == ("False", "CheckFailed", False)
    assert run("node_admission", check=True, mode="off")["nodes"] == nodes
    assert run("node_admission", mode="off")["nodes"] == nodes
    assert run("node_admission", mode="off")["changed"] is False
    for name in nodes:
        found = api.get("node", name)
        assert shown(api, name) == ("", "", False)
        assert "ipu.fabric" not in json.dumps({**found, "metadata": {**found["metadata"], "managedFields": []}})
    left = api.get("node", "w2")
    assert left["spec"]["taints"] == [taint]
    assert left["metadata"]["annotations"] == {"theirs": "x"}
    assert [each["type"] for each in left["status"]["conditions"]] == ["Ready"]


def test_nodes_that_are_not_in_the_fabric(run: Modules, api: ApiServer, nodes: t.List[str]) -> None:
    assert run("node_admission", **proved(nodes[:2]))["nodes"] == ["w1", "w2"]
    assert shown(api, "w3") == ("", "", False)
    assert run("node_admission", **proved(nodes[:1]))["nodes"] == ["w2"]  # which has left the inventory
    assert shown(api, "w2") == ("", "", False)
    run("node_admission", mode="off")


def test_a_node_that_turns_has_an_event(run: Modules, api: ApiServer) -> None:
    create(api, ["turns", "stays"])
    both = ["turns", "stays"]
    run("node_admission", **proved(both, proofs_of(both)))
    run("node_admission", **proved(both, [*proofs_of(["turns"], "False", "CheckFailed"), *proofs_of(["stays"])]))
    told = [
        (each["involvedObject"]["name"], each["type"], each["reason"])
        for each in api.get("events", "--field-selector=involvedObject.kind=Node")["items"]
        if each["involvedObject"]["name"] in both
    ]
    assert told == [("turns", "Warning", "FabricProvedFalse")]
    assert "FabricProvedFalse" in api.kubectl("describe", "node", "turns").stdout
    api.kubectl("delete", "nodes", *both, "--wait=false")


def test_a_thousand_nodes(run: Modules, api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    create(api, MANY)
    calls: t.Counter[str] = collections.Counter()
    request = Cluster.request

    def counted(self: Cluster, verb: str, *args: t.Any, **options: t.Any) -> t.Any:
        calls[verb] += 1
        return request(self, verb, *args, **options)

    monkeypatch.setattr(Cluster, "request", counted)

    def round_of(**options: t.Any) -> t.Tuple[int, t.Dict[str, int], float]:
        calls.clear()
        start = time.monotonic()
        changed = len(run("node_admission", **options)["nodes"])
        taken = time.monotonic() - start
        print(f"{changed} nodes changed, {dict(calls)}, {taken:.1f} s")
        return changed, dict(calls), taken

    closed, _calls, seconds = round_of(**proved(MANY))
    assert (closed, calls["get"]) == (1000, 1)
    assert calls["patch"] == 1000 + 1000  # the taint, and the condition: none is ready, and the last that is none
    assert seconds < 120
    assert round_of(**proved(MANY))[:2] == (0, {"get": 1})
    # Before a change one question about rights.
    assert round_of(**proved(MANY, proofs_of(MANY)))[:2] == (1000, {"get": 1, "patch": 2000, "post": 1 + 100})
    # A later proof: its time, and nothing else.
    assert round_of(**proved(MANY, proofs_of(MANY), report="cd" * 32))[:2] == (0, {"get": 1, "patch": 1000, "post": 1})
    failed = proved(MANY, proofs_of(MANY, "False", "CheckFailed"))
    assert round_of(**failed)[:2] == (1000, {"get": 1, "patch": 1000 + 100, "post": 1 + 100})
    tainted = [
        each for each in api.get("nodes")["items"] if any(x["key"] == KEY for x in each["spec"].get("taints", []))
    ]
    assert len(tainted) == 100  # 10%
    assert round_of(**failed)[:2] == (0, {"get": 1})
    assert round_of(mode="off")[0] == 1000
    api.kubectl("delete", "--raw", "/api/v1/nodes?labelSelector=test%3Dadmission")
