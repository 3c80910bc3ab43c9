"""The networks of whole plans: rails, names, VLANs and bonds, families."""

import copy

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._host import links as host_links
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.own_pools import pool_of
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import range_texts
from ansible_collections.ipu.fabric.plugins.module_utils._network.address_sets import planned_addresses
from ansible_collections.ipu.fabric.plugins.module_utils._plan import network_spec
from ansible_collections.ipu.fabric.plugins.module_utils._plan import report as plan_report
from ansible_collections.ipu.fabric.plugins.module_utils._plan.host_checks import RDMA_MODULES
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pool_checks import check_overlaps
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import change, errors, host, link, plan, site, with_ipv6
from ansible_collections.ipu.fabric.tests.unit.fixtures.sysfs import Tree


@pytest.fixture
def hosts():
    return site()


def with_names(hosts, **netdevs):
    """The fabric NICs under these names."""
    for number, (name, netdev) in enumerate(netdevs.items(), 12):
        hosts[name]["rdma"]["links"][1] = link(netdev, f"10.5.0.{number}")
        hosts[name]["rdma"]["routes"]["10.5.0.20"]["dev"] = netdev


@pytest.mark.parametrize(
    ("network", "master"),
    [
        ({"name": "rdma-net"}, "rdma-net"),
        ({"name": "rdma-net", "master": "fabric0"}, "fabric0"),
        ({"name": "rdma-net", "master": "ens2"}, "ens2"),
        ({"name": "accelerator-rail-0"}, "accelerato-b103"),
        ({"name": "storage"}, "storage-e34a"),  # somebody's name already
        ({"name": "lo"}, "lo-081d"),
    ],
)
def test_nics_of_different_names_get_a_common_one(hosts, network, master):
    with_names(hosts, w1="ens1f0", w2="ens2")
    hosts["w1"]["rdma"]["links"].append(link("eno2", "", rdma=False, altnames=["storage"]))
    planned = plan(hosts, networks=[network])
    assert planned["findings"] == []
    assert planned["networks"][0]["master"] == master
    assert len(master) <= 15
    assert planned["hosts"]["w1"]["links"][network["name"]]["altname"] == master
    assert planned["hosts"]["w2"]["links"][network["name"]]["altname"] == ("" if master == "ens2" else master)
    assert planned["rdma_resources"][0]["selectors"] == {"ifNames": ["ens1f0", "ens2"]}
    named = "ens1f0" if master == "ens2" else "ens1f0, ens2"
    assert f"{master} becomes an alternative name of {named}\n" in plan_report.as_text(planned)
    # The next plan, when the hosts have it, is the same.
    for name in ("w1", "w2"):
        hosts[name]["rdma"]["links"][1]["altnames"] = [master]
    assert plan(hosts, networks=[network])["hosts"] == planned["hosts"]


ADVERTISED = {"address": "2001:db8:7:1::a", "prefix": 64, "origin": "advertised"}


def of_routers(findings):
    return [each for each in findings if "router" in each["what"]]


@pytest.mark.parametrize("static", [{"address": "fd00:5::11", "prefix": 64}, {"address": "10.5.0.12", "prefix": 24}])
def test_static_addresses_go_before_those_of_router_advertisements(hosts, static):
    """iproute2 lists the newest first."""
    for number, name in enumerate(("w1", "w2"), 1):
        address = {**static, "address": f"{static['address'][:-1]}{number}"}
        hosts[name]["rdma"]["links"][1]["addresses"] = [{**ADVERTISED, "address": f"2001:db8:7:1::{number}"}, address]
    planned = plan(hosts)
    assert planned["networks"][0]["subnet"]["cidr"] in ("fd00:5::/64", "10.5.0.0/24")
    assert errors(planned) == {}
    (found,) = of_routers(planned["findings"])
    assert (found["level"], found["hosts"]) == ("warning", ["w1", "w2"])
    assert "ens1f0 of w1 has 2001:db8:7:1::1/64" in found["seen"]
    assert "on the routers" in found["next"]


@pytest.mark.parametrize("select", [{}, {"name": "ens1f0"}])
def test_two_subnets_on_one_nic_in_another_order(hosts, select):
    """The first is taken, so its hosts would be on different ones, and no prefix is wrong."""
    both = [{"address": f"10.{net}.0.{{}}", "prefix": 24} for net in (5, 6)]
    for number, (name, entries) in enumerate((("w1", both), ("w2", both[::-1])), 12):
        nic = hosts[name]["rdma"]["links"][1]
        nic["addresses"] = [{**entry, "address": entry["address"].format(number)} for entry in entries]
    network = {"name": "rdma-net", "select": select}
    found = errors(plan(hosts, networks=[network]))["subnet"]
    assert found["hosts"] == ["w1", "w2"]
    assert found["seen"] == (
        "ens1f0 of w1 has 10.5.0.0/24 and 10.6.0.0/24; ens1f0 of w2 has 10.6.0.0/24 and 10.5.0.0/24"
    )
    assert found["next"].startswith(
        "Name the fabric's subnet in select.subnet of rdma-net in fabric_networks: 10.5.0.0/24 or "
    )
    assert "prefix" not in found["next"]
    assert plan(hosts, networks=[{**network, "select": {**select, "subnet": "10.5.0.0/24"}}])["findings"] == []
    # In one order the first is taken, and said.
    hosts["w2"]["rdma"]["links"][1]["addresses"].reverse()
    (found,) = plan(hosts, networks=[network])["findings"]
    assert (found["level"], found["check"]) == ("warning", "subnet")
    assert "the plan uses 10.5.0.0/24" in found["what"]
    # A NIC with only one of them tells which.
    hosts["w2"]["rdma"]["links"][1]["addresses"] = [{"address": "10.6.0.13", "prefix": 24}]
    found = errors(plan(hosts, networks=[network]))["subnet"]
    assert (found["hosts"], found["next"].endswith("fabric_networks: 10.6.0.0/24.")) == (["w1"], True)


def test_two_families_or_a_second_address_are_no_second_subnet(hosts):
    for number, name in enumerate(("w1", "w2"), 12):
        hosts[name]["rdma"]["links"][1]["addresses"] += [
            {"address": f"10.5.0.{number + 90}", "prefix": 24},
            {"address": "10.5.0.99", "prefix": 32},
            {"address": f"fd00:5::{number}", "prefix": 64},
        ]
    assert plan(hosts)["findings"] == []


def without_addresses(hosts, *names):
    for name in names:
        hosts[name]["rdma"]["links"][1]["addresses"] = []


