"""Attachments of others on fabric NICs, and addresses that they give out by name."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import errors, finished, plan, running, site

Data = t.Dict[str, t.Any]


def with_attachment(**more: t.Any) -> Data:
    seen = {"namespace": "jobs", "name": "old", "plugin": "bridge", "nic": "", "mode": "", "addresses": [], **more}
    hosts = finished()
    hosts["cp1"]["host"]["cluster"] = running(attachments=[seen])
    for name in ("w1", "w2"):
        hosts[name]["rdma"]["links"][1]["altnames"] = ["enp129s0"]
    return hosts


@pytest.mark.parametrize(
    ("attachment", "mode", "seen"),
    [
        ({"plugin": "ipvlan", "nic": "ens1f0", "mode": "l3"}, "bridge", "is ipvlan in mode l3 on ens1f0: a NIC has"),
        ({"plugin": "ipvlan", "nic": "enp129s0"}, "bridge", "EBUSY (device or resource busy)"),
        ({"plugin": "host-device", "nic": "0000:81:00.0"}, "bridge", "it moves the NIC itself into a pod"),
        ({"plugin": "macvlan", "nic": "ens1f0", "mode": "passthru"}, "bridge", "EINVAL (invalid argument)"),
        ({"plugin": "macvlan", "nic": "ens1f0", "mode": "bridge"}, "passthru", "EINVAL (invalid argument)"),
        ({"plugin": "macvlan", "nic": "ens1f0", "mode": "private"}, "bridge", ""),
        ({"plugin": "vlan", "nic": "ens1f0"}, "bridge", ""),
        ({"plugin": "ipvlan", "nic": "eth7"}, "bridge", ""),
        ({"plugin": "ipvlan", "nic": "ens1f0", "namespace": "default", "name": "rdma-net"}, "bridge", ""),  # our own
    ],
)
def test_attachments_on_a_fabric_nic(attachment: Data, mode: str, seen: str) -> None:
    found = errors(plan(with_attachment(**attachment), networks=[{"name": "rdma-net", "mode": mode}]))
    assert set(found) == ({"fabric-nic"} if seen else set())
    if seen:
        assert found["fabric-nic"]["hosts"] == ["w1", "w2"]
        assert found["fabric-nic"]["seen"].startswith("NetworkAttachmentDefinition jobs/old is ")
        assert seen in found["fabric-nic"]["seen"]


@pytest.mark.parametrize(
    ("more", "level", "seen"),
    [
        (
            {"claims": ["jobs/rail"]},
            "error",
            "ResourceClaim jobs/rail: driver dra.net gives ens1f0 of node12 to its pods",
        ),
        ({"nic": "", "claims": ["jobs/rail"]}, "error", "gives 0000:81:00.0 of node12 to its pods"),
        ({}, "warning", "driver dra.net offers ens1f0 of node12"),
        ({"driver": "sriovnetwork.k8snetworkplumbingwg.io"}, "warning", "offers ens1f0 of node12"),
        ({"node": "node11"}, "", ""),
        ({"nic": "ens1f0v3", "pci": "0000:81:00.5"}, "", ""),  # one of its virtual functions
        ({"nic": "", "pci": ""}, "", ""),
    ],
)
def test_nics_that_dra_offers(more: Data, level: str, seen: str) -> None:
    offered = {"driver": "dra.net", "node": "node12", "nic": "ens1f0", "pci": "0000:81:00.0", "claims": [], **more}
    hosts = finished()
    hosts["cp1"]["host"]["cluster"] = running(dra_nics=[offered])
    found = plan(hosts)["findings"]
    assert [(each["check"], each["level"], each["hosts"]) for each in found] == (
        [("fabric-nic", level, ["w1"])] if level else []
    )
    if level:
        assert found[0]["seen"].endswith(seen)
        assert "another one in `select` of rdma-net" in found[0]["next"]


@pytest.mark.parametrize(
    ("addresses", "seen"),
    [
        (["10.5.0.200", "10.5.0.9", "fd00::9"], "10.5.0.200 of jobs/old; the plan gives out 10.5.0."),
        (["10.5.0.9"], ""),  # of the lower half
        (["10.5.0.12"], ""),  # the host's own
    ],
)
def test_static_addresses(addresses: t.List[str], seen: str) -> None:
    found = errors(plan(with_attachment(addresses=addresses)))
    assert set(found) == ({"subnet"} if seen else set())
    if seen:
        assert found["subnet"]["seen"].startswith(seen)
        assert found["subnet"]["next"].startswith("Set reserved to [10.5.0.200] ")
    reserved = plan(with_attachment(addresses=addresses), networks=[{"name": "rdma-net", "reserved": ["10.5.0.200"]}])
    assert reserved["findings"] == []


LOCAL = {
    "type": "host-local",
    "ranges": [[{"subnet": "10.5.0.0/24", "rangeStart": "10.5.0.190", "rangeEnd": "10.5.0.195"}]],
}


@pytest.mark.parametrize(
    ("ipam", "seen"),
    [
        (LOCAL, "10.5.0.190-10.5.0.195 of jobs/old"),
        ({"type": "whereabouts", "range": "10.5.0.200-10.5.0.201/24"}, "10.5.0.200-10.5.0.201 of jobs/old"),
        ({"type": "whereabouts", "range": "10.5.0.0/26"}, ""),  # of the lower half
        ({"type": "whereabouts", "range": "10.9.0.0/24"}, ""),
        ({"type": "whereabouts", "range": 7}, ""),
        ({"type": "dhcp"}, ""),
    ],
)
def test_ranges_of_other_networks(ipam: Data, seen: str) -> None:
    hosts = with_attachment(plugin="macvlan", nic="eth7", ipam=ipam)
    warned = [each for each in plan(hosts)["findings"] if each["check"] == "subnet"]
    assert [each["level"] for each in warned] == (["warning"] if seen else [])
    if seen:
        assert seen in warned[0]["seen"]
        moved = plan(hosts, networks=[{"name": "rdma-net", "share": "10.5.0.204/30"}], pods_per_node=1)
        assert "other networks of the cluster" not in str(moved["findings"])


def test_two_networks_on_one_nic_and_passthru() -> None:
    networks = [
        {"name": "a", "mode": "passthru", "share": "10.5.0.128/26"},
        {"name": "b", "share": "10.5.0.192/26"},
    ]
    found = errors(plan(site(), networks=networks))["networks"]
    assert found["what"] == "Networks a and b can't share a NIC."
    assert found["hosts"] == ["w1", "w2"]
    both = [{**one, "mode": "bridge"} for one in networks]
    assert "networks" not in errors(plan(site(), networks=both))


@pytest.mark.parametrize(("mode", "pods", "found"), [("passthru", 8, True), ("passthru", 1, False), ("vepa", 8, False)])
def test_passthru_has_room_for_one_pod(mode: str, pods: int, found: bool) -> None:
    seen = plan(site(), networks=[{"name": "rdma-net", "mode": mode}], pods_per_node=pods)["findings"]
    assert [each["seen"] for each in seen if each["check"] == "networks"] == ["fabric_pods_per_node is 8"] * found
