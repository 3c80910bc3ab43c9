"""Whole plans, from inventories and observations made by hand."""

import copy
import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import CHECKS
from ansible_collections.ipu.fabric.plugins.module_utils._plan import network_spec
from ansible_collections.ipu.fabric.plugins.module_utils._plan import report as plan_report
from ansible_collections.ipu.fabric.plugins.module_utils._plan.approved import decisions
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.pages import plan_page
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import (
    SETTINGS,
    change,
    errors,
    finished,
    host,
    plan,
    preflight,
    site,
)
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st


@pytest.fixture
def hosts():
    return site()


DIRECTORIES = ("containerd_socket", "cni_bin_directory", "cni_network_directory")


def test_a_good_site(hosts):
    planned = plan(hosts)
    assert planned["findings"] == []
    assert planned["cluster"] == {
        "pod_cidr": "10.244.0.0/16",
        "service_cidr": "10.96.0.0/12",
        "endpoint": "10.88.0.11:6443",
        "distribution": {"name": "kubeadm", **dict.fromkeys(DIRECTORIES, "")},
        "runtime": {"name": "containerd", "cri_dockerd": "", "kubelet_feature_gates": {}},
        "virtual_address": None,
        "control_planes": ["cp1"],
        "workers": ["w1", "w2"],
        "single_node": False,
        "running": None,
    }
    assert planned["hosts"]["w1"] == {
        "node": "node12",
        "platform": "debian-bookworm-amd64",
        "address": "10.88.0.12",
        "roles": ["worker", "ipu"],
        "gpus": [],
        "links": {
            "rdma-net": {
                "netdev": "ens1f0",
                "altname": "",
                "pci": "0000:81:00.0",
                "mac": "",
                "driver": "mlx5_core",
                "kind": "physical",
                "lower": [],
                "rdma_netdevs": ["ens1f0"],
                "device": "mlx5_0",
                "mtu": 9000,
                "rate_gbps": 100.0,
                "pcie_gbps": 252.1,
                "address": "10.5.0.12",
                "prefix": 24,
                "addresses": [{"address": "10.5.0.12", "prefix": 24}],
                "firmware": "20.35.1012",
                "guid": "0c42:a103:0000:0001",
                "driver_version": "24.10-2.1.8",
            }
        },
    }
    assert planned["vipu"] == {
        "controllers": [
            {"host": "10.5.0.20", "port": 8090, "address": "10.5.0.20", "serves": ["w1", "w2"], "label": "ipunode=true"}
        ],
        "value": "10.5.0.20:8090:ipunode=true",
        "node_labels": {"w1": {"ipunode": "true"}, "w2": {"ipunode": "true"}},
    }
    network = planned["networks"][0]
    assert (network["master"], network["mtu"], network["rdma"]) == ("ens1f0", 9000, True)
    assert network["subnet"]["cidr"] == "10.5.0.0/24"
    assert network["ipam"] == {"type": "nv-ipam", "poolName": "rdma-net"}
    assert network["pool"]["name"] == "rdma-net"
    terms = network["pool"]["nodeSelector"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["node12", "node13"]
    assert planned["rdma_resources"] == [
        {
            "resourceName": "rdma_shared_device_a",
            "resourcePrefix": "rdma",
            "rdmaHcaMax": 63,
            "selectors": {"ifNames": ["ens1f0"]},
        }
    ]


def test_the_same_input_gives_the_same_plan(hosts):
    before = copy.deepcopy(hosts)
    assert json.dumps(plan(hosts)) == json.dumps(plan(before))
    assert hosts == before


def test_a_single_host_is_everything():
    planned = plan({"solo": host(11, ["kube_control_plane"])})
    assert planned["findings"] == []
    assert planned["hosts"]["solo"]["roles"] == ["control_plane", "worker", "ipu"]
    assert planned["cluster"]["single_node"]
    assert "nodeSelector" not in planned["networks"][0]["pool"]


def test_a_mode_that_a_reboot_may_set_does_not_stop_the_site(hosts):
    change(("rdma", "netns_mode"), "exclusive")(hosts, ["w1", "w2"])
    hosts["w1"]["reboot"] = True
    planned = plan(hosts)
    assert errors(planned)["netns-mode"]["hosts"] == ["w2"]
    (warning,) = [one for one in planned["findings"] if one["check"] == "netns-mode" and one["level"] == "warning"]
    assert warning["hosts"] == ["w1"]


@pytest.mark.parametrize(
    ("check", "where", "value"),
    [
        ("distribution", ("host", "version"), "11"),
        ("architecture", ("host", "architecture"), "aarch64"),
        ("python-version", ("host", "python"), "3.6.9"),
        ("systemd", ("host", "systemd"), False),
        ("memory", ("host", "memory_mb"), 512),
        ("disk", ("host", "disk_mb"), {"/var/lib": 900}),
        ("ports", ("host", "ports_busy"), [{"port": 10250, "process": "nginx"}]),
        ("ports", ("host", "ports_busy"), [{"port": 9099, "process": "nginx"}]),
        ("cgroup-v2", ("host", "cgroup"), "hybrid"),
        ("kernel-modules", ("host", "modules"), {"macvlan": False}),
        ("locked-memory", ("host", "locked_memory"), "8388608"),
        ("time", ("host", "time"), {"synchronized": True, "asked": 0.0, "read": 0.0, "offset": -400}),
        ("dns", ("host", "dns"), {"mirror.example": False}),
        ("netns-mode", ("rdma", "netns_mode"), "exclusive"),
        ("unique-hostname", ("host", "hostname"), "node13"),
        ("resolver", ("host", "resolver"), {"path": "/etc/resolv.conf", "servers": ["127.0.0.1"]}),
        ("node-name", ("host", "hostname"), "k8s_worker_1"),
        ("node-address", ("host", "default_address"), ""),
        ("unique-mac", ("host", "macs"), ["0c:42:a1:00:00:0d"]),
        ("unique-machine-id", ("host", "machine_id"), f"{13:032x}"),
        ("existing-cluster", ("host", "other_kubernetes"), ["k3s"]),
        (
            "existing-cluster",
            ("host", "kubelet"),
            {"present": True, "version": "v1.35.4", "server": "10.1.1.1:6443", "cluster": "ab"},
        ),
        ("link-layer", ("rdma", "links", 1, "link_layer"), "InfiniBand"),
        ("fabric-nic", ("rdma", "links", 1, "up"), False),
        ("fabric-nic", ("rdma", "links", 1, "state"), "DOWN"),
        ("fabric-nic", ("rdma", "links", 1, "addresses"), []),
        ("fabric-nic", ("rdma", "links", 1, "rdma_netdevs"), []),
        ("subnet", ("rdma", "links", 1, "addresses"), [{"address": "10.6.0.12", "prefix": 24}]),
        ("unobserved", ("host",), {}),
    ],
)
def test_what_is_wrong_with_a_host(hosts, check, where, value):
    change(where, value)(hosts)
    found = errors(plan(hosts))
    assert check in found
    assert "w1" in found[check]["hosts"]


@pytest.mark.parametrize(
    ("key", "value", "told"), [("up", False, "down"), ("state", "DOWN", "DOWN"), ("up", True, None)]
)
def test_a_nic_that_is_down_is_kept_for_the_proof_and_is_no_decision(hosts, key, value, told):
    before = plan(hosts, allow=["fabric-nic"])
    change(("rdma", "links", 1, key), value)(hosts)
    now = plan(hosts, allow=["fabric-nic"])
    assert now["hosts"]["w1"]["links"]["rdma-net"].get("down") == told
    assert decisions(now) == decisions(before)


def test_a_network_without_any_nic_is_an_error_whatever_is_allowed(hosts):
    """Its macvlan would have no master; of one host without a NIC the others make a network."""
    allow = ["fabric-nic"]
    change(("rdma", "links"), [])(hosts, ["w1"])
    assert errors(plan(hosts, allow=allow)) == {}
    change(("rdma", "links"), [])(hosts, list(hosts))
    assert "networks" not in errors(plan(hosts))
    advice = errors(plan(hosts, allow=allow))["networks"]["next"]
    assert "select: {name: eth1}" in advice
    assert "fabric_networks: []" in advice


def test_one_machine_under_two_names(hosts):
    """No advice to rename a host, or to take its machine-id away."""
    hosts["w2"] = {**hosts["w1"], "reached": "10.88.0.12"}
    hosts["w1"]["reached"] = "10.88.0.12"
    found = [one for one in plan(hosts)["findings"] if one["level"] == "error"]
    assert not {"unique-hostname", "unique-machine-id", "unique-mac"} & {one["check"] for one in found}
    (finding,) = [one for one in found if "one machine" in one["what"]]
    assert (finding["check"], finding["hosts"]) == ("host-identity", ["w1", "w2"])
    assert "ansible_host" in finding["next"]


@pytest.mark.parametrize(("settings", "needed"), [({}, True), ({"networks": []}, False)])
def test_macvlan_is_a_module_for_fabric_networks(hosts, settings, needed):
    change(("host", "modules"), {"overlay": True, "macvlan": False})(hosts)
    assert ("kernel-modules" in errors(plan(hosts, **settings))) is needed


OURS, OTHER = "0123456789abcdef", "fedcba9876543210"


def in_cluster(hosts, cluster, *names, server="10.88.0.11:6443"):
    for name in names:
        kubelet = {"present": True, "version": "v1.36.3", "server": server, "cluster": cluster}
        hosts[name]["host"]["kubelet"] = kubelet


def without_planes(hosts):
    hosts["cp1"]["groups"] = ["kube_node"]


def with_the_plane_down(hosts):
    del hosts["cp1"]["host"]


def with_the_plane_recalled(hosts):
    hosts["cp1"]["recalled"] = "2026-11-01T00:00:00+00:00"


def with_a_bare_plane(hosts):
    in_cluster(hosts, "", "cp1", server="")


def with_a_stranger(hosts):
    in_cluster(hosts, OTHER, "w2", server="10.1.1.1:6443")


def with_two_clusters(hosts):
    hosts["w1"]["groups"] = ["kube_control_plane"]
    in_cluster(hosts, OTHER, "w1")


def with_a_former_address(hosts):
    in_cluster(hosts, OURS, *hosts, server="10.1.1.1:6443")


@pytest.mark.parametrize(
    ("changed", "settings", "named", "said"),
    [
        (None, {}, [], ""),
        (without_planes, {}, [], ""),
        (with_the_plane_down, {}, [], ""),
        (with_the_plane_recalled, {}, [], ""),
        (with_a_bare_plane, {}, ["w1", "w2"], "correct the inventory"),
        (with_a_stranger, {}, ["w2"], "correct the inventory"),
        (with_two_clusters, {}, ["cp1", "w1", "w2"], "correct the inventory"),
        (None, {"control_plane_endpoint": "k8s.site:6443"}, [], ""),
        (with_a_former_address, {}, ["cp1", "w1", "w2"], "Set fabric_control_plane_endpoint to 10.1.1.1:6443"),
    ],
)
def test_hosts_of_a_cluster_that_runs(hosts, changed, settings, named, said):
    in_cluster(hosts, OURS, *hosts)
    if changed:
        changed(hosts)
    found = [one for one in plan(hosts, **settings)["findings"] if one["check"] == "existing-cluster"]
    assert sorted(name for one in found for name in one["hosts"]) == named
    assert all(said in one["next"] for one in found)
    assert "kubeadm reset" not in json.dumps(found)


def test_the_inventory_comes_before_its_hosts(hosts):
    """Nothing is advised that can't be undone, while the groups are wrong."""
    in_cluster(hosts, OURS, "cp1", "w1")
    with_a_stranger(hosts)
    hosts["w1"]["groups"] = ["ipu_node"]
    found = errors(plan(hosts))
    assert found["inventory"]["hosts"] == ["w1"]
    assert found["existing-cluster"]["next"].startswith("Correct the groups of the inventory first")


def test_an_inventory_without_workers_is_told_what_it_has(hosts):
    for name in ("w1", "w2"):
        hosts[name]["groups"] = ["ipu_node"]
    found = [one["seen"] for one in plan(hosts)["findings"] if one["check"] == "inventory"]
    assert found[0] == "kube_node is empty; kube_control_plane has cp1, of 3 hosts in all"


def test_a_host_that_is_both_gateway_and_vipu(hosts):
    change(("rdma", "links", 1, "addresses"), [{"address": "10.5.0.20", "prefix": 24}])(hosts)
    found = plan(hosts, networks=[{"name": "rdma-net", "gateway": "10.5.0.20"}])["findings"]
    seen = [finding["seen"].partition(" has ")[0] for finding in found if finding["check"] == "on-master"]
    assert sorted(seen) == ["V-IPU", "the gateway"]


@pytest.mark.parametrize("check", ["cgroup-v2", "distribution", "fabric-mtu"])
def test_allowed_checks_are_warnings(hosts, check):
    change(("host", "cgroup"), "v1")(hosts)
    change(("host", "version"), "11")(hosts)
    planned = plan(hosts, allow=[check], networks=[{"name": "rdma-net", "mtu": 9100}])
    assert check not in errors(planned)
    assert errors(planned, "warning")[check]["next"].startswith("Allowed, so it does not stop the run. ")


@pytest.mark.parametrize(
    ("most", "expected", "found"),
    [
        ("8388608", "unlimited", True),
        ("8388608", "64M", True),
        ("8388608", "8388608", False),
        ("unlimited", "unlimited", False),
        ("", "unlimited", False),  # the host does not tell
    ],
)
def test_hosts_give_the_locked_memory_that_the_proof_expects(hosts, most, expected, found):
    change(("host", "locked_memory"), most)(hosts, ["w1"])
    assert ("locked-memory" in errors(plan(hosts, memlock=expected))) == found


def test_a_control_plane_that_runs_no_pods_of_users_may_have_less(hosts):
    change(("host", "locked_memory"), "8388608")(hosts, ["cp1"])
    assert plan(hosts)["findings"] == []


def test_less_locked_memory_names_both_ways_out(hosts):
    change(("host", "locked_memory"), "8388608")(hosts, ["w1", "w2"])
    finding = errors(plan(hosts))["locked-memory"]
    assert finding["hosts"] == ["w1", "w2"]
    assert "8 MiB" in finding["seen"]
    assert 'verify_memlock: "8388608"' in finding["next"]
    assert "fabric_allow" not in finding["next"]  # allowing it would not help: the proof fails anyway


def test_what_is_needed_beside_allowing_is_told_with_it(hosts):
    change(("host", "cgroup"), "hybrid")(hosts, ["w1"])
    told = errors(plan(hosts))["cgroup-v2"]["next"]
    assert told.count("fabric_allow") == 1
    assert told.endswith("Or set fabric_allow: [cgroup-v2], which makes kubelet and kubeadm accept this host.")


def test_an_expectation_that_is_no_limit(hosts):
    finding = errors(plan(hosts, memlock="8 MB"))["locked-memory"]
    assert (finding["hosts"], finding["seen"]) == ([], "verify_memlock: '8 MB' is not a limit")


@pytest.mark.parametrize("name", ["cgroups", "subnet", "locked-memory"])
def test_allowing_what_can_not_be_allowed(hosts, name):
    assert name in errors(plan(hosts, allow=[name]), "warning")["allow"]["what"]


@pytest.mark.parametrize(
    ("check", "settings", "said"),
    [
        ("kubernetes-version", {"kubernetes_version": "1.35"}, "three numbers"),
        ("stack", {"stack": "multus"}, "network_operator or spiderpool"),
        (
            "spiderpool-version",
            {"stack": "spiderpool", "spiderpool_version": "0.9.0"},
            "Set fabric_spiderpool_version to 1.2.2.",
        ),
        ("ofed", {"stack": "spiderpool", "ofed": {"version": "25.10"}}, "on the hosts, and set fabric_ofed to {}"),
        ("ipam", {"stack": "spiderpool", "ipam": "nv-ipam"}, "Set fabric_ipam to auto"),
        ("networks", {"stack": "spiderpool", "networks": [{"name": "a", "mode": "vepa"}]}, "set mode to bridge"),
        ("calico-version", {"calico_version": "3.29.0"}, "Set fabric_calico_version to 3.32.2."),
        (
            "gpu-operator-version",
            {"gpu": True, "gpu_operator_version": "24.9.0"},
            "Set fabric_gpu_operator_version to 26.7.0.",
        ),
        ("cidr", {"pod_cidr": "10.244.0.1/16"}, "host bits"),
        ("cidr", {"pod_cidr": "10.244.0.0/33"}, "CIDR"),
        ("cidr", {"pod_cidr": "10.96.0.0/16"}, "overlap"),
        ("cidr", {"service_cidr": "10.88.0.0/16"}, "addresses of hosts"),
        ("cidr", {"pod_cidr": "10.244.0.0/16,10.245.0.0/16"}, "two of one family"),
        ("subnet", {"pod_cidr": "10.5.0.0/16"}, "overlap"),
        ("subnet", {"pods_per_node": 200}, "Addresses for 400 pods"),
        ("subnet", {"networks": [{"name": "rdma-net", "gateway": "10.9.0.1"}]}, "gateway"),
        ("endpoint", {"control_plane_endpoint": "k8s:port"}, "host:port"),
        (
            "artifacts-dir",
            {"inventory_sources": ["/site"]},
            "Set fabric_artifacts_dir to a folder outside the inventory directory",
        ),
        ("ofed", {"networks": [], "ofed": {"version": "25.10"}}, "plan one (fabric_networks)"),
        ("networks", {"networks": ["rdma-net"]}, "name: rdma-net"),
        ("networks", {"networks": [{"name": "rdma-net", "gatway": "10.5.0.1"}]}, "Did you mean gateway"),
        ("networks", {"networks": [{"name": "rdma-net", "select": {"nmae": "ens*"}}]}, "Did you mean name"),
        ("networks", {"networks": [{"name": "rdma-net", "select": "ens1f0"}]}, "dictionary"),
        ("networks", {"networks": [{"name": "rdma-net", "select": {"subnet": "10.5.0.0/99"}}]}, "CIDR"),
        (
            "networks",
            {"networks": [{"name": "rdma-net", "select": {"name": ["ens*", 1]}}]},
            "Write a string, or a list of strings",
        ),
        ("networks", {"networks": [{"name": "rdma-net", "select": {"subnet": ["10.5.0.0/24", "x"]}}]}, "CIDR"),
        ("networks", {"networks": [{"name": "rdma-net", "select": {"gpu": "first"}}]}, "first is 0"),
        ("fabric-nic", {"networks": [{"name": "rdma-net", "select": {"gpu": 0}}]}, "no NVIDIA GPU"),
        ("networks", {"networks": [{"name": "RDMA_net"}]}, "lower-case"),
        ("networks", {"networks": [{"name": "rdma-net", "mode": "l2"}]}, "vepa"),
        ("networks", {"networks": [{"name": "rdma-net", "master": "a/b"}]}, "15 characters"),
        ("networks", {"networks": [{"name": "rdma-net", "master": "enp129s0f0np0v12"}]}, "15 characters"),
        ("networks", {"networks": [{"name": "rdma-net", "mtu": "big"}]}, "mtu"),
        ("networks", {"networks": [{"name": "rdma-net", "families": ["ipv5"]}]}, "[ipv4, ipv6]"),
        ("networks", {"networks": [{"name": "rdma-net", "families": ["ipv4", "ipv4"]}]}, "[ipv4, ipv6]"),
        ("networks", {"networks": [{"name": "rdma-net", "gateway": "10.5.0.1,10.5.0.2"}]}, "one of each family"),
        ("subnet", {"networks": [{"name": "rdma-net", "gateway": "fd00::1"}]}, "name both families"),
        ("fabric-nic", {"networks": [{"name": "rdma-net", "families": ["ipv4", "ipv6"]}]}, "of ipv4 and of ipv6"),
        ("networks", {"networks": [{"name": "rdma-net", "hosts": ["rack9"]}]}, "Correct `hosts`"),
        ("networks", {"networks": [{"name": "rdma-net", "hosts": ["kube_nodes"]}]}, "Did you mean kube_node?"),
        ("networks", {"networks": [{"name": "rdma-net"}, {"name": "rdma-net"}]}, "different names"),
        ("subnet", {"networks": [{"name": "one"}, {"name": "two"}]}, "same addresses"),
        ("fabric-mtu", {"networks": [{"name": "rdma-net", "mtu": 9100}]}, "9000"),
        ("on-master", {"networks": [{"name": "rdma-net", "gateway": "10.5.0.12"}]}, "own node"),
        ("fabric-nic", {"networks": [{"name": "rdma-net", "select": {"name": "ib*"}}]}, "ib*"),
        ("vipu", {"vipu_hosts": ["10.5.0.20", "10.5.0.21"]}, "serves"),
        ("vipu", {"vipu_hosts": ["10.5.0.20:port"]}, "host:port"),
        ("vipu", {"vipu_hosts": [{"host": "10.5.0.20", "serves": ["w1"]}, {"host": "10.5.0.21", "serves": []}]}, "w2"),
        ("vipu", {"vipu_hosts": [{"host": "10.5.0.20", "label": "rack"}]}, "key=value"),
        ("vipu", {"vipu_hosts": [{"host": "10.5.0.20", "label": "rack=a,b"}]}, "key=value"),
        ("vipu-address", {"vipu_hosts": ["localhost"]}, "loopback"),
        ("vipu-address", {"vipu_hosts": ["[fd00::20]:8090"]}, "IPv6"),
    ],
)
def test_bad_settings(hosts, check, settings, said):
    planned = plan(hosts, **settings)
    assert check in errors(planned)
    assert said in json.dumps([item for item in planned["findings"] if item["check"] == check])


def test_a_misspelt_group_is_one_finding(hosts):
    """The network names the group as it should be called."""
    for name in ("w1", "w2"):
        hosts[name]["groups"] = ["kube_node", "ipu_nodes"]
    groups = {"ipu_nodes": ["w1", "w2"], "kube_node": ["w1", "w2"], "kube_control_plane": ["cp1"]}
    planned = plan(hosts, inventory_groups=groups, networks=[{"name": "rdma-net", "hosts": ["ipu_node"]}])
    assert list(errors(planned)) == ["unknown-group"]


def test_all_findings_come_at_once(hosts):
    change(("host", "version"), "11")(hosts, ("w1", "w2"))
    hosts["cp1"]["host"]["memory_mb"] = 100
    planned = plan(hosts, kubernetes_version="1.38.0", pod_cidr="nonsense", networks=[{"nmae": "x"}])
    assert {"distribution", "memory", "kubernetes-version", "cidr", "networks"} <= set(errors(planned))
    assert errors(planned)["distribution"]["hosts"] == ["w1", "w2"]


@pytest.mark.parametrize(
    ("groups", "check"),
    [
        ({"a": ["kube_node"], "b": ["kube_node"]}, "inventory"),
        ({"a": ["kube_control_plane"], "b": ["kube_control_plane"]}, "inventory"),
        ({"a": ["kube_control_plane"], "b": ["ipu_node"]}, "inventory"),
        ({}, "inventory"),
    ],
)
def test_bad_groups(groups, check):
    assert check in errors(plan({name: host(number, of) for number, (name, of) in enumerate(groups.items(), 30)}))


def test_two_control_planes_are_worth_a_warning(hosts):
    hosts["w1"]["groups"] = ["kube_control_plane", "etcd"]
    planned = plan(hosts)
    assert errors(planned) == {}
    assert set(errors(planned, "warning")) == {"control-plane-count", "endpoint", "etcd-group"}


def test_a_member_of_this_cluster_is_no_finding(hosts):
    for name, server in (("cp1", "10.88.0.11:6443"), ("w1", "10.88.0.11:6443")):
        seen = hosts[name]["host"]
        seen["kubelet"] = {"present": True, "version": "v1.36.3", "server": server, "cluster": "ab"}
        seen["ports_busy"] = [{"port": 10250, "process": "kubelet"}]
        seen["disk_mb"] = {"/var/lib": 900}
    assert plan(hosts)["findings"] == []


def test_a_cluster_of_others_keeps_its_version(hosts):
    hosts["cp1"]["host"]["kubelet"] = {"present": True, "version": "v1.35.2", "server": "lb:6443", "cluster": "ab"}
    planned = plan(hosts, manage_kubernetes=False)
    assert {finding["check"] for finding in planned["findings"]} == {"cluster-unread"}  # it has no admin.conf
    assert planned["releases"]["kubernetes"] == "1.35.2"


def test_what_vipu_said_wrong(hosts):
    del hosts["w1"]["vipu"]
    hosts["w1"]["errors"] = [
        {"source": "vipu", "what": "vipu did not answer.", "where": "vipu", "seen": "rc 1", "next_step": "Start it."}
    ]
    found = errors(plan(hosts))
    assert found["vipu"]["hosts"] == ["w1"]
    assert "rc 1" in found["vipu"]["seen"]
    planned = plan(hosts, allow=["vipu"])
    assert errors(planned) == {}
    assert planned["vipu"]["controllers"][0]["serves"] == ["w1", "w2"]


def test_several_controllers_get_labels_that_last(hosts):
    hosts["w2"]["vipu"] = {**hosts["w2"]["vipu"], "host": "vipu2", "address": "10.5.0.21", "port": 8091}
    vipu = plan(hosts)["vipu"]
    assert vipu["value"] == "10.5.0.20:8090:ipunode=10.5.0.20,10.5.0.21:8091:ipunode=10.5.0.21-8091"
    assert vipu["node_labels"] == {"w1": {"ipunode": "10.5.0.20"}, "w2": {"ipunode": "10.5.0.21-8091"}}


def test_a_fixed_controller_by_name(hosts):
    planned = plan(hosts, vipu_hosts=["vipu.example:8090"], resolved={"vipu.example": "10.5.0.20"})
    assert planned["vipu"]["value"] == "10.5.0.20:8090:ipunode=true"


def test_controllers_with_labels_of_their_own(hosts):
    controllers = [{"host": "10.5.0.20", "serves": ["w1"]}, {"host": "10.5.0.21", "serves": ["w2"], "label": "rack=b"}]
    vipu = plan(hosts, vipu_hosts=controllers)["vipu"]
    assert vipu["value"] == "10.5.0.20:8090:ipunode=10.5.0.20,10.5.0.21:8090:rack=b"
    assert vipu["node_labels"] == {"w1": {"ipunode": "10.5.0.20"}, "w2": {"rack": "b"}}


def test_without_ipus_vipu_is_not_asked(hosts):
    for seen in hosts.values():
        del seen["vipu"]
    planned = plan(hosts, ipu=False)
    assert planned["findings"] == []
    assert planned["vipu"] == {"controllers": [], "value": "", "node_labels": {}}


def test_spiderpool_takes_the_network_operators_place(hosts):
    networks = [{"name": "rail-a", "gateway": "10.5.0.1"}]
    planned = plan(hosts, stack="spiderpool", networks=networks)
    assert planned["findings"] == []
    releases = planned["releases"]
    assert (releases["stack"], releases["spiderpool"], releases["network_operator"]) == ("spiderpool", "1.2.2", "")
    network = planned["networks"][0]
    assert network["ipam"] == {"type": "spiderpool", "default_ipv4_ippool": ["rail-a-v4"]}
    assert network["pool"] is None
    assert network["subnet"]["capacity"] == 127, "single addresses, no blocks"
    assert "Spiderpool 1.2.2" in plan_report.as_text(planned, "Plan")


def test_gpus_are_planned_only_where_they_are_wanted(hosts):
    assert plan(hosts, gpu_operator_version="1.0.0")["releases"]["gpu_operator"] == ""
    assert plan(hosts, gpu=True)["releases"]["gpu_operator"] == "26.7.0"


def test_preflight_alone(hosts):
    change(("host", "version"), "11")(hosts)
    hosts["w2"]["rdma"]["links"][1]["link_layer"] = "InfiniBand"
    checked = preflight(hosts)
    assert set(errors(checked)) == {"distribution", "link-layer"}
    assert "Preflight: 3 hosts" in plan_report.as_text(checked, "Preflight")


def test_text_fits_a_terminal(hosts):
    change(("host", "version"), "11")(hosts)
    text = plan_report.as_text(plan(hosts))
    assert max(map(len, text.splitlines())) <= 69
    assert "ERROR distribution: w1" in text
    assert "1 error" in text.splitlines()[0]


def test_a_report_of_two_hundred_hosts_is_short():
    many = {f"w{number}": host(number, ["kube_node"]) for number in range(300, 500)}
    many["cp1"] = host(299, ["kube_control_plane"])
    planned = plan(many)
    text = plan_report.as_text(planned)
    assert planned["findings"] == []
    assert len(text.splitlines()) < 70


def test_every_check_says_what_it_means():
    assert all(meaning and not meaning.endswith(".") for meaning in CHECKS.values())


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 99999) | st.text("a1.:/-_[]* ", max_size=9) | st.just("10.5.0.0/24"),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "subnet", "pci", "gpu"]), inner)
    ),
    max_leaves=3,
)


