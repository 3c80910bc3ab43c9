"""Which link of a host the pods shall use."""

from __future__ import annotations

import fnmatch
import random
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import links as host_links
from ansible_collections.ipu.fabric.plugins.module_utils._plan.network_spec import read_select
from ansible_collections.ipu.fabric.plugins.module_utils._plan.nic_obstacles import find_obstacles
from ansible_collections.ipu.fabric.plugins.module_utils._plan.nics import choose_nic
from ansible_collections.ipu.fabric.tests.unit.fixtures.sysfs import FABRIC, MANAGEMENT, Tree, host_with_management_nic


@pytest.fixture
def tree(tmp_path) -> Tree:
    return host_with_management_nic(tmp_path)


def links(tree: Tree, **addresses: t.List[t.Dict[str, t.Any]]) -> t.List[host_links.Link]:
    return host_links.read_links(str(tree), addresses, {})


VIPU = "10.5.0.20"


def choose_fabric_link(links, routes, select, vipu_address="", require_rdma=True, gpus=()):
    """The choice on a host with these links, routes and GPUs."""
    rdma = {"links": links, "routes": routes, "gpus": list(gpus)}
    return choose_nic(rdma, read_select(select), find_obstacles(links, True), vipu_address, require_rdma)


def way(dev: str) -> t.Dict[str, t.Dict[str, str]]:
    return {VIPU: {"dev": dev, "source": "", "gateway": ""}}


@pytest.fixture
def rack(tree) -> t.List[host_links.Link]:
    """A host with much of everything."""
    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0")
    tree.nic("ens1f1np1", "mlx5_1", "0000:81:00.1", operstate="down", state="1: DOWN")
    tree.nic("ens2f0np0", "mlx5_2", "0000:a1:00.0")
    tree.nic("ens3f0np0", "mlx5_3", "0000:b1:00.0")
    tree.nic("ens4f0np0", "mlx5_4", "0000:b2:00.0")
    tree.bond("bond0", ["ens3f0np0", "ens4f0np0"])
    tree.vlan("ens2f0np0.100", "ens2f0np0")
    pci = tree.pci("0000:c1:00.0", "mlx5_core")
    tree.netdev("ib0", pci)
    tree.rdma("mlx5_5", pci, link_layer="InfiniBand")
    addresses = {
        "eno1": MANAGEMENT,
        "ens1f0np0": FABRIC,
        "ens2f0np0.100": [{"address": "10.6.0.11", "prefix": 24}],
        "bond0": [{"address": "fd00:7::11", "prefix": 64}],
        "ib0": [{"address": "10.8.0.11", "prefix": 24}],
    }
    return host_links.read_links(str(tree), addresses, {"ens1f0np0": ["enp129s0f0np0"]})


@pytest.mark.parametrize(
    ("select", "netdev"),
    [
        ({"name": "ens1f0np0"}, "ens1f0np0"),
        ({"name": "ens1*"}, "ens1f0np0"),  # the other port has no address
        ({"name": "ens1f1np1"}, "ens1f1np1"),  # named, so it is this one, up or not: the plan checks it
        ({"name": "bond?"}, "bond0"),
        ({"name": "ens2f0np0"}, "ens2f0np0"),  # with a VLAN on it, but not its member
        ({"name": "enp129s0f0*"}, "ens1f0np0"),  # an alternative name
        ({"pci": "0000:81:00.0"}, "ens1f0np0"),
        ({"pci": "81:00.0"}, "ens1f0np0"),
        ({"pci": "0000:B1:00.0"}, "bond0"),  # a bond's member
        ({"pci": "0000:a1:*"}, "ens2f0np0.100"),  # the NIC itself has no address
        ({"subnet": "10.5.0.0/16"}, "ens1f0np0"),
        ({"subnet": "10.6.0.0/24"}, "ens2f0np0.100"),
        ({"subnet": "fd00:7::/64"}, "bond0"),
        ({"driver": "mlx5_core", "subnet": "10.6.0.0/24"}, "ens2f0np0.100"),
        ({"name": ["eth*", "bond?"]}, "bond0"),
        ({"pci": ["0000:a1:*", "0000:a2:*"], "driver": ["mlx5_core"]}, "ens2f0np0.100"),
        ({"subnet": ["10.77.0.0/24", "fd00:7::/64"]}, "bond0"),
        ({"name": "", "pci": "", "driver": "", "subnet": "10.5.0.0/24"}, "ens1f0np0"),
    ],
)
def test_choose_by_rule(rack, select, netdev):
    assert choose_fabric_link(rack, {}, select)["netdev"] == netdev


