from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._model.observation import Observation
from ansible_collections.ipu.fabric.plugins.module_utils._plan.names import (
    check_foreign_variables,
    check_groups,
    check_variables,
    may_be_ours,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites

ROLES = ("verify_memlock", "verify_image", "kubernetes_kubelet_config", "gpu_operator_driver")
KNOWN = (*ROLES, "fabric_networks", "fabric_gpu", "fabric_vipu_hosts", "fabric_allow", "fabric_stack")


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ({"kube_control_plane": ["cp1"], "kube_node": ["w1"], "all": ["cp1", "w1"], "ungrouped": []}, {}),
        ({"kube_node": ["w1"], "ipu_nodes": ["w1", "w2"]}, {"ipu_nodes": ["w1", "w2"]}),
        ({"kube_controlplane": ["cp1"]}, {"kube_controlplane": ["cp1"]}),
        ({"kube-node": ["w1"], "kube_node": []}, {"kube-node": ["w1"]}),
        # Nobody is left out.
        ({"kube_node": ["w1"], "kube_nodes": ["w1"]}, {}),
        ({"kube_nodes": []}, {}),
        # The site's own, and kubespray's.
        ({"rack_1": ["w1"], "gpu_node": ["w1"], "etcd": ["cp1"], "k8s_cluster": ["cp1", "w1"], "calico_rr": []}, {}),
    ],
)
def test_groups(groups: dict[str, list[str]], found: dict[str, list[str]]) -> None:
    findings = Findings([])
    check_groups(groups, findings)
    assert {each["seen"].split()[1]: each["hosts"] for each in findings.errors} == found
    assert all("Did you mean " in each["next"] for each in findings.errors)


@pytest.mark.parametrize(
    ("name", "level", "said"),
    [
        ("fabric_netwroks", "error", "Did you mean fabric_networks?"),
        ("fabric_vipu_host", "error", "Did you mean fabric_vipu_hosts?"),
        ("fabric_building", "warning", "a prefix other than fabric_"),
        ("fabric_gpu", "", ""),
        ("verify_memlok", "error", "Did you mean verify_memlock?"),
        ("kubernetes_kublet_config", "error", "Did you mean kubernetes_kubelet_config?"),
        ("gpu_operater_driver", "error", "Did you mean gpu_operator_driver?"),
        ("verify_memlock", "", ""),
        # Another collection's.
        ("kubernetes_packages", "", ""),
        ("verify_images_of_the_shop", "", ""),
    ],
)
@pytest.mark.parametrize("hosts", [["cp1"], ["cp1", "w1"]])
def test_variables(name: str, level: str, said: str, hosts: list[str]) -> None:
    observations = {
        host: t.cast(Observation, {"variables": [name] if host in hosts else ["fabric_allow"]})
        for host in ("cp1", "w1")
    }
    findings = Findings([])
    check_variables(observations, KNOWN, findings)
    found = findings.as_list()
    assert [each["level"] for each in found] == ([level] if level else [])
    assert all(said in each["next"] for each in found)
    assert all(each["hosts"] == (hosts if len(hosts) == 1 else []) for each in found)


KUBESPRAY = ["kube_network_plugin", "kube_pods_subnet", "kube_service_addresses"]


@pytest.mark.parametrize(
    ("names", "seen", "step"),
    [
        (
            KUBESPRAY,
            ", ".join(KUBESPRAY),
            "fabric_cni for kube_network_plugin, fabric_pod_cidr for kube_pods_subnet, fabric_service_cidr for"
            " kube_service_addresses.",
        ),
        ([*KUBESPRAY, "fabric_pod_cidr", "fabric_cni"], "kube_service_addresses", "Write fabric_service_cidr for"),
        (["k3s_version"], "k3s_version", "set fabric_manage_kubernetes to false"),
        (["kube_proxy_mode", "fabric_cni"], "", ""),
    ],
)
def test_variables_of_another_tool(names: list[str], seen: str, step: str) -> None:
    assert all(map(may_be_ours, KUBESPRAY))
    observations = {host: t.cast(Observation, {"variables": names}) for host in ("cp1", "w1")}
    findings = Findings([])
    check_foreign_variables(observations, findings)
    check_variables(observations, {"fabric_cni", "fabric_pod_cidr"}, findings)
    found = findings.as_list()
    assert [each["seen"] for each in found] == ([seen] if seen else [])
    assert all(step in each["next"] and each["level"] == "warning" for each in found)


def test_a_misspelt_group_is_one_finding() -> None:
    hosts = sites.site()
    for name, seen in hosts.items():
        seen["groups"] = ["kube_nodes", "ipu_node"] if name.startswith("w") else ["kube_control_plane"]
    groups = {"kube_control_plane": ["cp1"], "kube_nodes": ["w1", "w2"], "ipu_node": ["w1", "w2"]}
    found = [
        each["check"] for each in sites.plan(hosts, inventory_groups=groups)["findings"] if each["level"] == "error"
    ]
    assert found == ["unknown-group"]


def test_a_group_of_another_tool_is_to_be_renamed() -> None:
    hosts = sites.site()
    for name, seen in hosts.items():
        seen["groups"] = ["kube_node", "ipu_node"] if name.startswith("w") else ["kube_master"]
    groups = {"kube_master": ["cp1"], "kube_node": ["w1", "w2"], "ipu_node": ["w1", "w2"]}
    found = [each for each in sites.plan(hosts, inventory_groups=groups)["findings"] if each["check"] == "inventory"]
    assert "Rename the group kube_master to kube_control_plane." in [each["next"] for each in found]
