"""A healthy fabric, and one fault a row: each must be found by the check that is made for it, and by no other."""

from __future__ import annotations

import copy
import functools
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.memlock_limits import readable
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check, Expect
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import AREAS, CHECK_TYPES, NO_NODE, OF_IPUS
from ansible_collections.ipu.fabric.plugins.module_utils._verify.checks import (
    NOT_INSTALLED,
    PER_POD,
    check_fabric,
    counts,
    outcome,
)
from ansible_collections.ipu.fabric.plugins.module_utils._verify.ipu_checks import controller_checks, label_checks
from ansible_collections.ipu.fabric.plugins.module_utils._verify.narrow import narrow_plan
from ansible_collections.ipu.fabric.plugins.module_utils._verify.parsers import gid_of
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pods import ends
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pool_checks import check_pools
from ansible_collections.ipu.fabric.plugins.module_utils._verify.report import table
from ansible_collections.ipu.fabric.plugins.module_utils._verify.route_checks import route_faults
from ansible_collections.ipu.fabric.plugins.module_utils._verify.traffic_checks import RDMA_TESTS

Facts = t.Dict[str, t.Any]
ADDRESSES = {"cp1": "10.5.0.129", "w1": "10.5.0.137"}
SLAAC = {"address": "fd14:231f:7507:c150:d4a2:72ff:fe82:79db", "prefix": 64, "origin": "advertised"}
IPAM = {"type": "nv-ipam", "poolName": "rdma-net"}
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64 580.95.05 Release Build (dvs-builder@host)"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module 580.95.05 Tue Sep 23 10:11:16 UTC 2025"
DNS = {"servers": ["10.96.0.10"], "name": "kubernetes.default.svc.cluster.local", "address": "10.96.0.1", "rc": 0,
       "seen": ""}  # fmt: skip
NO_DNS = {**DNS, "address": "", "rc": 2, "seen": "no answer"}
PONG = {"sent": 2, "received": 2, "rtt_ms": 0.08, "path_mtu": None, "supported": True, "seen": ""}


def plan() -> Facts:
    link = {
        "netdev": "eth1",
        "driver": "mlx5_core",
        "device": "mlx5_0",
        "prefix": 24,
        "mtu": 1500,
        "rate_gbps": 100.0,
        "pcie_gbps": 126.0,
    }
    pool = {"exclusions": [{"startIP": "10.5.0.145", "endIP": "10.5.0.150"}]}
    subnet = {
        "cidr": "10.5.0.0/24",
        "gateway": "10.5.0.1",
        "range_start": "10.5.0.128",
        "range_end": "10.5.0.254",
        "exclude": ["10.5.0.0/25", "10.5.0.140/32"],
        "needed": 16,
    }
    first, second = (
        {**link, "address": a, "addresses": [{"address": a, "prefix": 24}]} for a in ("10.5.0.11", "10.5.0.12")
    )
    return {
        "releases": {"network_operator": "26.4.1", "ipu_operator": "1.2.0"},
        "cluster": {"pod_cidr": "10.244.0.0/16,fd00:244::/56", "service_cidr": "10.96.0.0/12"},
        "hosts": {
            "cp1": {
                "node": "cp1",
                "roles": ["control_plane", "ipu"],
                "links": {"rdma-net": first},
            },
            "w1": {"node": "w1", "roles": ["worker", "ipu"], "links": {"rdma-net": second}},
        },
        "vipu": {
            "controllers": [{"address": "10.5.0.20", "port": 8090, "serves": []}],
            "node_labels": {"cp1": {"vipu-ctrl": "vctl"}, "w1": {"vipu-ctrl": "vctl"}},
        },
        "networks": [
            {
                "name": "rdma-net",
                "namespace": "default",
                "master": "eth1",
                "mode": "bridge",
                "mtu": 1500,
                "rdma": True,
                "resource": "rdma/shared",
                "ipam": IPAM,
                "pool": pool,
                "pools": [pool],
                "subnet": subnet,
                "subnets": [subnet],
            }
        ],
        "cni_token_ends": {
            "hosts": [
                {
                    "node": node,
                    "first": "multus",
                    "ends": "2027-11-23T00:00:00Z",
                    "ending": [],
                    "expired": [],
                    "seen": "2026-11-23T10:00:00Z",
                }
                for node in ("cp1", "w1")
            ],
            "restart": {},
        },
        "certificates": [
            {"node": "cp1", "first": "apiserver", "ends": "2027-11-22T10:00:00Z", "ending": [], "expired": []}
        ],
        "image_digests": {"mirror.site/a:v1": f"sha256:{'0' * 64}"},
    }


def pod(node: str) -> Facts:
    address = ADDRESSES[node]
    limits = {"soft": "unlimited", "hard": "unlimited"}
    gid = {"device": "mlx5_0", "port": 1, "index": 5, "gid": gid_of(address), "type": "RoCE v2", "netdev": "net1"}
    return {
        "host": node,
        "pod": f"probe-{node}",
        "gpus": 8,
        "networks": ["rdma-net"],
        "state": "running",
        "reason": "",
        "network_status": [{"name": "cbr0"}, {"name": "default/rdma-net"}],
        "root": {
            "uid": 0,
            "memlock": limits,
            "tool_missing": False,
            "links": {
                "net1": {"mtu": 1500, "kind": "macvlan", "mac": "", "addresses": [{"address": address, "prefix": 24}]}
            },
            "default_routes": ["eth0"],
            "main_routes": [
                {"dst": "10.244.1.0/24", "dev": "eth0"},
                {"dst": "10.5.0.0/24", "dev": "net1"},
                {"dst": "fe80::/64", "dev": "net1"},
            ],
            "policy": None,
            "gpu": {"kernel": "6.8.0-31-generic", "driver": OPEN, "modules": ["nvidia", "nvidia_peermem", "gdrdrv"]},
            "dns": {**DNS},
            "vipu": [{"host": "10.5.0.20", "port": 8090, "rc": 0, "seen": ""}],
            "error": "",
        },
        "user": {"uid": 1000, "memlock": limits, "error": ""},
        "gateways": [{"network": "rdma-net", "address": "10.5.0.1", "ping": {**PONG}, "mac": "02:00:00:00:00:01"}],
        "gateways_error": "",
        "rdma": {
            "files": ["rdma_cm", "uverbs0"],
            "classes": [
                "infiniband/mlx5_0",
                "infiniband/mlx5_0/device",
                "infiniband_verbs/uverbs0",
                "infiniband_mad/umad0",
                "misc/rdma_cm",
            ],
            "ports": {
                "mlx5_0/1": {"state": "ACTIVE", "link_layer": "Ethernet"},
                "mlx5_1/1": {"state": "DOWN", "link_layer": "InfiniBand"},
            },
            "gids": [{**gid, "index": 4, "type": "IB/RoCE v1"}, gid],
            "tools": [],
            "error": "",
        },
    }


def source(name: str = "old", kind: str = "IPPool", namespace: str = "x", **more: t.Any) -> Facts:
    """A pool that gives out the addresses of the healthy fabric's network; by default a pool of a former plan."""
    facts = {"kind": kind, "namespace": namespace, "name": name, "what": f"{kind} {namespace}/{name}", "ours": True}
    return {**facts, "ipam": "nv-ipam", "stores": [], "ranges": ["10.5.0.128-10.5.0.254"], **more}


def traffic(check: str, tool: str, value: float, unit: str, messages: int, size: int) -> Facts:
    """A test from cp1 to w1 over mlx5_0, whose counters a pod sees by what the NIC answered."""
    device = "" if check == "rping" else "mlx5_0"
    idle, answered = ({"rdma": {"mlx5_0": {"requests": n}}, "interfaces": {"eth0": 900}} for n in (0, messages))
    return {
        "network": "rdma-net",
        "from": "cp1",
        "to": "w1",
        "check": check,
        "tool": tool,
        "missing": False,
        "blocked": False,
        "rc": 0,
        "seen": "",
        "value": value,
        "unit": unit,
        "sent": {"device": device, "transport": device and "IB", "messages": messages, "size": size},
        "moved": [idle, answered],
    }