@examples(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    network=st.dictionaries(st.sampled_from([*network_spec.DEFAULTS, "other"]), JUNK, max_size=4),
    vipu=JUNK,
    text=st.text("0123456789./,:a", max_size=12),
)
def test_whatever_a_site_writes_is_a_finding_not_a_crash(hosts, network, vipu, text):
    planned = plan(
        copy.deepcopy(hosts),
        networks=[{"name": "rdma-net", **network}],
        vipu_hosts=[vipu],
        pod_cidr=text,
        control_plane_endpoint=text,
        kubernetes_version=text,
        network_operator_version=text,
        ipam=text,
    )
    assert json.loads(json.dumps(planned)) == planned
    assert plan_page(planned)
    assert plan_report.as_text(planned)


PCIE = ("rdma", "links", 1, "pcie")


@pytest.mark.parametrize(
    ("change_of", "seen"),
    [
        ({"width": 8, "gbps": 126.0}, "ens1f0: 16 GT/s x8 at 0000:81:00.0, 126 Gb/s; possible: 16 GT/s x16"),
        ({"speed_gtps": 8.0}, "ens1f0: 8 GT/s x16 at 0000:81:00.0, 252.1 Gb/s; possible: 16 GT/s x16"),
        (
            {"width": 8, "max_width": 8, "speed_gtps": 8.0, "max_speed_gtps": 8.0, "gbps": 63.0},
            "ens1f0: 8 GT/s x8 at 0000:81:00.0, 63 Gb/s; the port has 100 Gb/s",
        ),
    ],
)
def test_a_pcie_link_that_carries_less_than_it_could_is_a_warning(change_of, seen):
    hosts = site()
    change(PCIE, {**hosts["w1"]["rdma"]["links"][1]["pcie"], **change_of})(hosts)
    for planned in (plan(hosts), preflight(hosts)):
        assert not errors(planned)
        finding = errors(planned, "warning")["pcie-link"]
        assert (finding["hosts"], finding["seen"]) == (["w1"], seen)
    links = {name: host["links"]["rdma-net"] for name, host in plan(hosts)["hosts"].items() if host["links"]}
    assert links["w1"]["pcie_gbps"] == change_of.get("gbps", 252.1)
    assert (links["w2"]["rate_gbps"], links["w2"]["pcie_gbps"]) == (100.0, 252.1)


