"""RDMA links of many kinds of hosts."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import links as host_links
from ansible_collections.ipu.fabric.plugins.module_utils._model.observation import Link
from ansible_collections.ipu.fabric.tests.unit.fixtures.sysfs import FABRIC, MANAGEMENT, Tree, host_with_management_nic


@pytest.fixture
def tree(tmp_path) -> Tree:
    return host_with_management_nic(tmp_path)


def links(tree: Tree, **addresses: t.List[t.Dict[str, t.Any]]) -> t.Dict[str, Link]:
    return {link["netdev"]: link for link in host_links.read_links(str(tree), addresses, {})}


# ---- links ----------------------------------------------------------------------------------------------------------


def test_mlx5_pf(tree):
    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0", mtu=9000, above="pci0000:80/0000:80:01.0", numa=1)
    assert links(tree, ens1f0np0=FABRIC, eno1=MANAGEMENT) == {
        "eno1": {
            "netdev": "eno1", "device": "", "port": 0, "pci": "0000:02:00.0", "driver": "igb", "kind": "physical",
            "link_layer": "", "state": "", "up": True, "mtu": 1500, "mac": "0c:42:a1:00:00:01", "lower": [],
            "rdma_netdevs": [], "addresses": MANAGEMENT, "altnames": [], "path": "pci0000:00/0000:02:00.0",
            "numa_node": -1, "rate_gbps": None, "pcie": None, "model": "", "firmware": "",
            "guid": "", "driver_version": "",
            "master": "", "master_kind": "", "taken_by": [], "function_netdevs": [],
            "rdma_devices": [], "gid_room": 0, "vfs": 0, "max_vfs": 0,
        },
        "ens1f0np0": {
            "netdev": "ens1f0np0", "device": "mlx5_0", "port": 1, "pci": "0000:81:00.0", "driver": "mlx5_core",
            "kind": "physical", "link_layer": "Ethernet", "state": "ACTIVE", "up": True, "mtu": 9000,
            "mac": "0c:42:a1:00:00:01", "lower": [], "rdma_netdevs": ["ens1f0np0"], "addresses": FABRIC,
            "altnames": [], "path": "pci0000:80/0000:80:01.0/0000:81:00.0", "numa_node": 1,
            "rate_gbps": None, "pcie": None, "model": "", "firmware": "",
            "guid": "", "driver_version": "",
            "master": "", "master_kind": "", "taken_by": [], "function_netdevs": ["ens1f0np0"],
            "rdma_devices": ["mlx5_0"], "gid_room": 0, "vfs": 0, "max_vfs": 0,
        },
    }  # fmt: skip


def test_no_rdma_nic(tree):
    assert [link["rdma_netdevs"] for link in links(tree).values()] == [[]]
    assert not host_links.read_ports(str(tree.sys))


def test_vf(tree):
    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0")
    vf = tree.pci("0000:81:00.2", "mlx5_core", parent="0000:81:00.0")
    tree.netdev("ens1f0v0", vf)
    tree.rdma("mlx5_2", vf, netdevs=["ens1f0v0"])
    for name, number in (("numvfs", 1), ("totalvfs", 16)):
        tree.write(f"sys/bus/pci/devices/0000:81:00.0/sriov_{name}", number)
    found = links(tree)
    assert (found["ens1f0np0"]["vfs"], found["ens1f0np0"]["max_vfs"]) == (1, 16)
    assert (found["ens1f0v0"]["vfs"], found["ens1f0v0"]["max_vfs"]) == (0, 0)
    assert (found["ens1f0v0"]["kind"], found["ens1f0v0"]["device"]) == ("vf", "mlx5_2")
    assert (found["ens1f0np0"]["kind"], found["ens1f0np0"]["device"]) == ("physical", "mlx5_0")


def test_port_down(tree):
    """A port that is down has no GIDs: its netdev is then found by the PCI function."""
    pci = tree.pci("0000:81:00.0", "mlx5_core")
    tree.netdev("ens1f0np0", pci, operstate="down")
    tree.rdma("mlx5_0", pci, state="1: DOWN")
    link = links(tree)["ens1f0np0"]
    assert (link["device"], link["state"], link["up"]) == ("mlx5_0", "DOWN", False)


def test_vlan(tree):
    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0")
    tree.vlan("ens1f0np0.100", "ens1f0np0", mtu=4200)
    link = links(tree, **{"ens1f0np0.100": FABRIC})["ens1f0np0.100"]
    expected = {
        "kind": "vlan",
        "lower": ["ens1f0np0"],
        "rdma_netdevs": ["ens1f0np0"],
        "device": "mlx5_0",
        "port": 1,
        "state": "ACTIVE",
        "link_layer": "Ethernet",
        "mtu": 4200,
        "addresses": FABRIC,
        "pci": "",
    }
    assert {key: link[key] for key in expected} == expected


def test_bond_takes_the_port_that_works(tree):
    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0", state="1: DOWN", operstate="down")
    tree.nic("ens1f1np1", "mlx5_1", "0000:81:00.1")
    tree.bond("bond0", ["ens1f0np0", "ens1f1np1"])
    found = links(tree, bond0=FABRIC)
    bond = found["bond0"]
    assert (bond["kind"], bond["lower"]) == ("bond", ["ens1f0np0", "ens1f1np1"])
    assert bond["rdma_netdevs"] == ["ens1f0np0", "ens1f1np1"]
    assert (bond["device"], bond["state"]) == ("mlx5_1", "ACTIVE")
    assert bond["rdma_devices"] == ["mlx5_0", "mlx5_1"]


@pytest.mark.parametrize("named", ["bond0", ""])
def test_a_bond_of_two_cards_has_their_two_devices(tree, named):
    """What the GID tables name is the bond, for each of the two."""
    for number, port in enumerate(("ens1f0np0", "ens2f0np0")):
        pci = tree.pci(f"0000:{number + 1}1:00.0", "mlx5_core")
        tree.netdev(port, pci)
        tree.rdma(f"mlx5_{number}", pci, netdevs=[named])
    tree.bond("bond0", ["ens1f0np0", "ens2f0np0"])
    found = links(tree)["bond0"]
    assert found["rdma_devices"] == ["mlx5_0", "mlx5_1"]
    assert found["rdma_netdevs"] == ["ens1f0np0", "ens2f0np0"]


def test_bond_of_one_nic_has_the_rdma_device_itself(tree):
    """RoCE LAG: one device, mlx5_bond_0, on the first function, and its GIDs name the bond."""
    first = tree.pci("0000:81:00.0", "mlx5_core")
    tree.netdev("ens1f0np0", first)
    tree.rdma("mlx5_bond_0", first, netdevs=["bond0"])
    tree.netdev("ens1f1np1", tree.pci("0000:81:00.1", "mlx5_core"))
    tree.bond("bond0", ["ens1f0np0", "ens1f1np1"])
    tree.vlan("bond0.100", "bond0")
    found = links(tree)
    for name in ("bond0", "bond0.100"):
        assert found[name]["device"] == "mlx5_bond_0"
        assert found[name]["rdma_devices"] == ["mlx5_bond_0"]
        assert found[name]["rdma_netdevs"] == ["ens1f0np0"]


def test_vlan_on_a_bond(tree):
    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0")
    tree.nic("ens2f0np0", "mlx5_1", "0000:a1:00.0")
    tree.bond("bond0", ["ens1f0np0", "ens2f0np0"])
    tree.vlan("bond0.100", "bond0")
    assert links(tree)["bond0.100"]["rdma_netdevs"] == ["ens1f0np0", "ens2f0np0"]


def test_bridge_and_tunnel(tree):
    """A bridge leads to its member's RDMA; a VXLAN device that only sends through a NIC does not."""
    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0")
    tree.bridge("br0", ["ens1f0np0"])
    tree.nic("ens2f0np0", "mlx5_1", "0000:a1:00.0")
    tree.tunnel("flannel.1", "ens2f0np0")
    found = links(tree, **{"flannel.1": [{"address": "10.244.0.0", "prefix": 32}]})
    assert found["br0"]["rdma_netdevs"] == ["ens1f0np0"]
    assert found["flannel.1"]["rdma_netdevs"] == found["flannel.1"]["lower"] == []