def probe() -> Facts:
    ping = {"sent": 2, "received": 2, "rtt_ms": 0.08, "path_mtu": None, "supported": True, "seen": ""}
    node = {
        "ready": True,
        "reason": "",
        "labels": {"vipu-ctrl": "vctl", "nvidia.com/gpu.present": "true"},
        "allocatable": {"rdma-net": {"resource": "rdma/shared", "count": 63}},
    }
    pair = {"network": "rdma-net", "from": "cp1", "to": "w1"}
    return {
        "probed": True,
        "reason": "",
        "rdma_image": "tools",
        "kinds": ["NicClusterPolicy", "MacvlanNetwork", "NetworkAttachmentDefinition", "IPUJob"],
        "releases": [
            {"name": "network-operator", "version": "26.4.1", "status": "deployed"},
            {"name": "ipu-operator", "version": "1.2.0", "status": "deployed"},
        ],
        "pools": [
            {
                "name": "rdma-net",
                "ipam": "nv-ipam",
                "cidr": "10.5.0.0/24",
                "usable": 16,
                "excluded": 0,
                "capacity": 16,
                "allocated": 2,
                "free": 14,
                "leaked": [],
                "nodes": [
                    {"node": "cp1", "range": "10.5.0.129-10.5.0.136", "capacity": 8, "allocated": 1, "free": 7},
                    {"node": "w1", "range": "10.5.0.137-10.5.0.144", "capacity": 8, "allocated": 1, "free": 7},
                ],
            }
        ],
        "address_sources": [
            source("rdma-net", namespace="nvidia"),
            source("far", ranges=["10.6.0.1-10.6.0.9", "fd00::1-fd00::9"]),
        ],
        "pods_without": {"rdma-net": []},
        "images": [{"image": "mirror.site/a:v1", "id": f"mirror.site/a@sha256:{'0' * 64}", "pods": ["ns/a on cp1"]}],
        "addons": {"nfd": ["nfd/worker"], "multus": ["nvidia/kube-multus-ds"], "multus_nodes": ["cp1", "w1"]},
        "policy": {"state": "ready", "appliedStates": [{"name": "state-multus-cni", "state": "ready"}]},
        "networks": {
            "rdma-net": {
                "state": {"state": "ready"},
                "attachment": {"type": "macvlan", "master": "eth1", "mode": "bridge", "mtu": 1500, "ipam": IPAM},
            }
        },
        "nodes": {"cp1": node, "w1": copy.deepcopy(node)},
        "pods": {"cp1": pod("cp1"), "w1": pod("w1")},
        "crossings": [crossing()],
        "pairs": [{**pair, "address": "10.5.0.137", "mtu": 1500, "error": "", "small": ping, "full": {**ping}}],
        "traffic": [
            traffic("rping", "rping", 10.0, "pings", messages=10, size=64),
            traffic("write_bandwidth", "ib_write_bw", 97.8, "Gb/s", messages=746000, size=65536),
            traffic("read_latency", "ib_read_lat", 2.96, "us", messages=1000, size=2),
            traffic("gpu_bandwidth", "ib_write_bw", 96.4, "Gb/s", messages=736000, size=65536),
        ],
        "host_traffic": [{"node": "cp1", "missing": False, "rc": 0, "seen": "", "value": 23.4, "unit": "Gb/s"}],
        "webhook": {"passed": True, "seen": "accepted"},
        "ipu": {
            "deployments": [
                {"name": "ipu-operator-controller-manager", "namespace": "ipu", "ready": 1, "wanted": 1},
                {"name": "ipu-operator-vipu-proxy", "namespace": "ipu", "ready": 1, "wanted": 1},
            ],
            "proxy": {"healthy": True, "seen": "GET /health: 200"},
            "certificate": {"end": "2027-11-21T10:00:00+00:00", "days": 364},
            "controllers": ["10.5.0.20:8090:vipu-ctrl=vctl"],
        },
    }


EXPECT = Expect(
    rdma_bandwidth="90",
    rdma_latency="5",
    host_traffic=20,
    ipu_partition="p1",
    gpu=True,
    gpu_rdma="peermem",
    gpu_bandwidth="90",
    gdrcopy=True,
    rail_isolation="expect",
)


def crossing(near: bool = False, far: bool = True, mac: str = "02:00:00:00:00:12", **changes: t.Any) -> Facts:
    """As pods on two rails that are apart see it: Linux answers for the address, but on the rail that was asked on."""
    pings = {name: {**PONG, "received": 2 if good else 0} for name, good in (("near", near), ("far", far))}
    ends = {"network": "rail0", "from": "cp1", "to": "w1", "other": "rail1"}
    return {**ends, "asked": "fe80::2", "mac": mac, "error": "", **pings, **changes}


def put(facts: Facts, path: str, value: t.Any) -> None:
    """Set `pods/w1/state` and the like: numbers are places in a list, a backslash stands for the slash inside a key."""
    parts: t.List[t.Any] = [int(part) if part.isdigit() else part.replace("\\", "/") for part in path.split("/")]
    functools.reduce(lambda at, part: at[part], parts[:-1], facts)[parts[-1]] = value


def by_status(checks: t.Sequence[Check], status: str) -> t.Set[str]:
    return {check.check for check in checks if check.status == status}


def on_infiniband() -> t.Tuple[Facts, Facts]:
    """The healthy fabric over IPoIB: the interface has its port's GID in its hardware address."""
    planned, facts = plan(), probe()
    planned["networks"][0].update(cni="ipoib", link_layer="InfiniBand", mode="")
    put(facts, "networks/rdma-net/attachment/type", "ipoib")
    for number, pod in enumerate(facts["pods"].values()):
        pod["root"]["links"]["net1"].update(kind="ipoib", mac=f"00:00:10:29:fe:80{':00' * 13}:0{number}")
        pod["rdma"]["ports"]["mlx5_0/1"]["link_layer"] = "InfiniBand"
        pod["rdma"]["gids"] = [
            {**gid, "type": "IB/RoCE v1", "gid": f"fe80{':0000' * 6}:000{number}"} for gid in pod["rdma"]["gids"][1:]
        ]
    return planned, facts


@pytest.mark.parametrize(
    ("path", "value", "failed", "seen"),
    [
        ("pods/w1/pod", "probe-w1", set(), ""),
        ("pods/w1/rdma/ports/mlx5_0\\1/link_layer", "Ethernet", {"link_layer"}, "Ethernet"),
        ("pods/w1/rdma/gids", [], {"gid"}, "no such GID"),
        ("pods/w1/root/links/net1/mac", "02:00:00:00:00:01", {"gid"}, "its hardware address has no GID"),
        ("pods/w1/root/links/net1/kind", "macvlan", {"interface"}, "net1, macvlan"),
    ],
)
def test_infiniband(path: str, value: t.Any, failed: t.Set[str], seen: str) -> None:
    planned, facts = on_infiniband()
    put(facts, path, value)
    checks = [check for check in check_fabric(planned, facts, EXPECT) if check.status == "failed"]
    assert {check.check for check in checks} == failed
    assert all(seen in check.seen for check in checks)


def test_a_vf_is_known_by_its_gid() -> None:
    """The plan has the device of the NIC that it is of."""
    planned, facts = plan(), probe()
    planned["networks"][0].update(cni="sriov", vfs=8, mode="")
    put(facts, "networks/rdma-net/attachment/type", "sriov")
    for pod in facts["pods"].values():
        pod["rdma"]["ports"]["mlx5_7/1"] = pod["rdma"]["ports"].pop("mlx5_0/1")
        pod["rdma"]["gids"] = [{**gid, "device": "mlx5_7"} for gid in pod["rdma"]["gids"]]
    passed = by_status(check_fabric(planned, facts, EXPECT), "passed")
    assert {"rdma_link", "link_layer", "gid", "interface", "attachment"} <= passed


def test_a_healthy_fabric_passes_every_check() -> None:
    checks = check_fabric(plan(), probe(), EXPECT)
    assert by_status(checks, "passed") == set(CHECK_TYPES) - {"policy_routes", "regression"}, (
        "of Spiderpool; of the report"
    )
    assert (counts(checks)["passed"], outcome(checks)) == (len(checks), "proved")


def test_the_release_of_an_adopted_operator_is_compared() -> None:
    planned, facts = {**plan(), "ipu_operator": {"release": "gc", "namespace": "default"}}, probe()
    facts["releases"][1].update(name="gc", version="1.1.0")
    (failed,) = [each for each in check_fabric(planned, facts, EXPECT) if each.status == "failed"]
    assert (failed.check, failed.subject, failed.seen) == ("release", "gc", "1.1.0, deployed")


