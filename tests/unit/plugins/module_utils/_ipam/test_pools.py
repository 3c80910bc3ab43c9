# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of three IPAMs as their CRDs write them, and pods as multus marks them."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._ipam import pools
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster
from hypothesis import given
from hypothesis import strategies as st

Object = t.Dict[str, t.Any]


def pod(name: str, *addresses: str, node: str = "w1", phase: str = "Running", uid: str = "") -> Object:
    status = [{"name": "cbr0", "interface": "eth0", "ips": ["10.244.0.9"], "default": True}]
    status += [{"name": "default/rdma-net", "interface": "net1", "ips": [address]} for address in addresses]
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": uid or f"uid-{name}",
            "annotations": {pools.NETWORK_STATUS: json.dumps(status)} if phase == "Running" else {},
        },
        "spec": {"nodeName": node},
        "status": {"phase": phase, "podIPs": [{"ip": "10.244.0.9"}]},
    }


def live(*objects: Object) -> t.Dict[str, pools.Pod]:
    return dict(pools.read_pod(item) for item in objects)


PODS = live(pod("a", "10.5.0.129"), pod("b", "10.5.0.130", node="w2"), pod("new", phase="Pending"))
IPAM = {
    "type": "whereabouts",
    "range": "10.5.0.0/24",
    "range_start": "10.5.0.128",
    "range_end": "10.5.0.254",
    "exclude": ["10.5.0.140/32", "10.5.0.200/30"],
}


def attachment(ipam: t.Any, plugins: bool = False) -> Object:
    config = {"type": "macvlan", "ipam": ipam}
    return {"spec": {"config": json.dumps({"plugins": [config]} if plugins else config)}}


def whereabouts(allocations: t.Mapping[str, str], cidr: str = "10.5.0.0/24", name: str = "10.5.0.0-24") -> Object:
    held = {offset: {"id": f"c{offset}", "podref": ref, "ifname": "net1"} for offset, ref in allocations.items()}
    return {"metadata": {"name": name, "namespace": "kube-system"}, "spec": {"range": cidr, "allocations": held}}


def reservation(name: str, podref: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"podref": podref, "ifname": "net1"}}


def whys(pool: Object) -> t.Dict[str, str]:
    return {entry["address"]: entry["why"] for entry in pool["orphaned"]}


def test_a_pool_of_whereabouts_takes_its_bounds_from_the_network() -> None:
    pool = whereabouts({"129": "default/a", "130": "default/b", "131": "default/new"})
    found = pools.whereabouts_pools([pool], [], [attachment(IPAM)], PODS)
    assert found == [
        {
            "name": "10.5.0.0-24", "ipam": "whereabouts", "cidr": "10.5.0.0/24",
            "usable": 127, "excluded": 5, "capacity": 122, "allocated": 3, "free": 119, "orphaned": [],
            "nodes": [
                {"node": "w1", "range": "", "capacity": None, "allocated": 2, "free": None},
                {"node": "w2", "range": "", "capacity": None, "allocated": 1, "free": None},
            ],
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ipam", "usable", "capacity"),
    [
        ({}, 254, 254),  # no network any more: network and broadcast addresses are nobody's
        ({"range": "10.5.0.7/24"}, 254, 254),
        ({"range": "10.5.0.128-10.5.0.254/24"}, 127, 127),
        ({"range": "10.5.0.0/24", "range_start": "10.6.0.1"}, 254, 254),  # silently ignored
        ({"range": "10.5.0.0/24", "exclude": ["10.5.0.9/25"]}, 254, 127),  # host bits are masked
        ({"range": "10.5.0.0/24", "exclude": ["10.5.0.0/24"]}, 254, 0),
        ({"range": "", "ipRanges": [{"range": "10.5.0.0/24", "range_start": "10.5.0.200"}]}, 55, 55),
        ({"range": "10.5.0.0/24", "exclude": ["nonsense"]}, 254, 254),
    ],
)
@pytest.mark.parametrize("plugins", [False, True])
def test_bounds_of_whereabouts(ipam: Object, usable: int, capacity: int, plugins: bool) -> None:
    network = attachment({"type": "whereabouts", **ipam}, plugins)
    (found,) = pools.whereabouts_pools([whereabouts({})], [], [network], {})
    assert (found["usable"], found["capacity"], found["free"]) == (usable, capacity, capacity)


def test_two_networks_on_one_range_share_its_pool() -> None:
    low, high = ({"type": "whereabouts", "range": f"10.5.0.{a}-10.5.0.{b}/24"} for a, b in ((10, 19), (30, 39)))
    (found,) = pools.whereabouts_pools([whereabouts({})], [], [attachment(low), attachment(high)], {})
    assert (found["usable"], found["capacity"]) == (20, 20)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"ipam": 3}', '{"ipam": {"type": "host-local"}}'])
def test_networks_of_others_say_nothing(text: str) -> None:
    (found,) = pools.whereabouts_pools([whereabouts({})], [], [{"spec": {"config": text}}], {})
    assert found["usable"] == 254


