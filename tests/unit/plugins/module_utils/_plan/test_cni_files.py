"""Whose configuration of a pod network a runtime would take, on bare hosts and on nodes."""

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites

CALICO, FLANNEL = ("10-calico.conflist", "calico"), ("10-flannel.conflist", "flannel")
MULTUS, SHIM = ("00-multus.conf", "multus"), ("00-multus.conf", "multus-shim")
PODMAN = ("87-podman-bridge.conflist", "bridge")
STRANGER = ("05-cilium.conflist", "cilium-cni")


def levels(files, node=True, **settings):
    """Level and facts of the findings of one host with these files."""
    hosts = sites.finished() if node else sites.site()
    hosts["w1"]["host"]["cni_files"] = [{"name": name, "plugin": plugin} for name, plugin in sorted(files)]
    planned = sites.plan(hosts, **settings)
    found = [finding for finding in planned["findings"] if finding["check"] == "cni-files"]
    assert all(finding["hosts"] == ["w1"] for finding in found)
    return [(finding["level"], finding["seen"]) for finding in found]


@pytest.mark.parametrize("files", [[CALICO], [CALICO, MULTUS], [CALICO, SHIM, PODMAN]])
def test_a_node_that_is_all_right(files):
    assert levels(files) == []


def test_a_bare_host_has_none():
    assert levels([], node=False) == []
    hosts = sites.site()  # an observation of an earlier release
    assert sites.plan(hosts)["findings"] == []


@pytest.mark.parametrize("node", [True, False])
def test_another_network_comes_first(node):
    seen = "/etc/cni/net.d has 05-cilium.conflist (cilium-cni), which sorts before 10-calico.conflist"
    assert levels([STRANGER, CALICO], node) == [("error", seen)]
    assert levels([STRANGER, CALICO], node, allow=["cni-files"]) == [("warning", seen)]
    assert levels([STRANGER, CALICO], node, cni="none") == []


def test_a_file_that_can_not_be_read_comes_first():
    assert levels([("00-empty.conf", ""), CALICO])[0][1].startswith("/etc/cni/net.d has 00-empty.conf (not readable)")


def test_another_network_waits_until_ours_is_there():
    seen = "/etc/cni/net.d has 87-podman-bridge.conflist (bridge), and no 10-calico.conflist yet"
    assert levels([PODMAN], node=False) == [("warning", seen)]
    assert levels([PODMAN, CALICO], node=False) == []


def test_what_is_left_of_the_other_pod_network():
    """10-flannel sorts behind 10-calico: it counts only as long as Calico's is not there."""
    assert levels([FLANNEL], node=False)[0][0] == "warning"
    assert levels([CALICO], node=False, cni="flannel")[0][0] == "error"
    assert levels([CALICO, FLANNEL], cni="calico") == []


@pytest.mark.parametrize("managed", [True, False])
def test_multus_is_not_the_first(managed):
    seen = "/etc/cni/net.d has 00-a.conf (calico), 00-multus.conf (multus)"
    found = levels([("00-a.conf", "calico"), MULTUS], manage_kubernetes=managed)
    assert found == [("error", seen)]
    assert levels([("00-a.conf", "calico"), MULTUS], node=False, manage_kubernetes=managed) == []


CILIUM = {"name": "cilium", "seen": "DaemonSet kube-system/cilium"}
EXCLUSIVE = "DaemonSet kube-system/cilium, whose ConfigMap cilium-config has cni-exclusive: true"
RENAMED = "00-multus.conf.cilium_bak (multus), and no other file of multus"


@pytest.mark.parametrize(
    ("exclusive", "files", "networks", "seen"),
    [
        (True, [STRANGER], True, [(["cp1"], EXCLUSIVE)]),
        (True, [MULTUS, STRANGER], True, [(["cp1"], EXCLUSIVE)]),  # Cilium has not looked yet
        (False, [STRANGER], True, [(["w1"], RENAMED)]),  # an own ConfigMap, or one that has changed since
        (False, [MULTUS, STRANGER], True, []),
        (True, [STRANGER], False, []),
    ],
)
def test_cilium_renames_what_multus_has_written(exclusive, files, networks, seen):
    hosts = sites.finished()
    network = {**CILIUM, **({"exclusive": True} if exclusive else {})}
    hosts["cp1"]["host"]["cluster"] = sites.running(pod_networks=[network])
    disabled = [{"name": "00-multus.conf.cilium_bak", "plugin": "multus"}, {"name": "x.cilium_bak", "plugin": "x"}]
    hosts["w1"]["host"]["cni_files"] = [{"name": name, "plugin": plugin} for name, plugin in files]
    hosts["w1"]["host"]["cni_disabled"] = disabled
    settings = {} if networks else {"networks": [], "require_rdma": False}
    planned = sites.plan(hosts, manage_kubernetes=False, cni="none", **settings)
    found = [finding for finding in planned["findings"] if finding["check"] == "cni-files"]
    assert [(finding["hosts"], finding["seen"]) for finding in found] == seen
    assert all("cni.exclusive to false" in finding["next"] for finding in found)


def test_a_node_without_any():
    assert levels([]) == [("warning", "nothing in /etc/cni/net.d")]


@pytest.mark.parametrize(("cni", "checks"), [("calico", []), ("none", ["cni-files"])])
def test_a_run_was_stopped_before_its_pod_network(cni, checks):
    hosts = sites.finished()
    hosts["cp1"]["host"]["cluster"] = sites.running(pod_networks=[])
    hosts["w1"]["host"]["cni_files"] = []
    assert [check for check in sites.errors(sites.plan(hosts, cni=cni), "warning") if check == "cni-files"] == checks


def test_what_a_host_said_in_an_earlier_run_is_not_checked():
    hosts = sites.finished()
    hosts["w1"]["host"]["cni_files"] = []
    hosts["w1"]["recalled"] = "2026-11-22T00:00:00Z"
    hosts["w1"]["errors"] = [{"source": "host", "what": "x", "where": "x", "seen": "x", "next_step": "x"}]
    assert "cni-files" not in sites.errors(sites.plan(hosts), "warning")


def test_a_cluster_with_another_pod_network_is_one_finding():
    """Its nodes have the files of what it runs: that it is another one than fabric_cni is said of the cluster."""
    hosts = sites.finished()
    for seen in hosts.values():
        seen["host"]["cni_files"] = [{"name": CALICO[0], "plugin": CALICO[1]}]
    planned = sites.plan(hosts, cni="flannel")
    assert [finding["check"] for finding in planned["findings"] if finding["level"] == "error"] == ["cluster-cni"]