@pytest.mark.parametrize(
    ("select", "without", "step"),
    [
        ({}, "", "Name it in `select` of fabric_networks, by name, pci, driver or subnet."),
        ({}, "pci", "Name it in `select` of fabric_networks, by name, driver or subnet."),
        ({}, "driver", "Name it in `select` of fabric_networks, by name, pci or subnet."),
        ({"pci": "0000:81:*"}, "pci", "None of these has a PCI address: name one by name, driver or subnet."),
        ({"pci": "0000:91:*"}, "", "or load the NIC's driver: it may rename the device."),
        ({"name": "eth9"}, "pci", "or load the NIC's driver: it may rename the device."),
        ({"gpu": 0}, "pci", "Name the NIC in `select` of fabric_networks, by name, driver or subnet."),
    ],
)
def test_only_keys_that_a_nic_can_be_named_by_are_advised(rack, select, without, step):
    """On hosts of virtual NICs pci was advised, and there was none to copy."""
    links = [{**link, without: ""} if without else link for link in rack]
    gpu = {"pci": "0000:01:00.0", "path": "pci0000:f0", "numa_node": -1}
    with pytest.raises(FabricError) as error:
        choose_fabric_link(links, {}, select, gpus=[gpu])
    assert error.value.next_step.endswith(step)
    assert "  " not in str(error.value)


def test_a_bond_of_iwarp_nics_has_no_pci_address_of_its_own(rack):
    bond = next(link for link in rack if link["netdev"] == "bond0")
    with pytest.raises(FabricError) as error:
        choose_fabric_link([{**bond, "link_layer": "iWARP", "driver": ""}], {}, {"name": "bond0"})
    assert "set pci/ADDRESS name" in error.value.next_step
    assert ", driver unknown, " in error.value.seen


@pytest.mark.parametrize("dev", ["ens1f0np0", "ens2f0np0.100", "bond0"])
def test_choose_the_rdma_nic_on_the_way_to_vipu(rack, dev):
    assert choose_fabric_link(rack, way(dev), {}, VIPU)["netdev"] == dev
    assert choose_fabric_link(rack, way(dev), {"driver": "mlx5*"}, VIPU)["netdev"] == dev


@pytest.mark.parametrize("dev", ["eno1", "lo", "", "gone0"])
def test_the_way_to_vipu_alone_proves_nothing(rack, tree, dev):
    """V-IPU on the management network, on this very host, or out of reach."""
    with pytest.raises(FabricError) as error:
        choose_fabric_link(rack, way(dev), {}, VIPU)
    for name in ("ens1f0np0", "ens2f0np0.100", "bond0"):
        assert name in error.value.seen
    for name in ("eno1", "ib0", "ens3f0np0"):
        assert name not in error.value.seen
    assert "select" in error.value.next_step
    single = [link for link in rack if link["netdev"] in ("eno1", "ens1f0np0", "ens1f1np1")]
    assert choose_fabric_link(single, way(dev), {}, VIPU)["netdev"] == "ens1f0np0"


def test_a_fabric_nic_that_is_down_is_not_replaced(rack):
    """Two NICs with addresses, one of them down: the other may be the storage network's."""
    both = [link for link in rack if link["netdev"] in ("ens1f0np0", "ens1f1np1")]
    both[1]["addresses"] = [{"address": "10.9.0.11", "prefix": 24}]
    with pytest.raises(FabricError, match="One fabric NIC"):
        choose_fabric_link(both, {}, {})