def test_a_nic_without_an_address_takes_the_subnet_that_is_stated(hosts):
    without_addresses(hosts, "w1", "w2")
    found = errors(plan(hosts))["fabric-nic"]
    assert found["next"] == (
        "Give ens1f0 an address on the fabric, or name the pods' subnet: key subnet of rdma-net in fabric_networks."
        " Or allow it with fabric_allow: [fabric-nic]."
    )
    for ipam in ("nv-ipam", "whereabouts"):
        network = {"name": "rdma-net", "subnet": "10.5.0.0/24", "gateway": "10.5.0.1"}
        planned = plan(hosts, networks=[network], ipam=ipam)
        assert planned["findings"] == []
        assert planned["networks"][0]["hosts"] == ["w1", "w2"]
        subnet = planned["networks"][0]["subnet"]
        assert (subnet["cidr"], subnet["capacity"] >= 16) == ("10.5.0.0/24", True)
        link_of_w1 = planned["hosts"]["w1"]["links"]["rdma-net"]
        assert (link_of_w1["address"], link_of_w1["prefix"], link_of_w1["addresses"]) == ("", 0, [])
        assert plan_report.host_rows(planned)[1][1][4] == "ens1f0"
    planned = plan(hosts, networks=[network], stack="spiderpool", ipu=False)
    assert planned["findings"] == []


def test_hosts_may_have_addresses_in_a_stated_subnet(hosts):
    """One with an address there keeps it from pods; a prefix of another length is said."""
    without_addresses(hosts, "w2")
    hosts["w1"]["rdma"]["links"][1]["addresses"] = [{"address": "10.5.0.130", "prefix": 16}]
    planned = plan(hosts, networks=[{"name": "rdma-net", "subnet": "10.5.0.0/24"}], ipam="whereabouts")
    (found,) = planned["findings"]
    assert (found["level"], found["what"]) == (
        "warning",
        "rdma-net: Nodes have a prefix other than 10.5.0.0/24: w1 10.5.0.130/16.",
    )
    assert "10.5.0.130/32" in planned["networks"][0]["ipam"]["exclude"]
    assert planned["hosts"]["w1"]["links"]["rdma-net"]["address"] == "10.5.0.130"


def test_a_stated_subnet_that_no_nic_is_in(hosts):
    (found,) = plan(hosts, networks=[{"name": "rdma-net", "subnet": "10.50.0.0/24"}])["findings"]
    assert (found["level"], found["hosts"]) == ("warning", ["w1", "w2"])
    assert found["seen"].startswith("subnet is 10.50.0.0/24; ens1f0 of w1 has 10.5.0.12/24")


def test_a_stated_subnet_of_each_family(hosts):
    without_addresses(hosts, "w1", "w2")
    for families in ([], ["ipv6", "ipv4"]):
        network = {"name": "rdma-net", "subnet": "10.5.0.0/24, fd00:5::/112", "families": families}
        planned = plan(hosts, networks=[network])
        assert planned["findings"] == []
        cidrs = [subnet["cidr"] for subnet in planned["networks"][0]["subnets"]]
        assert cidrs == (["10.5.0.0/24", "fd00:5::/112"] if not families else ["fd00:5::/112", "10.5.0.0/24"])
    # The other one may be that of the NICs.
    for number, name in enumerate(("w1", "w2"), 12):
        hosts[name]["rdma"]["links"][1]["addresses"] = [{"address": f"10.5.0.{number}", "prefix": 24}]
    network = {"name": "rdma-net", "subnet": "fd00:5::/112", "families": ["ipv4", "ipv6"]}
    planned = plan(hosts, networks=[network])
    assert planned["findings"] == []
    assert [subnet["cidr"] for subnet in planned["networks"][0]["subnets"]] == ["10.5.0.0/24", "fd00:5::/112"]


@pytest.mark.parametrize(
    ("network", "check", "words"),
    [
        ({"subnet": "10.5.0.1/24"}, "networks", "subnet is '10.5.0.1/24'"),
        ({"subnet": "10.5.0.0/24,10.6.0.0/24"}, "networks", "two are of one family"),
        ({"subnet": "fd00:5::/64", "families": ["ipv4"]}, "networks", "families are ipv4"),
        ({"subnet": ["10.5.0.0/24"]}, "networks", "subnet is"),
        ({"subnet": "10.5.0.12/31"}, "subnet", "10.5.0.12/31 has no usable address"),
        ({"subnet": "10.244.0.0/24"}, "subnet", "the fabric subnet is 10.244.0.0/24"),
        ({"subnet": "10.5.0.0/28"}, "subnet", "6 are left"),
        ({"subnet": "10.5.0.0/24", "gateway": "10.6.0.1"}, "subnet", "10.6.0.1 is not"),
        ({"subnet": "10.5.0.0/24", "share": "10.6.0.0/25"}, "subnet", "10.6.0.0/25 is not inside"),
    ],
)
def test_a_stated_subnet_that_can_not_be(hosts, network, check, words):
    without_addresses(hosts, "w1", "w2")
    assert words in errors(plan(hosts, networks=[{"name": "rdma-net", **network}]))[check]["seen"]


def test_a_lease_goes_before_router_advertisements(hosts):
    for number, name in enumerate(("w1", "w2"), 1):
        hosts[name]["rdma"]["links"][1]["addresses"] = [
            {**ADVERTISED, "address": f"2001:db8:7:1::{number}"},
            {"address": f"10.6.0.{number}", "prefix": 24, "origin": "lease"},
            {"address": f"10.5.0.{number}", "prefix": 24},
        ]
    planned = plan(hosts)
    assert planned["networks"][0]["subnet"]["cidr"] == "10.5.0.0/24"
    assert any("the plan uses 10.5.0.0/24" in each["what"] for each in planned["findings"])
    # A host that has the lease alone: only the subnet of both can be the fabric's.
    hosts["w2"]["rdma"]["links"][1]["addresses"] = [{"address": "10.6.0.2", "prefix": 24, "origin": "lease"}]
    found = errors(plan(hosts))["subnet"]
    assert (found["hosts"], found["next"].endswith("fabric_networks: 10.6.0.0/24.")) == (["w1"], True)


def test_a_host_with_an_address_of_router_advertisements_alone(hosts):
    addresses = [{**ADVERTISED, "address": "2001:db8:7:1::1"}, {"address": "fd00:5::1", "prefix": 64}]
    hosts["w1"]["rdma"]["links"][1]["addresses"] = addresses
    hosts["w2"]["rdma"]["links"][1]["addresses"] = [{**ADVERTISED, "address": "2001:db8:7:1::2"}]
    (found,) = [each for each in plan(hosts)["findings"] if each["level"] == "error"]
    assert (found["check"], found["hosts"]) == ("subnet", ["w2"])
    assert found["next"] == "Give their NICs a static address of fd00:5::/64."