@pytest.mark.parametrize(
    ("podref", "why"),
    [
        ("default/gone", pools.NO_POD),
        ("default/b", pools.OTHER_ADDRESS),  # a StatefulSet's pod that came back with another address
        ("default/new", ""),  # may still get it
        ("default/a", ""),
        ("", ""),  # nobody knows whose it is
    ],
)
def test_leaks_of_whereabouts(podref: str, why: str) -> None:
    pool = whereabouts({"129": podref})
    (found,) = pools.whereabouts_pools([pool], [], [attachment(IPAM)], PODS)
    assert whys(found) == ({"10.5.0.129": why} if why else {})


@pytest.mark.parametrize(
    ("name", "cidr", "address"),
    [
        ("10.5.0.131", "10.5.0.0/24", "10.5.0.131"),
        ("rail-1-10.5.0.131", "10.5.0.0/24", "10.5.0.131"),
        ("fd00-5--131", "fd00:5::/64", "fd00:5::131"),
        ("fd00-5--0", "fd00:5::/64", "fd00:5::"),
        ("abc-fd00-5--131", "fd00:5::/64", "fd00:5::131"),
        ("10.6.0.131", "10.5.0.0/24", ""),
        ("nonsense", "10.5.0.0/24", ""),
    ],
)
def test_a_reservation_without_an_allocation_is_a_leak_too(name: str, cidr: str, address: str) -> None:
    (found,) = pools.whereabouts_pools([whereabouts({}, cidr)], [reservation(name, "default/gone")], [], PODS)
    assert whys(found) == ({address: pools.NO_POD} if address else {})
    assert found["allocated"] == len(whys(found))


def test_an_allocation_and_its_reservation_are_one_address() -> None:
    pool = whereabouts({"131": "default/gone"})
    (found,) = pools.whereabouts_pools([pool], [reservation("10.5.0.131", "default/gone")], [], PODS)
    assert (found["allocated"], whys(found)) == (1, {"10.5.0.131": pools.NO_POD})


BLOCKS = [
    {"nodeName": "w1", "startIP": "10.5.0.129", "endIP": "10.5.0.136"},
    {"nodeName": "w2", "startIP": "10.5.0.137", "endIP": "10.5.0.144"},
]


def nv_ipam(blocks: t.Sequence[Object], **spec: t.Any) -> Object:
    spec = {"subnet": "10.5.0.0/24", "perNodeBlockSize": 8, **spec}
    return {"metadata": {"name": "rdma-net"}, "spec": spec, "status": {"allocations": list(blocks)}}


