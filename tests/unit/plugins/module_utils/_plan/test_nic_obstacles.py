"""NICs that can't carry a macvlan, from sysfs to the finding: each says what is in its way."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._host import links as host_links
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import errors, plan, site
from ansible_collections.ipu.fabric.tests.unit.fixtures.sysfs import Tree, host_with_management_nic

Data = t.Dict[str, t.Any]


def device(name: str, address: str = "", kind: str = "") -> Data:
    """A device as `ip -d addr` prints it."""
    entries = [{"local": address, "prefixlen": 24, "scope": "global"}] if address else []
    return {"ifname": name, "addr_info": entries, **({"linkinfo": {"info_kind": kind}} if kind else {})}


def observed(tree: Tree, *devices: Data) -> Data:
    """A site whose w1 has what is in `tree`, read as on a real host."""

    def run(argv: t.Sequence[str]) -> Done:
        if argv[0] != "ip":
            return Done(127, "", "not found")
        return Done(0, "[]" if "route" in argv else json.dumps([device("eno1", "10.88.0.12"), *devices]), "")

    hosts = site()
    kept = {key: hosts["w1"]["rdma"][key] for key in ("routes", "netns_mode", "memlock", "modules")}
    hosts["w1"]["rdma"] = {**host_links.read_rdma(root=str(tree), run=run), **kept}
    return hosts


def finding(hosts: Data, select: t.Optional[Data] = None, check: str = "fabric-nic") -> t.Tuple[str, str, str]:
    network = {"name": "rdma-net", "hosts": ["w1"], "select": select or {}}
    found = errors(plan(hosts, networks=[network]))[check]
    return found["what"], found["seen"], found["next"]


@pytest.fixture
def tree(tmp_path: t.Any) -> Tree:
    found = host_with_management_nic(tmp_path)
    found.nic("ens1f0", "mlx5_0", "0000:81:00.0", mtu=9000)
    return found


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("openvswitch", "Take ens1f0 out of up0 (ovs-vsctl del-port ens1f0)"),
        ("bridge", "Name up0 in `select` instead, or take ens1f0 out of up0"),
        ("team", "Name up0 in `select` instead, or take ens1f0 out of up0"),
    ],
)
def test_a_member(tree, kind, step):
    tree.netdev("up0", mtu=9000)
    tree.enslave("up0", ["ens1f0"])
    hosts = observed(tree, device("ens1f0", "10.5.0.12"), device("up0", "", kind))
    what, seen, following = finding(hosts, {"name": "ens1f0"})
    assert "No NIC matches" not in what
    assert seen.startswith("ens1f0 (RDMA mlx5_0 ACTIVE): member of up0: macvlan can't use it")
    assert following.startswith(step)


def test_a_bond_in_open_vswitch(tree):
    """Neither the bond nor its member, nor Open vSwitch's own devices, is a master; the advice is about the bond."""
    tree.bond("bond1", ["ens1f0"], mtu=9000)
    tree.netdev("ovs-system", operstate="down")
    tree.enslave("ovs-system", ["bond1"])
    tree.netdev("br-ex")
    hosts = observed(tree, device("bond1", "10.5.0.12"), device("br-ex", "10.6.0.12", "openvswitch"))
    _what, seen, following = finding(hosts, {"name": "bond1"})
    assert "member of ovs-system: macvlan can't use it" in seen
    assert following.startswith("Take bond1 out of ovs-system (ovs-vsctl del-port bond1). Or name another NIC")
    _what, seen, following = finding(hosts)
    assert "bond1 (" in seen
    assert "ens1f0 (" in seen
    assert "ovs-system (" in seen
    _what, seen, following = finding(hosts, {"subnet": "10.6.0.0/24"})
    assert "br-ex (no RDMA): a device of Open vSwitch" in seen
    _what, _seen, following = finding(hosts, {"name": "ens1f0"})
    assert following.startswith("Take bond1 out of ovs-system (ovs-vsctl del-port bond1), then name bond1 in `select`")


def test_the_dropped_nic_is_named_beside_one_without_rdma(tree):
    tree.bridge("br0", ["ens1f0"])
    tree.netdev("ens2", tree.pci("0000:a1:00.0", "mlx5_core"))
    _what, seen, _step = finding(observed(tree, device("ens2", "10.5.0.12")), {"name": "ens*"})
    assert "ens2 (mlx5_core, 0000:a1:00.0, no RDMA, 10.5.0.12/24); ens1f0 (" in seen
    assert "member of br0: macvlan can't use it" in seen