def test_a_subnet_of_router_advertisements_alone_is_said(hosts):
    for number, name in enumerate(("w1", "w2"), 1):
        hosts[name]["rdma"]["links"][1]["addresses"] = [{**ADVERTISED, "address": f"2001:db8:7:1::{number}"}]
    planned = plan(hosts)
    assert planned["networks"][0]["subnet"]["cidr"] == "2001:db8:7:1::/64"
    assert "changes with them" in of_routers(planned["findings"])[1]["what"]
    assert "static addresses" in of_routers(planned["findings"])[1]["next"]


def test_addresses_of_router_advertisements_take_gids(hosts):
    room = [plan(hosts)["rdma_resources"][0]["rdmaHcaMax"]]
    hosts["w1"]["rdma"]["links"][1]["addresses"].append(ADVERTISED)
    room.append(plan(hosts)["rdma_resources"][0]["rdmaHcaMax"])
    network = {"name": "rdma-net", "gateway": "10.5.0.1", "accept_ra": False}
    room.append(plan(hosts, networks=[network], stack="spiderpool", ipu=False)["rdma_resources"][0]["rdmaHcaMax"])
    assert room == [63, 41, 63]


def test_pods_of_spiderpool_can_ignore_router_advertisements(hosts):
    hosts["w1"]["rdma"]["links"][1]["addresses"].append(ADVERTISED)
    network = {"name": "rdma-net", "gateway": "10.5.0.1", "accept_ra": False}
    planned = plan(hosts, networks=[network], stack="spiderpool", ipu=False)
    assert planned["findings"] == []
    assert planned["networks"][0]["accept_ra"] is False
    found = errors(plan(hosts, networks=[network]))["networks"]
    assert "MacvlanNetwork" in found["what"]
    assert "fabric_stack to spiderpool" in found["next"]
    found = errors(plan(hosts, networks=[{**network, "accept_ra": "no"}]))["networks"]
    assert found["seen"] == "accept_ra is 'no'"


def test_a_master_that_is_another_nic(hosts):
    hosts["w2"]["rdma"]["links"].append(link("fabric0", "", rdma=False))
    found = errors(plan(hosts, networks=[{"name": "rdma-net", "master": "fabric0"}]))["master-name"]
    assert (found["hosts"], found["seen"]) == (["w2"], "another NIC is called fabric0")


def test_one_master_for_two_nics(hosts):
    for number, name in ((12, "w1"), (13, "w2")):
        hosts[name]["rdma"]["links"].append(link("ens2f0", f"10.6.0.{number}"))
    networks = [
        {"name": "rail-a", "select": {"name": "ens1f0"}, "master": "fabric0"},
        {"name": "rail-b", "select": {"name": "ens2f0"}, "master": "fabric0"},
    ]
    found = errors(plan(hosts, networks=networks))
    assert set(found) == {"master-name"}
    assert found["master-name"]["hosts"] == ["w1", "w2"]


def test_rails(hosts):
    for number, name in ((12, "w1"), (13, "w2")):
        hosts[name]["rdma"]["links"].append(link("ens2f0", f"10.6.0.{number}"))
    networks = [
        {"name": "rail-a", "select": {"name": "ens1*"}},
        {"name": "rail-b", "select": {"subnet": "10.6.0.0/24"}, "share": "all"},
    ]
    planned = plan(hosts, networks=networks)
    assert planned["findings"] == []
    assert [network["subnet"]["cidr"] for network in planned["networks"]] == ["10.5.0.0/24", "10.6.0.0/24"]
    assert [item["resourceName"] for item in planned["rdma_resources"]] == [
        "rdma_shared_device_a",
        "rdma_shared_device_b",
    ]


def with_links(hosts, *more):
    """These links on w1 and w2; {} in an address is the host's number."""
    for number, name in ((12, "w1"), (13, "w2")):
        for made in more:
            one = copy.deepcopy(made)
            for entry in one["addresses"]:
                entry["address"] = entry["address"].format(number)
            hosts[name]["rdma"]["links"].append(one)


def test_a_bond_and_its_vlans(hosts):
    """Masters are the bond and VLAN devices, the plugin gets the functions below them."""
    bottom = ["ens4f0", "ens4f1"]
    with_links(
        hosts,
        *(link(name, "") for name in bottom),
        link("bond0", "10.6.0.{}", kind="bond", lower=bottom, rdma_netdevs=bottom, pci=""),
        link("bond0.7", "10.7.0.{}", kind="vlan", lower=["bond0"], rdma_netdevs=bottom, pci="", mtu=4200),
    )
    networks = [
        {"name": "rail-a", "select": {"name": "bond0"}},
        {"name": "rail-b", "select": {"name": "bond0.7"}},
        {"name": "rail-c", "select": {"name": "ens1f0"}},
    ]
    planned = plan(hosts, networks=networks)
    assert planned["findings"] == []
    assert [(network["master"], network["mtu"]) for network in planned["networks"]] == [
        ("bond0", 9000), ("bond0.7", 4200), ("ens1f0", 9000),
    ]  # fmt: skip
    assert [(item["selectors"]["ifNames"], item["rdmaHcaMax"]) for item in planned["rdma_resources"]] == [
        (bottom, 31), (bottom, 31), (["ens1f0"], 63),
    ]  # fmt: skip
    one = plan(hosts, networks=[{**network, "rdma_resource": "all"} for network in networks])["rdma_resources"]
    assert [(item["selectors"]["ifNames"], item["rdmaHcaMax"]) for item in one] == [(["ens1f0", *bottom], 63)]


def test_a_member_of_a_bond_is_no_master(hosts):
    with_links(
        hosts,
        link("ens4f0", "10.6.0.{}"),
        link("bond0", "10.6.1.{}", kind="bond", lower=["ens4f0"], rdma_netdevs=["ens4f0"]),
    )
    found = errors(plan(hosts, networks=[{"name": "rail-a", "select": {"name": "ens4f0"}}]))
    assert "bond0" in found["fabric-nic"]["seen"]


