"""NICs that have a fault of their own: bonds without RoCE LAG, NICs of the nodes' own addresses, small GID tables."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites

Data = t.Dict[str, t.Any]


def found(hosts: Data, check: str, **settings: t.Any) -> t.List[Data]:
    return [each for each in sites.plan(hosts, **settings)["findings"] if each["check"] == check]


def bonded(devices: t.Sequence[str], pci: t.Sequence[str], above: str = "") -> Data:
    """w1 and w2 with a bond of two ports, and what may be on top of it."""
    hosts = sites.site()
    ports = ["ens1f0", "ens1f1"]
    rdma: Data = {"rdma_netdevs": ports, "rdma_devices": list(devices)}
    for number, name in enumerate(("w1", "w2"), 12):
        address = f"10.5.0.{number}"
        links = hosts[name]["rdma"]["links"][:1]
        links += [sites.link(port, "", pci=at) for port, at in zip(ports, pci)]
        links.append(sites.link("bond0", "" if above else address, kind="bond", lower=ports, **rdma))
        if above:
            links.append(sites.link(above, address, kind="vlan", lower=["bond0"], **rdma))
        hosts[name]["rdma"]["links"] = links
    return hosts


ONE_CARD = ("0000:81:00.0", "0000:81:00.1")
TWO_CARDS = ("0000:31:00.0", "0000:b1:00.0")  # as in bondYW of k8s-rdma-shared-dev-plugin#97


@pytest.mark.parametrize(
    ("devices", "pci", "above", "seen"),
    [
        (["mlx5_4", "mlx5_6"], TWO_CARDS, "", "bond0 has mlx5_4, mlx5_6 of different cards"),
        (["mlx5_0", "mlx5_1"], ONE_CARD, "", "bond0 has mlx5_0, mlx5_1 of one card"),
        (["mlx5_4", "mlx5_6"], TWO_CARDS, "bond0.100", "bond0.100 has mlx5_4, mlx5_6 of different cards"),
    ],
)
def test_a_bond_of_several_rdma_devices(devices: t.List[str], pci: t.Sequence[str], above: str, seen: str) -> None:
    (finding,) = found(bonded(devices, pci, above), "fabric-nic")
    assert (finding["level"], finding["hosts"]) == ("warning", ["w1", "w2"])
    assert finding["seen"] == seen


def test_a_roce_lag_is_one_device() -> None:
    assert not found(bonded(["mlx5_bond_0"], ONE_CARD), "fabric-nic")


def single_nic(hosts: Data) -> Data:
    for each in hosts.values():
        each["rdma"]["links"] = [sites.link("eno1", each["host"]["default_address"])]
    return hosts


def test_nodes_with_their_addresses_on_the_fabric() -> None:
    """Tried in network namespaces: a pod with net1 on 10.88.0.0/24 answers its node on no connection."""
    (finding,) = found(single_nic(sites.site()), "on-master")
    assert (finding["level"], finding["hosts"]) == ("warning", ["w1", "w2"])
    assert "10.88.0.0/24" in finding["seen"]
    assert not found(single_nic(sites.site()), "on-master", stack="spiderpool")
    assert not found(sites.site(), "on-master")


def test_another_nic_of_the_same_subnet_is_no_better() -> None:
    hosts = sites.site()
    for number, name in enumerate(("w1", "w2"), 112):
        hosts[name]["rdma"]["links"][1]["addresses"] = [{"address": f"10.88.0.{number}", "prefix": 24}]
    assert found(hosts, "on-master")


@pytest.mark.parametrize(("room", "most"), [(0, 63), (128, 63), (32, 15), (16, 7), (1, 1)])
def test_the_smallest_gid_table_counts(room: int, most: int) -> None:
    """irdma has 32 entries, k8s-rdma-shared-dev-plugin#113; a host with a larger one does not help."""
    hosts = sites.site()
    hosts["w1"]["rdma"]["links"][1]["gid_room"] = room
    (resource,) = sites.plan(hosts)["rdma_resources"]
    assert resource["rdmaHcaMax"] == most


def test_pods_beyond_the_gid_table_are_named() -> None:
    hosts = sites.site()
    hosts["w1"]["rdma"]["links"][1]["gid_room"] = 16
    (finding,) = found(hosts, "rdma-resource")
    assert "the GID table has room for 7" in finding["seen"]


@pytest.mark.parametrize(
    ("keys", "is_named"),
    [
        ({}, True),
        ({"reserved": ["10.5.0.64/26"]}, False),
        ({"reserved": ["10.6.0.0/24"]}, True),  # of another subnet
        ({"share": "10.5.0.192-10.5.0.254"}, False),
    ],
)
def test_leases_of_the_fabric(keys: Data, is_named: bool) -> None:
    hosts = sites.site()
    hosts["w1"]["rdma"]["links"][1]["addresses"][0]["origin"] = "lease"
    named = [each for each in found(hosts, "subnet", networks=[{"name": "rdma-net", **keys}]) if "DHCP" in each["what"]]
    assert [each["hosts"] for each in named] == ([["w1"]] if is_named else [])


@pytest.mark.parametrize(
    ("server", "settings", "variable"),
    [
        ("10.244.0.53", {}, "fabric_pod_cidr"),
        ("10.96.0.10", {}, "fabric_service_cidr"),
        ("10.96.0.10", {"manage_kubernetes": False}, ""),  # kubespray has hosts ask CoreDNS too
        ("10.88.0.1", {}, ""),
    ],
)
def test_a_dns_server_among_addresses_of_the_cluster(server: str, settings: Data, variable: str) -> None:
    hosts = sites.site()
    for each in hosts.values():
        each["host"]["resolver"] = {"path": "/etc/resolv.conf", "servers": [server, "no address"]}
    named = found(hosts, "cidr", **settings)
    assert [each["what"].split()[0] for each in named] == ([variable] if variable else [])


def test_a_cidr_that_covers_hosts_is_one_finding() -> None:
    (finding,) = found(sites.site(), "cidr", service_cidr="10.88.0.0/16")
    assert finding["hosts"] == list(sites.site())
    assert finding["seen"] == "10.88.0.11, 10.88.0.12, 10.88.0.13 are in 10.88.0.0/16"


@pytest.mark.parametrize(
    ("mtu", "keys", "payload"),
    [
        (1500, {}, 1024),
        (4191, {}, 2048),
        (4192, {}, 0),
        (9000, {}, 0),
        (9000, {"mtu": 1500}, 1024),
    ],
)
def test_an_mtu_for_small_packets(mtu: int, keys: Data, payload: int) -> None:
    """perftest#252: the kernel takes the largest size of InfiniBand that fits the MTU with all headers."""
    hosts = sites.site()
    for each in hosts.values():
        each["rdma"]["links"][1]["mtu"] = mtu
    named = found(hosts, "fabric-mtu", networks=[{"name": "rdma-net", **keys}])
    assert [each["seen"] for each in named] == (
        [f"{keys.get('mtu') or mtu}, for packets of {payload} bytes instead of 4096"] if payload else []
    )
