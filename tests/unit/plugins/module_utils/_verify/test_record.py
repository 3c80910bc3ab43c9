"""What is said of a job, by what its pods showed first and last."""

from __future__ import annotations

import typing as t
from dataclasses import replace

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._verify.look import Inside
from ansible_collections.ipu.fabric.plugins.module_utils._verify.parsers import gid_of
from ansible_collections.ipu.fabric.plugins.module_utils._verify.record import Rank, names_a_device, verdict

GB = 10**9
RAIL = "10.5.0.131"
Counts = t.Mapping[t.Tuple[str, str, str], int]


def gid(device: str, index: int, netdev: str = "net1") -> t.Any:
    return {"device": device, "port": 1, "index": index, "gid": gid_of(RAIL), "type": "RoCE v2", "netdev": netdev}


POD = Inside(
    files=["rdma_cm", "uverbs0", "uverbs1"],
    verbs={"uverbs0": "mlx5_0", "uverbs1": "mlx5_1", "uverbs2": "mlx5_2"},
    gids=[gid("mlx5_0", 5)],
    addresses=frozenset({RAIL}),
)
SOFT = replace(POD, files=["rdma_cm", "uverbs7"], verbs={"uverbs7": "soft7"}, gids=[gid("soft7", 2)])
NO_RDMA = replace(POD, files=[], verbs={}, gids=[])


def rank(
    counts: Counts, pod: str = "a-0", node: str = "w1", inside: Inside = POD, start: int = 77, **more: t.Any
) -> Rank:
    """A pod whose counters grew by these."""
    first = replace(inside, counters=dict.fromkeys(counts, start))
    last = replace(inside, counters={counter: start + count for counter, count in counts.items()})
    return Rank(pod, node, first, last, **{"looks": 5, "seconds": 60.0, **more})


