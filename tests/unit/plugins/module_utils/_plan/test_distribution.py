"""The plan on clusters that k3s and RKE2 have made."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host.distributions import read_kubernetes
from ansible_collections.ipu.fabric.plugins.module_utils._model.settings import Settings
from ansible_collections.ipu.fabric.plugins.module_utils._plan.build import build_port_needs
from ansible_collections.ipu.fabric.plugins.module_utils._plan.report import as_text
from ansible_collections.ipu.fabric.tests.unit.fixtures import rancher
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import SETTINGS, errors, plan, running, site
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._plan.test_source_questions import DEAD

K3S = "/var/lib/rancher/k3s"
BIN, NETWORK = f"{K3S}/data/cni", f"{K3S}/agent/etc/cni/net.d"
CHECKS = {"node-distribution", "cni-directories"}


def cluster(folder, name, **changes):
    """The site on an existing cluster, with the facts that its hosts' files give."""
    hosts = site()
    for host, observed in hosts.items():
        rancher.make_node(folder / host, name, server=host == "cp1", **changes)
        facts = observed["host"]
        facts["kubernetes"] = read_kubernetes(str(folder / host))
        facts["kubelet"] = {"present": True, "version": f"v1.35.4+{name}1", "server": "", "cluster": "ab"}
        facts["other_kubernetes"] = [name]
    hosts["cp1"]["host"]["cluster"] = running(
        version=f"1.35.4+{name}1",
        endpoint="",
        pod_cidr="10.42.0.0/16",
        service_cidr="10.43.0.0/16",
        pod_networks=[{"name": "flannel", "seen": "an annotation"}],
    )
    return hosts


def made(planned, level="error"):
    return {check: finding for check, finding in errors(planned, level).items() if check in CHECKS}


def test_k3s(tmp_path):
    planned = plan(cluster(tmp_path, "k3s"), manage_kubernetes=False)
    assert errors(planned) == {}
    assert planned["cluster"]["distribution"] == {
        "name": "k3s",
        "containerd_socket": "/run/k3s/containerd/containerd.sock",
        "cni_bin_directory": BIN,
        "cni_network_directory": NETWORK,
    }
    assert planned["releases"]["kubernetes"] == "1.35.4+k3s1"
    assert (planned["cluster"]["pod_cidr"], planned["cluster"]["service_cidr"]) == ("10.42.0.0/16", "10.43.0.0/16")
    text = " ".join(as_text(planned).split())
    assert f"nodes made by k3s; CNI plugins in {BIN}; CNI configurations in {NETWORK}" in text
    assert "existing cluster: Kubernetes 1.35.4+k3s1, flannel" in text


def test_rke2_has_the_usual_directories(tmp_path):
    planned = plan(cluster(tmp_path, "rke2"), manage_kubernetes=False)
    assert errors(planned) == {}
    distribution = planned["cluster"]["distribution"]
    assert (distribution["name"], distribution["containerd_socket"]) == ("rke2", "/run/k3s/containerd/containerd.sock")
    assert (distribution["cni_bin_directory"], distribution["cni_network_directory"]) == ("", "")
    assert "nodes made by rke2" in as_text(planned)


@pytest.mark.parametrize(("managed", "name"), [(True, "kubeadm"), (False, "none")])
def test_bare_hosts_and_those_of_others(managed, name):
    """Observations of earlier releases say nothing of it either."""
    planned = plan(site(), manage_kubernetes=managed)
    assert planned["cluster"]["distribution"]["name"] == name
    assert planned["cluster"]["distribution"]["cni_bin_directory"] == ""
    assert "nodes made by" not in as_text(planned)
    assert (made(planned), made(planned, "warning")) == ({}, {})


def test_a_cluster_is_not_built_over_k3s(tmp_path):
    planned = plan(cluster(tmp_path, "k3s"))
    assert planned["cluster"]["distribution"]["name"] == "kubeadm"
    assert "set fabric_manage_kubernetes to false" in errors(planned)["existing-cluster"]["next"]