def test_the_nic_near_the_gpu_is_dropped(tree):
    """The message names it, and not only the one that is too far away."""
    tree.gpu("0000:82:00.0", "pci0000:80")
    tree.nic("ens2", "mlx5_1", "0000:83:00.0", above="pci0000:80", mtu=9000)
    tree.bridge("br0", ["ens2"])
    hosts = observed(tree, device("ens1f0", "10.5.0.12"))
    planned = plan(hosts, networks=[{"name": "rdma-net", "hosts": ["w1"], "select": {"gpu": 0, "name": "ens*"}}])
    seen = errors(planned)["fabric-nic"]["seen"]
    assert "ens1f0 (mlx5_core" in seen
    assert "ens2 (mlx5_core, 0000:83:00.0, RDMA mlx5_1 ACTIVE, no address): member of br0: macvlan can't use it" in seen


def test_a_plain_nic_whose_master_is_not_listed(tree):
    """A bridge without an address or RDMA is not observed as a link, but its member still names it."""
    tree.netdev("ens2", tree.pci("0000:a1:00.0", "igb"))
    tree.bridge("br0", ["ens2"])
    network = {"name": "rdma-net", "hosts": ["w1"], "select": {"name": "ens2"}}
    found = errors(plan(observed(tree, device("ens2", "10.5.0.12")), networks=[network], require_rdma=False))
    assert found["fabric-nic"]["seen"].startswith("ens2 (no RDMA): member of br0: macvlan can't use it")
    assert found["fabric-nic"]["next"].startswith("Take ens2 out of br0. Or name another NIC")


def vrf(tree: Tree) -> Data:
    tree.netdev("vrf-a")
    tree.enslave("vrf-a", ["ens1f0"])
    return observed(tree, device("ens1f0", "10.5.0.12"), device("vrf-a", "", "vrf"))


@pytest.mark.parametrize("select", [{}, {"name": "ens1f0"}, {"subnet": "10.5.0.0/24"}, {"driver": "mlx5_core"}])
def test_a_member_of_a_vrf_is_planned(tree, select):
    planned = plan(vrf(tree), networks=[{"name": "rdma-net", "hosts": ["w1"], "select": select}])
    assert planned["findings"] == []
    assert planned["networks"][0]["master"] == "ens1f0"


def test_a_vrf_itself(tree):
    _what, seen, following = finding(vrf(tree), {"name": "vrf-a"})
    assert "vrf-a (RDMA mlx5_0 ACTIVE): a VRF" in seen
    assert following.startswith("Name its member ens1f0 in `select` instead")


# ---- devices of the pod network, containers and guests ---------------------------------------------------------------


@pytest.fixture
def node(tmp_path: t.Any) -> Data:
    """w1 is a node: its NIC is called eth1, and flannel, Docker and pods have their devices."""
    found = host_with_management_nic(tmp_path)
    for name in ("eth1", "flannel.1", "veth6cea43e6", "cali0123456789a"):
        found.netdev(name)
    found.bridge("cni0", ["veth6cea43e6"])
    found.netdev("docker0")
    return observed(
        found,
        device("eth1", "10.5.0.12"),
        device("flannel.1", "10.244.1.0", "vxlan"),
        device("cni0", "10.244.1.1", "bridge"),
        device("docker0", "172.17.0.1", "bridge"),
    )


def plain_finding(hosts: Data, select: Data) -> t.Tuple[str, str, str]:
    network = {"name": "rdma-net", "hosts": ["w1"], "select": select}
    found = errors(plan(hosts, networks=[network], require_rdma=False))["fabric-nic"]
    return found["what"], found["seen"], found["next"]


@pytest.mark.parametrize("select", [{"name": "eth7"}, {"subnet": "10.7.0.0/24"}])
def test_a_wrong_selection_is_answered_with_the_nics_of_the_host(node, select):
    node["w1"]["rdma"]["links"] = [one for one in node["w1"]["rdma"]["links"] if one["netdev"] != "eno1"]
    _what, seen, _step = plain_finding(node, select)
    assert seen.startswith("eth1 (no RDMA, 10.5.0.12/24)")
    for name in ("cni0", "flannel.1", "docker0", "veth", "cali"):
        assert name not in seen


