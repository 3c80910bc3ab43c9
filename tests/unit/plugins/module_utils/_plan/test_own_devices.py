"""Networks of other types than macvlan: what is planned of them, and what is refused."""

import json

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.ipu.fabric.plugins.module_utils._component import macvlan, network_operator
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import planned_config
from ansible_collections.ipu.fabric.plugins.module_utils._network.macvlan_objects import network_object
from ansible_collections.ipu.fabric.plugins.module_utils._plan import report as plan_report
from ansible_collections.ipu.fabric.plugins.modules.macvlan_network import POOLS, SETTINGS
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import change, errors, link, plan, site

BOTH = ("w1", "w2")
NIC, HOST = ("rdma", "links", 1), "10.5.0.20"


def nic(**fields):
    """A change of the fabric NIC of both workers."""

    def apply(hosts):
        for key, value in fields.items():
            change((*NIC, key), value)(hosts, BOTH)

    return apply


INFINIBAND = nic(link_layer="InfiniBand", mtu=2044)


def planned(network, *changes, beside=(), **settings):
    """The plan of one network, and those beside it; the way to V-IPU is by the management NIC."""
    hosts = site()
    change(("rdma", "routes", HOST, "dev"), "eno1")(hosts, BOTH)
    nic(vfs=8, max_vfs=16)(hosts)
    for each in changes:
        each(hosts)
    return plan(hosts, networks=[{"name": "rail", **network}, *beside], **settings)


def rendered(found):
    """The object of the network, and the policies of its operators."""
    (network,) = macvlan.decide(
        defaults("macvlan", networks=found["networks"], pool_namespace="n", namespace_labels={}), macvlan.Seen()
    ).networks
    given = {key: found.get(key, []) for key in ("rdma_resources", "device_resources", "sriov_policies")}
    settings = defaults(
        "network_operator", **given, ipoib="ipoib" in found["releases"]["components"], rdma_nodes=["w1"]
    )
    return network_object(network), planned_config(network), network_operator.decide(settings, network_operator.Seen())


def test_a_macvlan_says_nothing_of_its_type():
    found = planned({"type": "macvlan"})
    assert found == planned({})
    assert not {"cni", "vfs", "link_layer"} & set(found["networks"][0])
    assert not {"device_resources", "sriov_policies"} & set(found)
    assert not {"ipoib", "sriovDevicePlugin"} & set(found["releases"]["components"])


def test_ipoib():
    found = planned({"type": "ipoib", "select": {"name": "ens1f0"}}, INFINIBAND)
    assert found["findings"] == []
    network = found["networks"][0]
    assert (network["cni"], network["link_layer"], network["master"], network["mode"]) == (
        "ipoib",
        "InfiniBand",
        "ens1f0",
        "",
    )
    assert found["rdma_resources"][0]["selectors"] == {"ifNames": ["ens1f0"]}
    obj, config, wish = rendered(found)
    assert (obj["kind"], set(obj["spec"])) == ("IPoIBNetwork", {"networkNamespace", "master", "ipam"})
    assert (config["type"], config["master"]) == ("ipoib", "ens1f0")
    spec = wish.objects[0]["spec"]
    assert spec["secondaryNetwork"]["ipoib"] == {
        "repository": "nvcr.io/nvidia/mellanox",
        "image": "ipoib-cni",
        "version": "network-operator-v26.7.1",
    }
    assert "rdmaSharedDevicePlugin" in spec
    assert "rail: ipoib on ens1f0" in plan_report.as_text(found)


@pytest.mark.parametrize("changes", [(), (INFINIBAND,)])
def test_host_device(changes):
    found = planned({"type": "host_device"}, nic(vfs=0), *changes)
    assert errors(found) == {}
    assert "one pod of a host at a time" in errors(found, "warning")["networks"]["what"]
    network = found["networks"][0]
    assert (network["cni"], network["master"], network["resource"]) == ("host-device", "", "nvidia.com/host_device_a")
    assert network["subnet"]["needed"] == 2  # one pod of each host
    assert found["rdma_resources"] == []
    assert found["hosts"]["w1"]["links"]["rail"]["altname"] == ""
    obj, _config, wish = rendered(found)
    assert obj["spec"]["resourceName"] == "host_device_a"
    spec = wish.objects[0]["spec"]
    assert "rdmaSharedDevicePlugin" not in spec
    assert json.loads(spec["sriovDevicePlugin"]["config"]) == {
        "resourceList": [
            {
                "resourceName": "host_device_a",
                "resourcePrefix": "nvidia.com",
                "selectors": {"pciAddresses": ["0000:81:00.0"], "isRdma": True},
            }
        ]
    }


