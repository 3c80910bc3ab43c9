"""What the role gpu_operator wants of the chart and for a licence, what it refuses, and what its removal takes."""

import base64

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.admission import TOLERATION
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.gpu_operator import GPU_TOLERATION, Seen, decide
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults

VGPU = {"license_secret": "licensing", "driver_repository": "registry.site/vgpu"}
OURS = {
    "namespace": "gpu-operator", "name": "gpu-operator", "version": "26.7.0", "release": "gpu-operator", "ours": True,
}  # fmt: skip
TEAMS = {**OURS, "namespace": "team", "ours": False}
LABELLED = [{"name": "w1", "labels": {"nvidia.com/gpu.present": None}}]


def wish(operators=(), pods=(), seen=None, **settings):
    gpu = {"operators": operators, "pods": pods, "drivers": [], "labelled": LABELLED}
    return decide(defaults("gpu_operator", **settings), Seen(gpu=gpu, **(seen or {})))


def at(values, path):
    for part in path.split("."):
        values = (values or {}).get(part)
    return values


@pytest.mark.parametrize(
    ("settings", "path", "value"),
    [
        ({}, "driver", {"enabled": True, "rdma": {"enabled": False, "useHostMofed": False}}),
        ({"driver": False}, "driver.enabled", False),
        ({"driver_version": "595.91.07"}, "driver.version", "595.91.07"),
        ({"rdma": True}, "driver.rdma", {"enabled": True, "useHostMofed": False}),
        ({"rdma": True, "host_mofed": True}, "driver.rdma", {"enabled": True, "useHostMofed": True}),
        ({"gdrcopy": True}, "gdrcopy.enabled", True),
        ({}, "toolkit", {"enabled": True}),
        ({"toolkit": False}, "toolkit.enabled", False),
        (
            {"containerd_config": "/etc/c.toml", "containerd_socket": "/run/c.sock", "toolkit_env": {"A": 1}},
            "toolkit.env",
            [
                {"name": "A", "value": "1"},
                {"name": "CONTAINERD_CONFIG", "value": "/etc/c.toml"},
                {"name": "CONTAINERD_SOCKET", "value": "/run/c.sock"},
            ],
        ),
        (VGPU, "driver.licensingConfig", {"secretName": "licensing", "nlsEnabled": True}),
        ({**VGPU, "license_nls": False}, "driver.licensingConfig.nlsEnabled", False),
        ({}, "nfd.enabled", True),
        ({"nfd": False}, "nfd.enabled", False),
        ({}, "operator", {"upgradeCRD": False}),
        ({}, "devicePlugin", None),
        ({"registry": "r:5000"}, "devicePlugin", {"repository": "r:5000/nvidia"}),
        ({"registry": "r:5000"}, "driver.manager", {"repository": "r:5000/nvidia/cloud-native"}),
        ({"registry": "r:5000"}, "driver.repository", "r:5000/nvidia"),
        ({"registry": "r:5000", **VGPU}, "driver.repository", "registry.site/vgpu"),
        ({"image_pull_secrets": ["s"]}, "gfd", {"imagePullSecrets": ["s"]}),
        ({"image_pull_secrets": ["s"]}, "driver.imagePullSecrets", ["s"]),
        ({"image_pull_secrets": ["s"]}, "driver.manager", None),
        (
            {"values": {"mig": {"strategy": "mixed"}, "driver": {"rdma": {"enabled": True}}}},
            "driver.rdma.enabled",
            True,
        ),
        ({}, "daemonsets", None),
        ({"admission": "enforce"}, "daemonsets.tolerations", [GPU_TOLERATION, TOLERATION]),
        ({"admission": "enforce", "nfd": False}, "node-feature-discovery", None),
        (
            {"admission": "enforce"},
            "node-feature-discovery.worker.tolerations",
            [{"operator": "Exists", "effect": "NoSchedule"}],
        ),
        ({"values": {"mig": {"strategy": "mixed"}}}, "mig.strategy", "mixed"),
    ],
)
def test_values(settings, path, value):
    assert at(wish(**settings).release.values, path) == value


@pytest.mark.parametrize(("places", "enabled"), [(["gpu-operator/nfd"], True), (["nfd/nfd-worker"], False)])
def test_node_feature_discovery_of_others_is_enough(places, enabled):
    assert at(wish(seen={"nfd": places}).release.values, "nfd.enabled") is enabled