def test_names_that_mean_different_rails_on_different_hosts(hosts):
    with_names(hosts, w1="ens1", w2="ens2")
    for name, number, netdev in (("w1", 12, "ens2"), ("w2", 13, "ens1")):
        hosts[name]["rdma"]["links"].append(link(netdev, f"10.6.0.{number}"))
    networks = [{"name": f"rail-{rail}", "select": {"subnet": f"10.{rail}.0.0/24"}} for rail in (5, 6)]
    groups = plan(hosts, networks=networks)
    assert groups["findings"] == []
    named = [[resource["selectors"]["ifNames"] for resource in each["resources"]] for each in groups["nic_groups"]]
    assert named == [[["ens1"], ["ens2"]], [["ens2"], ["ens1"]]]
    planned = plan(hosts, networks=networks, nic_policy="cluster")
    assert errors(planned) == {}
    assert [network["master"] for network in planned["networks"]] == ["rail-5", "rail-6"]
    found = [(item["hosts"], item["seen"]) for item in planned["findings"] if item["check"] == "rdma-resource"]
    assert [hosts for hosts, _seen in found] == [["w1"], ["w2"]]  # of both rails
    for (_hosts, seen), nics in zip(found, (("ens2", "ens1"), ("ens1", "ens2"))):
        assert [part.split(": ")[1].split()[0] for part in seen.split("; ")] == [*nics]


def test_more_pods_than_gids(hosts):
    found = errors(plan(hosts, pods_per_node=64, networks=[{"name": "rdma-net", "share": "all"}]), "warning")
    assert "room for 63" in found["rdma-resource"]["seen"]


@pytest.mark.parametrize(
    ("hca_max", "pods", "seen"),
    [
        (0, 8, ""),
        (63, 63, ""),
        (100, 8, "rdma_hca_max is 100, the GID table has room for 63"),
        (10, 16, "fabric_pods_per_node is 16, rdma_hca_max is 10"),
    ],
)
def test_a_number_of_pods_of_ones_own(hosts, hca_max, pods, seen):
    network = {"name": "rdma-net", "share": "all", "rdma_hca_max": hca_max}
    planned = plan(hosts, pods_per_node=pods, networks=[network])
    assert planned["rdma_resources"][0]["rdmaHcaMax"] == (hca_max or 63)
    found = [item for item in planned["findings"] if item["check"] == "rdma-resource"]
    assert [(item["level"], item["seen"]) for item in found] == ([("warning", seen)] if seen else [])


def test_networks_of_one_resource_take_the_largest_number(hosts):
    networks = [{**one, "rdma_resource": "all", "rdma_hca_max": most} for one, most in zip(rack(hosts), (20, 30))]
    assert [one["rdmaHcaMax"] for one in plan(hosts, networks=networks)["rdma_resources"]] == [30]
    networks[1]["rdma_hca_max"] = "many"
    assert "rdma_hca_max is 'many'" in errors(plan(hosts, networks=networks))["networks"]["seen"]


def test_more_networks_than_letters(hosts):
    with_links(hosts, *(link(f"v{rail}", f"10.{20 + rail}.0.{{}}", rdma_netdevs=[f"v{rail}"]) for rail in range(30)))
    networks = [{"name": f"rail-{rail}", "select": {"name": f"v{rail}"}} for rail in range(30)]
    names = [item["resourceName"] for item in plan(hosts, networks=networks)["rdma_resources"]]
    assert len(set(names)) == 30
    assert names[25:28] == ["rdma_shared_device_z", "rdma_shared_device_aa", "rdma_shared_device_ab"]


def test_infiniband_can_not_be_allowed(hosts):
    change(("rdma", "links", 1, "link_layer"), "InfiniBand")(hosts)
    planned = plan(hosts, allow=["link-layer"])
    found = errors(planned)["link-layer"]
    assert "can't be allowed" in found["next"]
    assert "allow it" not in found["next"]
    assert "this check can't be allowed" in errors(planned, "warning")["allow"]["seen"]


def test_mtu_is_the_least(hosts):
    hosts["w2"]["rdma"]["links"][1]["mtu"] = 1500
    planned = plan(hosts)
    assert planned["networks"][0]["mtu"] == 1500
    assert errors(planned, "warning")["fabric-mtu"]["seen"] == "1500: w2; 9000: w1"


def test_plain_nics_where_rdma_is_not_required(hosts):
    for name in ("w1", "w2"):
        hosts[name]["rdma"]["links"][1].update(rdma_netdevs=[], device="", link_layer="", state="")
    planned = plan(hosts, require_rdma=False)
    assert planned["findings"] == []
    assert not planned["networks"][0]["rdma"]
    assert planned["rdma_resources"] == []


def test_rdma_that_is_not_asked_for_is_not_planned(hosts):
    planned = plan(hosts, require_rdma=False)
    assert not planned["networks"][0]["rdma"]
    assert planned["rdma_resources"] == []


def test_no_pod_gets_a_taken_address(hosts):
    hosts["cp1"]["rdma"]["links"][1]["addresses"] = [{"address": "10.5.0.200", "prefix": 24}]
    hosts["w1"]["rdma"]["routes"] = {"10.9.0.1": {"dev": "ens1f0", "source": "", "gateway": "10.5.0.254"}}
    planned = plan(hosts, kubernetes_version="1.32.1", network_operator_version="25.7.0", pods_per_node=8)
    excluded = planned["networks"][0]["ipam"]["exclude"]
    assert "10.5.0.200/32" in excluded
    assert "10.5.0.254/31" in excluded
    assert planned["networks"][0]["ipam"]["type"] == "whereabouts"


def test_a_fabric_of_ipv6(hosts):
    for number, name in enumerate(hosts, 11):
        hosts[name]["rdma"]["links"][1]["addresses"] = [{"address": f"fd00:5::{number}", "prefix": 64}]
        hosts[name]["rdma"]["routes"] = {"fd00:5::20": {"dev": "ens1f0", "source": "", "gateway": ""}}
        hosts[name]["vipu"].update(host="fd00:5::20", address="fd00:5::20")
    assert set(errors(plan(hosts))) == {"vipu-address"}
    both = {"pod_cidr": "10.244.0.0/16,fd00:244::/56", "service_cidr": "10.96.0.0/12,fd00:96::/112"}
    planned = plan(with_ipv6(hosts), **both)
    assert errors(planned) == {}
    assert planned["vipu"]["value"] == "[fd00:5::20]:8090:ipunode=true"
    assert planned["networks"][0]["subnet"]["cidr"] == "fd00:5::/64"


def dual(hosts):
    for number, name in ((12, "w1"), (13, "w2")):
        hosts[name]["rdma"]["links"][1]["addresses"] += [
            {"address": f"fd00:5::{number}", "prefix": 64},
            {"address": f"fd00:6::{number}", "prefix": 64},
        ]


