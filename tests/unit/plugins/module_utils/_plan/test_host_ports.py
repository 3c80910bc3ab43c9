"""Who has to reach which ports of whom, and what the plan says when they do not."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host.port_probe import AT_ONCE
from ansible_collections.ipu.fabric.plugins.module_utils._model.settings import Settings
from ansible_collections.ipu.fabric.plugins.module_utils._plan.build import build_port_needs
from ansible_collections.ipu.fabric.plugins.module_utils._plan.host_ports import ring
from ansible_collections.ipu.fabric.plugins.module_utils._plan.port_table import TABLE, component_names, uses
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites

Connection = t.Tuple[str, str, str, int]  # source, target, protocol, port
PLANES, NODES = ["kube_control_plane"], ["kube_node"]


def bare(planes: int = 1, workers: int = 2) -> t.Dict[str, t.Any]:
    """Hosts on which every port is free, and listened on for the probe."""
    groups = [PLANES] * planes + [NODES] * workers
    names = [f"cp{number}" for number in range(1, planes + 1)] + [f"w{number}" for number in range(1, workers + 1)]
    hosts = {name: sites.host(number, group) for number, (name, group) in enumerate(zip(names, groups), 11)}
    for name, host in hosts.items():
        tcp = [10250, 5473] + ([6443, 2379, 2380] if name.startswith("cp") else [])
        host["listener"] = {"name": f"of {name}", "tcp": tcp, "udp": [4789, 8472, 4791]}
        host["listened"] = f"of {name}"
    return hosts


def wanted(hosts: t.Mapping[str, t.Any], **settings: t.Any) -> t.Set[Connection]:
    targets = build_port_needs(Settings(**{**sites.SETTINGS, **settings}), hosts)["ports"]
    return {
        (source, target["host"], protocol, port)
        for source, listed in targets.items()
        for target in listed
        for protocol, ports in (("TCP", target["tcp"]), ("UDP", target["udp"]))
        for port in ports
    }


def of_port(connections: t.Set[Connection], port: int) -> t.Set[t.Tuple[str, str]]:
    return {(source, target) for source, target, _protocol, number in connections if number == port}


def probed(hosts: t.Dict[str, t.Any], answers: t.Mapping[t.Tuple[str, str, int], str]) -> t.Dict[str, t.Any]:
    """What hosts report when everything is open but these."""
    targets = build_port_needs(Settings(**sites.SETTINGS), hosts)["ports"]
    for name, host in hosts.items():
        host["probes"] = [
            {
                "host": target["host"],
                "address": target["address"],
                "protocol": protocol,
                "port": port,
                "seen": answers.get((name, target["host"], port), "open"),
            }
            for target in targets.get(name, [])
            for protocol, ports in (("TCP", target["tcp"]), ("UDP", target["udp"]))
            for port in ports
        ]
    return hosts


def found(hosts: t.Dict[str, t.Any], level: str = "error", **settings: t.Any) -> t.List[t.Any]:
    findings = sites.plan(hosts, **settings)["findings"]
    return [finding for finding in findings if (finding["check"], finding["level"]) == ("host-ports", level)]


@pytest.mark.parametrize(
    ("names", "pairs"),
    [
        ("", 0),
        ("a", 0),
        ("ab", 2),
        ("abc", 3),
        ("abcd", 8),
        ("abcdefghij", 20),
    ],
)
def test_a_ring_and_its_diameters(names, pairs):
    found = list(ring(list(names)))
    assert len(found) == len(set(found)) == pairs
    assert all(source != target for source, target in found)


def test_control_planes_and_all_others_fully():
    connections = wanted(bare(3, 5))
    planes, everyone = ["cp1", "cp2", "cp3"], [*bare(3, 5)]
    assert of_port(connections, 6443) == {(a, b) for a in everyone for b in planes if a != b}
    assert of_port(connections, 10250) == {(a, b) for a in planes for b in everyone if a != b}
    assert (
        of_port(connections, 2379) == of_port(connections, 2380) == {(a, b) for a in planes for b in planes if a != b}
    )


@pytest.mark.parametrize(("cni", "ports"), [("calico", {4789, 5473}), ("flannel", {8472}), ("none", set())])
def test_the_pod_network_has_its_ports(cni, ports):
    connections = wanted(bare(), cni=cni)
    assert {port for _source, _target, _protocol, port in connections} - {6443, 10250} == ports


def test_the_number_of_connections_grows_with_the_hosts():
    few, many = len(wanted(bare(1, 20))), len(wanted(bare(1, 200)))
    assert many < 11 * few


def test_nothing_is_asked_of_a_host_that_does_not_listen():
    """Outside --limit, not reached, or another run has just begun: ports of running services are still probed."""
    hosts = bare()
    del hosts["cp1"]["listener"]
    hosts["cp1"]["host"]["ports_busy"] = [{"port": 6443, "process": "kube-apiserver"}]
    del hosts["w2"]["host"], hosts["w2"]["listener"]
    connections = wanted(hosts)
    assert {(target, port) for _source, target, _protocol, port in connections} == {
        ("cp1", 6443),
        *(("w1", port) for port in (10250, 4789, 5473)),
    }


def test_a_cluster_that_is_managed_elsewhere_has_its_own_ports():
    assert wanted(bare(), manage_kubernetes=False) == set()


def test_the_port_of_roce_is_asked_where_no_rdma_device_keeps_its_packets():
    hosts = bare()
    assert of_port(wanted(hosts), 4791) == set()
    for name in ("w1", "w2"):
        hosts[name]["rdma"]["links"][1].update(device="", rdma_netdevs=[])
    networks = [{"name": "rdma-net", "select": {"name": "ens1f0"}}]
    assert of_port(wanted(hosts, networks=networks), 4791) == {("w1", "w2"), ("w2", "w1")}
    assert of_port(wanted(hosts, networks=networks, require_rdma=False), 4791) == set()
    targets = build_port_needs(Settings(**{**sites.SETTINGS, "networks": networks}), hosts)["ports"]
    assert [(target["address"], target["source"]) for target in targets["w1"] if 4791 in target["udp"]] == [
        ("10.5.0.13", "10.5.0.12")
    ]


def test_open_ports_are_no_finding():
    assert found(probed(bare(), {})) == found(probed(bare(), {}), "warning") == []


def test_a_blocked_port_is_named_with_both_hosts():
    [finding] = found(probed(bare(), {("w1", "cp1", 6443): "filtered"}))
    assert finding["what"] == "w1 cannot reach TCP 6443 (API server) of cp1."
    assert finding["seen"] == "no answer: w1 to cp1 (10.88.0.11); 1 of 2 connections failed"
    assert finding["hosts"] == ["cp1"]
    assert "firewalls of cp1" in finding["next"]


def test_many_blocked_pairs_are_one_finding_for_each_port():
    blocked = {("cp1", f"w{number}", 10250): "filtered" for number in range(1, 51)}
    [finding] = found(probed(bare(1, 50), {**blocked, ("cp1", "w50", 10250): "refused"}))
    assert finding["hosts"] == ["cp1"]
    assert finding["what"] == "cp1 cannot reach TCP 10250 (kubelet) of w1, w2, w3, w4 and 46 more."
    assert "and 45 more; refused: cp1 to w50 (10.88.0.61); 50 of 50 connections failed" in finding["seen"]


def test_a_site_can_allow_it():
    hosts = probed(bare(), {("w1", "cp1", 6443): "refused"})
    assert found(hosts, allow=["host-ports"]) == []
    assert len(found(hosts, "warning", allow=["host-ports"])) == 1


@pytest.mark.parametrize("listened", ["", "of another run"])
def test_what_a_listener_that_ended_early_seems_to_refuse_is_not_known(listened):
    hosts = bare()
    hosts["cp1"]["host"]["ports_busy"] = [{"port": 2379, "process": "etcd"}]
    hosts["cp1"]["listener"]["tcp"] = [6443]
    hosts["cp1"]["listened"] = listened
    probed(hosts, {("w1", "cp1", 6443): "refused"})
    assert found(hosts) == []
    [finding] = found(hosts, "warning")
    assert finding["hosts"] == ["cp1"]


def test_a_listener_that_an_interrupted_run_has_left_is_no_stranger():
    hosts = bare()
    hosts["cp1"]["host"]["ports_busy"] = [{"port": 6443, "process": "fabric-ports"}]
    assert "ports" not in sites.errors(sites.plan(hosts))


def test_control_planes_with_a_virtual_address_hear_each_other():
    hosts = bare(3, 2)
    for name in ("cp1", "cp2", "cp3"):
        hosts[name]["listener"]["ip"] = [112]

    def vrrp(**settings):
        targets = build_port_needs(Settings(**{**sites.SETTINGS, **settings}), hosts)["ports"]
        return {(source, one["host"]) for source, listed in targets.items() for one in listed if one["ip"] == [112]}

    planes = ("cp1", "cp2", "cp3")
    assert vrrp(control_plane_vip="10.88.0.50") == {(a, b) for a in planes for b in planes if a != b}
    assert vrrp() == set()
    address = hosts["cp2"]["host"]["default_address"]
    hosts["cp1"]["probes"] = [
        {"host": "cp2", "address": address, "protocol": "IP protocol", "port": 112, "seen": "filtered"}
    ]
    (finding,) = found(hosts)
    assert finding["what"] == "cp1 cannot reach IP protocol 112 (VRRP) of cp2."


# ---- which components need ports ------------------------------------------------------------------------------------


BGP = {"calicoNetwork": {"bgp": "Enabled"}}


def pools(*encapsulations: t.Optional[str], **network: t.Any) -> t.Dict[str, t.Any]:
    listed = [{"cidr": "10.244.0.0/16", **({"encapsulation": name} if name else {})} for name in encapsulations]
    return {"calico": {"calicoNetwork": {"ipPools": listed, **network}}}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {("UDP", 4789), ("TCP", 5473)}),
        ({"pod_network": {"calico": BGP}}, {("UDP", 4789), ("TCP", 5473), ("TCP", 179)}),
        ({"pod_network": pools("None", bgp="Enabled")}, {("TCP", 5473), ("TCP", 179)}),
        ({"pod_network": pools(None, bgp="Enabled")}, {("TCP", 5473), ("TCP", 179), ("IP protocol", 4)}),
        ({"pod_network": pools("IPIPCrossSubnet", bgp="Enabled")}, {("TCP", 5473), ("TCP", 179), ("IP protocol", 4)}),
        ({"pod_network": pools("VXLANCrossSubnet")}, {("UDP", 4789), ("TCP", 5473)}),
        ({"pod_network": pools(None)}, {("UDP", 4789), ("TCP", 5473)}),
        ({"cni": "flannel"}, {("UDP", 8472)}),
        ({"cni": "flannel", "pod_network": {"calico": BGP, "flannel": {}}}, {("UDP", 8472)}),
        ({"cni": "flannel", "pod_network": {"flannel": {"Type": "vxlan", "Port": 4799}}}, {("UDP", 4799)}),
        ({"cni": "flannel", "pod_network": {"flannel": {"Type": "host-gw"}}}, set()),
        ({"cni": "flannel", "pod_network": {"flannel": {"Type": "wireguard"}}}, {("UDP", 51820)}),
        ({"cni": "flannel", "pod_network": {"flannel": {"Type": "udp"}}}, {("UDP", 8285)}),
        ({"cni": "none"}, set()),
        ({"cni": "none", "stack": "spiderpool"}, {("TCP", 5722)}),
        ({"cni": "none", "stack": "spiderpool", "manage_kubernetes": False}, {("TCP", 5722)}),
        ({"cni": "none", "ipu_operator_version": "1.1.0"}, {("TCP", 9443)}),
        ({"cni": "none", "ipu_operator_version": "v1.1.0", "ipu": False}, set()),
        ({"cni": "none", "ipu_operator_version": "1.10.0"}, set()),
        ({"cni": "calico", "manage_kubernetes": False}, set()),
    ],
)
def test_the_ports_of_a_site(settings, expected):
    always = {("TCP", 6443), ("TCP", 2379), ("TCP", 2380), ("TCP", 10250), ("UDP", 4791), ("TCP", 9345)}
    site = Settings(**{**sites.SETTINGS, **settings})
    assert {line.port for line in uses(site)} - always == expected
    assert set(component_names(site)) >= {line.port for line in uses(site)}


def test_a_port_of_its_own_is_still_flannels():
    site = Settings(**{**sites.SETTINGS, "cni": "flannel", "pod_network": {"flannel": {"Type": "vxlan", "Port": 4799}}})
    assert component_names(site)["UDP", 4799] == "flannel's VXLAN"


def test_every_line_has_a_port_of_its_own():
    assert len({line.port for line in TABLE}) == len(TABLE)


def test_each_host_listens_on_what_others_need_of_it_and_nothing_else():
    hosts = bare(2, 2)
    site = Settings(**{**sites.SETTINGS, "control_plane_vip": "10.88.0.50", "stack": "spiderpool"})
    listen = build_port_needs(site, hosts)["listen"]
    worker = {"tcp": [5473, 5722, 10250], "udp": [4789], "ip": []}
    assert listen["w1"] == listen["w2"] == worker
    assert listen["cp1"] == {**worker, "tcp": [2379, 2380, 5473, 5722, 6443, 10250], "ip": [112]}
    assert build_port_needs(Settings(**sites.SETTINGS), {"cp1": bare()["cp1"]})["listen"] == {}
    none = Settings(**{**sites.SETTINGS, "manage_kubernetes": False})
    assert build_port_needs(none, hosts)["listen"] == {}


def test_two_hundred_hosts_take_a_minute_at_most():
    """Each waits three seconds at most for so many connections at once, however many of them are blocked."""
    hosts = bare(5, 195)
    site = Settings(**{**sites.SETTINGS, "stack": "spiderpool", "pod_network": {"calico": BGP}})
    for host in hosts.values():
        host["listener"]["tcp"] += [179, 5722]
    needs = build_port_needs(site, hosts)
    most = max(
        sum(len(target["tcp"]) + len(target["udp"]) + len(target["ip"]) for target in targets)
        for targets in needs["ports"].values()
    )
    assert -(-most // AT_ONCE) * 3 <= 15


VIPU = {"vipu_hosts": [{"host": "10.5.0.20", "port": 8090}]}


def test_v_ipu_is_tried_by_those_that_have_not_asked_it():
    hosts = bare()
    assert not any(target["host"].startswith("V-IPU") for target in of_host(hosts, "w1", **VIPU))
    hosts["w1"]["vipu"] = None
    (target,) = [target for target in of_host(hosts, "w1", **VIPU) if target["host"] not in hosts]
    assert (target["host"], target["address"], target["tcp"]) == ("V-IPU (10.5.0.20)", "10.5.0.20", [8090])
    assert all(target["host"] in hosts for target in of_host(hosts, "w1"))
    # Refused by another check, not by a firewall.
    assert all(target["host"] in hosts for target in of_host(hosts, "w1", vipu_hosts=["localhost"]))


def of_host(hosts: t.Mapping[str, t.Any], name: str, **settings: t.Any) -> t.List[t.Any]:
    return build_port_needs(Settings(**{**sites.SETTINGS, **settings}), hosts)["ports"].get(name, [])


def test_a_v_ipu_that_is_out_of_reach_is_named():
    hosts = bare()
    probe = {"host": "V-IPU (vipu.site)", "address": "10.5.0.20", "protocol": "TCP", "port": 8090, "seen": "filtered"}
    hosts["w1"]["probes"] = [probe]
    (finding,) = found(hosts)
    assert finding["what"] == "w1 cannot reach TCP 8090 of V-IPU (vipu.site)."
    assert finding["hosts"] == ["w1"]


def test_a_v_ipu_whose_name_is_not_known_there():
    hosts = bare()
    probe = {"host": "V-IPU (pod1)", "address": "pod1", "protocol": "TCP", "port": 8090, "seen": "unresolved"}
    hosts["w1"]["probes"] = [probe]
    (finding,) = found(hosts)
    assert finding["seen"].startswith("a name that is not known there: w1 to V-IPU (pod1)")
    assert finding["next"].startswith("Write the address in place of the name")


def test_a_blocked_port_of_each_component_is_named():
    for line in TABLE:
        hosts = bare()
        protocol, port = line.port
        hosts["w1"]["probes"] = [
            {"host": "w2", "address": "10.88.0.13", "protocol": protocol, "port": port, "seen": "filtered"}
        ]
        (finding,) = found(hosts)
        assert finding["what"] == f"w1 cannot reach {protocol} {port} ({line.component}) of w2."
