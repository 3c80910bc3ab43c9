"""Sites of any size, made up: what their hosts answer, and what a probe of their fabric finds when all is well."""

from __future__ import annotations

import copy
from typing import Any

from ansible_collections.ipu.fabric.plugins.module_utils._verify.pairs import by_distance
from ansible_collections.ipu.fabric.plugins.module_utils._verify.parsers import gid_of
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import host, link

Facts = dict[str, Any]
RAIL = "10.{}.0.0/16"  # rail 0 is 10.16.0.0/16
TESTS = (
    ("rping", "rping", 10.0, "pings", 10, 64),
    ("write_bandwidth", "ib_write_bw", 97.8, "Gb/s", 746000, 65536),
    ("read_latency", "ib_read_lat", 2.96, "us", 1000, 2),
)


def networks(rails: int) -> list[Facts]:
    """`fabric_networks` of such a site."""
    return [{"name": f"rail{rail}", "select": {"subnet": RAIL.format(16 + rail)}} for rail in range(rails)]


def observations(hosts: int, rails: int) -> Facts:
    """Hosts with a NIC on each rail; the first three are control planes."""
    site = {}
    for number in range(1, hosts + 1):
        groups = ["kube_control_plane"] if number <= 3 else ["kube_node"]
        observed = host(number, groups)
        high, low = divmod(number, 250)
        observed["rdma"]["links"] = observed["rdma"]["links"][:1] + [
            link(
                f"ens{rail}f0",
                f"10.{16 + rail}.{high}.{low + 1}",
                16,
                device=f"mlx5_{rail}",
                pci=f"0000:{0x10 + rail:02x}:00.0",
                mac=f"0c:42:{rail:02x}:00:{high:02x}:{low:02x}",
            )
            for rail in range(rails)
        ]
        observed["rdma"]["routes"] = {}
        del observed["vipu"]
        site[f"h{number:04}"] = observed
    return site


def proof(plan: Facts) -> Facts:
    """What a probe finds on this plan's cluster: one pod a node, pings and RDMA tests of the pairs that are needed."""
    rails = [network["name"] for network in plan["networks"]]
    nodes = [entry["node"] for entry in plan["hosts"].values() if entry["links"]]  # not the control planes
    return {
        "probed": True,
        "reason": "",
        "rdma_image": "tools",
        "kinds": ["NicClusterPolicy", "MacvlanNetwork", "NetworkAttachmentDefinition"],
        "releases": [
            {"name": "network-operator", "version": plan["releases"]["network_operator"], "status": "deployed"}
        ],
        "pools": [_pool(network, nodes) for network in plan["networks"]],
        "address_sources": [],
        "pods_without": {name: [] for name in rails},
        "images": [],
        "addons": {"nfd": [], "multus": ["nvidia/kube-multus-ds"], "multus_nodes": nodes},
        "policy": {"state": "ready", "appliedStates": []},
        "networks": {
            network["name"]: {
                "state": {"state": "ready"},
                "attachment": {
                    "type": "macvlan",
                    **{name: network[name] for name in ("master", "mode", "mtu", "ipam")},
                },
            }
            for network in plan["networks"]
        },
        "nodes": {node: _node(plan) for node in nodes},
        "pods": {node: _pod(plan, node, place) for place, node in enumerate(nodes)},
        **_traffic(plan, nodes),
        "host_traffic": [],
    }


def address(rail: int, place: int) -> str:
    """Of the pod of the node at this place."""
    high, low = divmod(place, 250)
    return f"10.{16 + rail}.{128 + high}.{low + 1}"


def _pool(network: Facts, nodes: list[str]) -> Facts:
    block = {"range": "", "capacity": 8, "allocated": 1, "free": 7}
    counts = {"usable": 8, "excluded": 0, "capacity": 8, "allocated": 1, "free": 7}
    return {
        "name": network["name"],
        "ipam": "nv-ipam",
        "cidr": network["subnet"]["cidr"],
        "leaked": [],
        **{name: count * len(nodes) for name, count in counts.items()},
        "nodes": [{"node": node, **block} for node in nodes],
    }


def _node(plan: Facts) -> Facts:
    held = {n["name"]: {"resource": n["resource"], "count": 63} for n in plan["networks"]}
    return {"ready": True, "reason": "", "labels": {}, "allocatable": held}