def test_speeds_that_are_not_known_are_no_finding():
    hosts = site()
    change(PCIE, None)(hosts)
    for link in hosts["w2"]["rdma"]["links"]:  # as an earlier release observed it
        del link["pcie"], link["rate_gbps"]
    planned = plan(hosts)
    assert "pcie-link" not in errors(planned, "warning")
    assert planned["hosts"]["w2"]["links"]["rdma-net"]["rate_gbps"] is None
    assert {planned["hosts"][name]["links"]["rdma-net"]["pcie_gbps"] for name in ("w1", "w2")} == {None}


HEADING = ["HOST", "ROLES", "rdma-net"]


def test_a_table_that_is_too_wide_wraps_between_words():
    rows = [["cp1", "control-plane, worker", "ens1f0 10.5.0.11/24"], ["w1", "worker, ipu", "ens1f0 10.5.0.12/24"]]
    assert plan_report.table(HEADING, rows, 42) == [
        "HOST  ROLES           rdma-net",
        "cp1   control-plane,  ens1f0 10.5.0.11/24",
        "      worker",
        "w1    worker, ipu     ens1f0 10.5.0.12/24",
    ]


@given(st.lists(st.lists(st.text("ab ,", max_size=30), min_size=3, max_size=3), max_size=4), st.integers(16, 80))
def test_no_table_is_wider_than_asked(rows, width):
    lines = plan_report.table(HEADING, rows, width)
    assert max(map(len, lines)) <= width
    assert len(lines) > len(rows)


