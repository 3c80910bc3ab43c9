"""Pods that lack something else each, and what is said of them."""

from __future__ import annotations

import typing as t
from dataclasses import replace

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.pod_problems import Problem
from ansible_collections.ipu.fabric.plugins.module_utils._verify.explain import (
    Amount,
    PodNetwork,
    PodSeen,
    as_text,
    explain,
)
from ansible_collections.ipu.fabric.plugins.module_utils._verify.look import Inside, Route
from ansible_collections.ipu.fabric.plugins.module_utils._verify.parsers import gid_of

RESOURCE = "rdma/shared"
POD, RAIL = "10.244.1.7", "10.5.0.131"
NET = PodNetwork("default/rdma-net", interface="net1", addresses=[RAIL], kind="macvlan", master="ens1f0")


def gid(address: str, device: str = "mlx5_0", kind: str = "RoCE v2", netdev: str = "net1", index: int = 3) -> t.Any:
    return {"device": device, "port": 1, "index": index, "gid": gid_of(address), "type": kind, "netdev": netdev}


ROUTES = [
    Route("0.0.0.0/0", "eth0", "10.244.1.1"),
    Route("10.244.1.0/24", "eth0", ""),
    Route("10.5.0.0/24", "net1", ""),
]
INSIDE = Inside(
    uid=1000,
    memlock="unlimited",
    ipc_lock=False,
    files=["rdma_cm", "uverbs0"],
    verbs={"uverbs0": "mlx5_0", "uverbs1": "mlx5_1"},
    ports={
        "mlx5_0/1": {"state": "ACTIVE", "link_layer": "Ethernet"},
        "mlx5_1/1": {"state": "DOWN", "link_layer": "Ethernet"},
    },
    gids=[gid("10.5.0.1", netdev="ens1f0", index=0), gid("10.6.0.1", "mlx5_1", netdev="ens2f0"), gid(RAIL)],
    mtus={"lo": 65536, "eth0": 1450, "net1": 9000},
    addresses=frozenset({POD, RAIL}),
    routes=ROUTES,
)
GOOD = PodSeen(
    "vision/a",
    node="w1",
    container="main",
    networks=[NET],
    available=["default/rdma-net", "jobs/rail-1"],
    asks={RESOURCE: 1},
    node_has={RESOURCE: Amount(63, 4), "rdma/rail_b": Amount(63, 0), "nvidia.com/gpu": Amount(8, 8)},
    inside=INSIDE,
    nics={"ens1f0": 9000},
)


def inside(**changes: t.Any) -> PodSeen:
    return replace(GOOD, inside=replace(INSIDE, **changes))


def network(**changes: t.Any) -> PodSeen:
    return replace(GOOD, networks=[replace(NET, **changes)])


NOT_ATTACHED = {"interface": "", "addresses": ()}


def pending(text: str, **changes: t.Any) -> PodSeen:
    lost = [replace(NET, interface="", addresses=())]
    return replace(
        GOOD, **{"phase": "Pending", "inside": None, "networks": lost, "problems": [Problem(text)], **changes}
    )