def _pod(plan: Facts, node: str, place: int) -> Facts:
    limits = {"soft": "unlimited", "hard": "unlimited"}
    rails = list(enumerate(plan["networks"]))
    own = [(f"net{rail + 1}", network, address(rail, place)) for rail, network in rails]
    pong = {"sent": 2, "received": 2, "rtt_ms": 0.08, "path_mtu": None, "supported": True, "seen": ""}
    return {
        "host": next(name for name, entry in plan["hosts"].items() if entry["node"] == node),
        "pod": f"probe-{node}",
        "networks": [network["name"] for _rail, network in rails],
        "state": "running",
        "reason": "",
        "network_status": [{"name": "cbr0"}, *({"name": f"default/{n['name']}"} for _rail, n in rails)],
        "root": {
            "uid": 0,
            "memlock": limits,
            "tool_missing": False,
            "links": {
                name: {
                    "mtu": network["mtu"],
                    "kind": "macvlan",
                    "mac": "",
                    "addresses": [{"address": ip, "prefix": 16}],
                }
                for name, network, ip in own
            },
            "default_routes": ["eth0"],
            "main_routes": [
                {"dst": "10.244.1.0/24", "dev": "eth0"},
                *({"dst": network["subnet"]["cidr"], "dev": name} for name, network, _ip in own),
            ],
            "policy": None,
            "gpu": None,
            "dns": {
                "servers": ["10.96.0.10"],
                "name": "kubernetes.default.svc.cluster.local",
                "address": "10.96.0.1",
                "rc": 0,
                "seen": "",
            },
            "vipu": [],
            "error": "",
        },
        "user": {"uid": 1000, "memlock": limits, "error": ""},
        "gateways": [
            {"network": n["name"], "address": n["subnet"]["gateway"], "ping": pong, "mac": "02:00:00:00:00:01"}
            for _rail, n in rails
            if n["subnet"]["gateway"]
        ],
        "gateways_error": "",
        "rdma": {
            "files": ["rdma_cm", *(f"uverbs{rail}" for rail, _n in rails)],
            "classes": [
                "misc/rdma_cm",
                *(
                    name
                    for rail, _n in rails
                    for name in (
                        f"infiniband/mlx5_{rail}",
                        f"infiniband/mlx5_{rail}/device",
                        f"infiniband_verbs/uverbs{rail}",
                        f"infiniband_mad/umad{rail}",
                    )
                ),
            ],
            "ports": {f"mlx5_{rail}/1": {"state": "ACTIVE", "link_layer": "Ethernet"} for rail, _n in rails},
            "gids": [
                {
                    "device": f"mlx5_{rail}",
                    "port": 1,
                    "index": 3,
                    "gid": gid_of(ip),
                    "type": "RoCE v2",
                    "netdev": name,
                }
                for (rail, _n), (name, _network, ip) in zip(rails, own, strict=True)
            ],
            "tools": [],
            "error": "",
        },
    }


def _traffic(plan: Facts, nodes: list[str]) -> Facts:
    ping = {"sent": 2, "received": 2, "rtt_ms": 0.08, "path_mtu": None, "supported": True, "seen": ""}
    places = {node: place for place, node in enumerate(nodes)}
    steps = by_distance(nodes)
    chosen = [pair for _step in range(2) for pair in next(steps, [])]
    pairs, traffic = [], []
    for rail, network in enumerate(plan["networks"]):
        for a, b in chosen:
            ends = {"network": network["name"], "from": a, "to": b}
            there = {"address": address(rail, places[b]), "mtu": network["mtu"], "error": ""}
            pairs.append({**ends, **there, "small": ping, "full": dict(ping)})
            traffic += [_test(ends, f"mlx5_{rail}", *test) for test in TESTS]
    return {"pairs": pairs, "traffic": traffic}


def _test(ends: Facts, device: str, check: str, tool: str, value: float, unit: str, messages: int, size: int) -> Facts:
    name = "" if check == "rping" else device
    idle, answered = ({"rdma": {device: {"requests": n}}, "interfaces": {"eth0": 900}} for n in (0, messages))
    return copy.copy(
        {
            **ends,
            "check": check,
            "tool": tool,
            "missing": False,
            "blocked": False,
            "rc": 0,
            "seen": "",
            "value": value,
            "unit": unit,
            "sent": {"device": name, "transport": name and "IB", "messages": messages, "size": size},
            "moved": [idle, answered],
        }
    )
