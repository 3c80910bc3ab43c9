"""The address of each node: which one is chosen, and which ones its kubelet would refuse."""

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import (
    change,
    errors,
    finished,
    host,
    plan,
    running,
    site,
    with_ipv6,
)

BOTH = {"pod_cidr": "10.244.0.0/16,fd00:10:244::/56", "service_cidr": "10.96.0.0/12,fd00:10:96::/112"}
SIX_FIRST = {"pod_cidr": "fd00:10:244::/56,10.244.0.0/16", "service_cidr": "fd00:10:96::/112,10.96.0.0/12"}
SIX = {"pod_cidr": "fd00:10:244::/56", "service_cidr": "fd00:10:96::/112"}
CHECK = "node-address"


def vagrant():
    """Hosts whose default route goes out from an address that all have, and that have one each on another interface."""
    hosts = site()
    change(("host", "default_address"), "10.0.2.15")(hosts, list(hosts))
    return hosts


@pytest.mark.parametrize(
    ("hosts", "settings", "address"),
    [
        (site(), {}, "10.88.0.12"),
        (with_ipv6(site()), {}, "10.88.0.12"),
        (with_ipv6(site()), BOTH, "10.88.0.12,fd00:88::12"),
        (with_ipv6(site()), SIX_FIRST, "fd00:88::12,10.88.0.12"),
        (with_ipv6(site()), SIX, "fd00:88::12"),
        (vagrant(), {"node_address": {"interface": "eno1"}}, "10.88.0.12"),
        (vagrant(), {"node_address": {"interface": "eno*"}}, "10.88.0.12"),
        (vagrant(), {"node_address": {"subnet": "10.88.0.0/16"}}, "10.88.0.12"),
        (
            with_ipv6(vagrant()),
            {"node_address": {"subnet": ["10.88.0.0/16", "fd00:88::/64"]}, **BOTH},
            "10.88.0.12,fd00:88::12",
        ),
    ],
)
def test_the_address_of_a_node(hosts, settings, address):
    planned = plan(hosts, **settings)
    assert CHECK not in errors(planned)
    assert "host-identity" not in errors(planned)
    assert planned["hosts"]["w1"]["address"] == address
    first = planned["hosts"]["cp1"]["address"].split(",")[0]
    assert planned["cluster"]["endpoint"] == (f"[{first}]:6443" if ":" in first else f"{first}:6443")


@pytest.mark.parametrize("settings", [BOTH, SIX, {"node_address": {"interface": "eno1"}, **BOTH}])
@pytest.mark.parametrize("default", ["10.88.0.12", "2001:db8:7:1::a"])
def test_static_addresses_go_before_those_of_router_advertisements(settings, default):
    """iproute2 lists the newest first."""
    hosts = with_ipv6(site())
    advertised = {"address": "2001:db8:7:1::a", "prefix": 64, "origin": "advertised"}
    hosts["w1"]["rdma"]["links"][0]["addresses"].insert(0, advertised)
    hosts["w1"]["host"]["default_address"] = default
    wanted = "fd00:88::12" if settings == SIX else "10.88.0.12,fd00:88::12"
    assert plan(hosts, **settings)["hosts"]["w1"]["address"] == wanted


def test_an_interface_with_two_subnets():
    hosts = with_ipv6(site())
    rule = {"node_address": {"interface": "eno1"}}
    hosts["w1"]["rdma"]["links"][0]["addresses"] += [
        {"address": "10.88.0.99", "prefix": 24},
        {"address": "10.88.0.50", "prefix": 32},
    ]
    assert plan(hosts, **rule)["findings"] == []
    hosts["w1"]["rdma"]["links"][0]["addresses"].insert(0, {"address": "10.77.0.12", "prefix": 24})
    (found,) = plan(hosts, **rule)["findings"]
    assert (found["check"], found["level"], found["hosts"]) == (CHECK, "warning", ["w1"])
    assert found["seen"] == "eno1 of w1 has 10.77.0.0/24 and 10.88.0.0/24; its node gets 10.77.0.12"
    named = {"node_address": {"interface": "eno1", "subnet": "10.88.0.0/24"}}
    assert "{interface: eno1, subnet: " in found["next"]
    assert plan(hosts, **named)["findings"] == []


def test_two_addresses_of_the_inventory():
    hosts = with_ipv6(site())
    for number, seen in enumerate(hosts.values(), 11):
        seen["address"] = f"10.88.0.{number}, fd00:88::{number}"
    planned = plan(hosts, **BOTH)
    assert errors(planned) == {}
    assert planned["cluster"]["endpoint"] == "10.88.0.11:6443"
    assert planned["hosts"]["w1"]["address"] == "10.88.0.12,fd00:88::12"