@pytest.mark.parametrize(
    ("changes", "kind", "cni", "policy"),
    [
        ((), "SriovNetwork", "sriov", {"linkType": "eth", "mtu": 9000}),
        ((INFINIBAND,), "SriovIBNetwork", "ib-sriov", {"linkType": "ib"}),
    ],
)
def test_sriov(changes, kind, cni, policy):
    found = planned({"type": "sriov"}, *changes)
    assert found["findings"] == []  # the NICs have their VFs
    assert found["networks"][0]["subnet"]["needed"] == 16  # a pod for each VF
    obj, config, wish = rendered(found)
    assert (obj["kind"], obj["metadata"]["namespace"]) == (kind, "nvidia-network-operator")
    assert config == {"type": cni, "ipam": found["networks"][0]["ipam"]}
    assert wish.objects[-1]["spec"] == {
        "resourceName": "sriov_a",
        "nodeSelector": {"feature.node.kubernetes.io/pci-15b3.present": "true"},
        "nicSelector": {"rootDevices": ["0000:81:00.0"]},
        "numVfs": 8,
        "deviceType": "netdevice",
        "isRdma": True,
        **policy,
    }
    assert wish.release.values["sriovNetworkOperator"] == {"enabled": True}
    assert {"kind": "SriovNetworkNodeState", "name": "w1"}.items() <= wish.ready[-1].items()


ARP = {
    "net.ipv4.conf.IFNAME.arp_announce": "2",
    "net.ipv4.conf.IFNAME.arp_ignore": "1",
    "net.ipv4.conf.IFNAME.rp_filter": "2",
}
SILENT = {"net.ipv6.conf.IFNAME.accept_ra": "0"}


@pytest.mark.parametrize(
    ("keys", "chained"),
    [
        ({}, []),
        ({"accept_ra": False}, [{"type": "tuning", "sysctl": SILENT}]),
        ({"meta_plugins": ["sbr"]}, [{"type": "sbr"}]),
        (
            {"meta_plugins": ["sbr", "tuning"], "accept_ra": False},
            [{"type": "tuning", "sysctl": {**ARP, **SILENT}}, {"type": "sbr"}],
        ),
    ],
)
def test_plugins_that_follow(keys, chained):
    """The operator puts the text as it is behind its own plugin."""
    found = planned({"type": "sriov", **keys})
    assert found["findings"] == []
    assert json.loads(f"[{rendered(found)[0]['spec']['metaPlugins']}]") == chained


@pytest.mark.parametrize(
    ("network", "seen"),
    [
        ({"meta_plugins": ["sbr"]}, "meta_plugins is set, type is macvlan"),
        ({"type": "host_device", "meta_plugins": ["sbr"]}, "meta_plugins is set, type is host_device"),
        ({"type": "sriov", "meta_plugins": "sbr"}, "meta_plugins is 'sbr'"),
        ({"type": "sriov", "meta_plugins": ["vrf"]}, "meta_plugins is '[vrf]'"),
        ({"type": "sriov", "meta_plugins": ["sbr", "sbr"]}, "meta_plugins is '[sbr, sbr]'"),
    ],
)
def test_plugins_that_a_network_can_not_have(network, seen):
    assert errors(planned(network))["networks"]["seen"] == seen


@pytest.mark.parametrize(
    ("network", "changes"),
    [
        ({}, ()),
        ({"type": "ipoib", "select": {"name": "ens1f0"}}, (INFINIBAND,)),
        ({"type": "host_device"}, (nic(vfs=0),)),
        ({"type": "sriov", "accept_ra": False}, ()),
        ({"type": "sriov"}, (INFINIBAND,)),
    ],
)
def test_the_module_takes_what_the_role_gives_it(network, changes):
    """A mode that is empty was refused: no network but a macvlan was ever created."""
    found = planned(network, *changes)
    given = macvlan.decide(defaults("macvlan", networks=found["networks"]), macvlan.Seen()).networks
    options = {"name": {"type": "str", "required": True}, **SETTINGS, **POOLS}
    spec = {"networks": {"type": "list", "elements": "dict", "options": options}}
    assert ArgumentSpecValidator(spec).validate({"networks": given}).error_messages == []


def test_a_cluster_of_one_node_is_not_drained():
    value = {"sriov-network-operator": {"sriovOperatorConfig": {"disableDrain": True}}}
    assert value.items() <= network_operator.sriov_values(True, single=True).items()
    assert "sriov-network-operator" not in network_operator.sriov_values(True, single=False)


def test_vfs_are_no_nics_of_a_network_of_vfs():
    """They are there on the second run, with RDMA and without an address."""
    vf = link("ens1f0v0", "", kind="vf", pci="0000:81:00.2", device="mlx5_1")

    def with_vf(hosts):
        for name in BOTH:
            hosts[name]["rdma"]["links"].append(vf)
            hosts[name]["rdma"]["links"][1]["addresses"] = []

    network = {"type": "sriov", "subnet": "10.5.0.0/24"}
    assert planned(network, with_vf)["findings"] == []