def as_another(hosts):
    hosts["w1"]["host"]["hostname"] = "cp1"


def with_the_address_of_another(hosts):
    hosts["w1"]["host"]["default_address"] = hosts["cp1"]["host"]["default_address"]


def with_the_address_of_the_api(hosts):
    hosts["w1"]["address"] = "10.88.0.1"


def with_the_address_of_the_load_balancer(hosts):
    hosts["w1"]["host"]["default_address"] = "10.88.0.1"


def with_nodes(hosts, address, *names):
    """In a cluster that answers, and has these nodes with this address."""
    in_cluster(hosts, OURS, *hosts)
    nodes = [{"name": name, "machine_id": "", "addresses": [address]} for name in names]
    hosts["cp1"]["host"]["cluster"].update(answered=True, nodes=nodes)


def as_a_node_elsewhere(hosts):
    with_nodes(hosts, "10.88.0.77", "w1", "node77")
    hosts["w1"]["host"]["hostname"] = "node77"


def with_the_address_of_a_node_elsewhere(hosts):
    """Of one that no host of the inventory is."""
    with_nodes(hosts, "10.88.0.77", "node77")
    hosts["w1"]["host"]["default_address"] = "10.88.0.77"


@pytest.mark.parametrize(
    ("changed", "named", "seen"),
    [
        (as_another, ["w1"], "w1 says that it is cp1, but that name is taken by cp1"),
        (with_the_address_of_another, ["cp1", "w1"], "10.88.0.11 is that of cp1, w1"),
        (with_the_address_of_the_api, ["w1"], "10.88.0.1 is that of w1, and the endpoint is 10.88.0.1:6443"),
        (with_the_address_of_the_load_balancer, ["w1"], "10.88.0.1 is that of w1, and the endpoint is 10.88.0.1:8443"),
        (
            with_the_address_of_a_node_elsewhere,
            ["w1"],
            "w1 says that it has 10.88.0.77, which is that of the node node77 in the cluster",
        ),
        (as_a_node_elsewhere, ["w1"], "w1 says that it is node77, but the inventory has it as w1"),
    ],
)
def test_a_host_that_passes_for_another(hosts, changed, named, seen):
    """It can't be allowed: certificates are signed for what the plan says."""
    hosts["cp1"]["host"]["hostname"] = "cp1"
    changed(hosts)
    port = 8443 if changed is with_the_address_of_the_load_balancer else 6443
    found = plan(hosts, control_plane_endpoint=f"10.88.0.1:{port}", allow=["host-identity", "unique-hostname"])
    finding = errors(found)["host-identity"]
    assert (finding["hosts"], finding["seen"]) == (named, seen)
    assert found["hosts"]["w1"]["node"] != "cp1"