LEAK = [{"address": "10.5.0.131", "pod": "default/a", "why": "no such pod runs"}]
TWICE = [{"address": "10.5.0.131", "pod": "a/b, a/c", "why": "two pods have it"}]
OVERLAP = {"pool_overlap": "failed"}
NO_EXEC = {"uid": None, "memlock": None, "error": "exec failed: no"}
NO_RDMA_EXEC = {"files": [], "classes": [], "ports": {}, "gids": [], "tools": [], "error": "exec failed: no"}
DEVICE_CHECKS = ("rdma_link", "link_layer", "rdma_files", "gid")
LOW = {"soft": "8388608", "hard": "8388608"}
NO_REPLY = {
    "sent": 2,
    "received": 0,
    "rtt_ms": None,
    "path_mtu": None,
    "supported": True,
    "seen": "2 packets transmitted, 0 received",
}
NO_PING = {**NO_REPLY, "supported": False, "seen": "ping: not found"}
MAIN = "pods/w1/root/main_routes"
GATEWAY = "pods/w1/gateways/0"
SILENT = {"network": "rdma-net", "address": "10.5.0.1", "ping": NO_REPLY, "mac": "02:00:00:00:00:01"}
IGNORED = {"name": "state-OFED", "state": "ignore"}
LATE = {"state": "notReady", "appliedStates": [IGNORED, {"name": "state-nv-ipam", "state": "notReady"}]}
VIPU = {"host": "10.5.0.20", "port": 8090}
SERVED = "10.5.0.20:8090:vipu-ctrl=vctl"
OTHER_LABEL = "head1:8090:vipu-ctrl=head1; no controller has vipu-ctrl=vctl; no node has vipu-ctrl=head1"
ADDRESS = "pods/w1/root/links/net1/addresses/0/address"
NO_FIGURE = {**probe()["traffic"][3], "rc": 1, "value": None}
NO_DMA_BUF = {**NO_FIGURE, "seen": "client: DMA-BUF is not supported on this GPU; server: waited for the client"}
NO_CUDA = {**NO_FIGURE, "seen": "client: Unsupported memory type; server: Unsupported memory type; tried 5 times"}