@pytest.mark.parametrize(
    ("network", "changes", "check", "seen", "step"),
    [
        ({"type": "ipoib"}, (), "link-layer", "link layer Ethernet", "type to macvlan"),
        ({"type": "macvlan"}, (INFINIBAND,), "link-layer", "link layer InfiniBand", "`type: sriov`"),
        ({"type": "host_device"}, (), "fabric-nic", "its 8 VFs", "type to sriov"),
        (
            {"type": "host_device"},
            (nic(vfs=0, addresses=[{"address": "10.88.0.12", "prefix": 24}]),),
            "fabric-nic",
            "the address of its node, its default route",
            "Name another NIC",
        ),
        (
            {"type": "host_device"},
            (nic(vfs=0), change(("rdma", "routes", HOST, "dev"), "ens1f0")),
            "fabric-nic",
            "its way to V-IPU",
            "Name another NIC",
        ),
        ({"type": "sriov"}, (nic(max_vfs=4),), "fabric-nic", "can have 4", "NUM_OF_VFS=8"),
        ({"type": "sriov"}, (nic(max_vfs=0),), "fabric-nic", "SR-IOV is off", "SRIOV_EN=1"),
        ({"type": "sriov"}, (nic(kind="bond", pci=""),), "fabric-nic", "is a bond", "Name the NIC itself"),
        ({"type": "sriov"}, (change((*NIC, "link_layer"), "InfiniBand"),), "networks", "and InfiniBand", "for each"),
    ],
)
def test_refusals(network, changes, check, seen, step):
    found = errors(planned(network, *changes))
    assert seen in found[check]["seen"]
    assert step in found[check]["next"]


@pytest.mark.parametrize("kind", ["host_device", "sriov"])
def test_another_nic_at_the_same_pci_address(kind):
    """Hosts that are on no network have no device plugin."""
    network, beside = {"type": kind, "hosts": ["w1"]}, [{"name": "other", "hosts": ["w2"]}]
    changes = [nic(vfs=0 if kind == "host_device" else 8)]
    assert "fabric-nic" not in errors(planned(network, *changes))
    found = errors(planned(network, *changes, beside=beside))["fabric-nic"]
    assert (found["hosts"], found["seen"]) == (["w2"], "ens1f0 of w2 is at 0000:81:00.0")


@pytest.mark.parametrize(
    ("network", "settings", "seen"),
    [
        ({"type": "ipvlan"}, {}, "type is 'ipvlan'"),
        ({"type": "ipoib", "mtu": 2044}, {}, "mtu is set"),
        ({"vfs": 4}, {}, "vfs is set"),
        ({"type": "sriov", "vfs": "many"}, {}, "vfs is 'many'"),
        ({"type": "host_device", "rdma_resource": "rdma/a"}, {}, "rdma_resource is 'rdma/a'"),
        ({"type": "sriov"}, {"stack": "spiderpool"}, "the stack is Spiderpool 1.2.2"),
        ({"type": "sriov"}, {"require_rdma": False}, "fabric_require_rdma is false"),
        ({"type": "sriov"}, {"network_operator_version": "25.4.0", "kubernetes_version": "1.32.1"}, "it is 25.4.0"),
    ],
)
def test_settings_that_do_not_fit(network, settings, seen):
    found = [each["seen"] for each in planned(network, **settings)["findings"] if each["check"] == "networks"]
    assert any(seen in each for each in found)


def test_drains_are_said_before_they_happen():
    (found,) = planned({"type": "sriov", "vfs": 8}, change((*NIC, "vfs"), 0))["findings"]
    assert (found["level"], found["hosts"]) == ("warning", ["w1"])
    assert "drains these nodes" in found["what"]
    assert found["seen"] == "0 VFs, planned 8"
    (found,) = planned({"type": "sriov", "vfs": 4}, nic(vfs=4))["findings"]
    assert found["seen"] == "vfs is 4, fabric_pods_per_node is 8"


@pytest.mark.parametrize("types", [("host_device", "macvlan"), ("sriov", "sriov"), ("sriov", "macvlan")])
def test_one_nic_of_two_networks(types):
    hosts = site()
    change(("rdma", "routes", HOST, "dev"), "eno1")(hosts, BOTH)
    nic(vfs=0 if "host_device" in types else 8, max_vfs=16)(hosts)
    shares = ("10.5.0.128/26", "10.5.0.192/26")
    networks = [{"name": f"n{i}", "type": each, "share": shares[i]} for i, each in enumerate(types)]
    found = [each["what"] for each in plan(hosts, networks=networks)["findings"] if each["level"] == "error"]
    assert found == ([] if types == ("sriov", "macvlan") else ["Networks n0 and n1 can't share a NIC."])
