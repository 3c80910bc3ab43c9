import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.calico import calico_installation

FROM_KUBELET = {"kubernetes": "NodeInternalIP", "firstFound": False}
IPV4_POOL = {
    "name": "default-ipv4-ippool",
    "cidr": "10.244.0.0/16",
    "allowedUses": ["Workload", "Tunnel"],
    "assignmentMode": "Automatic",
    "blockSize": 26,
    "disableBGPExport": False,
    "disableNewAllocations": False,
    "encapsulation": "VXLAN",
    "natOutgoing": "Enabled",
    "nodeSelector": "all()",
}
IPV6_POOL = {**IPV4_POOL, "name": "default-ipv6-ippool", "cidr": "fd00:10:244::/56", "blockSize": 122}


def network(*cidrs, **settings):
    return calico_installation(cidrs, {"calicoNetwork": settings})["calicoNetwork"]


def test_one_family():
    wanted = {"bgp": "Disabled", "ipPools": [IPV4_POOL], "nodeAddressAutodetectionV4": FROM_KUBELET}
    assert calico_installation(["10.244.0.0/16"]) == {"calicoNetwork": wanted}


def test_both_families():
    found = network("10.244.0.0/16", "fd00:10:244::/56")
    assert found["ipPools"] == [IPV4_POOL, IPV6_POOL]
    assert found["nodeAddressAutodetectionV6"] == found["nodeAddressAutodetectionV4"] == FROM_KUBELET


def test_settings_are_merged():
    settings = {"registry": "registry.site", "calicoNetwork": {"mtu": 8950}}
    found = calico_installation(["10.244.0.0/16"], settings)
    assert found["registry"] == "registry.site"
    assert found["calicoNetwork"]["mtu"] == 8950
    assert found["calicoNetwork"]["bgp"] == "Disabled"
    assert settings == {"registry": "registry.site", "calicoNetwork": {"mtu": 8950}}


@pytest.mark.parametrize(
    ("settings", "pool", "expected"),
    [
        ({}, {"cidr": "10.1.0.0/16", "blockSize": 24}, {"blockSize": 24, "encapsulation": "VXLAN"}),
        ({}, {"cidr": "10.1.0.0/16", "blockSize": None}, {"blockSize": 26, "nodeSelector": "all()"}),
        ({"bgp": "Enabled"}, {"cidr": "10.1.0.0/16"}, {"encapsulation": "IPIP", "natOutgoing": "Enabled"}),
        ({"bgp": "Enabled"}, {"cidr": "fd00::/56"}, {"encapsulation": "None", "natOutgoing": "Disabled"}),
        ({}, {"cidr": "fd00::/56"}, {"encapsulation": "VXLAN", "blockSize": 122, "assignmentMode": "Automatic"}),
    ],
)
def test_a_pool_of_the_site_gets_the_operators_defaults(settings, pool, expected):
    found = network("10.244.0.0/16", **settings, ipPools=[pool])["ipPools"]
    assert len(found) == 1
    assert found[0].items() >= expected.items()
    assert set(found[0]) == set(IPV4_POOL)


@pytest.mark.parametrize(
    ("cidrs", "names"),
    [
        (["10.1.0.0/16"], ["default-ipv4-ippool"]),
        (["fd00::/56", "10.1.0.0/16"], ["default-ipv6-ippool", "default-ipv4-ippool"]),
        (["10.1.3.0/16", "10.2.0.0/24"], ["10.1.0.0-16", "10.2.0.0-24"]),
        (
            ["10.1.0.0/16", "10.2.0.0/16", "fe80::/64"],
            ["10.1.0.0-16", "10.2.0.0-16", "fe80.0000.0000.0000.0000.0000.0000.0000-64"],
        ),
    ],
)
def test_a_pool_without_a_name_gets_the_operators(cidrs, names):
    pools = network("10.244.0.0/16", ipPools=[{"cidr": cidr} for cidr in cidrs])["ipPools"]
    assert [pool["name"] for pool in pools] == names
    named = network("10.244.0.0/16", ipPools=[{"cidr": cidr, "name": "own"} for cidr in cidrs])["ipPools"]
    assert {pool["name"] for pool in named} == {"own"}


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"interface": "ens3"}, {"interface": "ens3", "firstFound": False}),
        ({"firstFound": True}, {"firstFound": True}),
        (None, FROM_KUBELET),
    ],
)
def test_another_way_to_find_a_node_address_replaces_the_kubelets(chosen, expected):
    assert network("10.244.0.0/16", nodeAddressAutodetectionV4=chosen)["nodeAddressAutodetectionV4"] == expected


def test_pools_that_others_manage_stay_theirs():
    assert network("10.244.0.0/16", ipPools=[]) == {
        "bgp": "Disabled", "ipPools": [], "nodeAddressAutodetectionV4": FROM_KUBELET,
    }  # fmt: skip


@pytest.mark.parametrize("pool", [{"name": "no range"}, {"cidr": "10.0.0.0/99"}])
def test_a_pool_without_a_range(pool):
    with pytest.raises(FabricError, match=r"ipPools.*Give each pool a cidr"):
        network("10.244.0.0/16", ipPools=[pool])