@pytest.mark.parametrize(
    ("uevent", "told", "kind"),
    [
        ("", "vrf", "vrf"),  # Linux names neither VRFs nor teams nor ipvlans in uevent
        ("DEVTYPE=vrf", "", "vrf"),
        ("DEVTYPE=bridge", "", "bridge"),
        ("", "team", "team"),
        ("", "dummy", "other"),
        ("", "", "other"),
    ],
)
def test_the_kind_of_a_master(tree, uevent, told, kind):
    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0")
    tree.netdev("up0")
    tree.enslave("up0", ["ens1f0np0"])
    tree.write("sys/devices/virtual/net/up0/uevent", f"{uevent}\nINTERFACE=up0")
    found = {link["netdev"]: link for link in host_links.read_links(str(tree), {}, {}, {"up0": told})}
    nic = found["ens1f0np0"]
    assert (found["up0"]["kind"], nic["master"], nic["master_kind"]) == (kind, "up0", kind)


@pytest.mark.parametrize(("name", "kind"), [("ovs-system", "openvswitch"), ("vrf-rdma", "vrf"), ("up0", "other")])
def test_masters_that_are_known_by_their_names(tree, name, kind):
    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0")
    tree.netdev(name, operstate="down")
    tree.enslave(name, ["ens1f0np0"])
    assert links(tree)["ens1f0np0"]["master_kind"] == kind


