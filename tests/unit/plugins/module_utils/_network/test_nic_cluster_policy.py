# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.filter.plan_nodes import plan_nodes
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._network import nic_cluster_policy as nic_policy
from ansible_collections.ipu.fabric.plugins.module_utils._network import releases as release_table
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import SCHEMAS
from hypothesis import given
from hypothesis import strategies as st

RELEASES = [operator.newest for operator in release_table.NETWORK_OPERATORS.values()]
FOLDER = SCHEMAS / "network-operator"
RELEASES_HERE = sorted(path.name for path in FOLDER.glob("*"))

RESOURCES = [{"resourceName": "a", "selectors": {"ifNames": ["ens1f0"]}}]


def policy(release, ipam, **settings):
    return nic_policy.policy_spec({"release": release, "ipam": ipam, "rdma_resources": RESOURCES, **settings})


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


def test_whereabouts_beside_the_operator_is_not_in_the_policy():
    spec = policy("25.10.0", "whereabouts")
    assert "nvIpam" not in spec
    assert set(spec["secondaryNetwork"]) == {"cniPlugins", "multus"}


@pytest.mark.parametrize(
    ("release", "known"), [("1.4.0", False), ("23.4.0", False), ("23.7.0", True), ("26.4.1", True)]
)
def test_tolerations(release, known):
    ipam = "nv-ipam" if release == "26.4.1" else "whereabouts"
    assert ("tolerations" in policy(release, ipam, tolerations=[{"operator": "Exists"}])) == known


def test_a_multus_that_is_there_already_is_used():
    """Such as that of RKE2; the operator brings its plugins all the same."""
    assert set(policy("26.4.1", "nv-ipam", multus=False)["secondaryNetwork"]) == {"cniPlugins"}
    assert set(policy("26.4.1", "nv-ipam", multus=True)["secondaryNetwork"]) == {"cniPlugins", "multus"}


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
        nic_policy.device_plugin_config([{"resourceName": "a'b"}])


@pytest.mark.parametrize("release", ["26.4", "", "latest", "22.1.0"])
def test_an_unknown_release(release):
    with pytest.raises(FabricError, match="network_operator_version"):
        nic_policy.release_features(release)


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
            {"release": "26.7.1"},
            {
                "nfd": {"enabled": False, "deployNodeFeatureRules": False},
                "upgradeCRDs": False,
                "keepNCP": False,
                "sriovNetworkOperator": {"enabled": False},
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
    assert nic_policy.network_operator_values(settings) == values


@pytest.mark.parametrize(
    ("installed", "wanted", "change", "steps"),
    [
        ("", "26.4.1", "install", ["26.4.1"]),
        ("26.4.1", "26.4.1", "keep", []),
        ("v26.4.1", "26.4.1", "keep", []),
        ("26.4.0", "26.4.1", "upgrade", ["26.4.1"]),
        ("26.1.0", "26.4.1", "upgrade", ["26.4.1"]),
        ("25.10.0", "26.4.1", "skip", ["26.1.2", "26.4.1"]),
        ("25.7.0", "26.4.0", "skip", ["25.10.0", "26.1.2", "26.4.0"]),
        ("23.4.0", "23.7.0", "skip", ["23.5.0", "23.7.0"]),
        ("24.10.1", "25.1.0", "upgrade", ["25.1.0"]),
        ("1.4.0", "23.1.0", "upgrade", ["23.1.0"]),
        ("26.4.1", "26.4.0", "downgrade", []),
        ("26.4.1", "25.10.0", "downgrade", []),
        ("27.1.0", "26.4.1", "downgrade", []),
        ("latest", "26.4.1", "skip", ["26.4.1"]),
    ],
)
def test_upgrade_steps(installed, wanted, change, steps):
    assert nic_policy.upgrade_steps(installed, wanted) == (change, steps)


@given(st.permutations(RELEASES).map(lambda order: sorted(order[:2], key=release_table.parse)))
def test_each_step_of_an_upgrade_is_supported(ends):
    now, wanted = ends
    change, steps = nic_policy.upgrade_steps(now, wanted)
    assert (change == "upgrade") == (len(steps) == 1)
    for step in steps:
        assert nic_policy.upgrade_steps(now, step) == ("upgrade", [step])
        now = step
    assert now == wanted


@pytest.mark.parametrize(("release", "image"), [("1.4.0", "mofed"), ("23.7.0", "mofed"), ("24.1.0", "doca-driver")])
def test_driver_container(release, image):
    assert "ofedDriver" not in policy(release, "whereabouts")
    wanted = {"version": "5.8", "upgradePolicy": {"drain": {"force": True}}}
    driver = policy(release, "whereabouts", ofed_driver=wanted, pull_secrets=["one"])["ofedDriver"]
    assert (driver["image"], driver["version"], driver["imagePullSecrets"]) == (image, "5.8", ["one"])
    assert driver["upgradePolicy"]["drain"] == {
        "enable": True,
        "force": True,
        "deleteEmptyDir": False,
        "timeoutSeconds": 300,
    }
    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(driver)


def test_driver_container_needs_a_version():
    with pytest.raises(FabricError, match="needs a version"):
        policy("26.4.1", "nv-ipam", ofed_driver={"upgradePolicy": {}})


def paths(values, prefix=()):
    """The path of every value, as far as the values are mappings."""
    for key, value in values.items():
        yield (*prefix, key)
        if isinstance(value, dict):
            yield from paths(value, (*prefix, key))


@pytest.mark.parametrize("release", RELEASES_HERE or [pytest.param("", marks=pytest.mark.skip("no ../shared/schemas"))])
@pytest.mark.parametrize("nfd", [True, False])
def test_every_value_is_one_of_the_chart(release, nfd):
    everything = {
        "release": release,
        "nfd": nfd,
        "cni_bin_directory": "/x",
        "cni_network_directory": "/y",
        "pull_secrets": ["s"],
    }
    known = set(paths(yaml.safe_load((FOLDER / release / "values.yaml").read_text(encoding="utf-8"))))
    rendered = set(paths(nic_policy.network_operator_values(everything)))
    assert rendered - known == set()
    # And the other way: what a chart can be told of these, it is told.
    said = {("operator", "cniBinDirectory"), ("operator", "cniNetworkDirectory"), ("deployCR",)}
    said |= {("upgradeCRDs",), ("keepNCP",)}
    assert said & known == said & rendered


def test_plan_nodes():
    plan = {
        "hosts": {
            "w1.site": {"node": "w1", "links": {"rdma-net": {"rdma_netdevs": ["ens1f0"]}}},
            "w2.site": {"node": "w2", "links": {"rdma-net": {"rdma_netdevs": []}}},
            "cp": {"node": "cp", "links": {}},
        },
        "vipu": {
            "controllers": [
                {"host": "v", "address": "10.5.0.20", "port": 8090, "label": "k=a", "serves": ["w1.site", "cp"]}
            ]
        },
    }
    assert plan_nodes(plan) == {
        "rdma": ["w1"],
        "vipu_controllers": [{"host": "10.5.0.20", "port": 8090, "label": "k=a", "nodes": ["w1", "cp"]}],
    }
