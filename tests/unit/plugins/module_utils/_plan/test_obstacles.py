"""What of a host's own setup keeps a node or its pods from working: one message, where it matters."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._component.kubernetes_host import KUBELET_SYSCTL
from ansible_collections.ipu.fabric.plugins.module_utils._host.obstacles import NEIGHBOURS
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites

Data = t.Dict[str, t.Any]
FLANNEL = {"cni": "flannel"}
IPIP = {"pod_network": {"calico": {"calicoNetwork": {"ipPools": [{"cidr": "10.244.0.0/16", "encapsulation": "IPIP"}]}}}}
RAILS = [{"name": f"rail-{number}", "select": {"name": f"rdma{number}"}} for number in range(8)]


def found(hosts: Data, check: str, **settings: t.Any) -> t.List[Data]:
    return [each for each in sites.plan(hosts, **settings)["findings"] if each["check"] == check]


def with_obstacle(hosts: Data, name: str, value: t.Any) -> Data:
    hosts["w1"]["host"]["obstacles"][name] = value
    return hosts


def of_others() -> t.Tuple[Data, Data]:
    """A cluster that others have built, with Calico."""
    return sites.finished(), {"manage_kubernetes": False}


@pytest.mark.parametrize(
    ("name", "value", "check", "settings", "step"),
    [
        ("filesystem", "nfs4", "disk", {}, "Mount a local ext4 or XFS at /var/lib/containerd"),
        ("filesystem", "overlay", "disk", {}, "Mount a local ext4 or XFS at /var/lib/containerd"),
        ("kubelet_directory", "/data/kubelet", "rdma-resource", {}, "Start the kubelet without --root-dir"),
        ("unloadable", {"macvlan": "/etc/modprobe.d/cis.conf"}, "kernel-modules", {}, "then run modprobe -a macvlan"),
        ("controllers", ["cpu", "cpuset", "pids"], "kernel-modules", {}, "Take cgroup_disable=memory out"),
        ("network_manager", True, "network-manager", {}, "interface-name:cali*"),
        ("network_manager", True, "network-manager", FLANNEL, "interface-name:flannel*"),
        ("tunnel_offloads", ["eno1"], "tunnel-offload", {}, "ethtool -K eno1 tx-udp_tnl-segmentation off"),
        ("tunnel_offloads", ["eno1"], "tunnel-offload", FLANNEL, "ethtool -K eno1 tx-udp_tnl-segmentation off"),
        ("firewall", "firewalld", "host-ports", {}, "--zone=trusted --add-source=10.244.0.0/16"),
        ("firewall", "ufw", "host-ports", FLANNEL, "Run ufw allow from 10.244.0.0/16."),
    ],
)
def test_an_obstacle_is_named_with_its_cure(name: str, value: t.Any, check: str, settings: Data, step: str) -> None:
    (seen,) = found(with_obstacle(sites.site(), name, value), check, **settings)
    assert seen["hosts"] == ["w1"]
    assert step in seen["next"]


@pytest.mark.parametrize(
    ("name", "value", "check", "settings"),
    [
        ("filesystem", "tmpfs", "disk", {}),
        ("filesystem", "overlay", "disk", {"runtime": "docker"}),
        ("kubelet_directory", "/var/lib/kubelet", "rdma-resource", {}),
        ("kubelet_directory", "/data/kubelet", "rdma-resource", {"networks": [], "require_rdma": False}),
        (
            "unloadable",
            {"ib_umad": "/etc/modprobe.d/a.conf"},
            "kernel-modules",
            {"networks": [], "require_rdma": False},
        ),
        ("network_manager", True, "network-manager", {"cni": "none"}),
        ("firewall", "ufw", "host-ports", {}),  # Calico's rules come first, and let pods pass
        ("controllers", [], "kernel-modules", {}),
        ("tunnel_offloads", ["ens1f0"], "tunnel-offload", {}),  # pods' tunnels do not go there
        ("tunnel_offloads", ["eno1"], "tunnel-offload", IPIP),
    ],
)
def test_what_is_in_nobodys_way_is_not_named(name: str, value: t.Any, check: str, settings: Data) -> None:
    assert not found(with_obstacle(sites.site(), name, value), check, **settings)


def test_a_source_that_covers_the_pods_is_enough() -> None:
    hosts = with_obstacle(with_obstacle(sites.site(), "firewall", "ufw"), "firewall_sources", ["10.0.0.0/8", "bad"])
    assert not found(hosts, "host-ports", **FLANNEL)
    dual = {**FLANNEL, "pod_cidr": "10.244.0.0/16,fd00:244::/48", "service_cidr": "10.96.0.0/12,fd00:96::/108"}
    (seen,) = found(sites.with_ipv6(hosts), "host-ports", **dual)
    assert "ufw allow from fd00:244::/48" in seen["next"]
    assert "10.244" not in seen["next"]


@pytest.mark.parametrize(
    ("name", "value", "check", "is_named"),
    [
        ("kubelet_directory", "/data/kubelet", "rdma-resource", True),
        ("network_manager", True, "network-manager", True),
        ("unloadable", {"rdma_ucm": "/etc/modprobe.d/cis.conf"}, "kernel-modules", True),
        ("unloadable", {"overlay": "/etc/modprobe.d/cis.conf"}, "kernel-modules", False),
        ("filesystem", "overlay", "disk", False),  # its nodes run
        ("firewall", "firewalld", "host-ports", False),
    ],
)
def test_of_a_cluster_of_others_only_what_the_fabric_needs(name: str, value: t.Any, check: str, is_named: bool) -> None:
    hosts, settings = of_others()
    assert bool(found(with_obstacle(hosts, name, value), check, **settings)) is is_named


def test_an_observation_of_an_earlier_release_has_none() -> None:
    hosts = sites.site()
    del hosts["w1"]["host"]["obstacles"]
    assert not [each for each in sites.plan(hosts)["findings"] if each["level"] == "error"]


# ---- neighbours -----------------------------------------------------------------------------------------------------


def rails(workers: int, neighbours: int = 1024) -> Data:
    """Hosts with eight NICs, each on a rail of its own."""
    hosts = {f"w{number}": sites.host(number, ["kube_node"]) for number in range(11, 11 + workers)}
    hosts = {"cp1": sites.host(10, ["kube_control_plane"]), **hosts}
    for number, seen in enumerate(hosts.values(), 10):
        seen["host"]["obstacles"]["neighbours"] = neighbours
        seen["rdma"]["links"][1:] = [
            sites.link(f"rdma{rail}", f"10.{rail + 20}.0.{number}", device=f"mlx5_{rail}", pci=f"0000:{rail:02x}:00.0")
            for rail in range(8)
        ]
    return hosts


def neighbours(hosts: Data, **settings: t.Any) -> t.List[Data]:
    return found(hosts, "neighbours", networks=RAILS, **settings)


def test_of_a_cluster_of_others_neighbours_have_to_fit() -> None:
    """16 hosts with eight rails and eight pods each have as many as the kernel keeps; more than that do not fit."""
    assert not neighbours(rails(16), manage_kubernetes=False)
    (seen,) = neighbours(rails(17), manage_kubernetes=False)
    assert len(seen["hosts"]) == 17
    assert "up to 1088 interfaces" in seen["seen"]
    assert "net.ipv4.neigh.default.gc_thresh3 to 2048 in /etc/sysctl.d" in seen["next"]
    assert not neighbours(rails(17, 2048), manage_kubernetes=False)
    assert not neighbours(rails(17, 0), manage_kubernetes=False)  # a container: its host has the limit


def test_where_the_limit_is_set_it_is_enough_for_more() -> None:
    assert KUBELET_SYSCTL["net.ipv4.neigh.default.gc_thresh3"] == NEIGHBOURS
    assert not neighbours(rails(17))
    assert not neighbours(rails(17), manage_kubernetes=False, stack="spiderpool")
    (seen,) = neighbours(rails(17), pods_per_node=60 * 5)
    assert "kubernetes_sysctl" in seen["next"]