def sent(device: str, count: int) -> Counts:
    """By a NIC, as its driver counts: in words. The other direction does not count."""
    return {(device, "1", "port_xmit_data"): count // 4, (device, "1", "port_rcv_data"): count}


def net(name: str, count: int) -> Counts:
    return {(name, "", "tx_bytes"): count, (name, "", "rx_bytes"): count}


def packets(count: int, device: str = "soft7") -> Counts:
    return {(device, "1", "sent_pkts"): count, (device, "1", "rcvd_pkts"): count}


def tcp(environment: t.Mapping[str, str], inside: Inside = POD) -> t.List[Rank]:
    seen = replace(inside, environment=environment)
    return [rank({**net("eth0", 39 * GB), **sent("mlx5_0", 4000)}, inside=seen)]


UNSEEN = "what it moved was not seen: "
OVER_TCP = "moved 39 GB over TCP on eth0"
# Name: pods, verdict, the whole text, and the beginning of the next step.
CASES: t.Dict[str, t.Tuple[t.Sequence[Rank], str, str, str]] = {
    "two rails": (
        [rank({**sent("mlx5_0", 20 * GB), **sent("mlx5_1", 21 * GB), **net("eth0", 5000)})],
        "rdma",
        "moved 41 GB over RDMA on mlx5_0, mlx5_1",
        "",
    ),
    "two pods, each its own node": (
        [rank(sent("mlx5_0", 20 * GB)), rank(sent("mlx5_0", 21 * GB), "a-1", "w2")],
        "rdma",
        "moved 41 GB over RDMA on mlx5_0",
        "",
    ),
    "a busy pod that shows no variables, and another one that does": (
        [
            rank(net("eth0", 39 * GB), inside=NO_RDMA),
            *tcp({"NCCL_IB_DISABLE": "1", "UCX_TLS": "tcp,self"}, NO_RDMA),
        ],
        "tcp",
        "moved 39 GB over TCP on eth0: NCCL_IB_DISABLE is 1; UCX_TLS is tcp,self",
        "Remove NCCL_IB_DISABLE from",
    ),
    "two pods that share a NIC count it once": (
        [rank(sent("mlx5_0", 20 * GB)), rank(sent("mlx5_0", 21 * GB), "a-1")],
        "rdma",
        "moved 21 GB over RDMA on mlx5_0",
        "",
    ),
    "a device of the node that is not the pod's": (
        [rank({**sent("mlx5_2", 99 * GB), **net("net1", GB)})],
        "tcp",
        "moved 1 GB over TCP on net1: no variable of NCCL, UCX or MPI says why",
        "Run ipu.fabric.explain for one of its pods while it runs (a-0)",
    ),
    "requests alone": (
        [rank({("mlx5_0", "1", "rx_write_requests"): 5000, **net("eth0", 9000)})],
        "rdma",
        "moved 5,000 requests over RDMA on mlx5_0",
        "",
    ),
    "bytes before requests": (
        [rank({("mlx5_0", "1", "rx_write_requests"): 5000, **sent("mlx5_0", 8 * GB)})],
        "rdma",
        "moved 8 GB over RDMA on mlx5_0",
        "",
    ),
    "software": (
        [rank({**packets(30000), **net("net1", 30000 * 1100), **net("eth0", 90000)}, inside=SOFT)],
        "rdma",
        "moved 30,000 packets over RDMA on soft7",
        "",
    ),
    "software that only said hello": (
        [rank({**packets(20), **net("net1", 30_000_000)}, inside=SOFT)],
        "tcp",
        "moved 29.9 MB over TCP on net1: no variable of NCCL, UCX or MPI says why",
        "Run ipu.fabric.explain",
    ),
    "both": (
        [rank({**sent("mlx5_0", 30 * GB), **net("eth0", 9 * GB)}, inside=replace(POD, environment={"UCX_TLS": "tcp"}))],
        "both",
        "moved 30 GB over RDMA on mlx5_0, and 9 GB over TCP on eth0: UCX_TLS is tcp",
        "Set UCX_TLS",
    ),
    "no device": (tcp({}, NO_RDMA), "tcp", f"{OVER_TCP}: its pods have no RDMA device", "Ask for the RDMA resource"),
    "HCA": (
        tcp({"NCCL_IB_HCA": "=mlx5_7:1"}),
        "tcp",
        f"{OVER_TCP}: NCCL_IB_HCA matches no device (=mlx5_7:1; the pod has mlx5_0, mlx5_1)",
        "Set NCCL_IB_HCA to mlx5_0,mlx5_1, or leave it out.",
    ),
    "NCCL_IB_DISABLE": (
        tcp({"NCCL_IB_DISABLE": "1"}),
        "tcp",
        f"{OVER_TCP}: NCCL_IB_DISABLE is 1",
        "Remove NCCL_IB_DIS",
    ),
    "UCX_TLS and devices": (
        tcp({"UCX_TLS": "tcp,sm,self", "UCX_NET_DEVICES": "net1"}),
        "tcp",
        f"{OVER_TCP}: UCX_TLS is tcp,sm,self; UCX_NET_DEVICES matches no device (net1; the pod has mlx5_0, mlx5_1)",
        "Set UCX_TLS to rc,sm,self",
    ),
    "forced to TCP, without devices": (
        tcp({"UCX_TLS": "tcp,sm,self"}, NO_RDMA),
        "tcp",
        f"{OVER_TCP}: UCX_TLS is tcp,sm,self; its pods have no RDMA device",
        "Set UCX_TLS",
    ),
    "GID index": (
        tcp({"NCCL_IB_HCA": "mlx5", "NCCL_IB_GID_INDEX": "3"}),
        "tcp",
        f"{OVER_TCP}: NCCL_IB_GID_INDEX is 3, and the pod's RoCE v2 GIDs have index 5",
        "Leave NCCL_IB_GID_INDEX out",
    ),
    "ob1": (
        tcp({"OMPI_MCA_pml": "ob1"}),
        "tcp",
        f"{OVER_TCP}: MPI's own messages go over TCP (pml ob1)",
        "Use pml: ucx",
    ),
    "right variables": (
        tcp({"NCCL_IB_DISABLE": "0", "NCCL_IB_HCA": "^mlx5_1", "UCX_TLS": "rc_x,sm", "UCX_NET_DEVICES": "all"}),
        "tcp",
        f"{OVER_TCP}: no variable of NCCL, UCX or MPI says why",
        "Run ipu.fabric.explain",
    ),
    "one node": (
        [rank(net("eth0", 90000))],
        "nothing",
        "moved less than 1 MB over any network",
        "Nothing, if the job ran",
    ),
    "loopback": ([rank(net("lo", GB))], "nothing", "moved less than 1 MB over any network", "Nothing, if the job ran"),
    "host network counts once": (
        [rank(net("eth0", GB), host_network=True), rank(net("eth0", GB), "a-1", host_network=True)],
        "tcp",
        "moved 1 GB over TCP on eth0: no variable of NCCL, UCX or MPI says why",
        "Run ipu.fabric.explain",
    ),
    "seen once": (
        [rank(sent("mlx5_0", GB), looks=1)],
        "unseen",
        f"{UNSEEN}its pods ended before they were seen twice",
        "A pod is looked at",
    ),
    "never seen": ([], "unseen", f"{UNSEEN}none of its pods was seen while it ran", "A pod is looked at"),
}


@pytest.mark.parametrize("case", CASES)
def test_verdict(case: str) -> None:
    ranks, kind, text, step = CASES[case]
    found = verdict(ranks)
    assert (found.verdict, found.text) == (kind, text)
    assert found.next.startswith(step)
    assert bool(found.next) == (kind != "rdma")
    assert [each["pod"] for each in found.ranks] == [each.pod for each in ranks]


@pytest.mark.parametrize(
    ("ranks", "why"),
    [
        ([], "none of its pods was seen while it ran"),
        ([rank(sent("mlx5_0", GB), looks=1)], "its pods ended before they were seen twice"),
        ([rank({}, inside=Inside(error="exec failed: forbidden"))], "exec failed: forbidden"),
    ],
)
def test_why_nothing_was_seen(ranks: t.Sequence[Rank], why: str) -> None:
    assert verdict(ranks).why == why


def test_notes() -> None:
    shared = [rank(sent("mlx5_0", GB)), rank(sent("mlx5_0", GB), "a-1")]
    assert verdict(shared).note == "counters are the NIC's, and pods of the job share mlx5_0 of w1"
    apart = [shared[0], rank(sent("mlx5_0", GB), "a-1", "w2"), rank({}, "a-2", "w3", looks=1)]
    assert verdict(apart).note == "1 of 3 pods were not seen twice"


def test_requests_that_began_again() -> None:
    start = 2**32 - 10
    first = replace(POD, counters={("mlx5_0", "1", "rx_read_requests"): start})
    last = replace(POD, counters={("mlx5_0", "1", "rx_read_requests"): 4990})
    assert verdict([Rank("a", "w1", first, last, looks=2)]).text == "moved 5,000 requests over RDMA on mlx5_0"


def test_details() -> None:
    [found] = verdict([rank({**sent("mlx5_0", GB), **net("net1", 7)})]).ranks
    assert found["devices"] == {"mlx5_0": {"bytes": GB}}
    assert found["interfaces"] == {"net1": 7}
    assert found["gids"][0]["address"] == RAIL


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("mlx5_0", True),
        ("mlx5_0:1,mlx5_9:1", True),
        ("mlx5", True),
        ("=mlx5", False),
        ("=mlx5_0:1", True),
        ("^mlx5_0", True),
        ("^mlx5_0,mlx5_1", False),
        ("^=mlx5_0,mlx5_1", False),
        ("irdma0", False),
    ],
)
def test_names_a_device(value: str, named: bool) -> None:
    assert names_a_device(value, ["mlx5_0", "mlx5_1"]) is named