def test_infiniband_port(tree):
    pci = tree.pci("0000:c1:00.0", "mlx5_core")
    tree.netdev("ibp193s0", pci, mtu=2044)
    tree.rdma("mlx5_3", pci, link_layer="InfiniBand")
    link = links(tree)["ibp193s0"]
    assert (link["link_layer"], link["device"], link["mtu"]) == ("InfiniBand", "mlx5_3", 2044)


def test_two_ports_on_one_function(tree):
    """mlx4: dev_port tells which netdev is which port's."""
    pci = tree.pci("0000:05:00.0", "mlx4_core")
    tree.netdev("ens5", pci, dev_port=0)
    tree.netdev("ens5d1", pci, dev_port=1)
    tree.rdma("mlx4_0", pci, netdevs=["", ""])
    found = links(tree)
    assert (found["ens5"]["port"], found["ens5d1"]["port"]) == (1, 2)


def test_gid_tables_name_other_devices_too(tree):
    """VLANs, macvlans of pods under names of their own network namespace, and nothing where a port has no address."""
    pci = tree.pci("0000:81:00.0", "mlx5_core")
    tree.netdev("ens1f0np0", pci)
    tree.vlan("ens1f0np0.100", "ens1f0np0")
    tree.rdma("mlx5_0", pci)
    for index, netdev in enumerate(["", "net1", "ens1f0np0.100", "ens1f0np0"]):
        tree.write(f"sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/{index}", netdev)
    assert list(host_links.read_ports(str(tree.sys))) == ["ens1f0np0"]


def test_representors_have_no_rdma(tree):
    pci = tree.pci("0000:81:00.0", "mlx5_core")
    tree.netdev("ens1f0npf0vf0", pci, phys_port_name="pf0vf0")
    tree.netdev("ens1f0np0", pci, phys_port_name="p0")
    tree.rdma("mlx5_0", pci)
    found = links(tree)
    assert found["ens1f0np0"]["rdma_netdevs"] == ["ens1f0np0"]
    assert found["ens1f0npf0vf0"]["rdma_netdevs"] == []


def test_pvrdma_is_known_by_its_driver(tree):
    """VMware: netdev and RDMA device are two functions; only the GID table joins them."""
    tree.netdev("ens192", tree.pci("0000:0b:00.0", "vmxnet3"))
    tree.rdma("vmw_pvrdma0", tree.pci("0000:0b:00.1", "vmw_pvrdma"), netdevs=["ens192"])
    link = links(tree, ens192=FABRIC)["ens192"]
    assert (link["driver"], link["device"], link["rdma_netdevs"]) == ("vmw_pvrdma", "vmw_pvrdma0", ["ens192"])


@pytest.mark.parametrize("gids", [["eth1"], [""]])
def test_soft_roce(tree, gids):
    tree.netdev("eth1", tree.pci("0000:00:04.0", "virtio_net"))
    tree.rdma("rxe0", netdevs=gids, parent="eth1")
    link = links(tree)["eth1"]
    assert (link["device"], link["driver"], link["rdma_netdevs"]) == ("rxe0", "virtio_net", ["eth1"])


