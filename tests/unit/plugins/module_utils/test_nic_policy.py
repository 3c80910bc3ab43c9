# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils import _nic_policy
from ansible_collections.ipu.fabric.plugins.module_utils._result import FabricError

RESOURCES = [{"resourceName": "a", "selectors": {"ifNames": ["ens1f0"]}}]


def policy(release, ipam, **settings):
    return _nic_policy.policy_spec({"release": release, "ipam": ipam, "rdma_resources": RESOURCES, **settings})


@pytest.mark.parametrize(
    ("release", "ipam", "image"),
    [
        ("1.4.0", "whereabouts", "ghcr.io/k8snetworkplumbingwg/multus-cni:v3.8"),
        ("24.10.0", "whereabouts", "ghcr.io/k8snetworkplumbingwg/multus-cni:v4.1.0"),
        ("25.7.0", "whereabouts", "nvcr.io/nvidia/mellanox/multus-cni:network-operator-v25.7.0"),
        ("26.4.1", "nv-ipam", "nvcr.io/nvidia/mellanox/multus-cni:network-operator-v26.4.1"),
    ],
)
def test_images(release, ipam, image):
    multus = policy(release, ipam)["secondaryNetwork"]["multus"]
    assert "{repository}/{image}:{version}".format(**multus) == image


def test_ipam_is_one_or_the_other():
    assert "ipamPlugin" not in policy("25.7.0", "nv-ipam")["secondaryNetwork"]
    assert "nvIpam" not in policy("25.7.0", "whereabouts")
    assert "ipamPlugin" in policy("25.7.0", "whereabouts")["secondaryNetwork"]


@pytest.mark.parametrize("release", ["25.10.0", "26.4.1"])
def test_operators_without_whereabouts_leave_it_to_others(release):
    spec = policy(release, "whereabouts")
    assert set(spec["secondaryNetwork"]) == {"cniPlugins", "multus"}
    assert "nvIpam" not in spec


@pytest.mark.parametrize(
    ("release", "known"), [("1.4.0", False), ("23.4.0", False), ("23.7.0", True), ("26.4.1", True)]
)
def test_tolerations(release, known):
    ipam = "nv-ipam" if release == "26.4.1" else "whereabouts"
    assert ("tolerations" in policy(release, ipam, tolerations=[{"operator": "Exists"}])) == known


def test_multus_gets_memory():
    assert policy("26.4.1", "nv-ipam")["secondaryNetwork"]["multus"]["containerResources"] == [
        {"name": "kube-multus", "requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}}
    ]
    assert "containerResources" not in policy("23.7.0", "whereabouts")["secondaryNetwork"]["multus"]


def test_without_rdma_the_plugin_is_left_out():
    assert "rdmaSharedDevicePlugin" not in policy("26.4.1", "nv-ipam", rdma_resources=[])


def test_own_images_and_pull_secrets():
    own = {"multus": {"repository": "mirror:5000/nvidia", "image": "multus-cni", "version": "x"}}
    spec = policy("26.4.1", "nv-ipam", images=own, pull_secrets=["one"])
    assert spec["secondaryNetwork"]["multus"]["repository"] == "mirror:5000/nvidia"
    assert spec["nvIpam"]["imagePullSecrets"] == ["one"]
    assert spec["nvIpam"]["repository"] == "nvcr.io/nvidia/mellanox"


def test_device_plugin_config():
    config = json.loads(policy("26.4.1", "nv-ipam")["rdmaSharedDevicePlugin"]["config"])
    assert config == {"periodicUpdateInterval": 300, "configList": RESOURCES}
    with pytest.raises(FabricError, match="single quote"):
        _nic_policy.device_plugin_config([{"resourceName": "a'b"}])


@pytest.mark.parametrize("release", ["26.4", "", "latest", "22.1.0"])
def test_an_unknown_release(release):
    with pytest.raises(FabricError, match="network_operator_version"):
        _nic_policy.able(release)


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        (
            {"release": "1.4.0", "cni_bin_directory": "/x"},
            {"deployCR": False, "nfd": {"enabled": False}, "sriovNetworkOperator": {"enabled": False}},
        ),
        (
            {"release": "26.4.1", "cni_bin_directory": "/x", "cni_network_directory": "/y", "pull_secrets": ["s"]},
            {
                "nfd": {"enabled": False, "deployNodeFeatureRules": False},
                "upgradeCRDs": False,
                "sriovNetworkOperator": {"enabled": False},
                "operator": {"cniBinDirectory": "/x", "cniNetworkDirectory": "/y"},
                "imagePullSecrets": ["s"],
            },
        ),
        (
            {"release": "24.1.0", "nfd": True, "values": {"nfd": {"enabled": False}, "operator": {"image": "x"}}},
            {
                "deployCR": False,
                "nfd": {"enabled": False, "deployNodeFeatureRules": True},
                "upgradeCRDs": False,
                "sriovNetworkOperator": {"enabled": False},
                "operator": {"image": "x"},
            },
        ),
    ],
)
def test_values(settings, values):
    assert _nic_policy.network_operator_values(settings) == values


def test_range():
    assert _nic_policy.network_operator_range("26.4.1") == {"oldest": "1.31", "newest": "1.35"}


def test_macvlan_objects():
    pool = {"name": "rdma-net", "subnet": "10.5.0.0/24", "perNodeBlockSize": 8}
    networks = [
        {"name": "a", "namespace": "default", "pool": pool},
        {"name": "b", "namespace": "jobs", "pool": None, "pools": []},
        {"name": "c", "namespace": "jobs"},
        {"name": "d", "namespace": "default", "pool": pool, "pools": [pool, {"name": "rdma-net.ipv6"}]},
    ]
    objects = _nic_policy.macvlan_objects(networks, "operator", {"x": "y"})
    assert [o["metadata"]["name"] for o in objects] == ["jobs", "rdma-net", "rdma-net", "rdma-net.ipv6"]
    assert [o["kind"] for o in objects] == ["Namespace", "IPPool", "IPPool", "IPPool"]
    assert objects[0]["metadata"]["labels"] == {"x": "y"}
    assert objects[1]["spec"] == {"subnet": "10.5.0.0/24", "perNodeBlockSize": 8}
    assert objects[1]["metadata"]["namespace"] == "operator"


def test_plan_nodes():
    plan = {
        "hosts": {
            "w1.site": {"node": "w1", "links": {"rdma-net": {"rdma_netdevs": ["ens1f0"]}}},
            "w2.site": {"node": "w2", "links": {"rdma-net": {"rdma_netdevs": []}}},
            "cp": {"node": "cp", "links": {}},
        },
        "vipu": {"node_labels": {"w1.site": {"vipu": "a"}}},
    }
    assert _nic_policy.plan_nodes(plan) == {"rdma": ["w1"], "labels": {"w1": {"vipu": "a"}}}