@pytest.mark.parametrize(
    ("path", "value", "failed", "seen"),
    [
        ("releases", [], {"release": "skipped"}, "not installed by Helm"),
        ("releases/0/status", "pending-upgrade", {"release": "failed"}, "26.4.1, pending-upgrade"),
        ("releases/0/version", "v26.4.1", {}, ""),
        ("releases/1/version", "1.1.0", {"release": "failed"}, "1.1.0, deployed"),
        ("kinds", ["NicClusterPolicy", "MacvlanNetwork", "IPUJob"], {"kinds": "failed"}, "NetworkAttachmentDefinition"),
        ("policy", None, {"policy": "failed"}, "no NicClusterPolicy"),
        ("policy", LATE, {"policy": "failed"}, "notReady: state-nv-ipam"),
        ("policy", {}, {"policy": "failed"}, "no state yet"),
        ("nodes/w1/ready", False, {"node": "failed"}, ""),
        ("nodes/w1/pressures", ["DiskPressure: full"], {"node": "failed"}, "Ready; DiskPressure: full"),
        ("networks/rdma-net/state", None, {"network": "failed"}, "no MacvlanNetwork"),
        ("networks/rdma-net/state", {"state": "notReady", "reason": "no IPAM"}, {"network": "failed"}, "no IPAM"),
        ("networks/rdma-net/attachment", None, {"attachment": "failed"}, "no NetworkAttachmentDefinition"),
        ("networks/rdma-net/attachment", "{broken", {"attachment": "failed"}, "no CNI configuration: {broken"),
        ("networks/rdma-net/attachment/master", "eth9", {"attachment": "failed"}, "master is 'eth9', planned 'eth1'"),
        ("networks/rdma-net/attachment/ipam", {"type": "whereabouts"}, {"attachment": "failed"}, "whereabouts"),
        ("networks/rdma-net/attachment/mtu", 9000, {"attachment": "failed"}, "mtu is 9000"),
        ("pods/w1/network_status", None, {}, ""),
        ("pods/w1/root/dns", NO_DNS, {"dns": "failed"}, "no answer (10.96.0.10)"),
        ("pods/w1/root/dns", {**NO_DNS, "servers": []}, {"dns": "failed"}, "no server in /etc/resolv.conf"),
        ("pods/w1/root/dns", {**NO_DNS, "rc": 127}, {"dns": "unproven"}, "neither getent nor nslookup"),
        ("pods/w1/root/dns", {**NO_DNS, "name": ""}, {"dns": "failed"}, "no output"),
        ("pods/w1/root/dns", {**DNS, "address": ""}, {"dns": "failed"}, "(10.96.0.10)"),
        ("addons/nfd", ["a/nfd", "b/nfd"], {"nfd": "failed"}, "a/nfd, b/nfd"),
        ("addons/multus", ["a/multus", "b/multus"], {"multus_once": "failed"}, "a/multus, b/multus"),
        ("pods_without/rdma-net", ["a/b on w1: why"], {"workloads": "failed"}, "a/b on w1: why"),
        ("addons/multus_nodes", ["w1"], {"multus_node": "failed"}, "no ready pod on this node"),
        ("addons/multus", [], {"multus_node": "skipped"}, "no DaemonSet"),
        ("pools", [], {"ip_pool": "failed"}, "there is none"),
        ("pools/0/cidr", "10.6.0.0/24", {"ip_pool": "failed"}, "there is none"),
        ("pools/0/leaked", LEAK, {"ip_pool": "failed"}, "14 free; leaked: 10.5.0.131 (no such pod runs: default/a)"),
        ("pools/0/leaked", LEAK * 5, {"ip_pool": "failed"}, "and 2 more; room for 11 pods"),
        ("pools/0/leaked", TWICE, {"ip_pool": "failed"}, "10.5.0.131 (two pods have it: a/b, a/c)"),
        ("pools/0/nodes/1/free", 0, {"ip_pool": "failed"}, "exhausted on w1"),
        ("pools/0/nodes/1/node", "w7", {"ip_pool": "failed"}, "no block for w1"),
        ("pools/0/capacity", 15, {"ip_pool": "failed"}, "room for 15 pods"),
        ("address_sources", [source()], OVERLAP, "x/old (nv-ipam, left over): 126 addresses, 10.5.0.128"),
        ("address_sources", [source(ours=False)], OVERLAP, "IPPool x/old (nv-ipam, not ours)"),
        ("address_sources", [source(ranges=["10.5.0.254-10.5.1.9"])], OVERLAP, "the address 10.5.0.254"),
        (ADDRESS, "10.5.0.127", {"address": "failed"}, "10.5.0.127 is outside 10.5.0.128 - 10.5.0.254"),
        (ADDRESS, "10.5.0.255", {"address": "failed"}, "outside"),
        (ADDRESS, "10.5.0.140", {"address": "failed"}, "10.5.0.140 is excluded"),
        (ADDRESS, "10.5.0.147", {"address": "failed"}, "10.5.0.147 is excluded (10.5.0.145 - 10.5.0.150)"),
        (ADDRESS, "fd00::1", {"address": "failed"}, "fd00::1 is outside"),
        (ADDRESS, "10.5.0.129", {"unique": "failed"}, "10.5.0.129: pod on cp1, pod on w1"),
        (ADDRESS, "10.5.0.12", {"address": "failed", "unique": "failed"}, "10.5.0.12: host w1, pod on w1"),
        (ADDRESS, "10.5.0.1", {"address": "failed", "unique": "failed"}, "10.5.0.1: the gateway, pod on w1"),
        (ADDRESS, "10.5.0.20", {"address": "failed", "unique": "failed"}, "10.5.0.20: V-IPU, pod on w1"),
        ("pods/w1/root/links/net1/addresses", [], {"address": "failed", "gid": "unproven"}, "no address"),
        ("pods/w1/root/links/net1/kind", "veth", {"interface": "failed"}, "net1, veth"),
        ("pods/w1/root/links/net1/mtu", 1450, {"mtu": "failed"}, "1450"),
        ("pods/w1/root/default_routes", ["net1"], {"default_route": "failed"}, "net1"),
        ("pods/w1/root/default_routes", ["eth0", "net1"], {"default_route": "failed"}, "eth0, net1"),
        ("pods/w1/root/default_routes", [], {"default_route": "failed"}, "no default route"),
        ("pods/w1/root/default_routes", None, {"default_route": "failed"}, "not readable"),
        ("pods/w1/root/memlock", LOW, {"memlock_root": "failed"}, "8 MiB"),
        ("pods/w1/user/memlock", LOW, {"memlock_user": "failed"}, "8 MiB"),
        ("pods/w1/user/uid", 0, {"memlock_user": "failed"}, "no limit was read as uid 1000"),
        ("pods/w1/user", NO_EXEC, {"memlock_user": "failed"}, "exec failed: no"),
        ("pairs", [], {"ping": "unproven", "full_size": "unproven"}, "two nodes"),
        (f"{MAIN}/1/dev", "eth0", {"main_routes": "failed"}, "no route 10.5.0.0/24 dev net1; 10.5.0.0/24 dev eth0"),
        (f"{MAIN}/0/dev", "net1", {"main_routes": "failed"}, "10.244.1.0/24 dev net1, which covers addresses of pods"),
        (f"{MAIN}/0", {"dst": "10.96.0.0/16", "dev": "net1"}, {"main_routes": "failed"}, "10.96.0.0/16 dev net1"),
        (f"{MAIN}/0", {"dst": "fd00::/16", "dev": "net1"}, {"main_routes": "failed"}, "fd00::/16 dev net1"),
        (f"{MAIN}/0", {"dst": "10.20.0.0/16", "dev": "net1"}, {}, ""),
        (MAIN, None, {"main_routes": "failed"}, "gave no JSON"),
        (f"{GATEWAY}/ping", NO_REPLY, {}, ""),
        (GATEWAY, {**SILENT, "mac": ""}, {"gateway": "failed"}, "10.5.0.1: no answer, and no MAC"),
        (GATEWAY, {**SILENT, "ping": NO_PING, "mac": ""}, {"gateway": "unproven"}, "ping: not found"),
        (GATEWAY, {**SILENT, "ping": NO_PING}, {}, ""),
        (f"{GATEWAY}/network", "rail-9", {"gateway": "failed"}, "10.5.0.1: no output"),
        ("pairs/0/full", NO_REPLY, {"full_size": "failed"}, "0 of 2 answered"),
        ("pairs/0/full", {**NO_REPLY, "path_mtu": 1450}, {"full_size": "failed"}, "the path's MTU is 1450"),
        ("pairs/0/full", {**NO_REPLY, "supported": False}, {"full_size": "unproven"}, "cannot forbid fragments"),
        ("pairs/0/full", None, {"full_size": "skipped"}, "no MTU"),
        ("pairs/0/small", NO_REPLY, {"ping": "failed"}, "0 of 2 answered"),
        (
            "pairs/0/small",
            {**NO_REPLY, "seen": "From 10.5.0.129 icmp_seq=1 Destination Host Unreachable"},
            {"ping": "failed"},
            "0 of 2 answered: From 10.5.0.129 icmp_seq=1 Destination Host Unreachable",
        ),
        ("pairs/0/small", NO_PING, {"ping": "unproven", "full_size": "unproven"}, "ping: not found"),
        ("pairs/0/small", None, {"ping": "failed", "full_size": "failed"}, "no output"),
        ("pods/w1/root/vipu/0", {**VIPU, "rc": 1, "seen": "refused"}, {"vipu": "failed"}, "not open: refused"),
        ("pods/w1/root/vipu/0", {**VIPU, "rc": 1, "seen": ""}, {"vipu": "failed"}, "no answer"),
        ("pods/w1/root/vipu/0", {**VIPU, "rc": 127, "seen": ""}, {"vipu": "unproven"}, "neither nc nor bash"),
        ("nodes/w1/labels", {"vipu-ctrl": "other"}, {"ipu_labels": "failed"}, "vipu-ctrl=other"),
        ("nodes/w1/labels", {}, {"ipu_labels": "failed"}, "vipu-ctrl=(none)"),
        ("ipu/controllers", ["head1:8090:vipu-ctrl=head1"], {"ipu_labels": "failed"}, OTHER_LABEL),
        ("ipu/controllers/0", "[fd00::2]:8091:vipu-ctrl=vctl", {}, ""),
        ("ipu/controllers", [], {"ipu_labels": "failed"}, "empty; no controller has vipu-ctrl=vctl"),
        ("ipu/controllers", [SERVED, "b:8090:k=b"], {"ipu_labels": "failed"}, f"{SERVED}, b:8090:k=b; no node has k=b"),
        ("ipu/controllers", [SERVED, "b:8090:nvidia.com/gpu.present=true"], {}, ""),
        ("ipu/controllers", None, {"ipu_labels": "unproven"}, "ConfigMap of V-IPU controllers could not be read"),
        ("ipu/deployments/1/ready", 0, {"ipu_operator": "failed"}, "ipu-operator-vipu-proxy 0 of 1 ready"),
        ("ipu/deployments", [], {"ipu_operator": "failed"}, "no Deployment"),
        ("webhook", {"passed": False, "seen": "x509: expired"}, {"webhook": "failed"}, "x509: expired"),
        ("ipu/ignored", ["ValidatingWebhookConfiguration x"], {"webhook": "failed"}, "left failurePolicy Ignore in V"),
        ("ipu/proxy", {"healthy": False, "seen": "503"}, {"vipu_proxy": "failed"}, "503"),
        ("ipu/certificate/days", 14, {}, ""),
        ("ipu/certificate/days", 13, {"ipu_certificate": "failed"}, "13 days, until 2027-11-21"),
        ("ipu/certificate/days", -1, {"ipu_certificate": "failed"}, "-1 days"),
        ("ipu/certificate", {"end": "", "days": None}, {"ipu_certificate": "failed"}, "no certificate in the Secret"),
        ("nodes/w1/allocatable/rdma-net/count", 0, {"rdma_resource": "failed"}, "rdma/shared: 0"),
        ("pods/w1/rdma/ports/mlx5_0\\1/state", "DOWN", {"rdma_link": "failed"}, "mlx5_0/1 DOWN"),
        ("pods/w1/rdma/ports/mlx5_0\\1/link_layer", "InfiniBand", {"link_layer": "failed"}, "InfiniBand"),
        ("pods/w1/rdma/ports", {}, {"rdma_link": "failed", "link_layer": "failed"}, "no port of mlx5_0"),
        ("pods/w1/rdma/files", [], {"rdma_files": "failed"}, "no /dev/infiniband"),
        ("pods/w1/rdma/files", ["uverbs0"], {"rdma_files": "failed"}, "uverbs0"),
        ("pods/w1/rdma", NO_RDMA_EXEC, dict.fromkeys(DEVICE_CHECKS, "failed"), "exec failed: no"),
        ("pods/w1/rdma/gids", [], {"gid": "failed"}, "no GID of this address"),
        ("pods/w1/rdma/gids/1/type", "IB/RoCE v1", {"gid": "failed"}, "only as IB/RoCE v1"),
        ("traffic", [], dict.fromkeys([*RDMA_TESTS, "gpu_bandwidth"], "unproven"), "two nodes"),
        ("traffic/0/missing", True, {"rping": "unproven"}, "rping is not in the image tools"),
        ("traffic/0/value", 4.0, {"rping": "failed"}, "4 pings"),
        ("traffic/1/value", 40.0, {"write_bandwidth": "failed"}, "40 Gb/s"),
        ("traffic/1/value", None, {"write_bandwidth": "failed"}, ""),
        ("traffic/2/value", 9.5, {"read_latency": "failed"}, "9.5 us"),
        ("traffic/2/rc", 1, {"read_latency": "failed"}, ""),
        ("traffic/3/value", 61.2, {"gpu_bandwidth": "failed"}, "61.2 Gb/s"),
        ("traffic/3", NO_DMA_BUF, {"gpu_bandwidth": "failed"}, "client: DMA-BUF is not supported on this GPU"),
        ("traffic/3", NO_CUDA, {"gpu_bandwidth": "unproven"}, "ib_write_bw of the image tools has no CUDA"),
        ("host_traffic", [], {"host_traffic": "unproven"}, "no IPU node"),
        ("host_traffic/0/value", 12.0, {"host_traffic": "failed"}, "12.0 Gb/s"),
        ("host_traffic/0/missing", True, {"host_traffic": "unproven"}, "gc-hosttraffictest is not in the image"),
    ],
)  # fmt: skip
def test_a_fault_is_found_by_its_own_check(path: str, value: t.Any, failed: t.Dict[str, str], seen: str) -> None:
    facts = probe()
    put(facts, path, value)
    if path == ADDRESS:
        put(facts, "pods/w1/rdma/gids/1/gid", gid_of(value))
    checks = check_fabric(plan(), facts, EXPECT)
    bad = [check for check in checks if check.status != "passed"]
    assert {check.check: check.status for check in bad} == failed
    assert any(seen in check.seen for check in bad) or not failed
    assert all(bool(check.next) == (check.status in ("failed", "unproven")) for check in bad)


def test_a_node_that_is_short_of_something_gets_its_own_advice() -> None:
    facts = probe()
    facts["nodes"]["w1"]["pressures"] = ["DiskPressure: kubelet has disk pressure"]
    (check,) = [each for each in check_fabric(plan(), facts, EXPECT) if each.status == "failed"]
    assert (check.check, check.node) == ("node", "w1")
    assert check.next.startswith("Free what the node is short of: for DiskPressure, disk space")


def test_a_host_that_has_not_joined_is_one_finding_with_one_advice() -> None:
    """Neither its pool, nor its labels, nor an image is at fault."""
    facts = probe()
    del facts["nodes"]["w1"]
    facts["pods"]["w1"].update(state="failed", reason="the cluster has no node of this name")
    facts["pools"][0]["nodes"] = [block for block in facts["pools"][0]["nodes"] if block["node"] != "w1"]
    bad = [check for check in check_fabric(plan(), facts, EXPECT) if check.status == "failed"]
    assert {"pod", "ipu_labels"} <= {check.check for check in bad}
    assert "ip_pool" not in {check.check for check in bad}
    advice = {check.next for check in bad if check.check in ("pod", "ipu_labels")}
    assert [each[:30] for each in advice] == ["Run site, which joins the host"]