def test_virtio_has_the_pci_address_of_its_parent(tree):
    tree.pci("0000:00:05.0", "virtio-pci")
    (tree.root / "sys/devices/pci0000:00/0000:00:05.0/virtio1").mkdir()
    tree.netdev("eth2", "sys/devices/pci0000:00/0000:00:05.0/virtio1")
    link = links(tree)["eth2"]
    assert (link["pci"], link["path"]) == ("0000:00:05.0", "pci0000:00/0000:00:05.0")
    assert link["numa_node"] == -1


def test_gpus_in_pci_order(tree):
    """Not by name: domains may be longer than four digits. Audio functions, VFs and other vendors' do not count."""
    assert host_links.read_gpus(str(tree.sys)) == []
    tree.gpu("10000:01:00.0", "pci10000:00", numa=1)
    tree.gpu("0000:1b:00.0", "pci0000:16/0000:16:02.0", numa=0)
    tree.gpu("0000:03:00.0", kind="0x030000")
    tree.gpu("0000:03:00.1", kind="0x040300")
    vf = tree.pci("0000:1b:00.4", "nvidia", parent="0000:1b:00.0")
    tree.write(f"{vf}/vendor", "0x10de")
    tree.write(f"{vf}/class", "0x030200")
    (tree.sys / "bus/pci/devices/0000:03:00.0/device").unlink()
    assert host_links.read_gpus(str(tree.sys)) == [
        {"pci": "0000:03:00.0", "model": "", "numa_node": -1, "path": "pci0000:00/0000:03:00.0"},
        {
            "pci": "0000:1b:00.0",
            "model": "10de:2330",
            "numa_node": 0,
            "path": "pci0000:16/0000:16:02.0/0000:1b:00.0",
        },
        {"pci": "10000:01:00.0", "model": "10de:2330", "numa_node": 1, "path": "pci10000:00/10000:01:00.0"},
    ]


def test_devices_of_pods_are_left_out(tree):
    """Of virtual devices only those with an address count."""
    tree.netdev("cali123")
    tree.netdev("cni0")
    tree.write("sys/class/net/bonding_masters", "")
    found = links(tree, cni0=[{"address": "10.244.0.1", "prefix": 24}])
    assert set(found) == {"eno1", "cni0"}
    assert found["cni0"]["kind"] == "other"


@pytest.mark.parametrize(
    ("operstate", "flags", "carrier", "up"),
    [
        ("up", 0x1003, "1", True),
        ("down", 0x1003, "0", False),
        ("unknown", 0x1003, "1", True),
        ("unknown", 0x1003, None, True),
        ("unknown", 0x1003, "0", False),
        ("unknown", 0x1002, None, False),
        ("dormant", 0x1003, "1", False),
        ("lowerlayerdown", 0x1003, "0", False),
    ],
)
def test_up(tree, operstate, flags, carrier, up):
    tree.netdev("eth1", operstate=operstate, flags=flags)
    if carrier is not None:
        tree.write("sys/class/net/eth1/carrier", carrier)
    assert links(tree, eth1=FABRIC)["eth1"]["up"] is up


def test_a_cycle_of_links_ends(tree):
    tree.vlan("a", "b")
    tree.vlan("b", "a")
    assert links(tree)["a"]["rdma_netdevs"] == []


def test_a_host_without_sysfs_has_no_links(tmp_path):
    assert host_links.read_links(str(tmp_path), {}, {}) == []


def test_device_files_of_management_datagrams(tree):
    for name, device in (("umad0", "mlx5_0"), ("issm1", "mlx5_1"), ("umad1", "mlx5_1")):
        tree.write(f"sys/class/infiniband_mad/{name}/ibdev", device)
    tree.write("sys/class/infiniband_mad/abi_version", 5)
    assert host_links.read_mad_files(str(tree.sys)) == {"mlx5_0": ["umad0"], "mlx5_1": ["issm1", "umad1"]}


def test_modules(tree):
    tree.write("proc/sys/kernel/osrelease", "6.1.0-test")
    tree.write("proc/modules", "mlx5_ib 466944 0 - Live 0x0\nmacvlan 28672 0 - Live 0x0\next4 1 0 - Live 0x0")
    tree.write("lib/modules/6.1.0-test/modules.builtin", "kernel/net/8021q/8021q.ko\nkernel/drivers/x/rdma-cm.ko")
    (tree.sys / "module/ib_core").mkdir(parents=True)
    assert host_links.read_modules(str(tree)) == ["8021q", "ib_core", "macvlan", "mlx5_ib", "rdma_cm"]