def test_what_nearly_fits_has_the_pod_network_last(node):
    _what, seen, _step = plain_finding(node, {"name": ["cni0", "eth1"], "driver": "mlx5_core"})
    assert seen.startswith("eth1 (no RDMA, 10.5.0.12/24): not of the selected driver; cni0 (")


@pytest.mark.parametrize(
    ("select", "why"),
    [
        ({"name": "cni0"}, "cni0 (no RDMA): bridge of the pod network"),
        ({"name": "flannel.1"}, "flannel.1 (no RDMA): device of the pod network"),
        ({"name": "docker0"}, "docker0 (no RDMA): bridge of this host's containers or guests"),
        ({"subnet": "10.244.0.0/16"}, "cni0 (no RDMA): bridge of the pod network"),
    ],
)
def test_a_device_of_the_pod_network_is_no_master(node, select, why):
    what, seen, following = plain_finding(node, select)
    assert "that could be the fabric NIC can carry a macvlan" in what
    assert why in seen
    assert following.startswith("Name a NIC in `select` of fabric_networks.")


def test_without_a_selection_they_are_no_candidates(node):
    _what, seen, _step = plain_finding(node, {})
    assert [one.split()[0] for one in seen.split("; ")] == ["eno1", "eth1"]


def test_a_bridge_that_has_a_nic_is_the_fabric_s_whatever_its_name(tree):
    tree.bridge("virbr1", ["ens1f0"])
    planned = plan(
        observed(tree, device("virbr1", "10.5.0.12", "bridge")),
        networks=[{"name": "rdma-net", "hosts": ["w1"], "select": {"name": "virbr1"}}],
        require_rdma=False,
    )
    assert planned["networks"][0]["master"] == "virbr1"


@pytest.mark.parametrize(
    ("network", "step"),
    [({}, "Give the fabric NICs addresses of another subnet"), ({"subnet": "10.5.0.0/24"}, "Choose another `subnet`")],
)
def test_the_ranges_of_a_cluster_that_others_manage_stay(tree, network, step):
    hosts = observed(tree, device("ens1f0", "10.5.0.12"))
    networks = [{"name": "rdma-net", "hosts": ["w1"], **network}]
    found = errors(plan(hosts, networks=networks, pod_cidr="10.5.0.0/16", manage_kubernetes=False))["subnet"]
    assert found["next"].startswith(step)
    assert "fabric_pod_cidr" not in found["next"]


# ---- RDMA that is not RoCE ------------------------------------------------------------------------------------------


def lone(folder: t.Any, device: str, driver: str, link_layer: str) -> Tree:
    found = host_with_management_nic(folder)
    found.rdma(device, found.pci("0000:c1:00.0", driver), link_layer=link_layer)
    return found


INFINIBAND, EFA = ("mlx5_0", "mlx5_core", "InfiniBand"), ("rdmap0s6", "efa", "Unknown")
IN_A_POD = ("mlx5_0", "mlx5_core", "Ethernet")


@pytest.mark.parametrize(
    ("device", "check", "seen", "step"),
    [
        (INFINIBAND, "link-layer", "not RoCE: InfiniBand, and no network device here", "Set the port to Ethernet"),
        (EFA, "fabric-nic", "not RoCE, and no network device here", "Pods get efa from its vendor's device plugin"),
        (IN_A_POD, "fabric-nic", "ACTIVE): no network device here", "if `rdma link` names one, a pod has it"),
    ],
)
@pytest.mark.parametrize("select", [{}, {"pci": "0000:c1:*"}, {"pci": "C1:00.0"}])
def test_rdma_without_a_network_device(tmp_path, device, check, seen, step, select):
    _what, found, following = finding(observed(lone(tmp_path, *device)), select, check)
    assert found.startswith(f"{device[0]} ({device[1]}, 0000:c1:00.0, ACTIVE): ")
    assert seen in found
    assert "eno1 (igb" in found
    assert step in following


@pytest.mark.parametrize("device", [EFA, INFINIBAND])
def test_a_lone_device_that_may_be_the_one_under_another_name(tmp_path, device):
    """It is named, and what is wrong with the selection stays the finding."""
    what, found, following = finding(observed(lone(tmp_path, *device)), {"name": "ens7"})
    assert "No NIC matches" in what
    assert f"; {device[0]} ({device[1]}, 0000:c1:00.0, ACTIVE): not RoCE" in found
    assert following.startswith("Correct `select`")


