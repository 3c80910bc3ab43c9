"""Pools of nv-ipam, which are the blocks of nodes."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._ipam import leaks
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.nv_ipam import keeps_block, nv_ipam_pools
from ansible_collections.ipu.fabric.tests.unit.fixtures.pools import Object, live, pod, whys

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
    (found,) = nv_ipam_pools([pool], pods, {"w1", "w2"})
    assert found == {
        "name": "rdma-net", "ipam": "nv-ipam", "cidr": "10.5.0.0/24",
        "usable": 16, "excluded": 4, "capacity": 12, "allocated": 3, "free": 9, "leaked": [],
        "nodes": [
            {"node": "w1", "range": "10.5.0.129-10.5.0.136", "capacity": 7, "allocated": 1, "free": 6},
            {"node": "w2", "range": "10.5.0.137-10.5.0.144", "capacity": 5, "allocated": 2, "free": 3},
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("pods", "nodes", "expected"),
    [
        (live(pod("a", "10.5.0.138")), {"w1", "w2"}, {"10.5.0.138": leaks.OTHER_BLOCK}),
        (live(pod("a", "10.5.0.130", node="w3")), {"w1", "w2"}, {"10.5.0.130": leaks.OTHER_BLOCK}),
        (live(pod("a", "10.5.0.130"), pod("b", "10.5.0.130")), {"w1", "w2"}, {"10.5.0.130": leaks.TWO_PODS}),
        (live(), {"w1"}, {"10.5.0.137-10.5.0.144": f"{leaks.NO_NODE}: w2"}),
        (live(pod("a", "10.6.0.138")), {"w1", "w2"}, {}),
    ],
)
def test_leaks_of_nv_ipam(pods: leaks.Pods, nodes: t.Set[str], expected: t.Dict[str, str]) -> None:
    (found,) = nv_ipam_pools([nv_ipam(BLOCKS)], pods, nodes)
    assert whys(found) == expected


def test_two_pools_on_one_subnet() -> None:
    """An address from the other pool's block of the pod's node is that pool's, and has not leaked from this one."""
    theirs = nv_ipam([{"nodeName": "w1", "startIP": "10.5.0.201", "endIP": "10.5.0.208"}])
    pods = live(pod("a", "10.5.0.201"), pod("b", "10.5.0.130"), pod("c", "10.5.0.202", node="w2"))
    ours, others = nv_ipam_pools([nv_ipam(BLOCKS), theirs], pods, {"w1", "w2"})
    assert (whys(ours), ours["allocated"]) == ({"10.5.0.202": leaks.OTHER_BLOCK}, 2)
    assert (whys(others), others["allocated"]) == ({"10.5.0.202": leaks.OTHER_BLOCK}, 2)


def test_a_pool_without_blocks_has_no_room() -> None:
    found = nv_ipam_pools([{"metadata": {"name": "p"}, "spec": {"subnet": "10.5.0.0/24"}}], {}, set())[0]
    assert (found["capacity"], found["free"], found["nodes"]) == (0, 0, [])


SELECTED = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["w1", "w3"]}]},
    ]
}


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({}, [True, True]),
        ({"exclusions": [{"startIP": "10.5.0.0", "endIP": "10.5.0.140"}]}, [True, True]),
        ({"gateway": "10.5.0.254"}, [True, True]),
        ({"perNodeBlockSize": 16}, [False, False]),
        ({"perNodeBlockSize": 4}, [False, False]),
        ({"subnet": "10.5.0.0/23"}, [True, True]),
        ({"subnet": "10.5.0.128/25"}, [True, True]),
        ({"subnet": "10.5.0.0/25"}, [False, False]),
        ({"subnet": "10.5.0.136/29"}, [False, False]),  # its blocks begin one address later
        ({"subnet": "10.6.0.0/24"}, [False, False]),
        ({"subnet": "fd00:5::/64"}, [False, False]),
        ({"nodeSelector": SELECTED}, [True, False]),
    ],
)
def test_which_blocks_a_changed_pool_keeps(change: Object, kept: t.Sequence[bool]) -> None:
    spec = nv_ipam([], **change)["spec"]
    assert [keeps_block(spec, each["nodeName"], f"{each['startIP']}-{each['endIP']}") for each in BLOCKS] == kept


def test_blocks_of_one_address() -> None:
    assert keeps_block({"subnet": "10.5.0.0/31", "perNodeBlockSize": 1}, "w1", "10.5.0.0-10.5.0.0")
    assert not keeps_block({"subnet": "10.5.0.0/30", "perNodeBlockSize": 1}, "w1", "10.5.0.0-10.5.0.0")