# Name: the pod; then what it lacks, and words of why and of the next step.
LACKS: t.Dict[str, t.Tuple[PodSeen, str, str, str]] = {
    "no annotation": (replace(GOOD, networks=[]), "no network but", "no annotation k8s.v1", "default/rdma-net, jobs/"),
    "annotation, no cluster network": (
        replace(GOOD, networks=[], available=[]),
        "no network but",
        "no annotation",
        "the cluster has none yet",
    ),
    "no such network": (
        network(name="vision/rail-9", exists=False, **NOT_ATTACHED),
        "no network vision/rail-9",
        "no NetworkAttachmentDefinition",
        "The cluster has: default/rdma-net, jobs/rail-1",
    ),
    "no multus": (
        replace(network(exists=False, **NOT_ATTACHED), available=[], served=False),
        "no network default/rdma-net",
        "does not have the kind NetworkAttachmentDefinition, so it has no multus",
        "Install multus: ipu.fabric.site",
    ),
    "network of another namespace": (
        network(name="vision/rdma-net", exists=False, **NOT_ATTACHED),
        "no network vision/rdma-net",
        "in another namespace: default/rdma-net",
        "Write default/rdma-net",
    ),
    "not attached": (
        network(fault="multus did not attach it", **NOT_ATTACHED),
        "no network default/rdma-net",
        "multus did not attach it",
        "delete the pod",
    ),
    "no resource": (
        replace(GOOD, asks={}, inside=replace(INSIDE, files=[])),
        "no RDMA resource",
        "node w1 has rdma/rail_b, rdma/shared",
        "Add rdma/rail_b, rdma/shared: 1",
    ),
    "no resource, and the network names it": (
        replace(GOOD, asks={}, inside=replace(INSIDE, files=[]), networks=[replace(NET, resource="acme.com/nics")]),
        "no RDMA resource",
        "no container asks",
        "Add acme.com/nics: 1",
    ),
    "no resource, and no node has one": (
        replace(GOOD, asks={}, node_has={}, inside=replace(INSIDE, files=[])),
        "no RDMA resource",
        "node w1 has none",
        "The nodes need an RDMA device plugin",
    ),
    "another container has it": (
        replace(GOOD, asks={}, others={RESOURCE: "side"}, inside=replace(INSIDE, files=[])),
        "no RDMA resource in container main",
        "only container side asks",
        "-e container=side",
    ),
    "no device files": (
        inside(files=[]),
        "no /dev/infiniband",
        "rdma/shared brought no such file",
        "restart the RDMA device plugin",
    ),
    "no rdma_cm": (inside(files=["uverbs0"]), "no rdma_cm in /dev/infiniband", "it has uverbs0", "rdma_ucm"),
    "memlock": (
        inside(memlock="65536"),
        "too little locked memory: 64 KiB",
        "uid 1000 has no IPC_LOCK",
        "role ipu.fabric.memlock",
    ),
    "no GID": (
        inside(gids=[gid("10.5.0.1", netdev="ens1f0")]),
        f"no RoCE v2 GID for {RAIL} (net1)",
        "mlx5_0 has no GID for this address",
        "must say shared",
    ),
    "RoCE v1": (
        inside(gids=[gid(RAIL, kind="IB/RoCE v1")]),
        f"no RoCE v2 GID for {RAIL}",
        "only as IB/RoCE v1",
        "role ipu.fabric.rdma_host",
    ),
    "device of another NIC": (
        inside(files=["rdma_cm", "uverbs1"], gids=[gid("10.6.0.1", "mlx5_1", netdev="ens2f0")], ports={}),
        f"no RoCE v2 GID for {RAIL}",
        "mlx5_1 belongs to ens2f0, which is not in the pod; net1 is on ens1f0",
        "or for a network on ens2f0",
    ),
    "GID of a device that it may not open": (
        inside(files=["rdma_cm", "uverbs1"], ports={}),
        f"no RoCE v2 GID for {RAIL}",
        "the GID is on mlx5_0, and the pod may open only mlx5_1",
        "the node has rdma/rail_b",
    ),
    "exclusive namespaces": (
        inside(verbs={}, ports={}, gids=[]),
        "no RDMA device in its network namespace",
        "RDMA namespaces are exclusive",
        "rdma system",
    ),
    "link down": (
        inside(ports={"mlx5_0/1": {"state": "DOWN"}}),
        "port mlx5_0/1 is DOWN",
        "link is down",
        "Check cable",
    ),
    "no route": (
        inside(routes=ROUTES[:2]),
        f"no route to the subnet of {RAIL} through net1",
        "prefix length",
        "prefix length",
    ),
    "route elsewhere": (
        inside(routes=[*ROUTES[:2], Route("10.5.0.0/24", "eth0", "")]),
        "no route to the subnet",
        "10.5.0.0/24 dev eth0 takes the traffic",
        "IPAM of default/rdma-net",
    ),
    "default route through the rail": (
        inside(routes=[Route("0.0.0.0/0", "net1", "10.5.0.254"), *ROUTES[1:]]),
        "the default route is through net1",
        "default via 10.5.0.254 dev net1",
        "Remove the gateway from the IPAM",
    ),
    "MTU that the network states": (
        replace(network(mtu=1500), inside=replace(INSIDE, mtus={"net1": 1500})),
        "MTU 1500 of net1 is below that of the NIC (ens1f0: 9000)",
        "default/rdma-net states 1500",
        "Set mtu of default/rdma-net to 9000",
    ),
    "MTU of the past": (inside(mtus={"net1": 1500}), "MTU 1500 of net1", "when the pod started", "Delete the pod"),
    "host network with an annotation": (
        replace(network(interface=""), host_network=True, inside=replace(INSIDE, addresses=frozenset({"10.5.0.1"}))),
        "none of the networks that it asks for: default/rdma-net",
        "multus adds nothing",
        "Remove hostNetwork",
    ),
    "host network, NIC without an address": (
        replace(GOOD, networks=[], host_network=True, inside=replace(INSIDE, addresses=frozenset({POD}))),
        "no RoCE v2 GID of an address of the node",
        "its NIC has no address",
        "Give the NIC an address",
    ),
    "privileged without the files": (
        replace(GOOD, privileged=True, asks={}, others={}, inside=replace(INSIDE, files=[]), node_has={}),
        "no RDMA resource",
        "no container asks",
        "device plugin",
    ),
    "pending on a resource": (
        pending("pod a is on no node yet: 0/2 nodes are available: 2 Insufficient rdma/shared.", node=""),
        "it does not run",
        "2 Insufficient rdma/shared",
        "Ask for less",
    ),
    "pending on a taint": (
        pending("pod a is on no node yet: 0/2 nodes are available: 2 node(s) had untolerated taint {x: }.", node=""),
        "it does not run",
        "untolerated taint {x: }",
        "Tolerate the taint",
    ),
    "pending on what no node has": (
        pending("pod a asks for rdma/x, which no node has; the nodes have rdma/shared", node=""),
        "it does not run",
        "asks for rdma/x",
        "Ask for a resource that the nodes have",
    ),
    "no plugin where it is to run": (
        pending("", problems=[], node_has={RESOURCE: Amount(0)}, phase="Failed"),
        "it does not run",
        "its containers have ended",
        "Run ipu.fabric.explain for a pod that is running",
    ),
}