# ---- what programs say ----------------------------------------------------------------------------------------------


def test_parse_addresses():
    text = json.dumps(
        [
            {"ifname": "lo", "addr_info": [{"local": "127.0.0.1", "prefixlen": 8, "scope": "host"}]},
            {},
            {
                "ifname": "eth1",
                "addr_info": [
                    {"local": "10.5.0.11", "prefixlen": 23, "scope": "global"},
                    {"local": "fe80::1", "prefixlen": 64, "scope": "link"},
                    {"local": "fd00::11", "prefixlen": 64, "scope": "global"},
                    {"local": "fd00::abcd", "prefixlen": 64, "scope": "global", "temporary": True},
                    {"local": "fd00::ffff", "prefixlen": 64, "scope": "global", "dadfailed": True},
                    {},
                ],
            },
        ]
    )
    assert host_links.parse_addresses(text) == {
        "eth1": [{"address": "10.5.0.11", "prefix": 23}, {"address": "fd00::11", "prefix": 64}]
    }


# As `ip -j addr` says it: by iproute2 6.1, by later ones (protocol), and where a daemon reads advertisements itself.
@pytest.mark.parametrize(
    ("entry", "origin"),
    [
        ({"local": "10.5.0.11", "prefixlen": 24, "label": "eth1"}, None),
        ({"local": "10.5.0.11", "prefixlen": 24, "dynamic": True, "noprefixroute": True}, "lease"),
        ({"local": "fd00:5::11", "prefixlen": 64, "nodad": True}, None),
        ({"local": "2001:db8:7:1::a", "prefixlen": 64, "dynamic": True, "mngtmpaddr": True}, "advertised"),
        ({"local": "2001:db8:7:1::a", "prefixlen": 64, "mngtmpaddr": True}, "advertised"),  # for ever
        ({"local": "2001:db8:7:1::a", "prefixlen": 64, "dynamic": True, "protocol": "kernel_ra"}, "advertised"),
        ({"local": "2001:db8:7:1::a", "prefixlen": 64, "dynamic": True, "noprefixroute": True}, "advertised"),
        ({"local": "2001:db8:7:1::7", "prefixlen": 128, "dynamic": True, "noprefixroute": True}, "lease"),
    ],
)
def test_where_an_address_comes_from(entry, origin):
    text = json.dumps([{"ifname": "eth1", "addr_info": [{**entry, "scope": "global"}]}])
    (found,) = host_links.parse_addresses(text)["eth1"]
    assert found.get("origin") == origin


def test_parse_altnames():
    text = '[{"ifname":"eth1","altnames":["enp1s0","ens1"]},{"ifname":"eth0"},{}]'
    assert host_links.parse_altnames(text) == {"eth1": ["enp1s0", "ens1"]}


def test_parse_kinds():
    """As iproute2 6.1 prints it; older ones print nothing of it, or no JSON."""
    text = json.dumps(
        [
            {"ifname": "vrf-a", "linkinfo": {"info_kind": "vrf", "info_data": {"table": 50}}},
            {"ifname": "eth1", "master": "vrf-a", "linkinfo": {"info_slave_kind": "vrf", "info_slave_data": {}}},
            {"ifname": "eth0"},
            {},
        ]
    )
    assert host_links.parse_kinds(text) == {"vrf-a": "vrf"}
    assert host_links.parse_kinds("1: lo: <LOOPBACK>") == {}


@pytest.mark.parametrize(
    ("text", "route"),
    [
        ('[{"dst":"10.5.0.20","dev":"eth1","prefsrc":"10.5.0.11","flags":[],"uid":0}]', ("eth1", "10.5.0.11", "")),
        (
            '[{"dst":"10.9.0.1","gateway":"10.5.0.1","dev":"eth1","prefsrc":"10.5.0.11"}]',
            ("eth1", "10.5.0.11", "10.5.0.1"),
        ),
        (
            '[{"dst":"10.9.0.1","via":{"family":"inet6","host":"fe80::1"},"dev":"eth1","prefsrc":"10.5.0.11"}]',
            ("eth1", "10.5.0.11", "fe80::1"),
        ),
        ('[{"type":"local","dst":"10.5.0.11","dev":"lo","prefsrc":"10.5.0.11"}]', ("lo", "10.5.0.11", "")),
        ("[]", ("", "", "")),
        ("", ("", "", "")),
        ("Object \"-j\" is unknown, try \"ip help\".", ("", "", "")),
    ],
)  # fmt: skip
def test_parse_route(text, route):
    assert host_links.parse_route(text) == dict(zip(("dev", "source", "gateway"), route))


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ('[{"netns":"shared","copy-on-fork":"on"}]', "shared"),
        ('{"netns":"exclusive"}', "exclusive"),
        ("netns shared copy-on-fork on", "shared"),
        ("netns exclusive", "exclusive"),
        ("[]", ""),
        ("", ""),
        ("Error: nonsense", ""),
    ],
)
def test_parse_netns_mode(text, mode):
    assert host_links.parse_netns_mode(text) == mode