@pytest.mark.parametrize(
    ("network", "settings", "said"),
    [
        ({"share": "all"}, {}, "V-IPU (10.5.0.20)"),
        ({"share": "all"}, {"vipu_hosts": ["vipu"]}, "V-IPU (not known)"),
        ({"share": "all"}, {"vipu_hosts": ["10.88.0.9"]}, ""),
        ({"share": "all"}, {"ipu": False}, ""),
        ({"share": "all", "reserved": ["10.5.0.0/26"]}, {}, ""),
        ({"share": "all", "reserved": ["10.247.208.0/25"]}, {}, "V-IPU (10.5.0.20)"),
        ({"share": "10.5.0.64-10.5.0.254"}, {}, ""),
        ({}, {}, ""),
    ],
)
def test_pods_beside_ipu_machines(hosts, network, settings, said):
    planned = plan(hosts, networks=[{"name": "rdma-net", **network}], **settings)
    found = [item for item in planned["findings"] if item["check"] == "ipu-machines"]
    assert [item["level"] for item in found] == ["warning"] * bool(said)
    assert all(said in item["seen"] for item in found)


def test_what_is_reserved_in_another_subnet(hosts):
    reserved = ["10.247.208.0/25", "10.5.0.0-10.5.0.9", "10.4.255.250-10.5.0.3", "10.6.0.1"]
    planned = plan(hosts, networks=[{"name": "rdma-net", "reserved": reserved}])
    found = [item["seen"] for item in planned["findings"] if "`reserved`" in item["what"]]
    assert found == ["10.247.208.0/25, 10.6.0.1, outside 10.5.0.0/24"]


BOTH = {"name": "rdma-net", "families": ["ipv4", "ipv6"]}


def test_two_families_of_nv_ipam(hosts):
    dual(hosts)
    network = {**BOTH, "gateway": "10.5.0.1, fd00:5::1", "share": "all", "reserved": ["10.5.0.7", "fd00:5::7"]}
    planned = plan(hosts, networks=[network])
    assert errors(planned) == {}
    only = planned["networks"][0]
    assert only["ipam"] == {"type": "nv-ipam", "poolName": "rdma-net,rdma-net.ipv6"}
    assert [subnet["cidr"] for subnet in only["subnets"]] == ["10.5.0.0/24", "fd00:5::/64"]
    assert [subnet["gateway"] for subnet in only["subnets"]] == ["10.5.0.1", "fd00:5::1"]
    assert [pool["name"] for pool in only["pools"]] == ["rdma-net", "rdma-net.ipv6"]
    assert (only["subnet"], only["pool"]) == (only["subnets"][0], only["pools"][0])
    assert all("nodeSelector" in pool for pool in only["pools"])
    assert planned["hosts"]["w1"]["links"]["rdma-net"]["addresses"] == [
        {"address": "10.5.0.12", "prefix": 24},
        {"address": "fd00:5::12", "prefix": 64},
    ]
    assert planned["rdma_resources"][0]["rdmaHcaMax"] == 41  # each pod has one more address in the GID table
    text = plan_report.as_text(planned)
    assert "fd00:5::/64, gateway fd00:5::1" in text


def test_two_families_of_whereabouts(hosts):
    dual(hosts)
    network = {**BOTH, "select": {"subnet": ["fd00:6::/64"]}, "share": "10.5.0.64/27,fd00:6::1:0/112"}
    planned = plan(hosts, networks=[network], ipam="whereabouts")
    assert errors(planned) == {}
    only = planned["networks"][0]
    assert (only["pool"], only["pools"]) == (None, [])
    assert set(only["ipam"]) == {"type", "ipRanges"}
    assert [sorted(one) for one in only["ipam"]["ipRanges"]] == [["exclude", "range", "range_end", "range_start"]] * 2
    assert [(one["range"], one["range_start"]) for one in only["ipam"]["ipRanges"]] == [
        ("10.5.0.0/24", "10.5.0.64"),
        ("fd00:6::/64", "fd00:6::1:0"),
    ]


@pytest.mark.parametrize(("operator", "able"), [("23.1.0", False), ("23.4.0", True)])
def test_old_whereabouts_has_one_range(hosts, operator, able):
    dual(hosts)
    settings = {"manage_kubernetes": False, "kubernetes_version": "1.25.4", "network_operator_version": operator}
    assert ("networks" not in errors(plan(hosts, networks=[BOTH], **settings))) == able


@pytest.mark.parametrize(
    ("families", "cidr"), [([], "10.5.0.0/24"), (["ipv4"], "10.5.0.0/24"), (["ipv6"], "fd00:5::/64")]
)
def test_one_family(hosts, families, cidr):
    dual(hosts)
    only = plan(hosts, networks=[{"name": "rdma-net", "families": families}])["networks"][0]
    assert [subnet["cidr"] for subnet in only["subnets"]] == [cidr]
    assert only["ipam"] == {"type": "nv-ipam", "poolName": "rdma-net"}


def test_families_of_two_networks_overlap(hosts):
    dual(hosts)
    with_links(hosts, link("ens2", "10.6.0.{}"))
    for name in ("w1", "w2"):
        links = hosts[name]["rdma"]["links"]
        links[2]["addresses"].append({**links[1]["addresses"][1], "address": f"fd00:5::{name[1]}"})
    networks = [{**BOTH, "name": f"rail-{rail}", "select": {"name": f"ens{rail}*"}} for rail in (1, 2)]
    found = errors(plan(hosts, networks=networks))
    assert found["subnet"]["seen"].startswith("fd00:5::/64 and fd00:5::/64 overlap, and ")


def test_eight_rails_on_hosts_with_different_groups(hosts):
    hosts["w2"]["groups"].append("rack2")
    for number, name in ((12, "w1"), (13, "w2")):
        rails = [link(f"rail{rail}", f"10.{20 + rail}.0.{number}") for rail in range(8)]
        hosts[name]["rdma"]["links"] += rails
    networks = [{"name": f"rail-{rail}", "select": {"name": f"rail{rail}"}} for rail in range(8)]
    networks[7]["hosts"] = ["rack2"]
    planned = plan(hosts, networks=networks)
    assert planned["findings"] == []
    assert len(planned["hosts"]["w1"]["links"]) == 7
    assert len(planned["rdma_resources"]) == 8
    assert planned["networks"][7]["hosts"] == ["w2"]
    text = plan_report.as_text(planned)
    assert "8 NICs" in text
    assert max(map(len, text.splitlines())) <= 69


@pytest.mark.parametrize("example", sorted(path.parts[-3] for path in ROOT.glob("inventories/*/group_vars/all.yml")))
def test_networks_of_the_examples(example):
    found = Findings()
    variables = yaml.safe_load((ROOT / "inventories" / example / "group_vars" / "all.yml").read_text(encoding="utf-8"))
    network_spec.read_networks(variables.get("fabric_networks", [{"name": "rdma-net"}]), found)
    assert found.as_list() == []


