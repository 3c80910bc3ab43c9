"""The plan and the existing cluster: what no role can change is an error before anything is touched."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import ALLOWABLE, REQUIRED
from ansible_collections.ipu.fabric.plugins.module_utils._model.settings import Kubeconfig, OwnMultus
from ansible_collections.ipu.fabric.plugins.module_utils._plan.calico import BY_OPERATOR
from ansible_collections.ipu.fabric.plugins.module_utils._plan.report import as_text
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import (
    change,
    errors,
    finished,
    plan,
    running,
    site,
    with_ipv6,
)

FLANNEL = {"name": "flannel", "seen": "DaemonSet kube-flannel/kube-flannel-ds"}
CALICO = {"name": "calico", "seen": "DaemonSet calico-system/calico-node"}
INSTALLATION = {"name": "calico", "seen": "Installation default"}
KUBESPRAY = {"name": "calico", "seen": "DaemonSet kube-system/calico-node"}
CILIUM = {"name": "cilium", "seen": "DaemonSet kube-system/cilium"}


def cluster(**changes):
    hosts = finished()
    hosts["cp1"]["host"]["cluster"] = running(**changes)
    return hosts


def test_a_finished_site_has_no_findings():
    planned = plan(finished())
    assert planned["findings"] == []
    assert planned["cluster"]["running"] == {
        "host": "cp1",
        "version": "1.36.3",
        "endpoint": "10.88.0.11:6443",
        "pod_cidr": "10.244.0.0/16",
        "service_cidr": "10.96.0.0/12",
        "pod_networks": ["calico"],
        "ipu_operators": [],
        "fabric_networks": None,
    }
    assert "existing cluster: Kubernetes 1.36.3, Calico\n" in as_text(planned)
    assert plan(site())["cluster"]["running"] is None
    assert "existing cluster" not in as_text(plan(site()))


@pytest.mark.parametrize(
    ("cni", "found", "said"),
    [
        ("calico", [CALICO, INSTALLATION], None),
        ("calico", [INSTALLATION], None),  # an interrupted run
        ("flannel", [FLANNEL], None),
        ("calico", [], None),  # kubeadm init was all that came through
        ("none", [CILIUM], None),
        ("none", [FLANNEL, CALICO], None),  # somebody else's decision
        ("calico", [FLANNEL], "Set fabric_cni to flannel"),
        ("flannel", [CALICO, INSTALLATION], "Set fabric_cni to calico"),
        ("flannel", [INSTALLATION], "Set fabric_cni to calico"),
        ("calico", [CILIUM], "Set fabric_cni to none"),
        # Not by the operator: it would take over what kubespray has made.
        ("calico", [KUBESPRAY], "Set fabric_cni to none"),
        ("calico", [CALICO, FLANNEL], "Set fabric_cni to none"),
    ],
)
def test_the_pod_network(cni, found, said):
    reported = errors(plan(cluster(pod_networks=found), cni=cni))
    assert set(reported) == ({"cluster-cni"} if said else set())
    if said:
        finding = reported["cluster-cni"]
        assert finding["hosts"] == ["cp1"]
        assert f"fabric_cni is {cni}" in finding["seen"]
        assert all(network["seen"] in finding["seen"] for network in found)
        assert finding["next"].startswith(said)
        assert "-e fabric_reset=cluster" in finding["next"]  # the way out for one that has never worked


@pytest.mark.parametrize(
    ("settings", "changes", "said"),
    [
        ({"pod_cidr": "10.250.0.0/16"}, {}, ["fabric_pod_cidr is 10.250.0.0/16", "has 10.244.0.0/16"]),
        ({"service_cidr": "10.112.0.0/12"}, {}, ["fabric_service_cidr is 10.112.0.0/12", "has 10.96.0.0/12"]),
        ({}, {"pod_cidr": "10.244.0.0/16,fd00:10:244::/56"}, ["has 10.244.0.0/16,fd00:10:244::/56"]),
        # the first family is the cluster's
        (
            {"pod_cidr": "10.244.0.0/16,fd00:10:244::/56", "service_cidr": "10.96.0.0/12,fd00:10:96::/112"},
            {"pod_cidr": "fd00:10:244::/56,10.244.0.0/16", "service_cidr": "10.96.0.0/12,fd00:10:96::/112"},
            ["fabric_pod_cidr is 10.244.0.0/16,fd00:10:244::/56"],
        ),
        # the same, written differently
        (
            {"pod_cidr": "10.244.0.0/16, fd00:10:0244:0::/56"},
            {"pod_cidr": "10.244.0.0/16,fd00:10:244::/56"},
            [],
        ),
        ({"pod_cidr": "10.250.0.0/16"}, {"pod_cidr": ""}, []),  # not known
    ],
)
def test_addresses_of_pods_and_services(settings, changes, said):
    reported = errors(plan(with_ipv6(cluster(**changes)), **settings))
    assert set(reported) == ({"cluster-cidr"} if said else set())
    for words in said:
        assert words in reported["cluster-cidr"]["seen"]


def test_another_release():
    reported = errors(plan(finished(), kubernetes_version="1.36.5"))
    assert set(reported) == {"cluster-version"}
    finding = reported["cluster-version"]
    assert finding["hosts"] == ["cp1"]
    assert finding["seen"] == "fabric_kubernetes_version is 1.36.5; the API server of cp1 runs 1.36.3"
    assert finding["next"] == "Run ipu.fabric.upgrade, or set fabric_kubernetes_version to 1.36.3."
    older = errors(plan(finished(), kubernetes_version="1.35.3"))["cluster-version"]
    assert older["next"].startswith("Set fabric_kubernetes_version to 1.36.3. No role downgrades")
    # Its own plan compares versions.
    assert errors(plan(finished(), kubernetes_version="1.36.5", upgrade=True)) == {}


def test_nodes_of_another_release():
    hosts = finished()
    change(("host", "kubelet", "version"), "v1.35.3")(hosts, ["w2"])
    finding = errors(plan(hosts))["node-version"]
    assert (finding["hosts"], finding["seen"]) == (["w2"], "kubelet 1.35.3; the cluster runs 1.36.3")
    assert "node-version" not in errors(plan(hosts, allow=["node-version"]))
    # One that was too busy to say which it is does not stop the site.
    change(("host", "kubelet", "version"), "")(hosts, ["w2"])
    assert "node-version" not in errors(plan(hosts))
    assert errors(plan(hosts), "warning")["node-version"]["hosts"] == ["w2"]
    # A package of another release on a host that is no node yet is replaced.
    hosts["w2"]["host"]["kubelet"].update(server="", cluster="")
    assert errors(plan(hosts)) == {}


@pytest.mark.parametrize(
    ("wanted", "found", "said"),
    [
        ("", "10.88.0.11:6443", None),
        ("K8s.example.org", "k8s.example.org:6443", None),
        ("k8s.example.org:6443", "10.88.0.11:6443", "fabric_control_plane_endpoint is k8s.example.org:6443"),
        ("", "k8s.example.org:6443", "fabric_control_plane_endpoint is empty, so it is 10.88.0.11:6443"),
        ("k8s.example.org:6443", "", "the cluster has none"),
        ("", "", None),
        ("[fd00::1]:6443", "[fd00:0::1]:6443", None),
    ],
)
def test_the_endpoint(wanted, found, said):
    hosts = cluster(endpoint=found)
    if found:
        change(("host", "kubelet", "server"), found)(hosts, hosts)
    reported = errors(plan(hosts, control_plane_endpoint=wanted))
    # Hosts of this cluster are not called strangers, whatever its endpoint: who believes that resets them.
    assert set(reported) == ({"cluster-endpoint"} if said else set())
    if said:
        assert said in reported["cluster-endpoint"]["seen"]
        assert "cluster-endpoint" not in errors(plan(hosts, control_plane_endpoint=wanted, allow=["cluster-endpoint"]))


def test_a_host_of_another_cluster_is_still_one():
    hosts = cluster(endpoint="k8s.example.org:6443")
    change(("host", "kubelet", "server"), "10.1.1.1:6443")(hosts)
    change(("host", "kubelet", "server"), "k8s.example.org:6443")(hosts, ["w2"])
    reported = errors(plan(hosts, control_plane_endpoint="k8s.example.org:6443"))
    assert reported["existing-cluster"]["hosts"] == ["w1"]


@pytest.mark.parametrize(
    ("ca", "server", "expected"),
    [
        ("ab", "https://10.88.0.11:6443", set()),
        ("", "https://proxy", set()),
        ("cd", "https://other", {"other-cluster"}),
    ],
)
@pytest.mark.parametrize("manage", [True, False])
def test_a_kubeconfig_of_another_cluster(ca, server, expected, manage):
    found = Kubeconfig("/site/artifacts/admin.conf", server, ca)
    # With another CA, TLS refuses the API's answer too: that is no second fault.
    silence = "" if manage or not expected else "certificate verify failed"
    reported = errors(plan(finished(), kubeconfig=found, manage_kubernetes=manage, api_silence=silence))
    assert set(reported) == expected
    if expected:
        assert reported["other-cluster"]["next"].startswith("Move the file away" if manage else "Copy a kubeconfig")
        assert "/site/artifacts/admin.conf leads to https://other" in reported["other-cluster"]["seen"]
        allowed = plan(finished(), kubeconfig=found, manage_kubernetes=manage, allow=["other-cluster"])
        assert "other-cluster" not in errors(allowed)


def test_a_kubeconfig_before_there_is_a_cluster():
    assert plan(site(), kubeconfig=Kubeconfig("/site/artifacts/admin.conf", "https://old", "cd"))["findings"] == []


@pytest.mark.parametrize("manage", [True, False])
def test_a_cluster_that_gives_no_answer(manage):
    """Whatever it has may be changed by what is planned: that is not to be found out later."""
    silent = {"answered": False, "error": "connection refused", "version": "", "pod_networks": []}
    planned = plan(cluster(**silent), manage_kubernetes=manage)
    finding = errors(planned, "error" if manage else "warning")["cluster-unread"]
    assert finding["hosts"] == ["cp1"]
    assert finding["seen"].startswith("connection refused")
    assert planned["cluster"]["running"] is None
    assert "cluster-unread" not in errors(plan(cluster(**silent), allow=["cluster-unread"]))


def test_a_worker_in_the_place_of_a_control_plane_is_said():
    """Nothing is known then of a cluster that others manage, and nothing of theirs was looked for."""
    hosts = finished()
    hosts["cp1"]["host"]["cluster"] = site()["cp1"]["host"]["cluster"]
    warning = errors(plan(hosts, manage_kubernetes=False), "warning")["cluster-unread"]
    assert warning["hosts"] == ["cp1"]
    assert "cluster-unread" not in errors(plan(site(), manage_kubernetes=False), "warning")


def test_what_a_worker_has_left_of_an_earlier_life_is_not_the_cluster():
    hosts = site()
    hosts["w1"]["host"]["cluster"] = running(pod_networks=[FLANNEL])
    hosts["w2"]["host"]["cluster"] = running(answered=False, error="refused", version="")
    planned = plan(hosts)
    assert (planned["findings"], planned["cluster"]["running"]) == ([], None)


def test_an_interrupted_init_goes_on():
    silent = {"answered": False, "unfinished": True, "error": "connection refused", "version": "", "pod_networks": []}
    assert plan(cluster(**silent))["findings"] == []


def test_one_control_plane_that_answers_is_enough():
    hosts = finished()
    hosts["cp2"] = {**hosts["w1"], "groups": ["kube_control_plane"]}
    hosts["cp3"] = {**hosts["w2"], "groups": ["kube_control_plane"]}
    del hosts["w1"]
    hosts["cp1"]["host"]["cluster"] = running(answered=False, error="no route to host", version="")
    hosts["cp2"]["host"]["cluster"] = running()
    planned = plan(hosts, control_plane_endpoint="10.88.0.11:6443")
    assert "cluster-unread" not in {finding["check"] for finding in planned["findings"]}
    assert planned["cluster"]["running"]["host"] == "cp2"


def test_what_a_host_said_in_an_earlier_run_is_not_compared():
    hosts = cluster(pod_networks=[FLANNEL])
    hosts["cp1"]["recalled"] = "2026-11-22T10:00:00+00:00"
    assert "cluster-cni" not in errors(plan(hosts))
    # Nor is there anything to compare in a cache that an earlier release of this collection wrote.
    del hosts["cp1"]["host"]["cluster"]
    assert "cluster-cni" not in errors(plan(hosts))


@pytest.mark.parametrize(("cni", "said"), [("flannel", False), ("calico", True), ("none", False)])
def test_the_pod_network_that_others_manage_may_be_named(cni, said):
    hosts = cluster(pod_networks=[FLANNEL])
    hosts["cp1"]["variables"] = ["fabric_cni"]
    found = errors(plan(hosts, manage_kubernetes=False, cni=cni), "warning")
    assert ("cluster-cni" in found) == said


@pytest.mark.parametrize("pod_cidr", ["10.42.0.0/16", "10.244.0.0/16"])
def test_addresses_of_a_cluster_of_others_that_are_stated(pod_cidr):
    hosts = cluster()
    hosts["w1"]["variables"] = ["fabric_pod_cidr"]
    planned = plan(hosts, manage_kubernetes=False, pod_cidr=pod_cidr)
    assert planned["cluster"]["pod_cidr"] == "10.244.0.0/16"
    found = errors(planned, "warning")
    assert ("cluster-cidr" in found) == (pod_cidr != "10.244.0.0/16")
    if "cluster-cidr" in found:
        assert found["cluster-cidr"]["next"].startswith("Set fabric_pod_cidr to 10.244.0.0/16")


def test_a_cluster_that_is_managed_elsewhere_is_planned_as_it_is():
    """As for its version: what the site says of its addresses may only be the defaults."""
    hosts = cluster(
        pod_cidr="10.233.64.0/18", service_cidr="10.233.0.0/18", endpoint="lb.example:8443", pod_networks=[CILIUM]
    )
    planned = plan(hosts, manage_kubernetes=False)
    assert errors(planned) == {}
    expected = {"pod_cidr": "10.233.64.0/18", "service_cidr": "10.233.0.0/18", "endpoint": "lb.example:8443"}
    assert expected.items() <= planned["cluster"].items()
    overlapping = plan(cluster(pod_cidr="10.5.0.0/16"), manage_kubernetes=False)
    assert "subnet" in errors(overlapping)


@pytest.mark.parametrize(
    ("ranges", "step"),
    [
        ({"pod_cidr": "10.96.0.0/16"}, "Set both to the cluster's own CIDRs."),
        ({"pod_cidr": "10.88.0.0/16"}, "Set fabric_pod_cidr to the cluster's own CIDRs."),
    ],
)
def test_the_ranges_of_a_cluster_that_others_manage_are_told_not_chosen(ranges, step):
    """As far as it does not say them itself."""
    assert errors(plan(site(), manage_kubernetes=False, **ranges))["cidr"]["next"] == step
    assert "addresses that nothing else has" in errors(plan(site(), **ranges))["cidr"]["next"]


@pytest.mark.parametrize(
    ("method", "named"),
    [
        ("first-found", True),
        ("interface=eno.*,ens1.*", True),
        ("interface=eno.*", False),
        ("skip-interface=eno.*", True),
        ("skip-interface=ens.*", False),
        ("can-reach=10.5.0.1", True),
        ("can-reach=10.88.0.1", False),
        ("can-reach=$(NODEIP)", False),
        ("cidr=10.0.0.0/8", True),
        ("cidr=10.88.0.0/24", False),
        ("kubernetes-internal-ip", False),
        ("interface=(", False),
        ("(from elsewhere)", False),
    ],
)
def test_calico_that_may_take_a_fabric_nic(method, named):
    calico = {"name": "calico", "seen": "DaemonSet kube-system/calico-node"}
    hosts = cluster(pod_networks=[{**calico, "autodetection": {"IP_AUTODETECTION_METHOD": method}}])
    found = errors(plan(hosts, manage_kubernetes=False), "warning").get("calico-address")
    assert (found is not None) == named
    if found:
        assert found["hosts"] == ["w1", "w2"]
        assert found["seen"].endswith(f"kube-system/calico-node is {method}, which allows ens1f0")
        for name in ("w1", "w2"):  # whose only address is that of the fabric
            hosts[name]["address"] = hosts[name]["rdma"]["links"][1]["addresses"][0]["address"]
        assert "calico-address" not in errors(plan(hosts, manage_kubernetes=False), "warning")


def test_calico_of_its_operator_is_told_by_its_installation():
    detection = {"IP6_AUTODETECTION_METHOD": "first-found"}
    hosts = cluster(pod_networks=[{"name": "calico", "seen": BY_OPERATOR, "autodetection": detection}])
    assert "calico-address" not in errors(plan(hosts, manage_kubernetes=False), "warning")
    hosts["w1"]["rdma"]["links"][1]["addresses"].append({"address": "fd00:5::12", "prefix": 64})
    found = errors(plan(hosts, manage_kubernetes=False), "warning")["calico-address"]
    assert (found["hosts"], "nodeAddressAutodetectionV6" in found["next"]) == (["w1"], True)


def test_what_can_be_allowed():
    """Nothing that a role would go on to break, and nothing that it refuses later on."""
    assert {"cluster-cni", "cluster-cidr", "cluster-version"} <= set(REQUIRED)
    assert {"cluster-endpoint", "cluster-unread", "node-version", "other-cluster"} <= set(ALLOWABLE)


def test_blocks_that_nodes_would_lose():
    """The plan names what site refuses while pods have addresses of them."""
    (pool,) = plan(cluster())["networks"][0]["pools"]
    blocks = {"node12": "10.5.0.129-10.5.0.136", "node13": "10.5.0.137-10.5.0.144"}
    there = {"name": pool["name"], "subnet": pool["subnet"], "block_size": 8, "blocks": blocks}
    assert pool["perNodeBlockSize"] == 8
    assert "pool-blocks" not in errors(plan(cluster(nv_ipam_pools=[there])), "warning")
    assert "pool-blocks" not in errors(
        plan(cluster(nv_ipam_pools=[{**there, "name": "x"}]), pods_per_node=16), "warning"
    )
    finding = errors(plan(cluster(nv_ipam_pools=[there]), pods_per_node=16), "warning")["pool-blocks"]
    assert finding["hosts"] == ["cp1"]
    assert "10.5.0.0/24 in blocks of 8; 10.5.0.0/24 in blocks of 16 is planned" in finding["seen"]
    assert "fabric_pods_per_node" in finding["next"]


@pytest.mark.parametrize(
    ("managed", "path", "server", "level"),
    [
        (False, "/srv/admin.conf", "", "error"),
        (False, "/srv/admin.conf", "https://127.0.0.1:6443", "error"),
        (False, "/srv/admin.conf", "https://10.88.0.11:6443", ""),
        (False, "", "", ""),  # fabric_api_host is another host
        (True, "/srv/admin.conf", "", ""),  # site makes one
    ],
)
def test_a_kubeconfig_of_a_cluster_of_others(managed, path, server, level):
    planned = plan(cluster(), manage_kubernetes=managed, kubeconfig=Kubeconfig(path, server))
    assert [one["level"] for one in planned["findings"] if one["check"] == "kubeconfig"] == [level] * bool(level)


@pytest.mark.parametrize(
    ("fault", "seen"), [("", "no file at /srv/admin.conf"), ("is empty", "/srv/admin.conf is empty")]
)
def test_a_file_that_is_no_kubeconfig_is_told_from_none(fault, seen):
    planned = plan(cluster(), manage_kubernetes=False, kubeconfig=Kubeconfig("/srv/admin.conf", fault=fault))
    assert errors(planned)["kubeconfig"]["seen"] == seen


@pytest.mark.parametrize("managed", [True, False])
def test_nodes_that_the_inventory_lacks(managed):
    known = [{"name": f"node{number}", "machine_id": f"{number:032x}"} for number in (11, 12, 13)]
    assert "cluster-nodes" not in errors(plan(cluster(nodes=known), manage_kubernetes=managed), "warning")
    more = [*known, {"name": "node14", "machine_id": "e"}]
    finding = errors(plan(cluster(nodes=more), manage_kubernetes=managed), "warning")["cluster-nodes"]
    assert finding["seen"] == "node14"
    assert ("remove_node" in finding["next"]) is managed


@pytest.mark.parametrize(
    ("asked", "there", "refused"),
    [
        ("network_operator", ("network_operator", "rdma-net"), False),
        ("network_operator", ("spiderpool", "storage"), False),  # of others
        ("network_operator", ("spiderpool", "rdma-net"), True),
        ("spiderpool", ("network_operator", "rdma-net"), True),
    ],
)
def test_another_stack_than_that_of_the_cluster(asked, there, refused):
    seen = cluster(fabric_networks=[dict(zip(("stack", "name"), there))])
    finding = errors(plan(seen, stack=asked)).get("cluster-stack")
    assert bool(finding) is refused
    if finding:
        assert f"-e fabric_reset=fabric -e fabric_stack={there[0]}." in finding["next"]
        assert "cluster-stack" not in errors(plan(seen, stack=there[0]))


NONE = OwnMultus(multus=False)
OWN_MULTUS = "nvidia-network-operator/kube-multus-ds"


@pytest.mark.parametrize(
    ("there", "settings", "seen"),
    [
        ([OWN_MULTUS], {}, ""),
        ([OWN_MULTUS, "kube-system/kube-multus-ds"], {}, "fabric_multus is true; cp1 has kube-system/kube-multus-ds"),
        (["kube-system/kube-multus-ds"], {"own_multus": NONE}, ""),
        (["kube-system/kube-multus-ds"], {"networks": [], "require_rdma": False}, ""),
        (["spiderpool/spiderpool-multus"], {"stack": "spiderpool"}, ""),
        (["fabric/kube-multus-ds"], {"homes": {"network_operator": "fabric"}}, ""),
        ([OWN_MULTUS], {"homes": {"network_operator": "fabric"}}, f"fabric_multus is true; cp1 has {OWN_MULTUS}"),
        ([], {"own_multus": NONE}, "fabric_multus is false; cp1 has no DaemonSet of another multus"),
        ([OWN_MULTUS], {"own_multus": NONE}, "fabric_multus is false; cp1 has no DaemonSet of another multus"),
        (None, {}, ""),  # observed by an earlier release
        (None, {"own_multus": NONE}, ""),
    ],
)
def test_a_cluster_has_one_multus(there, settings, seen):
    hosts = cluster(**({} if there is None else {"multus": there}))
    found = errors(plan(hosts, manage_kubernetes=False, cni="none", **settings))
    assert found.get("cluster-stack", {"seen": ""})["seen"] == seen


@pytest.mark.parametrize(
    ("there", "settings", "seen"),
    [
        (["nvidia-network-operator/network-operator"], {}, ""),
        (["fabric/network-operator"], {"homes": {"network_operator": "fabric"}}, ""),
        (["kube-system/"], {"stack": "spiderpool"}, ""),
        (["kube-system/"], {}, "kube-system/ (namespace/release)"),
        (["kube-system/mine"], {}, "kube-system/mine (namespace/release)"),
        (["fabric/network-operator"], {}, "fabric/network-operator (namespace/release)"),
    ],
)
def test_a_cluster_has_one_network_operator(there, settings, seen):
    found = errors(plan(cluster(network_operators=there), manage_kubernetes=False, cni="none", **settings))
    assert found.get("cluster-stack", {"seen": ""})["seen"] == seen


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({}, []),
        ({"stack": "spiderpool"}, ["spiderpool_namespace is spiderpool; its label {} is baseline"]),
        ({"homes": {"network_operator": "jobs"}}, ["network_operator_namespace is jobs; its label {} is restricted"]),
        ({"homes": {"network_operator": "jobs"}, "networks": [], "require_rdma": False}, []),
        ({"homes": {"whereabouts": "jobs", "gpu_operator": "jobs"}}, []),
        (
            {"homes": {"whereabouts": "jobs"}, "ipam": "whereabouts"},
            ["whereabouts_namespace is jobs; its label {} is restricted"],
        ),
        (
            {"homes": {"gpu_operator": "jobs"}, "gpu": True},
            ["gpu_operator_namespace is jobs; its label {} is restricted"],
        ),
    ],
)
def test_pod_security_of_the_namespace(settings, seen):
    levels = {"spiderpool": "baseline", "jobs": "restricted"}
    found = plan(cluster(pod_security=levels), **settings)["findings"]
    texts = [text.format("pod-security.kubernetes.io/enforce") for text in seen]
    assert [each["seen"] for each in found if each["check"] == "pod-security"] == texts


def test_the_multus_of_another_stack_goes_with_it():
    networks = [{"stack": "spiderpool", "name": "rdma-net"}]
    planned = plan(cluster(fabric_networks=networks, multus=["spiderpool/spiderpool-multus"]))
    found = [finding for finding in planned["findings"] if finding["check"] == "cluster-stack"]
    assert ["fabric_stack is network_operator" in finding["seen"] for finding in found] == [True]


def test_the_pod_network_of_others_is_not_one_of_ours():
    planned = plan(cluster(pod_networks=[FLANNEL]), manage_kubernetes=False, cni="calico", calico_version="none")
    assert errors(planned) == {}
    assert "calico" not in as_text(planned).lower()
    assert planned["releases"]["cni_images"] == []


@pytest.mark.parametrize(
    ("built_here", "settings", "checks"),
    [
        (False, {"cni": "flannel"}, {"cluster-builder"}),  # not to change the pod network, or reset the cluster
        (False, {"allow": ["cluster-builder"]}, set()),
        (False, {"manage_kubernetes": False}, set()),
        (True, {}, set()),
        (None, {}, set()),  # observed by an earlier release
    ],
)
def test_a_cluster_of_another_team_is_not_managed_by_an_oversight(built_here, settings, checks):
    hosts = finished()
    hosts["cp1"]["host"]["cluster"] = running(**({} if built_here is None else {"built_here": built_here}))
    found = plan(hosts, **settings)["findings"]
    assert {each["check"] for each in found if each["level"] == "error"} == checks
    if checks:
        assert "fabric_manage_kubernetes to false" in found[0]["next"]


def test_hosts_of_another_team_get_no_advice_for_a_cluster_that_we_build():
    """It would have them rebooted, or their sources of packages changed."""
    hosts = finished()
    hosts["cp1"]["host"]["cluster"] = running(built_here=False)
    lacking = {"url": "https://pkgs.site", "seen": "404", "lacks": "", "release": "", "chart": "", "playbook": ""}
    variables = ("fabric_mirror.apt.kubernetes.uri", "fabric_mirror.registry", "fabric_mirror.calico.crds_url")
    for host in hosts.values():
        host["host"].update(cgroup="v1", sources=[{**lacking, "variable": variables[0]}])
    controller = [{**lacking, "variable": each} for each in (*variables[1:], "fabric_mirror.charts.network_operator")]
    found = plan(hosts, source_problems=controller)["findings"]
    assert [each["check"] for each in found] == ["cluster-builder", "sources"]
    assert "fabric_mirror.charts.network_operator" in found[1]["seen"]
    ours = errors(plan(hosts, source_problems=controller, allow=["cluster-builder"]))
    assert {"cgroup-v2", "sources"} <= set(ours)


@pytest.mark.parametrize(
    ("user", "told"),
    [("system:serviceaccount:default:viewer", "--user=system:serviceaccount:default:viewer."), ("", "--user=USER.")],
)
def test_the_advice_on_rights_names_the_user_that_the_api_sees(user, told):
    finding = errors(plan(finished(), manage_kubernetes=False, rights=["patch nodes"], user=user))["kubeconfig"]
    assert finding["next"].endswith(told)


def test_a_host_that_others_have_not_joined():
    """Its kubelet's files are there, but the cluster has no node of it; nothing of site would join it."""
    hosts = finished()
    hosts["cp1"]["host"]["cluster"]["nodes"] = [
        {"name": f"{name}.site", "machine_id": hosts[name]["host"]["machine_id"]} for name in ("cp1", "w1")
    ]
    found = errors(plan(hosts, manage_kubernetes=False))["node-distribution"]
    assert (found["hosts"], found["seen"]) == (["w2"], "nodes of the cluster: cp1.site, w1.site")
    assert found["next"].startswith("Join it with what manages the cluster")
    assert "node-distribution" not in errors(plan(hosts))