@pytest.mark.parametrize("device", [INFINIBAND, EFA, IN_A_POD])
def test_a_roce_nic_beside_it_is_planned(tmp_path, device):
    tree = lone(tmp_path, *device)
    tree.nic("ens1f0", "mlx5_9", "0000:81:00.0", mtu=9000)
    planned = plan(observed(tree, device_of_fabric()), networks=[{"name": "rdma-net", "hosts": ["w1"]}])
    assert planned["findings"] == []


def device_of_fabric() -> Data:
    return device("ens1f0", "10.5.0.12")


@pytest.mark.parametrize(("node_type", "protocol"), [("4: RNIC", "iWARP"), ("6: usNIC UDP", "usNIC")])
def test_ethernet_that_is_not_roce(tree, node_type, protocol):
    tree.write("sys/class/infiniband/mlx5_0/node_type", node_type)
    hosts = observed(tree, device_of_fabric())
    what, seen, following = finding(hosts, {}, "link-layer")
    assert what == f"rdma-net: RDMA of pods on a macvlan is RoCE, not {protocol}."
    assert seen.startswith(f"ens1f0 (mlx5_0 port 1), driver mlx5_core, is {protocol}")
    assert "fabric_require_rdma to false" in following
    network = {"name": "rdma-net", "hosts": ["w1"], "select": {"name": "ens1f0"}}
    plain = plan(hosts, networks=[network], require_rdma=False)
    assert plain["networks"][0]["master"] == "ens1f0"
    tree.nic("ens3", "mlx5_1", "0000:a1:00.0", mtu=9000)
    hosts = observed(tree, device_of_fabric(), device("ens3", "10.6.0.12"))
    assert plan(hosts, networks=[{"name": "rdma-net", "hosts": ["w1"]}])["networks"][0]["master"] == "ens3"


def test_of_two_devices_of_a_nic_the_one_with_roce_counts(tree):
    """siw and rxe on one NIC, or irdma with both protocols."""
    tree.rdma("a_siw0", netdevs=["ens1f0"], parent="ens1f0")
    tree.write("sys/class/infiniband/a_siw0/node_type", "4: RNIC")
    planned = plan(observed(tree, device_of_fabric()), networks=[{"name": "rdma-net", "hosts": ["w1"]}])
    assert planned["findings"] == []
    assert planned["hosts"]["w1"]["links"]["rdma-net"]["device"] == "mlx5_0"


# ---- several network devices on one PCI function --------------------------------------------------------------------


def resource_findings(hosts: Data, *networks: Data) -> t.List[t.Tuple[str, str, str]]:
    found = plan(hosts, networks=[{"hosts": ["w1"], **network} for network in networks])["findings"]
    return [(item["level"], item["seen"], item["next"]) for item in found if item["check"] == "rdma-resource"]


def test_representors_beside_the_nic(tmp_path):
    """switchdev: what a pod gave back comes first by name."""
    tree = host_with_management_nic(tmp_path)
    pci = tree.pci("0000:d8:00.0", "mlx5_core")
    tree.netdev("ens8f1", pci, phys_port_name="p0", mtu=9000)
    for number, name in enumerate(("58609951635cbfa", "ens8f1_0", "ens8f1_1")):
        tree.netdev(name, pci, phys_port_name=f"pf0vf{number}")
    tree.rdma("mlx5_0", pci, netdevs=["ens8f1"])
    ((level, seen, step),) = resource_findings(observed(tree, device("ens8f1", "10.5.0.12")), {"name": "rdma-net"})
    assert level == "error"
    assert seen == "ens8f1 is to be selected; 0000:d8:00.0 has 58609951635cbfa, ens8f1, ens8f1_0, ens8f1_1"
    assert step.startswith("Give ens8f1 a name that comes before 58609951635cbfa (a systemd .link file by MAC or path)")
    tree.netdev("0fabric", pci, phys_port_name="p0", mtu=9000)  # followed: the NIC with its new name
    tree.rdma("mlx5_1", pci, netdevs=["0fabric"])
    hosts = observed(tree, device("0fabric", "10.5.0.12"))
    assert resource_findings(hosts, {"name": "rdma-net", "select": {"name": "0fabric"}}) == []