@pytest.mark.parametrize(
    ("ip", "default", "settings", "seen", "step"),
    [
        ("", "", {}, "there is no default route", "Set ip of the host in the inventory"),
        ("", "10.88.0.12", {"node_address": {"interface": "bond0"}}, "fits fabric_node_address: bond0", "Set ip"),
        ("203.0.113.7", "10.88.0.12", {}, "ip is 203.0.113.7; the host has 10.88.0.12 (eno1)", "ansible_host"),
        (
            "",
            "10.88.0.12",
            SIX,
            "the cluster has IPv6; the host's interface, or its ip, has IPv4 alone",
            "fabric_service_cidr",
        ),
        ("", "10.88.0.12", BOTH, "has IPv4 alone", "separated by a comma"),
        ("fd00:88::12,10.88.0.12", "10.88.0.12", BOTH, "IPv4 and IPv6; ip has IPv6 and IPv4", "separated by a comma"),
    ],
)
def test_an_address_that_no_node_can_have(ip, default, settings, seen, step):
    hosts = site()
    hosts["w1"]["address"] = ip
    change(("host", "default_address"), default)(hosts)
    if "," in ip:
        with_ipv6(hosts)
    finding = errors(plan(hosts, **settings))[CHECK]
    assert "w1" in finding["hosts"]
    assert seen in finding["seen"]
    assert step in finding["next"]
    assert CHECK not in errors(plan(hosts, manage_kubernetes=False, **settings))


def test_an_address_on_the_loopback_interface_is_the_hosts():
    hosts = site()
    hosts["w1"]["address"] = "10.99.0.12"
    hosts["w1"]["rdma"]["loopback"] = [{"address": "10.99.0.12", "prefix": 32}]
    assert CHECK not in errors(plan(hosts))


@pytest.mark.parametrize("given", [{"nic": "eno1"}, {"subnet": "10.88.0.1/16"}])
def test_a_rule_that_is_none(given):
    assert errors(plan(site(), node_address=given))[CHECK]["hosts"] == []


LIMIT = {"controllerManager": {"extraArgs": [{"name": "node-cidr-mask-size", "value": "26"}]}}


@pytest.mark.parametrize(
    ("settings", "count", "fitting"),
    [
        ({"cni": "flannel"}, 3, ""),
        ({"cni": "flannel", "pod_cidr": "10.244.0.0/24"}, 3, "/22"),
        ({"cni": "flannel", "pod_cidr": "10.244.0.0/24", "cluster_config": LIMIT}, 3, ""),
        ({"cni": "calico", "pod_cidr": "10.244.0.0/24"}, 3, ""),
        ({"cni": "flannel"}, 256, ""),
        ({"cni": "flannel"}, 301, "/15"),
    ],
)
def test_ranges_of_flannel(settings, count, fitting):
    hosts = {f"w{number}": host(number, ["kube_node"]) for number in range(12, count + 11)}
    planned = plan({"cp1": host(11, ["kube_control_plane"]), **hosts}, pods_per_node=1, **settings)
    found = errors(planned).get("cidr", {"next": ""})["next"]
    assert bool(found) is bool(fitting)
    assert f"to a {fitting} or larger" in found or not fitting


@pytest.mark.parametrize(
    ("addresses", "changes", "told"),
    [
        (["10.77.0.12"], {}, ["10.77.0.12 in the cluster", "would have 10.88.0.12", "to 10.77.0.12, or"]),
        (["10.77.0.12", "fd00:77::12"], {}, ["to 10.77.0.12,fd00:77::12, or"]),
        (["10.88.0.12"], {}, []),
        (["10.88.0.12", "fd00:88::12"], {}, []),  # the site's CIDRs are of one family: said elsewhere
        (["10.77.0.12"], {"machine_id": "another"}, []),  # a new machine with the name of one that has gone
        ([], {}, []),
        (["10.77.0.12"], {"recalled": "2026-11-22T00:00:00Z"}, []),
    ],
)
def test_a_node_keeps_the_address_with_which_it_joined(addresses, changes, told):
    hosts = finished()
    node = {"name": "node12", "machine_id": hosts["w1"]["host"]["machine_id"], "addresses": addresses}
    hosts["cp1"]["host"]["cluster"] = running(nodes=[{**node, **changes}])
    hosts["w1"].update({key: value for key, value in changes.items() if key == "recalled"})
    found = [each for each in plan(hosts)["findings"] if each["check"] == CHECK]
    assert [(each["level"], each["hosts"]) for each in found] == [("warning", ["w1"])] * bool(told)
    assert all(part in found[0]["seen"] + found[0]["next"] for part in told)