def test_a_pool_of_nv_ipam_is_its_blocks() -> None:
    pods = live(pod("a", "10.5.0.130"), pod("b", "10.5.0.138", node="w2"), pod("c", "10.5.0.139", node="w2"))
    pool = nv_ipam(
        BLOCKS,
        gateway="10.5.0.129",
        exclusions=[{"startIP": "10.5.0.0", "endIP": "10.5.0.127"}, {"startIP": "10.5.0.143", "endIP": "10.5.0.150"}],
        perNodeExclusions=[{"startIndex": 0, "endIndex": 0}],
    )
    (found,) = pools.nv_ipam_pools([pool], pods, {"w1", "w2"})
    assert found == {
        "name": "rdma-net", "ipam": "nv-ipam", "cidr": "10.5.0.0/24",
        "usable": 16, "excluded": 4, "capacity": 12, "allocated": 3, "free": 9, "orphaned": [],
        "nodes": [
            {"node": "w1", "range": "10.5.0.129-10.5.0.136", "capacity": 7, "allocated": 1, "free": 6},
            {"node": "w2", "range": "10.5.0.137-10.5.0.144", "capacity": 5, "allocated": 2, "free": 3},
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("pods", "nodes", "expected"),
    [
        (live(pod("a", "10.5.0.138")), {"w1", "w2"}, {"10.5.0.138": pools.OTHER_BLOCK}),
        (live(pod("a", "10.5.0.130", node="w3")), {"w1", "w2"}, {"10.5.0.130": pools.OTHER_BLOCK}),
        (live(pod("a", "10.5.0.130"), pod("b", "10.5.0.130")), {"w1", "w2"}, {"10.5.0.130": pools.TWO_PODS}),
        (live(), {"w1"}, {"10.5.0.137-10.5.0.144": f"{pools.NO_NODE}: w2"}),
        (live(pod("a", "10.6.0.138")), {"w1", "w2"}, {}),
    ],
)
def test_leaks_of_nv_ipam(pods: pools.Pods, nodes: t.Set[str], expected: t.Dict[str, str]) -> None:
    (found,) = pools.nv_ipam_pools([nv_ipam(BLOCKS)], pods, nodes)
    assert whys(found) == expected


def test_a_pool_that_has_dealt_no_block_has_no_room() -> None:
    found = pools.nv_ipam_pool({"metadata": {"name": "p"}, "spec": {"subnet": "10.5.0.0/24"}}, {}, set())
    assert (found["capacity"], found["free"], found["nodes"]) == (0, 0, [])


def spider(allocated: t.Mapping[str, Object], **status: t.Any) -> Object:
    spec = {"subnet": "10.5.0.0/24", "ips": ["10.5.0.128-10.5.0.137", "10.5.0.250"], "excludeIPs": ["10.5.0.128"]}
    return {
        "metadata": {"name": "rail-1"},
        "spec": spec,
        "status": {"allocatedIPs": json.dumps(allocated), "allocatedIPCount": len(allocated), **status},
    }


def test_a_pool_of_spiderpool() -> None:
    pool = spider({"10.5.0.129": {"pod": "default/a", "podUid": "uid-a"}}, totalIPCount=10)
    (found,) = pools.spider_pools([pool], [], PODS)
    assert (found["usable"], found["excluded"], found["capacity"]) == (11, 1, 10)
    assert (found["allocated"], found["free"], found["orphaned"]) == (1, 9, [])
    assert found["nodes"][0]["node"] == "w1"


def test_a_new_pool_of_spiderpool_is_counted_here() -> None:
    pool = {**spider({}), "status": {}}
    assert pools.spider_pools([pool], [], {})[0]["capacity"] == 10


@pytest.mark.parametrize("owner", ["", "ReplicaSet", "StatefulSet", "VirtualMachineInstance"])
@pytest.mark.parametrize(
    ("holder", "why"),
    [
        ({"pod": "default/gone", "podUid": "x"}, pools.NO_POD),
        ({"pod": "default/a", "podUid": "older"}, pools.NEWER_POD),
        ({"pod": "default/a", "podUid": "uid-a"}, ""),
    ],
)
def test_leaks_of_spiderpool(owner: str, holder: Object, why: str) -> None:
    namespace, name = holder["pod"].split("/")
    endpoint = {"metadata": {"namespace": namespace, "name": name}, "status": {"ownerControllerType": owner}}
    (found,) = pools.spider_pools([spider({"10.5.0.129": holder})], [endpoint] if owner else [], PODS)
    kept = owner in pools.KEEPS_ADDRESSES
    assert whys(found) == ({} if kept or not why else {"10.5.0.129": why})


@pytest.mark.parametrize("text", ["", "no JSON", "{}", "[3]", '[{"ips": null}]'])
def test_a_pod_without_a_readable_status_has_its_own_address_only(text: str) -> None:
    item = pod("a")
    item["metadata"]["annotations"] = {pools.NETWORK_STATUS: text}
    assert live(item)["default/a"][3:] == ((), ("10.244.0.9",))


@given(st.sets(st.integers(1, 254), max_size=60), st.sets(st.integers(1, 254), max_size=60))
def test_every_allocation_is_either_a_pods_or_orphaned(held: t.Set[int], alive: t.Set[int]) -> None:
    pods = live(*(pod(f"p{number}", f"10.5.0.{number}") for number in alive))
    pool = whereabouts({str(number): f"default/p{number}" for number in held})
    (found,) = pools.whereabouts_pools([pool], [], [], pods)
    assert {entry["address"] for entry in found["orphaned"]} == {f"10.5.0.{number}" for number in held - alive}
    assert found["allocated"] == len(held)
    assert found["free"] == found["capacity"] - len(held)


class Api(Cluster):
    """whereabouts' pool and its pods, in pages of one; they are others at each look."""

    def __init__(self, looks: t.Sequence[t.Sequence[Object]], *held: Object) -> None:
        super().__init__(None)
        self.looks, self.held, self.asked = [list(pods) for pods in looks], list(held), 0

    def get(self, path: str, **query: t.Any) -> t.Optional[Object]:
        if path != "/api/v1/pods":
            return {"items": self.held} if path == f"{pools.WHEREABOUTS}/ippools" else None
        assert "status.phase!=Failed" in query["fieldSelector"]
        at, seen = int(query["continue"] or 0), self.looks[min(self.asked, len(self.looks) - 1)]
        last = at + 1 >= len(seen)
        self.asked += last
        return {"metadata": {} if last else {"continue": str(at + 1)}, "items": seen[at : at + 1]}


def test_what_is_orphaned_at_one_look_only_is_not() -> None:
    a, b = pod("a", "10.5.0.129"), pod("b", "10.5.0.130")
    pool = whereabouts({"129": "default/a", "130": "default/b", "131": "default/gone"})
    api = Api([[b], [a, b]], pool)
    assert [whys(found) for found in pools.audit(api, 0)] == [{"10.5.0.131": pools.NO_POD}]
    assert api.asked == 2


def test_a_clean_pool_is_looked_at_once() -> None:
    api = Api([[pod("a", "10.5.0.129"), pod("b", "10.5.0.130")]], whereabouts({"129": "default/a", "130": "default/b"}))
    assert [whys(found) for found in pools.audit(api, 60)] == [{}]
    assert api.asked == 1


def test_a_cluster_without_pools_has_its_pods_left_alone() -> None:
    api = Api([[]])
    assert (pools.audit(api, 0), api.asked) == ([], 0)
