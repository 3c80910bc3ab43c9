"""Pools of Spiderpool."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._ipam import leaks
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.own_pools import KEEPS_ADDRESSES, spider_pools
from ansible_collections.ipu.fabric.tests.unit.fixtures.pools import PODS, Object, whys


def spider(allocated: t.Mapping[str, Object], **status: t.Any) -> Object:
    spec = {"subnet": "10.5.0.0/24", "ips": ["10.5.0.128-10.5.0.137", "10.5.0.250"], "excludeIPs": ["10.5.0.128"]}
    return {
        "metadata": {"name": "rail-1"},
        "spec": spec,
        "status": {"allocatedIPs": json.dumps(allocated), "allocatedIPCount": len(allocated), **status},
    }


def test_a_pool_of_spiderpool() -> None:
    pool = spider({"10.5.0.129": {"pod": "default/a", "podUid": "uid-a"}}, totalIPCount=10)
    (found,) = spider_pools([pool], [], PODS)
    assert (found["usable"], found["excluded"], found["capacity"]) == (11, 1, 10)
    assert (found["allocated"], found["free"], found["leaked"]) == (1, 9, [])
    assert found["nodes"][0]["node"] == "w1"


def test_a_new_pool_of_spiderpool_is_counted_here() -> None:
    pool = {**spider({}), "status": {}}
    assert spider_pools([pool], [], {})[0]["capacity"] == 10


@pytest.mark.parametrize("owner", ["", "ReplicaSet", "StatefulSet", "VirtualMachineInstance"])
@pytest.mark.parametrize(
    ("holder", "why"),
    [
        ({"pod": "default/gone", "podUid": "x"}, leaks.NO_POD),
        ({"pod": "default/a", "podUid": "older"}, leaks.NEWER_POD),
        ({"pod": "default/a", "podUid": "uid-a"}, ""),
    ],
)
def test_leaks_of_spiderpool(owner: str, holder: Object, why: str) -> None:
    namespace, name = holder["pod"].split("/")
    endpoint = {"metadata": {"namespace": namespace, "name": name}, "status": {"ownerControllerType": owner}}
    (found,) = spider_pools([spider({"10.5.0.129": holder})], [endpoint] if owner else [], PODS)
    kept = owner in KEEPS_ADDRESSES
    assert whys(found) == ({} if kept or not why else {"10.5.0.129": why})