def gpu_host(root, number):
    """Eight GPUs and eight NICs, one of each at a switch; the NICs' names follow the host."""
    tree, addresses = Tree(root), {}
    for rail in range(8):
        # The switches do not come in the order of the rails' subnets, and GPUs not in that of NICs' names.
        switch = f"pci0000:{16 * rail:02x}/0000:{16 * rail:02x}:01.0"
        netdev = f"ens{10 + rail}np0" if number % 2 else f"enp{7 * rail % 8}s0"
        tree.gpu(f"0000:{16 * rail + 2:02x}:00.0", f"{switch}/0000:{16 * rail + 1:02x}:00.0", rail // 4)
        place = {"above": f"{switch}/0000:{16 * rail + 1:02x}:01.0", "numa": rail // 4}
        tree.nic(netdev, f"mlx5_{rail}", f"0000:{16 * rail + 3:02x}:00.0", mtu=4200, **place)
        addresses[netdev] = [{"address": f"172.16.{10 + rail}.{number}", "prefix": 24}]
    rdma = {"links": host_links.read_links(str(tree), addresses, {}), "gpus": host_links.read_gpus(str(tree.sys))}
    return {
        **host(number, ["kube_node"]),
        "rdma": {**rdma, "memlock": {}, "routes": {}, "netns_mode": "shared", "modules": list(RDMA_MODULES)},
    }


def test_eight_rails_beside_eight_gpus(tmp_path, hosts):
    """The example inventory on hosts whose NICs have different names."""
    variables = yaml.safe_load((ROOT / "inventories/rails/group_vars/all.yml").read_text(encoding="utf-8"))
    settings = {name[len("fabric_") :]: value for name, value in variables.items()}
    hosts = {"cp1": hosts["cp1"], **{f"gpu{number}": gpu_host(tmp_path / str(number), number) for number in (21, 22)}}
    planned = plan(hosts, **settings)
    for number in (21, 22):
        near = [gpu["networks"] for gpu in planned["hosts"][f"gpu{number}"]["gpus"]]
        assert near == [[network["name"]] for network in planned["networks"]]
    assert errors(planned) == {}
    for rail, network in enumerate(planned["networks"]):
        names = [f"enp{7 * rail % 8}s0", f"ens{10 + rail}np0"]
        assert (network["master"], network["rdma_netdevs"]) == (f"rail-{rail}", names)
        assert network["subnet"]["cidr"] == f"172.16.{10 + rail}.0/24"
        assert network["mtu"] == 4200
        assert planned["rdma_resources"][rail]["selectors"]["ifNames"] == names
        mine = planned["hosts"]["gpu21"]["links"][network["name"]]
        assert (mine["altname"], mine["pci"]) == (f"rail-{rail}", f"0000:{16 * rail + 3:02x}:00.0")
    assert planned["findings"] == []
    text = plan_report.as_text(planned)
    assert max(map(len, text.splitlines())) <= 69


def test_pvrdma_is_found_by_its_driver(hosts):
    for name in ("w1", "w2"):
        hosts[name]["rdma"]["links"][-1]["driver"] = "vmw_pvrdma"
    planned = plan(hosts)
    assert list(errors(planned, "warning")) == ["pvrdma"]
    assert planned["rdma_resources"][0]["selectors"] == {"drivers": ["vmw_pvrdma"]}


def test_without_networks_pods_take_the_devices_of_their_host(hosts):
    for name in ("w1", "w2"):
        hosts[name]["rdma"]["links"][-1]["driver"] = "vmw_pvrdma"
    planned = plan(hosts, networks=[], stack="spiderpool")
    assert errors(planned) == {}
    assert "28250" in errors(planned, "warning")["pvrdma"]["next"]
    assert (planned["networks"], planned["rdma_resources"]) == ([], [])
    releases = planned["releases"]
    assert (releases["stack"], releases["network_operator"], releases["spiderpool"], releases["ipam"]) == ("",) * 4
    link = planned["hosts"]["w1"]["links"]["host"]
    assert (link["netdev"], link["altname"], link["driver"]) == ("ens1f0", "", "vmw_pvrdma")
    assert planned["hosts"]["cp1"]["links"] == {}
    assert "by /dev/infiniband, in privileged containers" in " ".join(plan_report.as_text(planned).split())


def test_virtual_machines_with_vgpu_and_pvrdma(hosts):
    """The example inventory on machines as NVIDIA's document has them: 4 processors, 24 GB, the control plane less."""
    variables = yaml.safe_load((ROOT / "inventories/vsphere/group_vars/all.yml").read_text(encoding="utf-8"))
    settings = {name[len("fabric_") :]: value for name, value in variables.items() if name.startswith("fabric_")}
    machine = {"distribution": "ubuntu", "release": "noble", "version": "24.04", "cpus": 4}
    for name, seen in hosts.items():
        seen["host"].update(machine, memory_mb=16000 if name == "cp1" else 24000)
        seen["rdma"]["links"] = [link("ens192", f"172.16.7.{name[-1]}", rdma=False, driver="vmxnet3")]
    for name in ("w1", "w2"):
        own = {"device": "vmw_pvrdma0", "driver": "vmw_pvrdma", "pci": "0000:13:00.1", "rate_gbps": 0.0}
        hosts[name]["rdma"]["links"].append(link("ens224", f"192.168.0.5{name[-1]}", **own))
        hosts[name]["rdma"]["gpus"] = [{"pci": "0000:02:02.0", "path": "pci0000:00/0000:02:02.0", "numa_node": 0}]
        hosts[name]["rdma"]["routes"] = {}
    planned = plan(hosts, **settings)
    assert errors(planned) == {}
    (warning,) = planned["findings"]
    assert (warning["check"], warning["hosts"]) == ("pvrdma", ["w1", "w2"])
    assert "28250" in warning["next"]
    assert "7070" in warning["next"]
    assert {name: [*host["links"]] for name, host in planned["hosts"].items()} == {
        "cp1": [],
        "w1": ["host"],
        "w2": ["host"],
    }
    assert planned["hosts"]["w1"]["links"]["host"]["netdev"] == "ens224"
    assert (planned["releases"]["stack"], planned["releases"]["gpu_operator"]) == ("", "26.7.0")


def test_without_networks_and_rdma_nothing_is_chosen(hosts):
    planned = plan(hosts, networks=[], require_rdma=False)
    assert planned["findings"] == []
    assert all(host["links"] == {} for host in planned["hosts"].values())
    assert "the pod network alone, without RDMA" in " ".join(plan_report.as_text(planned).split())


def test_without_networks_each_worker_needs_an_rdma_nic(hosts):
    hosts["w1"]["rdma"]["links"] = hosts["w1"]["rdma"]["links"][:1]
    assert errors(plan(hosts, networks=[]))["fabric-nic"]["hosts"] == ["w1"]


def test_without_networks_a_nic_needs_an_address_of_its_own(hosts):
    without_addresses(hosts, "w1")
    found = errors(plan(hosts, networks=[]))["fabric-nic"]
    assert (found["hosts"], found["next"].split(". ")[0]) == (["w1"], "Give ens1f0 an address on the fabric")


def test_pvrdma_and_other_nics_are_no_network(hosts):
    hosts["w1"]["rdma"]["links"][-1]["driver"] = "vmw_pvrdma"
    planned = plan(hosts)
    assert errors(planned)["pvrdma"]["hosts"] == ["w1"]
    assert "w2" in errors(planned)["pvrdma"]["seen"]
    assert planned["rdma_resources"][0]["selectors"] == {"ifNames": ["ens1f0"]}


def test_the_table_of_hosts_keeps_the_order_of_the_networks(hosts):
    for name, last in (("w1", 12), ("w2", 13)):
        hosts[name]["rdma"]["links"].append(link("ens2f0", f"10.6.0.{last}", mac=f"0c:42:a1:00:06:{last:02x}"))
    networks = [
        {"name": "zeta", "select": {"subnet": "10.5.0.0/24"}},
        {"name": "alpha", "select": {"subnet": "10.6.0.0/24"}},
    ]
    heading, rows = plan_report.host_rows(plan(hosts, networks=networks))
    assert heading == ["HOST", "CHANGE", "ADDRESS", "ROLES", "zeta", "alpha", "FINDINGS"]
    assert rows[1][4:6] == ["ens1f0 10.5.0.12/24", "ens2f0 10.6.0.12/24"]


def test_blocks_of_nv_ipam_are_explained(hosts):
    text = " ".join(plan_report.as_text(plan(hosts)).split())
    assert "10.5.0.129-10.5.0.254, 16 addresses, a block of 8 for each node, 16 needed" in text
    assert "blocks" not in plan_report.as_text(plan(hosts, ipam="whereabouts"))


def rack(hosts, prefix=24, **more):
    """Two rails of a rack, and the networks of these NICs with the names of existing manifests."""
    with_links(hosts, *(link(f"enp1{rail}s0f0np0", f"172.16.1{rail}.{{}}", prefix) for rail in (1, 2)))
    return [
        {
            "name": f"gpu{rail}-macvlan",
            "select": {"name": f"enp1{rail}s0f0np0"},
            "gateway": f"172.16.1{rail}.254",
            "share": f"172.16.1{rail}.1-172.16.1{rail}.200",
            "rdma_resource": f"spidernet.io/shared_cx5_gpu{rail}",
            **more,
        }
        for rail in (1, 2)
    ]


def test_resources_keep_the_names_of_manifests_that_are_there(hosts):
    planned = plan(hosts, networks=rack(hosts))
    assert planned["findings"] == []
    names = [f"spidernet.io/shared_cx5_gpu{rail}" for rail in (1, 2)]
    assert [network["resource"] for network in planned["networks"]] == names
    assert [f"{one['resourcePrefix']}/{one['resourceName']}" for one in planned["rdma_resources"]] == names


def test_the_device_plugin_wants_different_names_under_all_prefixes(hosts):
    networks = rack(hosts)
    networks[0]["rdma_resource"] = "shared_cx5_gpu2"
    found = errors(plan(hosts, networks=networks))["networks"]
    assert found["seen"] == "rdma/shared_cx5_gpu2 and spidernet.io/shared_cx5_gpu2"


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"stack": "spiderpool", "ipu": False}, ["gpu1-net11", "gpu2-macvlan-v4"]),
        ({}, ["gpu1-net11", "gpu2-macvlan"]),
    ],
)
def test_pools_keep_the_names_of_manifests_that_are_there(hosts, settings, names):
    networks = rack(hosts)
    networks[0]["pool"] = "gpu1-net11"
    planned = plan(hosts, networks=networks, **settings)
    assert planned["findings"] == []
    found = [
        network["ipam"].get("poolName") or network["ipam"]["default_ipv4_ippool"][0] for network in planned["networks"]
    ]
    assert found == names
    if settings:
        assert [pool_of(network).name for network in planned["networks"]] == names
    networks[1]["pool"] = "gpu1-net11"
    found = errors(plan(hosts, networks=networks, **settings))["networks"]
    assert found["seen"] == "gpu1-macvlan and gpu2-macvlan have the pool gpu1-net11"
    networks[1]["pool"] = "Net.12"
    assert "pool is 'Net.12'" in errors(plan(hosts, networks=networks, **settings))["networks"]["seen"]