@pytest.mark.parametrize("version", ["26.7.0", "v26.7.0"])
def test_the_chart_of_a_release(version):
    release = wish(version=version).release
    assert release.version == "v26.7.0"
    assert wish(chart_sha256="1f").release.sha256 == "1f"


@pytest.mark.parametrize(("require", "reason"), [(True, "Reconciled"), (False, "")])
def test_a_cluster_without_gpus_is_ready_only_if_none_are_wanted(require, reason):
    assert wish(require_gpus=require).ready[1]["reason"] == reason


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"driver": False, "rdma": True}, "gpu_operator_rdma"),
        ({"driver": False, "rdma": True, "gdrcopy": True}, "gpu_operator_rdma and gpu_operator_gdrcopy"),
        ({"host_mofed": True}, "gpu_operator_host_mofed"),
        ({"license_secret": "s"}, "no gpu_operator_driver_repository"),
        ({**VGPU, "driver": False}, "gridd.conf"),
        ({**VGPU, "license_gridd_conf": "FeatureType=1", "seen": {"license_token": ""}}, "Set one of them"),
        ({"operators": [TEAMS], "state": "absent", "force": True}, "team/gpu-operator in the cluster"),
        ({"operators": [OURS, TEAMS], "state": "absent"}, "Seen: team/gpu-operator in"),
        ({"operators": [OURS], "pods": ["jobs/train"], "state": "absent"}, "1 pods with GPUs, jobs/train"),
        ({"operators": [OURS], "state": "absent", "seen": {"removed": True}}, "still has one"),
    ],
)
def test_refused(settings, message):
    with pytest.raises(FabricError) as caught:
        wish(**settings)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("operators", "pods", "force", "nodes"),
    [([OURS], [], False, LABELLED), ([OURS], ["jobs/train"], True, LABELLED), ([], ["jobs/train"], False, [])],
)
def test_a_removal(operators, pods, force, nodes):
    decided = wish(operators, pods, state="absent", force=force)
    assert decided.nodes == nodes
    assert [(each["kind"], each["metadata"]["name"]) for each in decided.remnants] == [
        ("CustomResourceDefinition", "clusterpolicies.nvidia.com"),
        ("CustomResourceDefinition", "nvidiadrivers.nvidia.com"),
        ("CustomResourceDefinition", "gpuclusters.nvidia.com"),
        ("Secret", "licensing-config"),
        ("Namespace", "gpu-operator"),
    ]
    assert "Namespace" not in {each["kind"] for each in wish(state="absent", namespace="kube-system").remnants}


@pytest.mark.parametrize(
    ("settings", "token", "files"),
    [
        (
            {"license_token_file": "/token.tok", "license_gridd_conf": "FeatureType=1"},
            "TOKEN",
            {"gridd.conf": "FeatureType=1", "client_configuration_token.tok": "TOKEN"},
        ),
        ({"license_token": "GIVEN"}, "", {"gridd.conf": "", "client_configuration_token.tok": "GIVEN"}),
        # A legacy licence server needs no token.
        (
            {"license_nls": False, "license_gridd_conf": "ServerAddress=10.0.0.9"},
            "",
            {"gridd.conf": "ServerAddress=10.0.0.9"},
        ),
    ],
)
def test_a_licence_becomes_a_secret(settings, token, files):
    decided = wish(driver_repository="registry.site/vgpu", seen={"license_token": token}, **settings)
    namespace, secret = decided.objects
    assert namespace["metadata"]["name"] == secret["metadata"]["namespace"] == "gpu-operator"
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "privileged"}
    assert secret["metadata"]["name"] == "licensing-config"
    assert {name: base64.b64decode(text).decode() for name, text in secret["data"].items()} == files
    assert at(decided.release.values, "driver.licensingConfig.secretName") == "licensing-config"


def test_a_licence_of_others_is_left_to_them():
    assert wish(**VGPU).objects == []


def test_a_bundle_does_without_the_file_of_the_token():
    decided = wish(driver_repository="registry.site/vgpu", license_token_file="/elsewhere")
    assert at(decided.release.values, "driver.licensingConfig.nlsEnabled") is True
