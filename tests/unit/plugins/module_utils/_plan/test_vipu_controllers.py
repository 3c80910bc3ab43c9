"""A V-IPU controller that runs on a host of the cluster, and the address of it that pods reach."""

from __future__ import annotations

import re

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.settings import IpuRelease, Settings
from ansible_collections.ipu.fabric.plugins.module_utils._plan.build import build_port_needs
from ansible_collections.ipu.fabric.plugins.module_utils._plan.report import as_text
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import SETTINGS, change, errors, finished, host, plan, site

FABRIC, MANAGEMENT = "10.5.0.12", "10.88.0.12"  # of w1
HOST_NETWORK = {"ipu_release": IpuRelease(values={"worker.hostNetwork": "true"})}


def asked(hosts, address, *names, name=""):
    """What vipu says on these hosts, or on all of the site."""
    answer = {"host": name or address, "port": 8090, "address": address, "version": "1.18.0", "source": "json"}
    change(("vipu",), answer)(hosts, names or tuple(hosts))
    return hosts


def addresses(planned):
    return [controller["address"] for controller in planned["vipu"]["controllers"]]


def with_one_nic(hosts):
    """w1 is in the cluster by its fabric NIC."""
    hosts["w1"]["address"] = FABRIC
    change(("host", "default_address"), FABRIC)(hosts)
    del hosts["w1"]["rdma"]["links"][0]


def without_pods_here(hosts):
    """Pods on the head node need no IPUs."""
    for name in ("cp1", "w2"):
        hosts[name]["groups"] = [*hosts[name]["groups"], "kube_node", "ipu_node"]


@pytest.mark.parametrize(
    ("address", "changed", "settings", "planned", "level"),
    [
        (FABRIC, None, {}, MANAGEMENT, "warning"),
        (FABRIC, None, HOST_NETWORK, MANAGEMENT, "warning"),
        (FABRIC, None, {"vipu_hosts": [f"{FABRIC}:8090"]}, FABRIC, "error"),
        (FABRIC, None, {"vipu_hosts": ["head:8090"], "resolved": {"head": FABRIC}}, FABRIC, "error"),
        (FABRIC, None, {"vipu_hosts": [f"{FABRIC}:8090"], **HOST_NETWORK}, FABRIC, "warning"),
        (FABRIC, None, {"vipu_hosts": [f"{MANAGEMENT}:8090"]}, MANAGEMENT, ""),
        (MANAGEMENT, None, {}, MANAGEMENT, ""),
        ("127.0.0.1", None, {}, MANAGEMENT, ""),
        ("::1", None, {}, MANAGEMENT, ""),
        (FABRIC, with_one_nic, {}, FABRIC, "error"),
        (FABRIC, with_one_nic, HOST_NETWORK, FABRIC, "warning"),
        ("127.0.0.1", with_one_nic, {}, FABRIC, "error"),
        (FABRIC, without_pods_here, {}, FABRIC, ""),
        (FABRIC, None, {"networks": [{"name": "rdma-net", "hosts": ["w2"]}]}, FABRIC, ""),
    ],
)
def test_vipu_on_a_node(address, changed, settings, planned, level):
    """Its pods can't ask the NIC of their network, all others can; workers on the host's network reach any address."""
    hosts = site()
    asked(hosts, FABRIC)
    asked(hosts, address, "w1")
    if changed:
        changed(hosts)
    found = plan(hosts, **settings)
    assert addresses(found) == [planned]
    assert found["vipu"]["value"] == f"{planned}:8090:ipunode=true"
    # That pods can't answer their node there either is a finding of its own.
    said = [(one["level"], one["hosts"]) for one in found["findings"] if "hostPort" not in one["what"]]
    assert said == ([(level, ["w1"])] if level else [])
    assert {one["check"] for one in found["findings"]} <= {"on-master"}