def test_the_second_port_of_mlx4(tmp_path):
    tree = host_with_management_nic(tmp_path)
    pci = tree.pci("0000:05:00.0", "mlx4_core")
    tree.netdev("ens5", pci, dev_port=0, mtu=9000)
    tree.netdev("ens5d1", pci, dev_port=1, mtu=9000)
    tree.rdma("mlx4_0", pci, netdevs=["ens5", "ens5d1"])
    hosts = observed(tree, device("ens5", "10.6.0.12"), device("ens5d1", "10.5.0.12"))
    ports = [{"name": "a", "select": {"name": "ens5"}}, {"name": "b", "select": {"name": "ens5d1"}}]
    assert resource_findings(hosts, ports[0]) == []
    for networks in (ports[1:], ports):
        ((level, seen, step),) = resource_findings(hosts, *networks)
        assert (level, seen) == ("error", "ens5d1 is to be selected; 0000:05:00.0 has ens5, ens5d1")
        assert ("or the networks of ens5d1 and ens5 one rdma_resource" in step) == (len(networks) == 2)
    assert resource_findings(hosts, *({**port, "rdma_resource": "both"} for port in ports)) == []


def test_a_subfunction(tree):
    """Its PCI function has the NIC itself and the representor."""
    nic = "sys/devices/pci0000:00/0000:81:00.0"
    part = f"{nic}/mlx5_core.sf.4"
    (tree.root / part).mkdir()
    tree.netdev("ens1f0s88", part, mtu=9000)
    tree.rdma("mlx5_4", part, netdevs=["ens1f0s88"])
    hosts = observed(tree, device("ens1f0s88", "10.5.0.12"))
    ((level, seen, step),) = resource_findings(hosts, {"name": "rdma-net", "select": {"name": "ens1f0s88"}})
    assert (level, step[:14]) == ("error", "Select ens1f0,")
    assert "0000:81:00.0 has ens1f0, and ens1f0s88 is a subfunction of it" in seen


def test_a_bond_of_nics_with_representors(tree):
    """RoCE LAG: the member's name is selected, and has to come first too."""
    pci = "sys/devices/pci0000:00/0000:81:00.0"
    tree.netdev("aux0", pci, phys_port_name="pf0vf0")
    tree.bond("bond0", ["ens1f0"], mtu=9000)
    hosts = observed(tree, device("bond0", "10.5.0.12"))
    ((_level, seen, _step),) = resource_findings(hosts, {"name": "rdma-net"})
    assert seen == "ens1f0 is to be selected; 0000:81:00.0 has aux0, ens1f0"


def test_software_rdma_and_pvrdma_have_no_function_of_their_own(tmp_path):
    tree = host_with_management_nic(tmp_path)
    tree.netdev("ens2", tree.pci("0000:00:04.0", "virtio_net"), mtu=9000)
    tree.rdma("rxe0", netdevs=["ens2"], parent="ens2")
    assert resource_findings(observed(tree, device("ens2", "10.5.0.12")), {"name": "rdma-net"}) == []


# ---- devices of others on the NIC -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "mode", "taken"),
    [
        ("ipvlan", "l2", "ipvlan pod0"),
        ("ipvtap", "l2", "ipvtap pod0"),
        ("macsec", "", "macsec pod0"),
        ("macvlan", "passthru", "macvlan pod0 (passthru)"),
        ("macvtap", "passthru", "macvtap pod0 (passthru)"),
        ("macvlan", "private", ""),  # private, vepa and bridge go together
        ("vxlan", "", ""),
    ],
)
def test_what_stands_on_the_nic(tree, kind, mode, taken):
    tree.tunnel("pod0", "ens1f0")
    taker = {"ifname": "pod0", "link": "ens1f0", "linkinfo": {"info_kind": kind, "info_data": {"mode": mode}}}
    hosts = observed(tree, device("ens1f0", "10.5.0.12"), taker)
    if not taken:
        assert plan(hosts, networks=[{"name": "rdma-net", "hosts": ["w1"]}])["findings"] == []
        return
    _what, seen, following = finding(hosts)
    assert f"ens1f0 (RDMA mlx5_0 ACTIVE): taken by {taken}: the kernel refuses a macvlan beside it" in seen
    assert following.startswith("Delete pod0. Or name another NIC")


def test_pods_that_use_the_host_s_device_need_no_macvlan(tree):
    """Without fabric networks an ipvlan on the NIC is in nobody's way."""
    tree.tunnel("pod0", "ens1f0")
    hosts = observed(tree, device("ens1f0", "10.5.0.12"), device("pod0", "", "ipvlan"))
    assert "fabric-nic" not in errors(plan(hosts, networks=[]))