def test_a_pod_that_has_all() -> None:
    found = explain(GOOD)
    assert (found.lacks, found.unread) == ([], [])
    assert list(found.has) == [
        "Running on node w1, container main",
        f"network default/rdma-net: net1 {RAIL}, MTU 9000, macvlan on ens1f0",
        "resource rdma/shared: 1 (node: 63, 4 in use)",
        "RDMA devices: mlx5_0/1 ACTIVE Ethernet",
        "/dev/infiniband: rdma_cm, uverbs0",
        f"GID of {RAIL}: mlx5_0 port 1 index 3, RoCE v2",
        "locked memory: unlimited",
        "routes: default via 10.244.1.1 dev eth0; 10.244.1.0/24 dev eth0; 10.5.0.0/24 dev net1",
    ]


@pytest.mark.parametrize("case", LACKS)
def test_what_a_pod_lacks(case: str) -> None:
    pod, what, why, step = LACKS[case]
    found = [lack for lack in explain(pod).lacks if what in lack.what]
    assert len(found) == 1, explain(pod).lacks
    assert why in found[0].why
    assert step in found[0].next


ONE_EACH = ("no annotation", "no such network", "no device files", "memlock", "no GID", "no route", "MTU of the past")


@pytest.mark.parametrize("case", [*ONE_EACH, "network of another namespace", "link down", "pending on a taint"])
def test_nothing_else_is_said(case: str) -> None:
    assert len(explain(LACKS[case][0]).lacks) == 1


@pytest.mark.parametrize(
    "pod",
    [
        # Root with IPC_LOCK may lock whatever the limit says.
        inside(memlock="65536", ipc_lock=True),
        # What the kernel does not tell is no lack.
        inside(verbs={}),
        inside(routes=[]),
        # A privileged pod has the node's devices without asking.
        replace(GOOD, privileged=True, asks={}),
        replace(
            GOOD,
            networks=[],
            asks={},
            privileged=True,
            host_network=True,
            inside=replace(
                INSIDE, addresses=frozenset({"10.5.0.1"}), routes=[Route("0.0.0.0/0", "ens1f0", "10.5.0.254")]
            ),
        ),
        # Two rails in one subnet: the route of the one is as good as none of the other, but it is there.
        inside(routes=[*ROUTES, Route("10.5.0.0/24", "net2", "", 1)]),
        # An address of IPv6 beside that of IPv4 needs no GID of its own.
        replace(GOOD, networks=[replace(NET, addresses=["fd00:5::83", RAIL])]),
    ],
)
def test_what_is_no_lack(pod: PodSeen) -> None:
    assert explain(pod).lacks == []


def test_ipv6() -> None:
    address = "fd00:5::83"
    routes = [Route("fd00:5::/64", "net1", "", 256), Route("::/0", "eth0", "fd00::1", 1024)]
    net = replace(NET, addresses=[address])
    seen = replace(INSIDE, gids=[gid(address)], addresses=frozenset({address}), routes=routes)
    assert explain(replace(GOOD, networks=[net], inside=seen)).lacks == []
    [lack] = explain(replace(GOOD, networks=[net], inside=replace(seen, gids=[gid(RAIL)]))).lacks
    assert f"GID for {address}" in lack.what


def test_what_could_not_be_read_is_said() -> None:
    error = 'exec failed: exec: "sh": executable file not found'
    pod = replace(GOOD, inside=Inside(error=error), unread=["networks: forbidden"], nics={})
    found = explain(pod)
    assert found.lacks == []
    assert found.unread == ["networks: forbidden", f"the inside of container main: {error}"]
    assert as_text(pod.name, found)[0] == "Pod vision/a has all that RDMA needs that can be seen from here."
    assert "MTU of the node's NIC" in explain(replace(GOOD, nics={})).unread[0]


def test_text_is_80_columns_wide() -> None:
    for pod, *_words in LACKS.values():
        lines = as_text(pod.name, explain(pod))
        assert max(map(len, lines)) < 80, lines
    text = "\n".join(as_text("vision/a", explain(LACKS["memlock"][0])))
    assert text.startswith(
        "Pod vision/a lacks 1 thing that RDMA needs.\n1. Too little locked memory: 64 KiB\n   Why:  the runtime's"
    )
