import json
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import kubectl
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import etcd

CP1 = {"ID": 0x8E9E05C52164694D, "name": "cp1", "peerURLs": ["https://10.88.0.11:2380"]}
CP2 = {"ID": 0xFD, "name": "cp2", "peerURLs": ["https://10.88.0.13:2380"]}
SIX = {"ID": 3, "peerURLs": ["https://[fd00:88::14]:2380"]}


@pytest.mark.parametrize(
    ("hosts", "found"),
    [([], []), (["10.88.0.11"], [CP1]), (["10.88.0.1"], []), (["fd00:88::14", "10.88.0.13"], [CP2, SIX])],
)
def test_members_at(hosts, found):
    assert etcd.members_at([CP1, CP2, SIX], hosts) == found


def test_describe():
    assert etcd.describe(CP1) == "cp1 8e9e05c52164694d 10.88.0.11"
    assert etcd.describe(SIX) == "not started 3 fd00:88::14"


@pytest.fixture
def ran(monkeypatch):
    calls = []

    def run_program(argv, _timeout, **_options):
        calls.append(argv[argv.index("etcdctl") + 7 :])
        return Done(0, json.dumps({"members": [CP1, CP2]}))

    monkeypatch.setattr(kubectl, "run_program", run_program)
    monkeypatch.setattr(etcd, "is_listening", lambda address: address == "10.88.0.13")
    return calls


def module(*addresses, check=False, alive=False):
    params = {"addresses": addresses, "node_name": "cp2", "alive": alive}
    return types.SimpleNamespace(params=params, check_mode=check)


@pytest.mark.parametrize("check", [True, False])
def test_a_member_that_is_gone_is_removed(ran, check):
    result = etcd.remove_members(module("10.88.0.11", check=check))
    assert result["changed"]
    assert result["diff"]["after"] == {"members": ["cp2 fd 10.88.0.13"]}
    assert ran[1:] == ([] if check else [["member", "remove", "8e9e05c52164694d"]])


def test_one_that_answers_is_refused(ran):
    with pytest.raises(FabricError, match=r"an etcd answers at 10\.88\.0\.13"):
        etcd.remove_members(module("10.88.0.11", "10.88.0.13"))
    assert len(ran) == 1


def test_one_that_answers_and_leaves_the_cluster(ran):
    result = etcd.remove_members(module("10.88.0.13", alive=True))
    assert ran[1:] == [["member", "remove", "fd"]]
    assert [member["name"] for member in result["members"]] == ["cp1"]


def test_nothing_to_remove(ran):
    result = etcd.remove_members(module())
    assert not result["changed"]
    assert result["members"] == [
        {"name": "cp1", "id": "8e9e05c52164694d", "addresses": ["10.88.0.11"], "alive": False},
        {"name": "cp2", "id": "fd", "addresses": ["10.88.0.13"], "alive": True},
    ]


def test_no_quorum(monkeypatch):
    monkeypatch.setattr(kubectl, "run_program", lambda *_, **__: Done(1, "", "etcdserver: no leader"))
    with pytest.raises(FabricError, match="no leader"):
        etcd.remove_members(module("10.88.0.11"))