@pytest.mark.parametrize("settings", [{"stack": "spiderpool", "ipu": False}, {}, {"ipam": "whereabouts"}])
def test_rails_with_ranges_of_one_subnet(hosts, settings):
    planned = plan(hosts, networks=rack(hosts, 16), **settings)
    assert errors(planned) == {}
    assert [network["subnet"]["cidr"] for network in planned["networks"]] == ["172.16.0.0/16"] * 2
    (found,) = planned["findings"]
    assert (found["check"], found["level"]) == ("subnet", "warning")
    assert found["seen"] == (
        "172.16.0.0/16: gpu1-macvlan 172.16.11.1-172.16.11.200, gpu2-macvlan 172.16.12.1-172.16.12.200"
    )
    cures = (
        "/24",
        "all.arp_ignore to 1",
        "all.arp_announce to 2",
        "all.rp_filter to 2",
        "source address",
        "#many-rails",
    )
    assert all(word in found["next"] for word in cures)
    assert "ARP flux" in found["what"]
    assert ("fabric_stack: spiderpool" in found["next"]) is ("stack" not in settings)


@pytest.mark.parametrize("ipam", ["whereabouts", "nv-ipam"])
def test_the_proof_takes_rails_on_one_subnet_as_the_plan_does(hosts, ipam):
    planned = plan(hosts, networks=rack(hosts, 16), ipam=ipam)
    kind = "IPPool" if ipam == "nv-ipam" else "NetworkAttachmentDefinition"
    sources = [
        {
            "kind": kind,
            "namespace": "" if kind == "IPPool" else "default",
            "name": network["name"],
            "what": f"{kind} {network['name']}",
            "ours": True,
            "ipam": ipam,
            "stores": [],
            "ranges": range_texts(planned_addresses(network)),
        }
        for network in planned["networks"]
    ]
    assert [check.status for check in check_overlaps(planned, {"address_sources": sources})] == ["passed"] * 2
    # A third that has addresses of the second is nobody's rail.
    found = list(check_overlaps(planned, {"address_sources": [*sources, {**sources[1], "name": "other"}]}))
    assert [check.status for check in found] == ["passed", "failed"]


