from __future__ import annotations

import json
import time

import pytest
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, ModuleFailedError, Modules

NODES = [f"n{number:03}" for number in range(200)]


@pytest.fixture(scope="module")
def nodes(api: ApiServer) -> None:
    items = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"old": "x"}}} for name in NODES]
    api.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


@pytest.mark.usefixtures("nodes")
def test_two_hundred_nodes_in_one_call(run: Modules, api: ApiServer) -> None:
    wanted = [{"name": name, "labels": {"vipu-ctrl": "v1", "old": None}, "annotations": {"a/b": 1}} for name in NODES]
    start = time.monotonic()
    result = run("node_labels", nodes=wanted)
    assert time.monotonic() - start < 60
    assert result["nodes"] == NODES
    assert result["diff"]["before"]["n000"] == {"labels": {"old": "x"}, "annotations": {}}
    assert result["diff"]["after"]["n000"] == {"labels": {"vipu-ctrl": "v1"}, "annotations": {"a/b": "1"}}
    labels = [node["metadata"]["labels"] for node in api.get("nodes", "-l", "vipu-ctrl=v1")["items"]]
    assert len(labels) == 200
    assert not any("old" in own for own in labels)
    assert not run("node_labels", nodes=wanted)["changed"]
    assert not run("node_labels", check=True, nodes=wanted)["changed"]


@pytest.mark.usefixtures("nodes")
def test_taints(run: Modules, api: ApiServer) -> None:
    taint = {"key": "fabric", "value": "down", "effect": "NoSchedule"}
    wanted = [{"name": "n001", "taints": [taint]}]
    assert run("node_labels", check=True, nodes=wanted)["nodes"] == ["n001"]
    assert run("node_labels", nodes=wanted)["changed"]
    assert taint in api.get("node", "n001")["spec"]["taints"]
    assert not run("node_labels", nodes=wanted)["changed"]
    gone = [{"name": "n001", "taints": [{"key": "fabric", "effect": "NoSchedule", "state": "absent"}]}]
    assert run("node_labels", nodes=gone)["changed"]
    assert not run("node_labels", nodes=gone)["changed"]


@pytest.mark.usefixtures("nodes")
def test_nodes_that_are_not_there(run: Modules) -> None:
    wanted = [{"name": "n000", "labels": {"x": "y"}}, {"name": "missing", "labels": {"x": "y"}}]
    with pytest.raises(ModuleFailedError, match="no node missing"):
        run("node_labels", nodes=wanted)
    assert run("node_labels", check=True, nodes=wanted)["nodes"] == ["missing", "n000"]


@pytest.mark.usefixtures("nodes")
def test_a_label_that_the_server_refuses(run: Modules) -> None:
    with pytest.raises(ModuleFailedError, match="must be no more than 63"):
        run("node_labels", nodes=[{"name": "n000", "labels": {"long": "x" * 64}}])