@pytest.mark.parametrize(
    ("select", "what", "seen"),
    [
        ({"name": "eth9"}, "No NIC matches", "ens1f0np0 (mlx5_core, 0000:81:00.0, RDMA mlx5_0 ACTIVE"),
        ({"name": "ens3f0np0"}, "that could be the fabric NIC can carry a macvlan", "member of bond0"),
        ({"pci": "0000:81:00.7"}, "No NIC matches", "0000:81:00.0"),
        ({"driver": "vmw_pvrdma"}, "No NIC matches", "mlx5_core"),
        ({"subnet": "10.7.0.0/24"}, "No NIC matches", "10.5.0.11/24"),
        ({"name": "ens1*", "driver": "igb"}, "No NIC matches", "10.5.0.11/24): not of the selected driver; "),
        ({"subnet": "10.5.0.1/24"}, "expected as a CIDR", "host bits"),
        ({"subnet": "fabric"}, "expected as a CIDR", "fabric"),
        ({"driver": "mlx5_core"}, "One fabric NIC", "bond0"),
        ({"name": "eno1"}, "NIC with RDMA", "eno1 (igb, 0000:02:00.0, no RDMA, 10.1.0.11/22)"),
        ({"name": "ib0"}, "not for InfiniBand", "mlx5_5 port 1"),
        ({"subnet": "10.8.0.0/24"}, "not for InfiniBand", "InfiniBand"),
    ],
)
def test_choose_refuses(rack, select, what, seen):
    with pytest.raises(FabricError) as error:
        choose_fabric_link(rack, {}, select)
    assert what in error.value.what
    assert seen in error.value.seen
    assert error.value.next_step


def test_infiniband_is_told_what_to_use_instead(rack):
    with pytest.raises(FabricError) as error:
        choose_fabric_link(rack, {}, {"name": "ib0"}, require_rdma=False)
    for word in ("LINK_TYPE_P1=2", "type: ipoib", "type: sriov"):
        assert word in error.value.next_step


@pytest.mark.parametrize("dev", ["eno1", "lo", ""])
def test_no_rdma_nic_is_an_error(tree, dev):
    with pytest.raises(FabricError) as error:
        choose_fabric_link(links(tree, eno1=MANAGEMENT), way(dev), {}, VIPU)
    assert "eno1" in error.value.seen
    assert "fabric_require_rdma" in error.value.next_step


def test_plain_nics_where_rdma_is_not_required(tree):
    tree.netdev("eth1")
    plain = links(tree, eno1=MANAGEMENT, eth1=FABRIC)

    def chosen(select, routes):
        return choose_fabric_link(plain, routes, select, VIPU, require_rdma=False)["netdev"]

    assert chosen({"name": "eth1"}, {}) == "eth1"
    assert chosen({}, way("eth1")) == "eth1"
    with pytest.raises(FabricError, match="One fabric NIC") as error:
        chosen({}, way("lo"))
    assert "eno1" in error.value.seen


def test_rdma_is_preferred_where_it_is_not_required(rack):
    single = [link for link in rack if link["netdev"] in ("eno1", "ens1f0np0")]
    assert choose_fabric_link(single, way("eno1"), {}, VIPU, False)["netdev"] == "ens1f0np0"


def test_2000_random_choices(rack):
    """Whatever is chosen fits every rule, can carry a macvlan, and has RDMA where it must."""
    rng = random.Random(3)
    members = {"ens3f0np0", "ens4f0np0"}
    chosen = set()
    for _turn in range(2000):
        some = [link for link in rack if rng.random() < 0.6 or link["netdev"] in members]
        select = {
            "name": rng.choice(["", "", "ens*", "bond0", "e*"]),
            "driver": rng.choice(["", "", "mlx5_core", "igb"]),
            "subnet": rng.choice(["", "", "10.0.0.0/8", "10.5.0.0/24"]),
        }
        require = rng.random() < 0.7
        dev = rng.choice(["", "lo", "eno1", "bond0", "ib0"])
        try:
            link = choose_fabric_link(some, way(dev), select, VIPU, require)
        except FabricError:
            continue
        chosen.add(link["netdev"])
        assert link in some
        assert link["link_layer"] != "InfiniBand"
        assert link["rdma_netdevs"] or not require
        assert fnmatch.fnmatchcase(link["netdev"], select["name"] or "*")
        if any(item["netdev"] == "bond0" for item in some):
            assert link["netdev"] not in members
    assert {"ens1f0np0", "ens2f0np0.100", "bond0", "eno1"} <= chosen


def test_no_links_at_all():
    for require in (True, False):
        with pytest.raises(FabricError) as error:
            choose_fabric_link([], {}, {}, "", require)
        assert error.value.seen == "none"


def test_pvrdma_by_its_driver(tree):
    tree.netdev("ens192", tree.pci("0000:0b:00.0", "vmxnet3"))
    tree.rdma("vmw_pvrdma0", tree.pci("0000:0b:00.1", "vmw_pvrdma"), netdevs=["ens192"])
    assert choose_fabric_link(links(tree), {}, {"driver": "vmw_pvrdma"})["netdev"] == "ens192"