def test_ranges_of_one_subnet_that_only_interleave(hosts):
    """What pods get is compared, not its first and last address."""
    networks = rack(hosts, 16)
    networks[0].update(share="172.16.11.0/24", reserved=["172.16.11.64/26"])
    networks[1]["share"] = "172.16.11.64/26"
    for ipam in ("whereabouts", "nv-ipam"):
        planned = plan(hosts, networks=networks, ipam=ipam)
        assert errors(planned) == {}
        one, other = (planned_addresses(network) for network in planned["networks"])
        assert one
        assert other
        assert not one & other


def test_networks_of_different_hosts_on_one_subnet_have_no_arp_flux(hosts):
    networks = [
        {"name": "rack-a", "hosts": ["w1"], "share": "10.5.0.128/26"},
        {"name": "rack-b", "hosts": ["w2"], "share": "10.5.0.192/26"},
    ]
    assert plan(hosts, networks=networks)["findings"] == []
    networks[1]["share"] = "10.5.0.160-10.5.0.254"
    found = errors(plan(hosts, networks=networks))["subnet"]
    assert "would give out the same addresses" in found["what"]


def test_rails_on_one_ipv6_subnet_have_no_arp(hosts):
    with_links(hosts, *(link(f"ens{rail}f0", f"fd00:7::{rail}:{{}}", 64) for rail in (5, 6)))
    networks = [
        {"name": f"rail-{rail}", "select": {"name": f"ens{rail}f0"}, "share": f"fd00:7::{rail}:0:0/112"}
        for rail in (5, 6)
    ]
    (found,) = [each for each in plan(hosts, networks=networks)["findings"] if "Rails" in each["what"]]
    assert "ARP" not in found["what"]
    assert "arp_ignore" not in found["next"]


@pytest.mark.parametrize("share", ["172.16.11.190-172.16.12.10", "172.16.11.0/24", "172.16.0.0/17"])
def test_ranges_of_one_subnet_that_overlap(hosts, share):
    networks = rack(hosts, 16)
    networks[1]["share"] = share
    found = errors(plan(hosts, networks=networks))["subnet"]
    assert "172.16.11.1-172.16.11.200 and 172.16." in found["seen"]
    assert "in both" in found["seen"]
    assert "key share" in found["next"]


def test_the_gateway_of_one_rail_is_no_address_for_pods_of_another(hosts):
    networks = rack(hosts, 16)
    networks[1]["share"] = "172.16.11.201-172.16.12.200"
    planned = plan(hosts, networks=networks, ipam="whereabouts")
    assert errors(planned) == {}
    assert "172.16.11.254/32" in planned["networks"][1]["ipam"]["exclude"]


def test_subnets_that_overlap_are_refused_whatever_the_ranges(hosts):
    networks = rack(hosts, 16)
    for name in ("w1", "w2"):
        hosts[name]["rdma"]["links"][-1]["addresses"][0]["prefix"] = 24
    found = errors(plan(hosts, networks=networks))["subnet"]
    assert found["seen"].startswith(
        "172.16.0.0/16 and 172.16.12.0/24; pods get 172.16.11.1-172.16.11.200 and 172.16.12"
    )
    assert "same addresses" not in found["what"]
    assert "same prefix" in found["next"]


@pytest.mark.parametrize(
    "name", ["a-b", "a/b/c", "/a", "Spider.net/a", "spider_net.io/a", "x.kubernetes.io/a", "spidernet.io/"]
)
def test_names_that_no_resource_can_have(hosts, name):
    assert name in errors(plan(hosts, networks=[{"name": "rdma-net", "rdma_resource": name}]))["networks"]["seen"]


@pytest.mark.parametrize(
    ("settings", "seen", "step"),
    [
        ({"pod_cidr": "10.5.0.0/16"}, "fabric_pod_cidr is 10.5.0.0/16", "Choose another fabric_pod_cidr: "),
        ({"service_cidr": "10.5.0.0/20"}, "fabric_service_cidr is 10.5.0.0/20", "Choose another fabric_service_cidr: "),
        (
            {"pod_cidr": "10.5.0.0/16", "manage_kubernetes": False, "cni": "none"},
            "the cluster's pods have 10.5.0.0/16",
            "Give the fabric NICs addresses of another subnet",
        ),
    ],
)
def test_a_range_in_the_way_is_told_with_whose_it_is(settings, seen, step):
    [finding] = [one for one in plan(site(), **settings)["findings"] if one["check"] == "subnet"]
    assert finding["seen"] == f"the fabric subnet is 10.5.0.0/24 ({seen})"
    assert finding["next"].startswith(step)


def test_rails_of_vfs_with_tables_of_their_own(hosts):
    """Both plugins are needed: one for ARP, one for routes."""
    rails = rack(hosts, 16, type="sriov", meta_plugins=["tuning", "sbr"])
    for network in rails:
        del network["rdma_resource"]
    for each in hosts.values():
        for nic in each["rdma"]["links"]:
            nic.update(max_vfs=16, vfs=8)
    assert [one["what"] for one in plan(hosts, networks=rails)["findings"] if one["check"] == "subnet"] == []
    del rails[0]["meta_plugins"]
    found = [one for one in plan(hosts, networks=rails)["findings"] if one["check"] == "subnet"]
    assert ["ARP flux" in one["what"] for one in found] == [True]


@pytest.mark.parametrize(
    ("networks", "seen"),
    [
        ([{"name": "rdma-net", "type": "SR-IOV"}], ["type is 'SR-IOV'"]),
        ([{"name": "rdma-net"}, {"name": "rdma-net"}], ["two are called rdma-net"]),
    ],
)
def test_a_mistake_is_one_finding_of_this_check(hosts, networks, seen):
    planned = plan(hosts, networks=networks)
    assert [each["seen"] for each in planned["findings"] if each["check"] == "networks"] == seen


def test_a_subnet_without_room_that_no_nic_is_in_is_one_finding(hosts):
    planned = plan(hosts, networks=[{"name": "rdma-net", "subnet": "10.55.0.0/30"}])
    assert [(each["check"], each["level"]) for each in planned["findings"]] == [("subnet", "error")]


def test_networks_that_are_not_valid_are_not_shown_as_none_wanted(hosts):
    text = plan_report.as_text(plan(hosts, networks=[{"name": "RDMA"}]))
    assert "Network   none is valid, see the findings" in text
    assert "without RDMA" not in text
