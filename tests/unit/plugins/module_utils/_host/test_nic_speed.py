"""The rate of ports and the PCIe links of NICs, as sysfs of many kinds of hosts has them."""

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host import links as host_links
from ansible_collections.ipu.fabric.tests.unit.fixtures.sysfs import Tree

NIC, PORT, BRIDGE = "0000:81:00.0", "0000:80:01.0", "pci0000:80"
GEN4, GEN3 = "16.0 GT/s PCIe x16", "8.0 GT/s PCIe x16"


@pytest.fixture
def tree(tmp_path) -> Tree:
    tree = Tree(tmp_path)
    tree.pci(PORT, "pcieport", above=BRIDGE)
    tree.nic("ens1f0np0", "mlx5_0", NIC, above=f"{BRIDGE}/{PORT}")
    return tree


def seen(tree, netdev="ens1f0np0"):
    return next(link for link in host_links.read_links(str(tree), {}, {}) if link["netdev"] == netdev)


def rate(tree, text, device="mlx5_0"):
    tree.write(f"sys/class/infiniband/{device}/ports/1/rate", text)


@pytest.mark.parametrize(
    ("text", "speed", "expected"),
    [
        ("100 Gb/sec (4X EDR)", None, 100.0),
        ("2.5 Gb/sec (1X SDR)", None, 2.5),
        ("100 Gb/sec (4X EDR)", 25000, 25.0),
        ("25 Gb/sec (1X EDR)", -1, 25.0),
        ("", 200000, 200.0),
        ("Unknown", -1, None),
    ],
)
def test_the_rate_of_a_port(tree, text, speed, expected):
    rate(tree, text)
    if speed is not None:
        tree.write("sys/class/net/ens1f0np0/speed", speed)
    assert seen(tree)["rate_gbps"] == expected


def test_a_nic_without_rdma_has_the_speed_of_its_netdev(tree):
    tree.netdev("eno1", tree.pci("0000:02:00.0", "igb"))
    assert seen(tree, "eno1")["rate_gbps"] is None
    tree.write("sys/class/net/eno1/speed", 1000)
    assert seen(tree, "eno1")["rate_gbps"] == 1.0


@pytest.mark.parametrize("pci", [True, False])
def test_software_rdma_has_no_rate(tree, pci):
    nic = tree.pci("0000:03:00.0", "e1000e")
    tree.netdev("ens3", nic)
    tree.write("sys/class/net/ens3/speed", 1000)
    # Older kernels hang the device below its NIC's PCI function.
    tree.rdma("rxe0", nic if pci else "", parent="ens3")
    rate(tree, "2.5 Gb/sec (1X SDR)", "rxe0")
    assert seen(tree, "ens3")["device"] == "rxe0"
    assert seen(tree, "ens3")["rate_gbps"] is None


def test_a_bond_has_the_rate_of_its_slowest_member(tree):
    tree.nic("ens1f1np1", "mlx5_1", "0000:81:00.1", above=f"{BRIDGE}/{PORT}")
    tree.bond("bond0", ["ens1f0np0", "ens1f1np1"])
    rate(tree, "100 Gb/sec (4X EDR)")
    tree.write("sys/class/net/ens1f0np0/speed", 100000)
    tree.write("sys/class/net/ens1f1np1/speed", 25000)
    assert seen(tree, "bond0")["rate_gbps"] == 25.0


@pytest.mark.parametrize(
    ("port", "nic", "expected"),
    [
        ((GEN4, GEN4), (GEN4, GEN4), (16.0, 16, 16.0, 16, 252.1)),
        ((GEN4, GEN4), ("16.0 GT/s PCIe x8", GEN4), (16.0, 8, 16.0, 16, 126.0)),
        (("8 GT/s x16", "8 GT/s x16"), ("8 GT/s x16", "16 GT/s x16"), (8.0, 16, 8.0, 16, 126.0)),
        (("Unknown x0", "Unknown x0"), ("5 GT/s x8", "5 GT/s x8"), (5.0, 8, 5.0, 8, 32.0)),
        ((GEN4, GEN4), ("64.0 GT/s PCIe x16", "64.0 GT/s PCIe x16"), (64.0, 16, 16.0, 16, 968.0)),
        ((GEN4, GEN4), ("Unknown x63", "Unknown x255"), None),
        ((GEN4, GEN4), ("Unknown speed x0", GEN4), None),
    ],
)
def test_the_pcie_link_and_what_both_ends_can(tree, port, nic, expected):
    tree.lanes(PORT, *port)
    tree.lanes(NIC, *nic)
    found = seen(tree)["pcie"]
    keys = ("speed_gtps", "width", "max_speed_gtps", "max_width", "gbps")
    assert (found and tuple(found[key] for key in keys)) == expected
    assert not found or found["pci"] == NIC


def test_the_narrowest_link_counts_also_above_a_switch(tmp_path):
    tree = Tree(tmp_path)
    way = ["0000:80:01.0", "0000:81:00.0", "0000:82:00.0", "0000:83:00.0"]
    above = BRIDGE
    for pci in way[:3]:
        tree.pci(pci, "pcieport", above=above)
        above = f"{above}/{pci}"
    tree.nic("ens1f0np0", "mlx5_0", way[3], above=above)
    for pci, (now, most) in zip(way, [(GEN3, GEN4), (GEN3, GEN4), (GEN4, GEN4), (GEN4, GEN4)]):
        tree.lanes(pci, now, most)
    assert seen(tree)["pcie"] == {
        "pci": "0000:81:00.0", "speed_gtps": 8.0, "width": 16, "max_speed_gtps": 16.0, "max_width": 16, "gbps": 126.0,
    }  # fmt: skip
    # Inside a switch there is no link: its two ports differ and nothing is wrong.
    tree.lanes(way[0], GEN4, GEN4)
    tree.lanes(way[1], GEN4, GEN4)
    tree.lanes(way[2], GEN3, GEN3)
    tree.lanes(way[3], GEN3, GEN3)
    assert (seen(tree)["pcie"]["pci"], seen(tree)["pcie"]["max_speed_gtps"]) == (way[3], 8.0)


def test_a_virtual_function_has_the_link_of_its_nic(tree):
    tree.lanes(NIC, GEN3, GEN4)
    tree.lanes(PORT, GEN3, GEN4)
    vf = tree.pci("0000:81:00.2", "mlx5_core", parent=NIC, above=f"{BRIDGE}/{PORT}")
    tree.lanes("0000:81:00.2", "Unknown x0", "Unknown x0")
    tree.netdev("ens1f0v0", vf)
    tree.rdma("mlx5_2", vf, netdevs=["ens1f0v0"])
    assert seen(tree, "ens1f0v0")["pcie"] == seen(tree)["pcie"]


def test_a_guest_does_not_believe_its_pcie(tree):
    tree.lanes(NIC, "2.5 GT/s x1", GEN4)
    tree.write("proc/cpuinfo", "flags\t\t: fpu vme hypervisor lahf_lm")
    assert seen(tree)["pcie"] is None