def test_two_distributions_are_two_clusters(tmp_path):
    hosts = cluster(tmp_path / "k3s", "k3s")
    hosts["w2"] = cluster(tmp_path / "rke2", "rke2")["w2"]
    found = made(plan(hosts, manage_kubernetes=False))
    assert found["node-distribution"]["seen"] == "k3s on cp1, w1; rke2 on w2"
    assert "cni-directories" not in found  # which follow from it


def test_releases_of_k3s_with_other_directories(tmp_path):
    hosts = cluster(tmp_path / "new", "k3s")
    hosts["w2"] = cluster(tmp_path / "old", "k3s", bundle=True)["w2"]
    finding = made(plan(hosts, manage_kubernetes=False))["cni-directories"]
    assert finding["seen"] == f"{BIN} on cp1, w1; {K3S}/data/current/bin on w2"
    assert "fabric_cni_bin_directory" in finding["next"]
    assert made(plan(hosts, manage_kubernetes=False, cni_bin_directory="/opt/own/bin")) == {}


def test_a_host_that_has_not_joined(tmp_path):
    hosts = cluster(tmp_path, "k3s")
    hosts["w2"] = site()["w2"]
    planned = plan(hosts, manage_kubernetes=False)
    assert made(planned)["node-distribution"]["hosts"] == ["w2"]
    assert planned["summary"]["line"].startswith("Plan: 1 host not in the cluster, 2 in the cluster.")


def test_directories_of_the_site_win(tmp_path):
    settings = {"cni_bin_directory": "/a/", "cni_network_directory": "/b"}
    for hosts, managed in ((cluster(tmp_path, "k3s"), False), (site(), True)):
        distribution = plan(hosts, manage_kubernetes=managed, **settings)["cluster"]["distribution"]
        assert (distribution["cni_bin_directory"], distribution["cni_network_directory"]) == ("/a", "/b")
    usual = {"cni_bin_directory": "/opt/cni/bin", "cni_network_directory": "/etc/cni/net.d"}
    distribution = plan(cluster(tmp_path / "2", "k3s"), manage_kubernetes=False, **usual)["cluster"]["distribution"]
    assert (distribution["cni_bin_directory"], distribution["cni_network_directory"]) == ("", "")


def test_other_distributions_have_to_be_told(tmp_path):
    hosts = site()
    for observed in hosts.values():
        observed["host"]["other_kubernetes"] = ["k0s"]
    finding = made(plan(hosts, manage_kubernetes=False), "warning")["cni-directories"]
    assert (finding["seen"], "fabric_cni_network_directory" in finding["next"]) == ("k0s on cp1, w1, w2", True)
    settings = {"cni_bin_directory": "/opt/cni/bin", "cni_network_directory": "/etc/cni/net.d"}
    assert made(plan(hosts, manage_kubernetes=False, **settings), "warning") == {}


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({"network_operator_version": "25.7.0"}, ""),
        ({"network_operator_version": "24.10.1"}, f"network operator 24.10.1 can't be told to use {NETWORK}"),
        ({"network_operator_version": "23.7.0"}, f"network operator 23.7.0 can't be told to use {BIN} and {NETWORK}"),
        ({"stack": "spiderpool"}, f"Spiderpool 1.2.2 can't be told to use {BIN} and {NETWORK}"),
    ],
)
def test_stacks_that_write_where_nobody_looks(tmp_path, settings, seen):
    settings = {**settings, "allow": ["kubernetes-range", "release-table"]}
    finding = made(plan(cluster(tmp_path, "k3s"), manage_kubernetes=False, **settings)).get("cni-directories")
    assert (finding or {"seen": ""})["seen"] == seen
    assert finding is None or finding["next"].endswith(
        "and fabric_network_operator_version to 25.7 or later."
        " Or allow it with fabric_allow: [cni-directories, kubernetes-range, release-table]."
    )
    assert "Spiderpool" not in (finding or {"next": ""})["next"], "which can't do it either"
    assert made(plan(cluster(tmp_path / "2", "rke2"), manage_kubernetes=False, **settings)) == {}