def test_labels_of_nodes_that_are_not_proved() -> None:
    planned = plan()
    planned["networks"] = []
    narrowed, facts = narrow_plan(planned, ["cp1"]), probe()
    assert set(narrowed["hosts"]) == {"cp1"}
    labels = label_checks(narrowed, facts["nodes"])
    checks = [*labels, *controller_checks(narrowed, facts["nodes"], facts["ipu"]["controllers"])]
    assert [(check.node or check.subject, check.status) for check in checks] == [
        ("cp1", "passed"),
        ("ipu-operator-vipu-controllers", "passed"),
    ]


@pytest.mark.parametrize(
    ("controllers", "statuses"),
    [(None, ["skipped"]), ([], ["skipped"]), ([SERVED], ["skipped", "passed"]), (["a:1:k=a"], ["skipped", "failed"])],
)
def test_controllers_of_the_operator_alone(controllers: t.Optional[t.List[str]], statuses: t.List[str]) -> None:
    planned, facts = plan(), probe()
    planned["vipu"]["node_labels"] = {}
    facts["ipu"]["controllers"] = controllers
    found = [check for check in check_fabric(planned, facts, EXPECT) if check.check == "ipu_labels"]
    assert [check.status for check in found] == statuses


def test_what_follows_from_an_edited_network_is_no_fault_of_hosts_and_switches() -> None:
    facts = probe()
    facts["networks"]["rdma-net"]["attachment"]["mtu"] = 1400
    put(facts, "pairs/0/full", NO_REPLY)
    bad = {check.check: check for check in check_fabric(plan(), facts, EXPECT) if check.status == "failed"}
    assert set(bad) == {"attachment", "full_size"}
    assert "ipu.fabric.fabric" in bad["attachment"].next
    assert bad["full_size"].next.startswith("First act on `Attachment matches the plan` of this network")


def test_full_size_packets_that_fail_where_small_ones_do_are_no_fault_of_the_mtu() -> None:
    facts = probe()
    put(facts, "pairs/0/small", NO_REPLY)
    put(facts, "pairs/0/full", NO_REPLY)
    bad = {check.check: check.next for check in check_fabric(plan(), facts, EXPECT) if check.status == "failed"}
    assert set(bad) == {"ping", "full_size"}
    assert bad["full_size"] == "First act on `Pods reach each other` of this pair: this may follow from it."


def test_a_nic_that_was_down_on_its_host_is_the_cause_that_is_named() -> None:
    planned, facts = plan(), probe()
    planned["hosts"]["w1"]["links"]["rdma-net"]["down"] = "down"
    for path in ("pairs/0/small", "pairs/0/full", "pods/w1/gateways/0/ping"):
        put(facts, path, NO_REPLY)
    put(facts, "pods/w1/gateways/0/mac", "")
    bad = {check.check: check.next for check in check_fabric(planned, facts, EXPECT) if check.status == "failed"}
    nic = planned["hosts"]["w1"]["links"]["rdma-net"]["netdev"]
    assert bad == dict.fromkeys(
        ("gateway", "ping", "full_size"),
        f"First bring up {nic} of w1, which was down when the plan was made: check the cable and the switch port, then"
        f" `ip link set {nic} up`.",
    )


@pytest.mark.parametrize(
    ("problems", "step"),
    [
        ([], "kubectl -n kube-system get pods"),
        (["pod coredns-1 on w1: readiness"], "kubectl -n kube-system get pods"),
        (
            ["CrashLoopBackOff", 'log: [FATAL] plugin/loop: Loop (127.0.0.1:4 -> :53) detected for zone "."'],
            "resolvConf",
        ),
    ],
)
def test_why_names_do_not_resolve(problems: t.List[str], step: str) -> None:
    facts = probe()
    facts["dns_problems"] = problems
    put(facts, "pods/w1/root/dns", NO_DNS)
    (check,) = [check for check in check_fabric(plan(), facts, EXPECT) if check.status == "failed"]
    assert check.check == "dns"
    assert check.seen == "; ".join(["no answer (10.96.0.10)", *problems])
    assert step in check.next


@pytest.mark.parametrize("exclusive", ["", "ConfigMap kube-system/cilium-config"])
def test_what_cilium_has_renamed_is_no_fault_of_multus(exclusive: str) -> None:
    """multus-cni#972: kube-multus-ds restarts, and Cilium renames its file again."""
    facts = probe()
    facts["exclusive_cilium"] = exclusive
    facts["pods_without"]["rdma-net"] = ["a/b on w1: multus did not attach it"]
    put(facts, "pods/w1/network_status", None)
    del facts["pods"]["w1"]["root"]["links"]["net1"]
    put(facts, "pods/cp1/root/links/net1/mtu", 1400)
    bad = {(check.check, check.node): check.next for check in check_fabric(plan(), facts, EXPECT)
           if check.status == "failed"}  # fmt: skip
    told = {where for where, step in bad.items() if "cni-exclusive: true" in step and "cni.exclusive to false" in step}
    lost = {(check, "w1") for check in ("multus", "interface", "address", "mtu")} | {("workloads", "")}
    assert lost | {("mtu", "cp1")} <= set(bad)
    assert lost <= told if exclusive else not told
    assert ("mtu", "cp1") not in told


def bare_cluster() -> Facts:
    """A cluster of others in which site has not run yet."""
    facts = probe()
    facts.update(kinds=["IPUJob"], releases=facts["releases"][1:], pools=[], policy=None, address_sources=[], pairs=[])
    facts["addons"].update(multus=[], multus_nodes=[])
    facts["networks"]["rdma-net"].update(state=None, attachment=None)
    for pod in facts["pods"].values():
        pod["network_status"] = []
        pod["root"].update(links={}, main_routes=[])
    return facts


def test_before_site_everything_says_to_run_it() -> None:
    """There is no pod of multus to restart, no pool to enlarge, and no release with a history."""
    checks = check_fabric(plan(), bare_cluster(), EXPECT)
    open_ones = {check.check: check for check in checks if check.status in ("failed", "unproven")}
    of_fabric = {"release", "kinds", "policy", "network", "attachment", "ip_pool", "unique"}
    assert {*of_fabric, "multus", "interface", "address", "main_routes", "mtu", "ping"} <= set(open_ones)
    for name in (*of_fabric, "multus", "interface", "address", "main_routes", "mtu", "ping"):
        assert open_ones[name].next == NOT_INSTALLED


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kinds", ["MacvlanNetwork"]),
        ("releases", [{"name": "network-operator", "version": "26.4.1", "status": "failed"}]),
        ("networks/rdma-net/attachment", {"type": "macvlan"}),
    ],
)
def test_where_a_part_is_installed_each_check_has_its_own_advice(path: str, value: t.Any) -> None:
    facts = bare_cluster()
    put(facts, path, value)
    checks = check_fabric(plan(), facts, EXPECT)
    assert all(check.next != NOT_INSTALLED for check in checks)


def test_nodes_of_the_inventory_that_the_cluster_lacks_keep_their_advice() -> None:
    facts = bare_cluster()
    del facts["nodes"]["w1"]
    found = [check for check in check_fabric(plan(), facts, EXPECT) if check.seen == NO_NODE[0]]
    assert found
    assert all(check.next == NO_NODE[1] for check in found if check.status == "failed")


@pytest.mark.parametrize(
    ("path", "value", "cause"),
    [
        ("addons/multus_nodes", ["cp1"], "multus_node"),
        ("pods/w1/network_status", [], "multus"),
        ("pods/w1/network_status", [{"name": "default/rdma-net"}], "interface"),
    ],
)
def test_a_pod_without_its_network_gets_the_advice_of_the_cause(path: str, value: t.Any, cause: str) -> None:
    """Not to compare an address, set an MTU and remove routes as well."""
    facts = probe()
    facts["pods"]["w1"]["root"].update(links={}, main_routes=[])
    put(facts, "pods/w1/network_status", [])
    put(facts, path, value)
    bad = {check.check: check for check in check_fabric(plan(), facts, EXPECT) if check.status == "failed"}
    followers = {"multus", "interface", "address", "main_routes", "mtu"} & set(bad) - {cause}
    assert {"address", "main_routes", "mtu"} <= followers
    assert bad[cause].next == CHECK_TYPES[cause].next_step
    first = f"First act on `{CHECK_TYPES[cause].title}` of this node"
    assert {check for check in bad if bad[check].next.startswith(first)} == followers