def test_parse_memlock():
    text = """LimitMEMLOCK=infinity
Id=containerd.service
LoadState=loaded

LimitMEMLOCK=65536
Id=docker.service
LoadState=not-found

LimitMEMLOCK=8388608
Id=k3s-agent.service
LoadState=loaded

LimitMEMLOCK=18446744073709551615
Id=crio.service
LoadState=loaded
"""
    assert host_links.parse_memlock(text) == {"containerd": "infinity", "k3s-agent": "8388608", "crio": "infinity"}
    assert host_links.parse_memlock("") == {}


# ---- observing ------------------------------------------------------------------------------------------------------


def answers(**outputs: str) -> host_links.Runner:
    """A host on which the programs named print this; others are not installed. `ip` says what fits its question."""

    def run(argv: t.Sequence[str]) -> Done:
        key = "route" if "route" in argv else argv[0]
        return Done(0, outputs[key], "") if key in outputs else Done(127, "", f"{argv[0]}: not found")

    return run


IP = json.dumps([{"ifname": "ens1f0np0", "addr_info": [{"local": "10.5.0.11", "prefixlen": 24, "scope": "global"}]}])


def test_read_rdma(tree):
    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0")
    tree.gpu("0000:1b:00.0")
    run = answers(
        ip=IP,
        route='[{"dev":"ens1f0np0","prefsrc":"10.5.0.11"}]',
        rdma='[{"netns":"shared"}]',
        systemctl="Id=containerd.service\nLoadState=loaded\nLimitMEMLOCK=infinity\n",
    )
    seen = host_links.read_rdma(["10.5.0.20", "fd00::20"], root=str(tree), run=run)
    assert [link["addresses"] for link in seen["links"]] == [[], FABRIC]
    assert {key: seen[key] for key in ("netns_mode", "memlock", "modules", "rdma_subsystem")} == {
        "netns_mode": "shared",
        "memlock": {"containerd": "infinity"},
        "modules": [],
        "rdma_subsystem": True,
    }
    assert [gpu["pci"] for gpu in seen["gpus"]] == ["0000:1b:00.0"]
    assert seen["routes"]["10.5.0.20"] == {"dev": "ens1f0np0", "source": "10.5.0.11", "gateway": ""}
    assert set(seen["routes"]) == {"10.5.0.20", "fd00::20"}


def test_read_rdma_asks_for_the_right_family(tree):
    asked = []

    def run(argv):
        asked.append(list(argv))
        return answers(ip=IP, route="[]")(argv)

    host_links.read_rdma(["10.5.0.20", "fd00::20"], root=str(tree), run=run)
    assert ["ip", "-j", "-4", "route", "get", "10.5.0.20"] in asked
    assert ["ip", "-j", "-6", "route", "get", "fd00::20"] in asked


def test_an_ip_whose_details_are_no_json(tree):
    def run(argv):
        return Done(0, "[{,bridge {" if "-d" in argv else IP, "") if argv[0] == "ip" else Done(127, "", "")

    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0")
    assert [link["addresses"] for link in host_links.read_rdma(root=str(tree), run=run)["links"]] == [[], FABRIC]


VRF_ROUTE = '[{"dst":"10.5.0.20","dev":"ens1f0np0","table":"50","prefsrc":"10.5.0.11","flags":[]}]'


