"""Networks of sites that used something else before: their words as entries of fabric_networks, then ours."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites

Data = t.Dict[str, t.Any]
# A MacvlanNetwork of the network operator's examples, a SpiderMultusConfig of Spiderpool's guide, l8k's configuration.
MACVLAN_NETWORK = {
    "name": "example-macvlannetwork",
    "networkNamespace": "default",
    "master": "ens2f0",
    "mode": "bridge",
    "mtu": 1500,
    "ipam": {"type": "whereabouts", "range": "192.168.2.225/28", "exclude": ["192.168.2.229/30"]},
}
SPIDERPOOL = {
    "name": "gpu1-macvlan",
    "namespace": "spiderpool",
    "cniType": "macvlan",
    "master": ["enp11s0f0np0"],
    "rdmaResourceName": "spidernet.io/shared_cx5_gpu1",
    "ippools": {"ipv4": ["gpu1-net11"]},
}
LAUNCH_KIT = {"networkName": "macvlan-network", "resourceName": "rdma_shared_resource", "hcaMax": 63}


def nics(*names: str) -> Data:
    """Hosts with an RDMA NIC of each name, each on a subnet of its own."""
    hosts = sites.site()
    for number, name in enumerate(hosts, 11):
        hosts[name]["rdma"]["links"][1:] = [
            sites.link(nic, f"172.16.{rail}.{number}", device=f"mlx5_{rail}", pci=f"0000:{rail:02x}:00.0")
            for rail, nic in enumerate(names, 11)
        ]
    return hosts


def advice(hosts: Data, entry: Data, **settings: t.Any) -> t.Dict[str, str]:
    """What to do about each thing that was seen in an entry."""
    found = sites.plan(hosts, networks=[entry], **settings)["findings"]
    return {each["seen"]: each["next"] for each in found if each["check"] == "networks"}


@pytest.mark.parametrize(
    ("entry", "steps"),
    [
        (
            MACVLAN_NETWORK,
            {
                "'ipam'": "Here it is fabric_ipam, with its addresses in subnet",
                "'networkNamespace'": "Here it is namespace.",
            },
        ),
        (
            SPIDERPOOL,
            {
                "'cniType'": "Here it is type.",
                "'ippools'": "Here it is pool.",
                "'rdmaResourceName'": "Here it is rdma_resource.",
                "master is ['enp11s0f0np0']": "Write the name alone.",
            },
        ),
        (
            LAUNCH_KIT,
            {
                "'hcaMax'": "Here it is rdma_hca_max.",
                "'networkName'": "Here it is name.",
                "'resourceName'": "Here it is rdma_resource.",
                "name is ''": "Give it a name",
            },
        ),
    ],
)
def test_words_of_others_are_named_with_ours(entry: Data, steps: t.Dict[str, str]) -> None:
    found = advice(nics("ens1f0", "ens2f0"), entry)
    assert set(found) == set(steps)
    assert all(found[seen].startswith(step) for seen, step in steps.items())


def test_our_words_of_them_are_a_plan() -> None:
    rails = [f"enp1{number}s0f0np0" for number in range(1, 5)]
    for networks in (
        [{"name": "example-macvlannetwork", "master": rails[1], "mtu": 1500}],
        [
            {
                "name": f"gpu{number}-macvlan",
                "namespace": "spiderpool",
                "master": rail,
                "rdma_resource": f"spidernet.io/shared_cx5_gpu{number}",
                "pool": f"gpu{number}-net1{number}",
            }
            for number, rail in enumerate(rails, 1)
        ],
        [
            {
                "name": f"macvlan-network-rail-{number}",
                "select": {"pci": f"0000:{number + 11:02x}:00.0"},
                "rdma_resource": f"rdma_shared_resource_rail_{number}",
                "rdma_hca_max": 63,
            }
            for number in range(4)
        ],
    ):
        plan = sites.plan(nics(*rails), networks=networks)
        assert not [each for each in plan["findings"] if each["level"] == "error"]
        assert all(network["subnet"] for network in plan["networks"])


def test_a_nic_with_the_masters_name_is_the_one() -> None:
    """With several RDMA NICs, as CRs have it; a master that no NIC has is only a name, and select goes before it."""

    def chosen(hosts: Data, **keys: t.Any) -> t.Set[str]:
        plan = sites.plan(hosts, networks=[{"name": "rdma-net", **keys}])
        return {each["links"]["rdma-net"]["netdev"] for each in plan["hosts"].values() if each["links"]}

    assert chosen(nics("rdma0", "rdma1"), master="rdma1") == {"rdma1"}
    assert chosen(nics("rdma0", "rdma1"), master="fabric0") == set()
    assert chosen(nics("rdma0"), master="fabric0") == {"rdma0"}
    hosts = nics("rdma0", "rdma1")
    hosts["w1"]["rdma"]["links"][1]["altnames"] = ["fabric0"]
    hosts["w2"]["rdma"]["links"][2]["altnames"] = ["fabric0"]
    assert chosen(hosts, master="fabric0") == {"rdma0", "rdma1"}
    assert chosen(nics("rdma0", "rdma1"), master="rdma1", select={"name": "rdma0"}) == {"rdma0"}


@pytest.mark.parametrize(
    ("entry", "step"),
    [
        ({"subnet": "192.168.2.225/28"}, "Write 192.168.2.224/28, without host bits."),
        ({"select": {"subnet": "172.16.11.1/24"}}, "Write 172.16.11.0/24, without host bits."),
        ({"reserved": ["172.16.11.229/30"]}, "Write 172.16.11.228/30, without host bits."),
        ({"share": "172.16.11.225/28"}, "Write 172.16.11.224/28, without host bits."),
        ({"share": "172.16.11.300/28"}, "Write it like 10.5.0.20"),
        ({"subnet": "172.16.11/28"}, "Write a CIDR such as"),
    ],
)
def test_cidrs_with_host_bits_as_the_examples_of_others_have_them(entry: Data, step: str) -> None:
    """The network operator's example has "range": "192.168.2.225/28", which whereabouts takes."""
    found = sites.plan(nics("rdma0"), networks=[{"name": "rdma-net", **entry}])["findings"]
    assert [each["next"].startswith(step) for each in found if each["level"] == "error"] == [True]