@pytest.mark.parametrize("ipam", ["whereabouts", "spiderpool"])
@pytest.mark.parametrize(
    ("change", "status", "seen"),
    [
        ({"free": 9}, "passed", "127 usable - 5 excluded - 2 allocated = 9 free"),
        ({"free": 0}, "failed", "0 free; exhausted"),
        ({"leaked": LEAK}, "failed", "leaked: 10.5.0.131"),
    ],
)
def test_a_pool_for_all_nodes(ipam: str, change: Facts, status: str, seen: str) -> None:
    planned, facts = plan(), probe()
    planned["networks"][0]["ipam"] = {"type": ipam}
    facts["pools"][0].update({"ipam": ipam, "nodes": [], "usable": 127, "excluded": 5, "capacity": 122, **change})
    (found,) = (check for check in check_fabric(planned, facts, EXPECT) if check.check == "ip_pool")
    assert (found.status, seen in found.seen) == (status, True)


@pytest.mark.parametrize(
    ("allocated", "status"),
    [
        (1, []),
        (2, ["failed"]),  # a pod still has an address that nv-ipam may give out
    ],
)
def test_a_pool_that_another_ipam_has_left_behind(allocated: int, status: t.List[str]) -> None:
    facts = probe()
    left = {"name": "10.5.0.0-24", "ipam": "whereabouts", "allocated": allocated, "leaked": LEAK, "nodes": []}
    facts["pools"].append({**facts["pools"][0], **left})
    found = [check for check in check_fabric(plan(), facts, EXPECT) if check.check == "ip_pool"]
    assert [check.status for check in found if check.subject == "10.5.0.0-24"] == status


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, "passed"),
        ({"ours": True}, "failed"),
        ({"stores": ["lab 10.5.0.0/24"]}, "failed"),
        ({"stores": ["10.5.0.0/25"]}, "failed"),
        ({"ipam": "host-local", "stores": []}, "failed"),
    ],
)
def test_attachments_with_one_store_of_whereabouts_are_one_pool(change: Facts, status: str) -> None:
    planned, facts = plan(), probe()
    planned["networks"][0]["ipam"] = {"type": "whereabouts", "range": "10.5.0.0/24"}
    copy_of_it = source("copy", "NetworkAttachmentDefinition", ours=False, ipam="whereabouts", stores=["10.5.0.0/24"])
    facts["address_sources"] = [{**copy_of_it, **change}]
    (found,) = (check for check in check_fabric(planned, facts, EXPECT) if check.check == "pool_overlap")
    assert found.status == status


def test_an_address_of_two_pods_leaves_as_much_room() -> None:
    facts = probe()
    facts["pools"][0]["leaked"] = TWICE
    (found,) = (check for check in check_fabric(plan(), facts, EXPECT) if check.check == "ip_pool")
    assert found.seen.endswith("; leaked: 10.5.0.131 (two pods have it: a/b, a/c)")


def test_whereabouts_makes_its_pool_for_the_first_pod() -> None:
    planned, facts = plan(), probe()
    planned["networks"][0]["ipam"] = {"type": "whereabouts"}
    facts["pools"] = []
    (found,) = (check for check in check_fabric(planned, facts, EXPECT) if check.check == "ip_pool")
    assert (found.status, "before the first address" in found.seen) == ("skipped", True)


@pytest.mark.parametrize(
    ("device", "classes", "seen"),
    [
        ("", [], "eth1 has no infiniband/ below its PCI device"),
        ("mlx5_0", [], "the node's RDMA devices can't be seen"),
        ("mlx5_0", ["infiniband/mlx5_1"], "the node has no mlx5_0 (of eth1) in /sys/class/infiniband"),
        ("mlx5_0", ["infiniband/mlx5_0", "infiniband_verbs/uverbs0", "misc/rdma_cm"], "module ib_umad is not loaded"),
        ("mlx5_0", ["infiniband/mlx5_0"], "module ib_uverbs, ib_umad, rdma_ucm is not loaded"),
        ("mlx5_0", None, "the device plugin does not select it"),
    ],
)
def test_where_the_way_to_a_resource_ends(device: str, classes: t.Optional[t.List[str]], seen: str) -> None:
    planned, facts = plan(), probe()
    planned["hosts"]["w1"]["links"]["rdma-net"]["device"] = device
    put(facts, "nodes/w1/allocatable/rdma-net/count", 0)
    if classes is not None:
        put(facts, "pods/w1/rdma/classes", classes)
    checks = check_fabric(planned, facts, EXPECT)
    (found,) = (check for check in checks if check.check == "rdma_resource" and check.node == "w1")
    assert found.status == "failed"
    assert seen in found.seen


def test_a_pod_that_does_not_start_leaves_unproven_what_it_would_have_shown() -> None:
    facts = probe()
    facts["pods"]["w1"].update(state="failed", reason="ImagePullBackOff, img: not found")
    for container in ("root", "user", "rdma"):
        del facts["pods"]["w1"][container]
    facts.update(pairs=[], traffic=[])
    checks = [check for check in check_fabric(plan(), facts, EXPECT) if check.node == "w1"]
    assert by_status(checks, "failed") == {"pod"}
    assert next(check.seen for check in checks if check.check == "pod") == "ImagePullBackOff, img: not found"
    assert by_status(checks, "unproven") == {
        "dns", *PER_POD, "gateway", "memlock_root", "memlock_user", "rdma_link", "link_layer", "rdma_files", "gid",
        "gpudirect", "gdrcopy", "gpu_bandwidth",
    }  # fmt: skip


def test_rdma_of_a_second_pod_is_that_of_its_node() -> None:
    facts = probe()
    facts["pods"]["w1 (second pod)"] = {**pod("w1"), "pod": "second-w1"}
    checks = [check for check in check_fabric(plan(), facts, EXPECT) if check.node == "w1 (second pod)"]
    assert {"rdma_resource", "rdma_link", "gid", "memlock_user"} <= by_status(checks, "passed")
    assert not by_status(checks, "failed")


def test_without_rdma_hardware_checks_are_skipped_and_never_passed() -> None:
    planned, facts = plan(), probe()
    planned["networks"][0].update(rdma=False)
    facts.update(traffic=[], host_traffic=[])
    for each in facts["pods"].values():
        del each["rdma"]
    checks = check_fabric(planned, facts, EXPECT)
    rdma = {name for name, kind in CHECK_TYPES.items() if kind.area == "rdma"}
    assert by_status(checks, "skipped") == {*rdma, "gpudirect", "gpu_bandwidth"}
    assert not by_status(checks, "failed")
    assert {check.seen for check in checks if check.status == "skipped"} == {"planned without RDMA"}


def test_without_ipu_nothing_of_it_counts() -> None:
    facts = probe()
    facts.update(ipu={}, webhook=None, host_traffic=[], kinds=facts["kinds"][:3], releases=facts["releases"][:1])
    checks = check_fabric(plan(), facts, EXPECT._replace(ipu=False))
    assert {check.status for check in checks} == {"passed"}
    told = " ".join([table(checks), *(CHECK_TYPES[check.check].next_step for check in checks)])
    assert "ipu" not in told.lower().replace("ipu.fabric", "")
    unprobed = check_fabric(plan(), {**facts, "probed": False, "reason": "why"}, EXPECT._replace(ipu=False))
    assert {check.check for check in unprobed} == {*CHECK_TYPES} - OF_IPUS


def test_an_image_without_ip_proves_nothing() -> None:
    facts = probe()
    facts["pods"]["w1"]["root"].update(links=None, tool_missing=True)
    assert by_status(check_fabric(plan(), facts, EXPECT), "unproven") == {*PER_POD, "gateway", "gid"}


def test_an_exec_that_failed_fails() -> None:
    facts = probe()
    facts["pods"]["w1"]["root"].update(links=None, error="exec failed: 500", default_routes=None)
    del facts["pods"]["w1"]["rdma"]
    failed = [check for check in check_fabric(plan(), facts, EXPECT) if check.status == "failed"]
    assert {check.check for check in failed} == {*PER_POD, "gateway"}
    assert {check.seen for check in failed} == {"exec failed: 500"}


@pytest.mark.parametrize(
    ("limit", "asked", "status", "seen"),
    [
        ("unlimited", "unlimited", "passed", "unlimited"),
        ("8388608", "8388608", "passed", "8 MiB (expectation lowered from unlimited)"),
        ("unlimited", "8388608", "passed", "unlimited (expectation lowered from unlimited)"),
        ("65536", "8388608", "failed", "64 KiB"),
        ("8388608", "unlimited", "failed", "8 MiB"),
    ],
)
def test_a_lowered_expectation_is_said(limit: str, asked: str, status: str, seen: str) -> None:
    facts = probe()
    facts["pods"]["w1"]["user"]["memlock"] = {"soft": limit, "hard": limit}
    checks = check_fabric(plan(), facts, EXPECT._replace(memlock=asked))
    found = next(check for check in checks if check.check == "memlock_user" and check.node == "w1")
    assert (found.status, found.seen) == (status, seen)