@pytest.mark.parametrize(
    ("main", "dev"),
    [
        ("[]", "ens1f0np0"),
        ('[{"dev":"eno1","gateway":"10.1.0.1"}]', "ens1f0np0"),  # the default route leads everywhere
        ('[{"dev":"eno1"}]', "eno1"),
    ],
)
def test_routes_of_a_vrf(tree, main, dev):
    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0")
    tree.netdev("vrf-a")
    tree.enslave("vrf-a", ["ens1f0np0"])
    devices = json.dumps([*json.loads(IP), {"ifname": "vrf-a", "linkinfo": {"info_kind": "vrf"}}])

    def run(argv):
        if "route" in argv:
            return Done(0, VRF_ROUTE if argv[-2:] == ["vrf", "vrf-a"] else main, "")
        return Done(0, devices, "")

    seen = host_links.read_rdma(["10.5.0.20"], root=str(tree), run=run)
    assert seen["routes"]["10.5.0.20"]["dev"] == dev
    nic = next(link for link in seen["links"] if link["netdev"] == "ens1f0np0")
    assert (nic["master"], nic["master_kind"]) == ("vrf-a", "vrf")


def test_read_rdma_without_rdma_and_systemctl(tree):
    seen = host_links.read_rdma(["10.5.0.20"], root=str(tree), run=answers(ip=IP))
    assert (seen["netns_mode"], seen["memlock"], seen["rdma_subsystem"]) == ("", {}, False)
    assert seen["routes"] == {"10.5.0.20": {"dev": "", "source": "", "gateway": ""}}


@pytest.mark.parametrize(("value", "mode"), [("Y", "shared"), ("N", "exclusive"), ("", "")])
def test_netns_mode_of_the_module_without_the_rdma_program(tree, value, mode):
    tree.write("sys/module/ib_core/parameters/netns_mode", value)
    assert host_links.read_rdma(root=str(tree), run=answers(ip=IP))["netns_mode"] == mode


@pytest.mark.parametrize(
    "run",
    [
        answers(),
        answers(ip=""),
        answers(ip="usage: ip [ OPTIONS ]"),
        lambda argv: Done(255, "", 'Option "-j" is unknown'),
        lambda argv: Done(None, "", ""),
    ],
)
def test_ip_is_needed(tree, run):
    with pytest.raises(FabricError) as error:
        host_links.read_rdma(root=str(tree), run=run)
    assert "iproute2" in error.value.next_step
    assert error.value.seen


def test_routes_to_takes_addresses(tree):
    with pytest.raises(FabricError, match=r"vipu\.example"):
        host_links.read_rdma(["vipu.example"], root=str(tree), run=answers(ip=IP))


# ---- models and firmware --------------------------------------------------------------------------------------------


def test_the_model_and_the_firmware_of_a_nic(tree):
    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0")
    tree.write("sys/class/infiniband/mlx5_0/fw_ver", "20.35.1012")
    tree.write("sys/class/infiniband/mlx5_0/board_id", "MT_0000000359")
    tree.vlan("ens1f0np0.100", "ens1f0np0")
    for name in ("vendor", "device"):
        tree.write(f"sys/class/net/eno1/device/{name}", {"vendor": "0x8086", "device": "0x1521"}[name])
    found = {name: (link["model"], link["firmware"]) for name, link in links(tree).items()}
    assert found["eno1"] == ("8086:1521", "")
    assert found["ens1f0np0"] == found["ens1f0np0.100"] == ("MT_0000000359", "20.35.1012")


@pytest.mark.parametrize(
    ("written", "guid", "version"),
    [
        (
            {"node_guid": "0c42:a103:0012:b0f4", "version": "24.10-2.1.8", "srcversion": "A1"},
            "0c42:a103:0012:b0f4",
            "24.10-2.1.8",
        ),
        (
            {"node_guid": "0000:0000:0000:0000", "srcversion": "A1"},
            "",
            "A1",
        ),  # a virtual function, a driver of the kernel
        ({}, "", ""),
    ],
)
def test_the_guid_and_the_drivers_version(tree, written, guid, version):
    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0")
    for name, value in written.items():
        folder = "class/infiniband/mlx5_0" if name == "node_guid" else "module/mlx5_core"
        tree.write(f"sys/{folder}/{name}", value)
    found = links(tree)["ens1f0np0"]
    assert (found["guid"], found["driver_version"]) == (guid, version)


def test_software_rdma_has_no_firmware(tree):
    tree.rdma("rxe0", "", parent="eno1")
    assert [(link["device"], link["model"], link["firmware"]) for link in links(tree).values()] == [("rxe0", "", "")]