@pytest.mark.parametrize("families", [["ipv4"], ["ipv4", "ipv6"]])
def test_whereabouts_is_told_where_its_files_are(tmp_path, families):
    """The plugin itself looks in the usual directory alone."""
    own = {
        "configuration_path": f"{NETWORK}/whereabouts.d/whereabouts.conf",
        "kubernetes": {"kubeconfig": f"{NETWORK}/whereabouts.d/whereabouts.kubeconfig"},
    }
    for name, wanted in (("k3s", own), ("rke2", {})):
        hosts = cluster(tmp_path / name, name)
        for number, observed in enumerate(hosts.values(), 11):
            observed["rdma"]["links"][1]["addresses"].append({"address": f"fd00:5::{number}", "prefix": 64})
        networks = [{"name": "rdma-net", "families": families}]
        planned = plan(hosts, manage_kubernetes=False, ipam="whereabouts", networks=networks)
        [network] = planned["networks"]
        assert {key: network["ipam"][key] for key in own if key in network["ipam"]} == wanted, errors(planned)
        assert network["ipam"]["type"] == "whereabouts"
        other = plan(hosts, manage_kubernetes=False, ipam="nv-ipam", networks=networks)["networks"][0]["ipam"]
        assert set(other) == {"type", "poolName"}


def ports(hosts, **settings):
    """Every port that a control plane is asked for, by whom."""
    for observed in hosts.values():
        observed["host"]["ports_busy"] = [{"port": port, "process": ""} for port in (2379, 6443, 9345, 10250)]
    targets = build_port_needs(Settings(**{**SETTINGS, "manage_kubernetes": False, **settings}), hosts)["ports"]
    return {(source, target["host"]): target["tcp"] for source, listed in targets.items() for target in listed}


@pytest.mark.parametrize(("name", "wanted"), [("k3s", [6443]), ("rke2", [6443, 9345]), ("kubeadm", None)])
def test_ports_that_nodes_need_of_servers(tmp_path, name, wanted):
    found = ports(cluster(tmp_path, name))
    assert found == ({} if wanted is None else {("w1", "cp1"): wanted, ("w2", "cp1"): wanted})


def test_a_port_of_a_server_that_is_not_reached(tmp_path):
    hosts = cluster(tmp_path, "rke2")
    probe = {"host": "cp1", "address": "10.88.0.11", "protocol": "TCP", "port": 9345, "seen": "filtered"}
    hosts["w1"]["probes"] = [probe]
    finding = errors(plan(hosts, manage_kubernetes=False))["host-ports"]
    assert finding["what"] == "w1 cannot reach TCP 9345 (RKE2's supervisor) of cp1."


@pytest.mark.parametrize(("name", "unit"), [("k3s", "k3s"), ("rke2", "rke2-server")])
def test_a_server_that_does_not_answer(tmp_path, name, unit):
    hosts = cluster(tmp_path, name)
    hosts["cp1"]["host"]["cluster"].update(answered=False, error="connection refused")
    finding = errors(plan(hosts, manage_kubernetes=False), "warning")["cluster-unread"]
    assert finding["seen"] == f"connection refused (kubectl with /etc/rancher/{name}/{name}.yaml)"
    assert f"see journalctl -u {unit} there" in finding["next"]


def test_several_servers_have_no_endpoint_to_be_warned_of(tmp_path):
    hosts = cluster(tmp_path, "k3s")
    hosts["w1"]["groups"] = ["kube_control_plane"]
    assert "endpoint" not in errors(plan(hosts, manage_kubernetes=False), "warning")


@pytest.mark.parametrize(("name", "told"), [("k3s", True), ("rke2", True), ("kubeadm", False)])
def test_a_dead_mirror_counts_only_where_site_configures_it(tmp_path, name, told):
    hosts = cluster(tmp_path, "k3s" if name == "kubeadm" else name)
    for observed in hosts.values():
        observed["host"]["kubernetes"]["distribution"] = name
        observed["host"]["sources"] = [{**DEAD, "variable": "fabric_mirror.registry"}]
    assert ("sources" in errors(plan(hosts, manage_kubernetes=False))) is told
    assert "sources" in errors(plan(hosts))
    mirror = {**SETTINGS["sources"], "registry": "mirror.site:5000"}
    found = plan(hosts, manage_kubernetes=False, sources=mirror)["findings"]
    assert any("has no effect" in each["what"] for each in found) is (name == "kubeadm")