def test_check_mode_skips_everything() -> None:
    checks = check_fabric({}, {"probed": False, "reason": "check mode"}, Expect())
    assert [check.check for check in checks] == list(CHECK_TYPES)
    assert {(check.status, check.seen) for check in checks} == {("skipped", "check mode")}


def test_ipv6() -> None:
    planned, facts = plan(), probe()
    subnet = {
        "cidr": "fd00:5::/64", "gateway": "fd00:5::1", "range_start": "fd00:5::8000:0:0:0",
        "range_end": "fd00:5::ffff:ffff:ffff:ffff", "exclude": [], "needed": 0,
    }  # fmt: skip
    planned["networks"][0].update(pool=None, pools=[], subnet=subnet, subnets=[subnet])
    for node, address in (("cp1", "fd00:5::8000:0:0:1"), ("w1", "fd00:5::7fff:0:0:1")):
        facts["pods"][node]["root"]["links"]["net1"]["addresses"] = [{"address": address, "prefix": 64}]
    checks = [check for check in check_fabric(planned, facts, EXPECT) if check.check == "address"]
    assert [(check.node, check.status) for check in checks] == [("cp1", "passed"), ("w1", "failed")]


@pytest.mark.parametrize(
    ("addresses", "fault"),
    [
        (["10.5.0.160", "fd00:5::9"], ""),
        (["fd00:5::9", "10.5.0.160"], ""),
        (["10.5.0.160"], "no address of fd00:5::8 - fd00:5::f"),
        (["10.5.0.160", "fd00:5::a"], "fd00:5::a is excluded"),
        (["10.5.0.160", "fd00:5::7"], "fd00:5::7 is outside fd00:5::8 - fd00:5::f"),
        (["10.5.0.3", "fd00:5::9"], "10.5.0.3 is outside"),
    ],
)
def test_two_families(addresses: t.List[str], fault: str) -> None:
    planned, facts = plan(), probe()
    network = planned["networks"][0]
    network["subnets"] = [
        network["subnet"],
        {"cidr": "fd00:5::/64", "gateway": "", "range_start": "fd00:5::8", "range_end": "fd00:5::f",
         "exclude": ["fd00:5::a/128"], "needed": 0},
    ]  # fmt: skip
    network["pools"] = [network["pool"], {"exclusions": []}]
    given = [{"address": address, "prefix": 64} for address in addresses]
    facts["pods"]["w1"]["root"]["links"]["net1"]["addresses"] = given
    found = next(c for c in check_fabric(planned, facts, EXPECT) if c.check == "address" and c.node == "w1")
    assert found.status == ("failed" if fault else "passed")
    assert fault in found.seen
    assert found.expected.count(" - ") == 2


def test_a_pod_with_the_other_address_of_a_host() -> None:
    planned, facts = plan(), probe()
    link = planned["hosts"]["cp1"]["links"]["rdma-net"]
    link["addresses"] = [{"address": link["address"], "prefix": 24}, {"address": "fd00:5::9", "prefix": 64}]
    facts["pods"]["w1"]["root"]["links"]["net1"]["addresses"].append({"address": "fd00:5::9", "prefix": 64})
    found = next(check for check in check_fabric(planned, facts, EXPECT) if check.check == "unique")
    assert (found.status, found.seen) == ("failed", "fd00:5::9: host cp1, pod on w1")


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ("unlimited", "unlimited"),
        ("0", "0 B"),
        ("1000", "1000 B"),
        ("65536", "64 KiB"),
        ("8388608", "8 MiB"),
        ("1099511627776", "1024 GiB"),
    ],
)
def test_readable(limit: str, text: str) -> None:
    assert readable(limit) == text


def test_every_check_has_a_place_and_a_next_step() -> None:
    assert {kind.area for kind in CHECK_TYPES.values()} == set(AREAS)
    assert all(kind.next_step.endswith(".") and len(kind.title) <= 27 for kind in CHECK_TYPES.values())


GPU = {"kernel": "6.8.0-31-generic", "driver": OPEN, "modules": ["nvidia"]}


@pytest.mark.parametrize(
    ("way", "gpu", "status", "seen"),
    [
        ("peermem", {}, "failed", "nvidia loaded"),
        ("peermem", {"modules": []}, "failed", "no module of NVIDIA loaded"),
        ("peermem", {"modules": ["nvidia", "nvidia_peermem"]}, "passed", "nvidia, nvidia_peermem loaded"),
        ("dma-buf", {}, "passed", "kernel 6.8.0-31-generic, NVRM version: NVIDIA UNIX Open Kernel Module"),
        ("dma-buf", {"kernel": "5.12.0"}, "passed", "kernel 5.12.0"),
        ("dma-buf", {"kernel": "5.4.0-200-generic"}, "failed", "kernel 5.4.0-200-generic"),
        ("dma-buf", {"driver": CLOSED}, "failed", "NVIDIA UNIX x86_64 Kernel Module"),
        ("dma-buf", {"driver": CLOSED, "modules": ["nvidia_peermem"]}, "passed", "nvidia_peermem loaded"),
        ("dma-buf", {"driver": ""}, "failed", "no driver of NVIDIA"),
        ("dma-buf", {"kernel": ""}, "failed", "no output"),
    ],
)
def test_gpudirect(way: str, gpu: Facts, status: str, seen: str) -> None:
    facts = probe()
    facts["pods"]["w1"]["root"]["gpu"] = {**GPU, **gpu}
    expect = EXPECT._replace(gpu_rdma=way)
    found = next(c for c in check_fabric(plan(), facts, expect) if c.check == "gpudirect" and c.node == "w1")
    assert (found.status, bool(found.next)) == (status, status == "failed")
    assert seen in found.seen


def test_only_nodes_with_gpus_are_asked_for_them() -> None:
    facts = probe()
    facts["nodes"]["cp1"]["labels"] = {}
    facts["pods"]["cp1"]["root"]["gpu"] = {"kernel": "6.8.0", "driver": "", "modules": []}
    facts["pods"]["w1 (second pod)"] = {**pod("w1"), "pod": "second-w1"}
    found = [check for check in check_fabric(plan(), facts, EXPECT) if check.check in ("gpudirect", "gdrcopy")]
    assert {(check.node, check.status) for check in found} == {("w1", "passed")}


def test_two_networks_may_share_a_subnet_but_nobody_else() -> None:
    planned, facts = plan(), probe()
    second = {**planned["networks"][0], "name": "rail-b"}
    planned["networks"].append(second)
    pod_of = facts["pods"]["w1"]
    pod_of["networks"] = ["rdma-net", "rail-b"]
    routes = pod_of["root"]["main_routes"]
    routes.append({"dst": "10.5.0.0/24", "dev": "net2"})
    assert route_faults(planned, planned["networks"][0], pod_of, routes) == []
    assert route_faults(planned, second, pod_of, routes) == []
    routes.append({"dst": "10.5.0.0/24", "dev": "eth0"})
    assert route_faults(planned, second, pod_of, routes) == ["10.5.0.0/24 dev eth0"]


def test_router_advertisements_are_named_as_the_cause() -> None:
    """The address that a pod makes of them is nobody else's, and no change of the IPAM takes the default route away."""
    facts = probe()
    root = facts["pods"]["w1"]["root"]
    root["links"]["net1"]["addresses"].insert(0, SLAAC)
    root["main_routes"].append({"dst": "fd14:231f:7507:c150::/64", "dev": "net1"})
    root.update(default_routes=["eth0", "net1"], advertised_routes=["net1"])
    found = {check.check: check for check in check_fabric(plan(), facts, EXPECT) if check.status == "failed"}
    assert set(found) == {"address", "default_route"}
    assert found["address"].seen == f"10.5.0.137, {SLAAC['address']} (by router advertisement)"
    assert found["default_route"].seen == "eth0, net1 (by router advertisement)"
    assert all("router advertisements off" in check.next for check in found.values())
    assert all("accept_ra: false" in check.next for check in found.values())
    assert ends(facts["pods"], "rdma-net")["w1"].address == "10.5.0.137"
    assert [each.status for each in check_fabric(plan(), facts, EXPECT) if each.check == "unique"] == ["passed"]
    root["links"]["net1"]["addresses"].pop()
    (found_now,) = [c for c in check_fabric(plan(), facts, EXPECT) if (c.check, c.node) == ("address", "w1")]
    assert found_now.seen.startswith("no address"), "one of routers is none of the plan"


def test_an_earlier_probe_does_not_say_where_a_default_route_is_from() -> None:
    facts = probe()
    root = facts["pods"]["w1"]["root"]
    root["links"]["net1"]["addresses"].append(SLAAC)
    root["default_routes"] = ["eth0", "net1"]
    (found,) = [check for check in check_fabric(plan(), facts, EXPECT) if check.check == "default_route" and check.next]
    assert (found.seen, "accept_ra" in found.next) == ("eth0, net1 (by router advertisement)", True)