# ---- near a GPU -----------------------------------------------------------------------------------------------------


@pytest.fixture
def gpu_host(tree) -> Tree:
    """Two sockets. On each a switch with two GPUs and a NIC, and a GPU and a NIC at ports of their own."""
    for numa, bridge, bus in ((0, "pci0000:16", 0x20), (1, "pci0000:80", 0x90)):
        switch = f"{bridge}/{bridge[3:]}:01.0/0000:{bus:02x}:00.0"
        tree.gpu(f"0000:{bus + 2:02x}:00.0", f"{switch}/0000:{bus + 1:02x}:00.0", numa)
        tree.gpu(f"0000:{bus + 4:02x}:00.0", f"{switch}/0000:{bus + 1:02x}:01.0", numa)
        tree.nic(
            f"sw{numa}",
            f"mlx5_{numa}",
            f"0000:{bus + 6:02x}:00.0",
            above=f"{switch}/0000:{bus + 1:02x}:02.0",
            numa=numa,
        )
        tree.gpu(f"0000:{bus + 8:02x}:00.0", f"pci0000:{bus + 7:02x}/0000:{bus + 7:02x}:01.0", numa)
        tree.nic(
            f"own{numa}", f"mlx5_{numa + 2}", f"0000:{bus + 11:02x}:00.0", above=f"pci0000:{bus + 10:02x}", numa=numa
        )
    return tree


def near(tree: Tree, number: int, **more: t.Any) -> str:
    select = {"gpu": number, **more}
    return choose_fabric_link(links(tree, sw0=FABRIC), {}, select, gpus=host_links.read_gpus(str(tree.sys)))["netdev"]


@pytest.mark.parametrize(("number", "netdev"), [(0, "sw0"), (1, "sw0"), (3, "sw1"), (4, "sw1")])
def test_the_nic_at_the_same_switch(gpu_host, number, netdev):
    assert near(gpu_host, number) == netdev


def test_of_the_same_numa_node_where_no_way_is_shared(gpu_host):
    """GPU 5 has two NICs on its node: which one is not for us to guess."""
    with pytest.raises(FabricError, match="One fabric NIC") as error:
        near(gpu_host, 5)
    assert error.value.where == "select gpu=5"
    assert "sw1" in error.value.seen
    assert "own1" in error.value.seen
    assert "sw0" not in error.value.seen
    assert near(gpu_host, 5, name="own*") == "own1"


def test_no_nic_near_the_gpu(gpu_host):
    with pytest.raises(FabricError, match="same PCI root") as error:
        near(gpu_host, 0, name="*1")
    assert error.value.where == "GPU 0000:22:00.0, NUMA node 0"
    assert "own1" in error.value.seen


def test_no_such_gpu(gpu_host, tmp_path):
    with pytest.raises(FabricError, match="GPU 6") as error:
        near(gpu_host, 6)
    assert error.value.seen.startswith("0000:22:00.0, 0000:24:00.0")
    with pytest.raises(FabricError) as error:
        choose_fabric_link(links(gpu_host), {}, {"gpu": 0})
    assert error.value.seen == "no NVIDIA GPU"


def test_numa_nodes_that_nobody_knows_are_not_the_same(tree):
    tree.gpu("0000:41:00.0", "pci0000:40")
    tree.nic("ens1", "mlx5_0", "0000:51:00.0", above="pci0000:50")
    with pytest.raises(FabricError, match="same PCI root"):
        near(tree, 0)


def test_a_vlan_stands_for_its_nic(gpu_host):
    gpu_host.vlan("sw1.100", "sw1")
    found = links(gpu_host, **{"sw1.100": FABRIC})
    assert (
        choose_fabric_link(found, {}, {"gpu": 3}, gpus=host_links.read_gpus(str(gpu_host.sys)))["netdev"] == "sw1.100"
    )


def test_the_near_nic_without_an_address_is_not_replaced(gpu_host):
    found = links(gpu_host, own0=FABRIC, sw1=FABRIC)
    assert choose_fabric_link(found, {}, {"gpu": 0}, gpus=host_links.read_gpus(str(gpu_host.sys)))["netdev"] == "sw0"