def test_the_inventory_says_that_a_host_has_the_address_of_a_former_node(hosts):
    with_the_address_of_a_node_elsewhere(hosts)
    hosts["w1"]["address"] = "10.88.0.77"
    assert "host-identity" not in errors(plan(hosts))


def test_a_worker_may_have_the_load_balancer_where_the_inventory_says_so(hosts):
    hosts["w1"]["address"] = "10.88.0.1"
    assert "host-identity" not in errors(plan(hosts, control_plane_endpoint="10.88.0.1:8443"))


def test_hosts_of_a_cluster_of_others_may_share_the_address_of_their_default_route(hosts):
    with_the_address_of_another(hosts)
    assert "host-identity" not in errors(plan(hosts, manage_kubernetes=False))


def test_an_address_is_the_same_in_any_notation(hosts):
    with_nodes(hosts, "2001:db8::5", "node12")
    hosts["w1"]["address"] = "2001:DB8:0::5"
    assert "host-identity" not in errors(plan(hosts))


def test_a_release_may_be_written_with_its_v():
    """As the tags of its makers have it. Of the existing cluster too: it is compared without."""
    names = [name for name in SETTINGS if name.endswith("_version")]
    written = {name: f" v{SETTINGS[name]}" for name in names}
    assert len(names) == 6
    assert plan(finished(), **written) == plan(finished())
    assert "cluster-version" not in errors(plan(finished(), **written))


def test_admission_is_shown_where_it_is_on():
    closing = plan(site(), admission="enforce", max_unproved=2)
    assert closing["admission"] == {"mode": "enforce", "max_unproved": "2"}
    assert ("Admission", "enforce, closes at most 2 of the nodes for failed proofs") in plan_report.facts(closing)
    assert ("Admission", "warn") in plan_report.facts(plan(site(), admission="warn"))
    assert "admission" not in plan(site())
