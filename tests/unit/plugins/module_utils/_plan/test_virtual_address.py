"""The virtual address of the API in the plan."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.settings import Settings
from ansible_collections.ipu.fabric.plugins.module_utils._plan.build import build_preflight
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import SETTINGS, errors, host, plan, running

VIP = "10.88.0.50"
PLANES = {"cp1": 11, "cp2": 12, "cp3": 13}


def view(**changes):
    seen = {"address": VIP, "held": False, "answered": "", "mac": "", "gateways": ["10.88.0.1"]}
    return {**seen, "foreign_keepalived": False, **changes}


def site(**views):
    """Three control planes and a worker; `views` is what some of them see of the address."""
    hosts = {name: host(number, ["kube_control_plane"], vip=view()) for name, number in PLANES.items()}
    hosts["w1"] = host(14, ["kube_node"])
    for name, changes in views.items():
        hosts[name]["host"]["vip"] = view(**changes)
    return hosts


def hold(observation, address=VIP, prefix=32):
    observation["rdma"]["links"][0]["addresses"].append({"address": address, "prefix": prefix})


def planned(hosts, **settings):
    return plan(hosts, **{"control_plane_vip": VIP, **settings})


def test_it_is_the_endpoint():
    result = planned(site())
    assert result["findings"] == []
    assert result["cluster"]["endpoint"] == "10.88.0.50:6443"
    assert result["cluster"]["virtual_address"] == {
        "address": VIP,
        "router_id": 50,
        "members": {"cp1": "10.88.0.11", "cp2": "10.88.0.12", "cp3": "10.88.0.13"},
    }
    assert planned(site(), control_plane_vip="")["cluster"]["virtual_address"] is None


@pytest.mark.parametrize(
    ("address", "wanted", "used"), [("10.88.0.50", 0, 50), ("10.88.0.50", 7, 7), ("10.88.1.0", 0, 255)]
)
def test_router_id(address, wanted, used):
    result = planned(site(), control_plane_vip=address, control_plane_vip_router_id=wanted)
    assert result["cluster"]["virtual_address"]["router_id"] == used


@pytest.mark.parametrize(
    ("vip", "seen"),
    [
        ("10.88.0.50/24", "10.88.0.50/24"),
        ("10.88.0.50:6443", "10.88.0.50:6443"),
        ("k8s.example.org", "k8s.example.org"),
        ("224.0.0.18", "224.0.0.18"),
        ("fd00::50", "fd00::50 is IPv6, cp1 is 10.88.0.11"),
        ("10.99.0.50", "10.99.0.50 is not in 10.88.0.0/24, the host's network"),
        ("10.5.0.50", "10.5.0.50 is not in 10.88.0.0/24, the host's network"),  # of the RDMA network
        ("10.88.0.255", "10.88.0.255 is the first or the last of 10.88.0.0/24"),
        ("10.88.0.12", "10.88.0.12 is that of cp2"),
        ("10.88.0.14", "10.88.0.14 is that of w1"),
        ("10.88.0.1", "10.88.0.1 is the gateway of routes of cp1, cp2, cp3"),
        ("10.244.0.50", "10.244.0.50 is in 10.244.0.0/16 (fabric_pod_cidr)"),
        ("10.96.0.50", "10.96.0.50 is in 10.96.0.0/12 (fabric_service_cidr)"),
    ],
)
def test_addresses_that_it_can_not_be(vip, seen):
    result = planned(site(), control_plane_vip=vip)
    said = [finding["seen"] for finding in result["findings"] if finding["check"] == "virtual-address"]
    assert seen in said


@pytest.mark.parametrize("wanted", [-1, 256])
def test_a_router_id_that_it_can_not_have(wanted):
    assert set(errors(planned(site(), control_plane_vip_router_id=wanted))) == {"virtual-address"}


@pytest.mark.parametrize(
    ("given", "agrees"), [("10.88.0.50:6443", True), ("10.88.0.50", True), ("10.88.0.50:8443", False), ("lb", False)]
)
def test_an_endpoint_beside_it(given, agrees):
    reported = errors(planned(site(), control_plane_endpoint=given))
    assert set(reported) == (set() if agrees else {"endpoint"})


def test_a_cluster_that_is_managed_elsewhere():
    reported = errors(planned(site(), manage_kubernetes=False))
    assert "virtual-address" in reported


def test_a_cluster_keeps_its_endpoint():
    hosts = site()
    hosts["cp1"]["host"]["cluster"] = running(endpoint="10.88.0.11:6443")
    reported = errors(planned(hosts))["cluster-endpoint"]
    assert "fabric_control_plane_vip makes it 10.88.0.50:6443; the cluster has 10.88.0.11:6443" in reported["seen"]
    assert "Leave fabric_control_plane_vip empty" in reported["next"]
    hosts["cp1"]["host"]["cluster"] = running(endpoint="10.88.0.50:6443")
    assert not errors(planned(hosts))


MINE, WORKERS, STRANGER = "0c:42:a1:00:00:0c", "0C:42:A1:00:00:0E", "02:00:00:00:00:99"


@pytest.mark.parametrize(
    ("views", "seen"),
    [
        ({}, ""),
        ({"cp2": {"held": True}, "cp1": {"answered": "open", "mac": STRANGER}}, ""),
        # It moved while they were asked, or its holder is one that can't be asked.
        ({"cp1": {"answered": "open", "mac": MINE}, "cp3": {"answered": "open", "mac": MINE}}, ""),
        ({"cp1": {"answered": "open", "mac": STRANGER}}, f"cp1 sees it: on the local network it is at {STRANGER}"),
        ({"cp1": {"mac": STRANGER}, "cp2": {"mac": STRANGER}}, "as cp1, cp2 sees it: on the local network it is at"),
        ({"cp1": {"answered": "refused"}}, "TCP 6443 is refused"),
        ({"cp1": {"mac": WORKERS}}, "a NIC of w1"),
    ],
)
def test_somebody_else_has_it(views, seen):
    hosts = site(**views)
    reported = errors(planned(hosts))
    assert set(reported) == ({"virtual-address-in-use"} if seen else set())
    if seen:
        assert seen in reported["virtual-address-in-use"]["seen"]
        assert not errors(planned(hosts, allow=["virtual-address-in-use"]))


def test_what_was_seen_in_an_earlier_run_does_not_count():
    hosts = site(cp1={"answered": "open", "mac": STRANGER})
    hosts["cp1"]["recalled"] = "2026-11-22T10:00:00+00:00"
    assert "virtual-address-in-use" not in errors(planned(hosts))


def test_preflight_asks_too():
    settings = Settings(**{**SETTINGS, "control_plane_vip": VIP})
    found = build_preflight(settings, site(cp1={"answered": "open", "mac": STRANGER}))["findings"]
    assert [finding["check"] for finding in found] == ["virtual-address-in-use"]
    assert build_preflight(settings, site())["findings"] == []


def test_keepalived_of_somebody_else():
    reported = errors(planned(site(cp2={"foreign_keepalived": True})))
    assert reported["virtual-address"]["hosts"] == ["cp2"]


def test_the_plan_is_the_same_whoever_holds_it():
    plain, moved = planned(site()), site(cp2={"held": True})
    hold(moved["cp2"])
    assert planned(moved) == plain
    # The same address with the prefix of its network is the host's own.
    own = site(cp2={"held": True})
    hold(own["cp2"], prefix=24)
    assert "must not be a host's own address" in errors(planned(own))["virtual-address"]["what"]


def test_pods_do_not_get_it():
    """Where the RDMA network is that of the control planes."""
    hosts = site()
    for observation in hosts.values():
        observation["rdma"]["links"][1]["addresses"] = observation["rdma"]["links"][0]["addresses"]
        observation["rdma"]["links"][0]["addresses"] = []
        observation["rdma"]["routes"] = {"10.88.0.20": {"dev": "ens1f0", "source": "", "gateway": ""}}
        observation["vipu"]["host"] = observation["vipu"]["address"] = "10.88.0.20"
    (network,) = planned(hosts, control_plane_vip="10.88.0.200")["networks"]
    assert "10.88.0.200/32" in network["subnet"]["exclude"]


def test_a_control_plane_whose_address_is_on_no_interface():
    hosts = site()
    hosts["cp1"]["address"] = "192.0.2.1"
    assert "no interface of cp1 has its address 192.0.2.1" in str(planned(hosts)["findings"])


def test_a_network_that_it_is_not_in_is_one_finding():
    found = planned(site(), control_plane_vip="10.77.0.50")["findings"]
    assert [each["hosts"] for each in found if "the host's network" in each["seen"]] == [["cp1", "cp2", "cp3"]]


def test_a_text_that_is_no_address_is_not_also_a_missing_endpoint():
    checks = {each["check"] for each in planned(site(), control_plane_vip="api.site")["findings"]}
    assert "virtual-address" in checks
    assert "endpoint" not in checks


def test_a_name_of_the_endpoint_is_taken_in_lower_case():
    result = planned(site(), control_plane_vip="", control_plane_endpoint="API.site:6443")
    assert result["cluster"]["endpoint"] == "api.site:6443"
