from __future__ import annotations

import json
import types
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import kubectl
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import rejoin
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.membership import CONTROL_PLANE_LABEL

OFF = f"{CONTROL_PLANE_LABEL}-"


def node(name: str, status: str, *, control_plane: bool) -> dict[str, t.Any]:
    labels = {"rack": "r1", **({CONTROL_PLANE_LABEL: ""} if control_plane else {})}
    ready = {"type": "Ready", "status": status}
    address = {"type": "InternalIP", "address": "10.88.0.11"}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"conditions": [ready], "addresses": [address]},
    }


class Api:
    """kubectl against a cluster whose nodes are not Ready any more after a number of readings."""

    def __init__(self, *nodes: dict[str, t.Any], readings: int = 0) -> None:
        self.nodes = {each["metadata"]["name"]: each for each in nodes}
        self.readings = readings
        self.changes: list[list[str]] = []

    def run_program(self, argv: list[str], _timeout: float, **_options: object) -> Done:
        verb, *words = argv[5:]
        if verb == "label":
            self.changes.append(words)
            return Done(0)
        found = [self.nodes[name] for name in words[words.index("json") + 1 :] if name in self.nodes]
        printed = {"items": found} if len(found) > 1 else found[0] if found else None
        text = json.dumps(printed) if printed else ""
        self.readings -= 1
        if self.readings <= 0:
            for each in self.nodes.values():
                each["status"]["conditions"][0]["status"] = "Unknown"
        return Done(0, text)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., dict[str, t.Any]]:
    monkeypatch.setattr(rejoin, "PAUSE", 0.0)

    def prepare(
        api: Api, *names: str, check: bool = False, timeout: int = 60, **addresses: list[str]
    ) -> dict[str, t.Any]:
        monkeypatch.setattr(kubectl, "run_program", api.run_program)
        params = {"names": list(names), "addresses": addresses, "timeout": timeout}
        module = types.SimpleNamespace(params=params, check_mode=check)
        return rejoin.prepare_nodes(module)

    return prepare


@pytest.mark.parametrize("names", [[], ["new"], ["new", "newer"]])
def test_hosts_that_the_cluster_has_never_had(run, names):
    api = Api(node("cp2", "True", control_plane=True), readings=100)
    result = run(api, *names)
    assert (result["changed"], result["nodes"], api.changes) == (False, [], [])


@pytest.mark.parametrize("readings", [0, 1, 5])
def test_a_reinstalled_control_plane_loses_the_label_once_it_is_not_ready(run, readings):
    api = Api(node("cp1", "True" if readings else "Unknown", control_plane=True), readings=readings)
    result = run(api, "cp1", "new")
    assert (result["changed"], result["nodes"]) == (True, ["cp1"])
    assert api.changes == [["nodes", "cp1", OFF]]


def test_workers_keep_all_their_labels(run):
    api = Api(node("w1", "Unknown", control_plane=False), node("cp1", "Unknown", control_plane=True))
    assert run(api, "cp1", "w1")["nodes"] == ["cp1", "w1"]
    assert api.changes == [["nodes", "cp1", OFF]]


def test_another_host_of_this_name(run):
    api = Api(node("w1", "True", control_plane=False), readings=1_000_000)
    with pytest.raises(FabricError, match=r"node w1 \(10\.88\.0\.11\)\. Seen: still Ready after 0 s"):
        run(api, "w1", timeout=0)
    assert api.changes == []


@pytest.mark.parametrize("check", [False, True])
def test_a_node_with_the_address_of_another_host(run, check):
    """Its host may be off, so that it is not Ready: no reason to take its name."""
    api = Api(node("w1", "Unknown", control_plane=True))
    with pytest.raises(FabricError, match=r"address 10\.88\.0\.11, and the host that .* w1 has 10\.88\.0\.12, fd"):
        run(api, "w1", check=check, w1=["10.88.0.12", "fd00::12"])
    assert api.changes == []
    assert run(api, "w1", check=check, w1=["10.88.0.11", "fd00::11"])["nodes"] == ["w1"]
    assert run(api, "w1", check=check, w1=[""])["nodes"] == ["w1"]


def test_check_mode_neither_waits_nor_changes(run):
    api = Api(node("cp1", "True", control_plane=True), readings=1_000_000)
    result = run(api, "cp1", check=True, timeout=0)
    assert (result["changed"], api.changes) == (True, [])


def test_no_api(monkeypatch):
    monkeypatch.setattr(kubectl, "run_program", lambda *_, **__: Done(1, "", "connection refused"))
    params = {"names": ["cp1"], "addresses": {}, "timeout": 0}
    module = types.SimpleNamespace(params=params, check_mode=False)
    with pytest.raises(FabricError, match="connection refused"):
        rejoin.prepare_nodes(module)