def test_nodes_that_the_fabric_is_kept_off():
    hosts = finished()
    hosts["cp1"]["host"]["cluster"]["nodes"] = [
        {"name": name, "machine_id": name} for name in ("cp1", "w1", "w2", "w9")
    ]
    assert "cluster-nodes" in errors(plan(hosts), "warning")
    assert "cluster-nodes" not in errors(plan(hosts, node_affinity=True), "warning")


@pytest.mark.parametrize(
    ("reached", "names", "told"),
    [
        ("10.88.0.99", ["a"], ["w1"]),
        ("10.88.0.99", ["a", "w1"], []),
        ("10.88.0.21", ["a"], []),
        ("", ["a"], []),
    ],
)
def test_a_host_that_did_not_answer_and_is_no_node(reached, names, told):
    nodes = [{"name": name, "machine_id": "", "addresses": ["10.88.0.21"]} for name in names]
    hosts = cluster(nodes=[*nodes, *({"name": f"node{n}", "machine_id": f"{n:032x}"} for n in (11, 13))])
    hosts["w1"] = {
        "groups": hosts["w1"]["groups"],
        "address": "",
        "errors": [],
        **({"reached": reached} if reached else {}),
    }
    found = [each for each in plan(hosts, manage_kubernetes=False)["findings"] if each["check"] == "node-distribution"]
    assert [name for each in found for name in each["hosts"]] == told


@pytest.mark.parametrize(
    ("why", "told"),
    [
        ("NodeStatusUnknown: Kubelet stopped posting node status.", ["w1"]),
        ("KubeletNotReady: Network plugin returns error: cni plugin not initialized", []),
    ],
)
def test_a_node_that_only_waits_for_its_pod_network_is_no_finding(why, told):
    seen = cluster(nodes=[{"name": "node12", "machine_id": f"{12:032x}", "not_ready": why}])
    found = [each for each in plan(seen)["findings"] if each["check"] == "node-ready"]
    assert [name for each in found for name in each["hosts"]] == told
