"""The fabric NICs that are nearest to the GPUs of a host, by what its PCI tree looks like."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host import links as host_links
from ansible_collections.ipu.fabric.plugins.module_utils._plan.gpus import plan_gpus
from ansible_collections.ipu.fabric.plugins.module_utils._plan.hosts import place_hosts
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import errors, plan, site
from ansible_collections.ipu.fabric.tests.unit.fixtures.sysfs import Tree

SWITCH = "pci0000:10/0000:10:01.0/0000:11:00.0"


def planned(tree, **networks):
    """The GPUs of a host whose fabric networks have these NICs."""
    links = {link["netdev"]: link for link in host_links.read_links(str(tree), {}, {})}
    rdma = {"links": list(links.values()), "gpus": host_links.read_gpus(str(tree.sys))}
    observed = {"groups": ["kube_node"], "address": "", "errors": [], "rdma": rdma}
    host = place_hosts({"w1": observed})["w1"]
    return plan_gpus(host, {network: links[netdev] for network, netdev in networks.items()})


@pytest.mark.parametrize(
    ("above", "numa", "networks"),
    [
        (f"{SWITCH}/0000:12:01.0", 1, ["a"]),  # at the switch of that NIC, whatever its NUMA node says
        ("pci0000:10/0000:10:03.0", -1, ["a", "b"]),  # at their root
        ("pci0000:10/0000:10:03.0", 1, ["b"]),  # at their root, and on the NUMA node of one
        ("pci0000:40/0000:40:01.0", 1, ["b", "c"]),  # on their NUMA node
        ("pci0000:40/0000:40:01.0", 2, []),
        ("pci0000:40/0000:40:01.0", -1, []),
    ],
)
def test_nearest_fabric_nics(tmp_path, above, numa, networks):
    tree = Tree(tmp_path)
    tree.nic("eth0", "mlx5_0", "0000:13:00.0", above=f"{SWITCH}/0000:12:00.0", numa=0)
    tree.nic("eth1", "mlx5_1", "0000:18:00.0", above="pci0000:10/0000:10:02.0", numa=1)
    tree.nic("eth2", "mlx5_2", "0000:31:00.0", above="pci0000:30/0000:30:01.0", numa=1)
    tree.nic("eth9", "mlx5_9", "0000:41:00.0", above="pci0000:40/0000:40:02.0", numa=2)  # on no fabric network
    tree.gpu("0000:42:00.0", above, numa)
    (gpu,) = planned(tree, a="eth0", b="eth1", c="eth2")
    assert gpu == {"pci": "0000:42:00.0", "model": "10de:2330", "networks": networks}


def test_a_bond_is_where_its_members_are(tmp_path):
    tree = Tree(tmp_path)
    tree.nic("eth0", "mlx5_0", "0000:13:00.0", above=SWITCH)
    tree.nic("eth1", "mlx5_1", "0000:31:00.0", above="pci0000:30/0000:30:01.0")
    tree.bond("bond0", ["eth0"])
    tree.gpu("0000:14:00.0", SWITCH)
    assert [gpu["networks"] for gpu in planned(tree, a="bond0", b="eth1")] == [["a"]]


def test_what_an_earlier_release_observed_has_no_model():
    rdma = {"links": [], "gpus": [{"pci": "0000:14:00.0", "path": "", "numa_node": 0}]}
    host = place_hosts({"w1": {"groups": [], "address": "", "errors": [], "rdma": rdma}})["w1"]
    assert plan_gpus(host, {}) == [{"pci": "0000:14:00.0", "model": "", "networks": []}]


@pytest.mark.parametrize(
    ("asked", "gpus", "found"), [(True, [], True), (False, [], False), (True, [{"pci": "0000:42:00.0"}], False)]
)
def test_a_gpu_operator_without_gpus(asked, gpus, found):
    hosts = site()
    hosts["w1"]["rdma"]["gpus"] = [{"path": "", "numa_node": -1, **each} for each in gpus]
    assert ("gpu-hosts" in errors(plan(hosts, gpu=asked), "warning")) is found


def test_a_host_that_was_never_observed_has_none():
    host = place_hosts({"w1": {"groups": [], "address": "", "errors": []}})["w1"]
    assert plan_gpus(host, {}) == []


def with_gpu(nic, gpu, redirects):
    """w1 with its NIC and a GPU on these ways, and bridges that redirect."""
    hosts = site()
    rdma = hosts["w1"]["rdma"]
    rdma["links"][1]["path"] = nic
    rdma["gpus"] = [{"pci": "0000:14:00.0", "model": "", "path": gpu, "numa_node": 0}]
    rdma["redirects"] = redirects
    return hosts


@pytest.mark.parametrize(
    ("gpu", "redirects", "seen"),
    [
        (f"{SWITCH}/0000:12:01.0/0000:14:00.0", ["0000:12:00.0", "0000:12:01.0"], "0000:12:00.0, 0000:12:01.0"),
        (f"{SWITCH}/0000:12:01.0/0000:14:00.0", ["0000:12:05.0"], ""),  # the port of another device
        ("pci0000:10/0000:10:03.0/0000:14:00.0", ["0000:12:00.0"], ""),  # the processor is on their way anyhow
        (f"{SWITCH}/0000:12:01.0/0000:14:00.0", [], ""),
    ],
)
def test_acs_between_a_gpu_and_its_nic(gpu, redirects, seen):
    found = errors(plan(with_gpu(f"{SWITCH}/0000:12:00.0/0000:13:00.0", gpu, redirects)), "warning")
    assert ("pcie-link" in found) is bool(seen)
    if seen:
        assert found["pcie-link"]["seen"] == f"ACS redirects at {seen}"
        assert found["pcie-link"]["hosts"] == ["w1"]