def test_a_default_route_of_the_ipam_is_not_the_routers() -> None:
    facts = probe()
    facts["pods"]["w1"]["root"].update(default_routes=["eth0", "net1", "net2"], advertised_routes=["net2"])
    (found,) = [check for check in check_fabric(plan(), facts, EXPECT) if check.status == "failed"]
    assert (found.seen, "IPAM" in found.next) == ("eth0, net1, net2 (by router advertisement)", True)


def test_a_gateway_that_nobody_could_ask_for_says_why() -> None:
    planned, facts = plan(), probe()
    facts["pods"]["w1"].update(gateways=[], gateways_error="timed out after 38 s")
    found = next(check for check in check_fabric(planned, facts, EXPECT) if check.status == "failed")
    assert (found.check, found.seen) == ("gateway", "10.5.0.1: no output (timed out after 38 s)")


# Spiderpool


def defaults(gateway: str, dev: str) -> Facts:
    return {"100": [{"gateway": "169.254.1.1", "dev": "eth0"}], "101": [{"gateway": gateway, "dev": dev}]}


def spiderpool() -> t.Tuple[Facts, Facts]:
    """The same fabric, healthy, with Spiderpool in the network operator's place."""
    ipam = {"type": "spiderpool", "default_ipv4_ippool": ["rdma-net-v4"]}
    planned, facts = plan(), probe()
    planned["releases"].update(stack="spiderpool", spiderpool="1.2.2", network_operator="")
    planned["networks"][0].update(ipam=ipam, pool=None, pools=[])
    facts["kinds"] = ["SpiderIPPool", "SpiderMultusConfig", "NetworkAttachmentDefinition", "IPUJob"]
    facts["releases"][0] = {"name": "spiderpool", "version": "1.2.2", "status": "deployed"}
    macvlan = {**facts["networks"]["rdma-net"]["attachment"], "ipam": ipam}
    chain = {"cniVersion": "0.3.1", "plugins": [macvlan, {"type": "coordinator"}]}
    facts.update(policy=None, address_sources=[], networks={"rdma-net": {"state": {}, "attachment": chain}})
    for node, address in ADDRESSES.items():
        rules = {"all": "local", address: "101"}
        facts["pods"][node]["root"]["policy"] = {"rules": rules, "defaults": defaults("10.5.0.1", "net1")}
    return planned, facts


def test_a_healthy_spiderpool_passes_every_check() -> None:
    checks = check_fabric(*spiderpool(), EXPECT)
    assert by_status(checks, "passed") == set(CHECK_TYPES) - {"policy", "regression"}, "there is no NicClusterPolicy"
    assert (counts(checks)["passed"], outcome(checks)) == (len(checks), "proved")


def test_networks_on_one_subnet_have_pools_of_their_own() -> None:
    planned, facts = spiderpool()
    ipam = {"type": "spiderpool", "default_ipv4_ippool": ["rail-b-v4"]}
    planned["networks"].append({**planned["networks"][0], "name": "rail-b", "ipam": ipam})
    facts["pools"].append({**facts["pools"][0], "name": "rail-b-v4"})
    facts["pools"][0]["name"] = "rdma-net-v4"
    found = [(check.network, check.subject) for check in check_pools(planned, facts)]
    assert found == [("rdma-net", "rdma-net-v4"), ("rail-b", "rail-b-v4")]


POLICY = "pods/w1/root/policy"


@pytest.mark.parametrize(
    ("path", "value", "failed", "seen"),
    [
        (f"{POLICY}/rules", {"all": "local"}, {"policy_routes": "failed"}, "no rule from 10.5.0.137"),
        (f"{POLICY}/rules", {"10.5.0.137": "100"}, {"policy_routes": "failed"}, "lookup 100: default via 169.254.1.1"),
        (f"{POLICY}/defaults", {}, {"policy_routes": "failed"}, "lookup 101: no default route"),
        (f"{POLICY}/defaults", defaults("10.6.0.1", "net1"), {"policy_routes": "failed"}, "via 10.6.0.1 dev net1"),
        (f"{POLICY}/defaults", defaults("10.5.0.1", "net2"), {"policy_routes": "failed"}, "via 10.5.0.1 dev net2"),
        (POLICY, None, {"policy_routes": "failed"}, "gave no JSON"),
        ("releases/0/version", "1.2.0", {"release": "failed"}, "1.2.0, deployed"),
        ("kinds", ["NetworkAttachmentDefinition", "SpiderIPPool", "IPUJob"], {"kinds": "failed"}, "SpiderMultusConfig"),
        ("networks/rdma-net/state", None, {"network": "failed"}, "no SpiderMultusConfig"),
        ("networks/rdma-net/attachment/plugins/0/master", "eth9", {"attachment": "failed"}, "master is 'eth9'"),
        ("networks/rdma-net/attachment/plugins", [], {"attachment": "failed"}, "no CNI configuration"),
    ],
)
def test_a_fault_of_spiderpool_is_found_by_its_own_check(
    path: str, value: t.Any, failed: t.Dict[str, str], seen: str
) -> None:
    planned, facts = spiderpool()
    put(facts, path, value)
    bad = [check for check in check_fabric(planned, facts, EXPECT) if check.status != "passed"]
    assert {check.check: check.status for check in bad} == failed
    assert any(seen in check.seen for check in bad)


def test_rails_without_a_gateway_have_no_policy_routes() -> None:
    planned, facts = spiderpool()
    planned["networks"][0]["subnet"]["gateway"] = ""
    skipped = [check for check in check_fabric(planned, facts, EXPECT) if check.status == "skipped"]
    assert {check.check for check in skipped} == {"policy_routes", "gateway"}
    assert {check.seen for check in skipped} == {"the network has no gateway"}


def token_checks(since, **names):
    probed = probe()
    put(probed, "addons/cni_since", since)
    planned = plan()
    planned["cni_token_ends"]["hosts"] = [{**planned["cni_token_ends"]["hosts"][1], **names}]
    return [check for check in check_fabric(planned, probed, EXPECT) if check.check == "cni_tokens"]


@pytest.mark.parametrize(
    ("names", "since", "status"),
    [
        ({}, {}, "passed"),
        ({"expired": ["multus"]}, {}, "failed"),
        ({"ending": ["multus"]}, {"multus": {"w1": "2026-11-23T09:59:59Z"}}, "failed"),
        # The run that made the plan has started multus again since.
        ({"ending": ["multus"]}, {"multus": {"w1": "2026-11-23T10:05:00Z"}}, "passed"),
        ({"ending": ["multus"]}, {"multus": {"w2": "2026-11-23T10:05:00Z"}}, "failed"),
        ({"expired": ["multus", "calico"]}, {"multus": {"w1": "2026-11-23T10:05:00Z"}}, "failed"),
    ],
)
def test_a_token_that_has_ended_fails_until_its_pod_starts_again(names, since, status):
    (check,) = token_checks(since, **names)
    assert (check.status, check.node) == (status, "w1")


def test_an_older_plan_says_nothing_of_tokens():
    planned = plan()
    del planned["cni_token_ends"]
    (check,) = [check for check in check_fabric(planned, probe(), EXPECT) if check.check == "cni_tokens"]
    assert check.status == "skipped"


@pytest.mark.parametrize("gateway", ["10.5.0.1", ""])
def test_sbr_moves_the_routes_of_a_rail_into_a_table(gateway: str) -> None:
    """As the plugin does it: nothing of the interface stays in the main table, with a gateway or without."""
    planned, facts = plan(), probe()
    planned["networks"][0]["meta_plugins"] = [{"type": "sbr"}]
    planned["networks"][0]["subnet"]["gateway"] = gateway
    for node, pod_seen in facts["pods"].items():
        root = pod_seen["root"]
        root["main_routes"] = [route for route in root["main_routes"] if route["dev"] == "eth0"]
        root["policy"] = {"rules": {ADDRESSES[node]: "100", "all": "local"}, "defaults": {}}
        root["policy"]["defaults"] = {"100": [{"gateway": gateway, "dev": "net1"}]} if gateway else {}
    found = {each.check: each for each in check_fabric(planned, facts, EXPECT) if each.node == "w1"}
    assert (found["main_routes"].status, found["policy_routes"].status) == ("passed", "passed")
    facts["pods"]["w1"]["root"]["policy"]["rules"] = {"all": "local"}
    bad = [each for each in check_fabric(planned, facts, EXPECT) if each.status == "failed"]
    assert [(each.check, each.seen) for each in bad] == [("policy_routes", "no rule from 10.5.0.137")]