def test_the_head_node_as_the_document_has_it():
    """One IPU host, with V-IPU on it, which vipu calls localhost; the other workers have no IPUs."""
    hosts = site()
    hosts["w1"]["groups"] = ["kube_node", "ipu_node"]
    for name in ("cp1", "w2"):
        del hosts[name]["vipu"]
    asked(hosts, "127.0.0.1", "w1", name="localhost")
    planned = plan(hosts)
    assert planned["findings"] == []
    assert planned["vipu"]["controllers"] == [
        {"host": "localhost", "port": 8090, "address": MANAGEMENT, "serves": ["w1"], "label": "ipunode=true"}
    ]


def test_one_controller_by_several_addresses_is_one():
    hosts = asked(site(), "10.5.0.20")
    asked(hosts, "127.0.0.1", "w1", name="localhost")
    asked(hosts, FABRIC, "w2")
    assert addresses(plan(hosts)) == [MANAGEMENT]
    asked(hosts, "10.5.0.20", "w2")
    assert addresses(plan(hosts)) == ["10.5.0.20", MANAGEMENT]


def test_an_error_says_what_can_be_done():
    hosts = asked(site(), FABRIC)
    with_one_nic(hosts)
    finding = errors(plan(hosts))["on-master"]
    assert finding["seen"] == f"V-IPU has the address {FABRIC} of ens1f0 on this host, which has no other for pods"
    for way in ("fabric_vipu_hosts", "runs no pods", "ipu_operator_worker_host_network", "fabric_allow"):
        assert way in finding["next"]


def test_on_the_only_host():
    """The smallest site of all, from the first document."""
    hosts = {"solo": host(12, ["kube_control_plane"])}
    planned = plan(asked(hosts, FABRIC))
    assert (addresses(planned), list(errors(planned))) == ([MANAGEMENT], [])


@pytest.mark.parametrize("management", ["10.5.0.99", "fd00::12"])
def test_management_that_is_no_way_out_for_pods(management):
    """In their own subnet a pod would look for it on its own network; IPv6 it does not have."""
    hosts = asked(site(), FABRIC)
    hosts["w1"]["address"] = management
    change(("host", "default_address"), "")(hosts)
    assert "on-master" in errors(plan(hosts))


@pytest.mark.parametrize(
    ("address", "probed"), [("10.5.0.20", []), (MANAGEMENT, []), (FABRIC, ["w1", "w2"]), ("127.0.0.1", ["w1"])]
)
def test_hosts_try_an_address_that_they_have_not_asked(address, probed):
    hosts = asked(site(), MANAGEMENT if address == "127.0.0.1" else address)
    asked(hosts, address, "w1")
    targets = build_port_needs(Settings(**SETTINGS), hosts)["ports"]
    found = {name: one for name, of_host in targets.items() for one in of_host if 8090 in one["tcp"]}
    assert list(found) == probed
    assert {one["address"] for one in found.values()} <= {MANAGEMENT}


NO_VIPU = {"source": "vipu", "what": "No vipu.", "where": "PATH", "seen": "nothing", "next_step": "Install it."}


@pytest.mark.parametrize(("lacking", "hinted"), [(("w1", "w2"), True), (("w1",), False)])
def test_a_site_where_no_host_has_v_ipu_is_told_how_to_do_without(lacking: tuple[str, ...], hinted: bool) -> None:
    hosts = finished()
    for name in lacking:
        del hosts[name]["vipu"]
        hosts[name]["errors"] = [NO_VIPU]
    step = errors(plan(hosts, manage_kubernetes=False))["vipu"]["next"]
    assert ("set fabric_ipu: false" in step) == hinted


def test_of_a_cluster_without_ipus_the_plan_speaks_of_none() -> None:
    planned = plan(finished(), manage_kubernetes=False, ipu=False)
    assert not re.search("ipu(?!.fabric)", as_text(planned, "Plan"), re.IGNORECASE)
    assert "Calico" in as_text(planned, "Plan")
