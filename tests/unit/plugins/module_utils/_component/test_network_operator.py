"""What the role network_operator installs and refuses, and what its removal takes and leaves to others."""

from __future__ import annotations

import json
import typing as t

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component import network_operator
from ansible_collections.ipu.fabric.plugins.module_utils._component.network_operator import (
    GROUP_LABEL,
    NIC_LABEL,
    OperatorWish,
    Seen,
    decide,
)
from ansible_collections.ipu.fabric.plugins.module_utils._network import releases as release_table
from ansible_collections.ipu.fabric.plugins.module_utils._network.operator_upgrade import upgrade_steps
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import SCHEMAS
from hypothesis import given
from hypothesis import strategies as st

OPERATOR = {"namespace": "nvidia-network-operator", "name": "network-operator", "version": "26.4.1"}
OURS = {**OPERATOR, "release": "network-operator"}
THEIRS = {**OPERATOR, "namespace": "gpu-team", "release": "fabric"}
OUR_NAME = "nvidia-network-operator/network-operator"
MULTUS = "nvidia-network-operator/kube-multus-ds"
ENDS = "2026-12-01T00:00:00Z"


def wish(seen: t.Any = None, **settings: t.Any) -> OperatorWish:
    return decide(defaults("network_operator", **settings), Seen(**{"present": True, **(seen or {})}))


GROUPS = [
    {"name": "fabric-a", "nodes": ["w1"], "resources": [{"resourceName": "a", "selectors": {"ifNames": ["ens1"]}}]},
    {"name": "fabric-b", "nodes": ["w2"], "resources": [{"resourceName": "a", "selectors": {"ifNames": ["ens2"]}}]},
]
GROUPED = {"nic_groups": GROUPS, "rdma_nodes": ["w1", "w2"], "rdma_resources": GROUPS[0]["resources"]}


def test_a_node_policy_for_each_group() -> None:
    found = wish({"node_policies": ["fabric-a", "fabric-old"], "device_plugin": "node"}, **GROUPED)
    cluster, *nodes = found.objects
    assert "rdmaSharedDevicePlugin" not in cluster["spec"]
    assert [each["metadata"]["name"] for each in nodes] == ["fabric-a", "fabric-b"]
    for each, group, nic in zip(nodes, GROUPS, ("ens1", "ens2")):
        assert each["spec"]["nodeSelector"] == {GROUP_LABEL: group["name"]}
        assert json.loads(each["spec"]["rdmaSharedDevicePlugin"]["config"])["configList"][0]["selectors"] == {
            "ifNames": [nic]
        }
        assert each["spec"]["tolerations"] == cluster["spec"]["tolerations"]
    assert [each["labels"][GROUP_LABEL] for each in found.labels] == ["fabric-a", "fabric-b"]
    assert [each["name"] for each in found.ready if each["kind"] == "NicNodePolicy"] == ["fabric-a", "fabric-b"]
    assert names(found.gone) == {"fabric-old"}
    assert found.plugin_pods == "app in (rdma-shared-dp, rdma-shared-dp-fabric-a, rdma-shared-dp-fabric-b)"
    back = wish({"node_policies": ["fabric-a"], "device_plugin": "node"}, **{**GROUPED, "nic_groups": []})
    assert "rdmaSharedDevicePlugin" in back.objects[0]["spec"]
    assert len(back.objects) == 1
    assert names(back.gone) == {"fabric-a"}
    assert [each["labels"][GROUP_LABEL] for each in back.labels] == [None, None]


@pytest.mark.parametrize(
    ("seen", "settings", "said"),
    [
        ({"device_plugin": "cluster"}, GROUPED, ""),
        ({"device_plugin": "cluster", "pods": ["jobs/train"]}, GROUPED, "cluster to node.*jobs/train"),
        ({"device_plugin": "node", "other_pods": ["jobs/train"]}, {}, "node to cluster.*jobs/train"),
        ({"device_plugin": "cluster", "pods": ["jobs/train"]}, {**GROUPED, "allow_move": True}, ""),
        ({"device_plugin": "node", "pods": ["jobs/train"]}, GROUPED, ""),
        ({"pods": ["jobs/train"]}, GROUPED, ""),
        ({"version": "1.34.0"}, {**GROUPED, "version": "26.1.2"}, "26.1.2 has no NicNodePolicy"),
    ],
)
def test_moves_of_the_device_plugin(seen: t.Any, settings: t.Any, said: str) -> None:
    if not said:
        wish(seen, **settings)
        return
    with pytest.raises(FabricError, match=f"(?s){said}"):
        wish(seen, **settings)


def removal(**seen: t.Any) -> OperatorWish:
    return wish({"network_operators": [OURS], "own": [OUR_NAME], **seen}, state="absent")


def names(objects: t.Sequence[t.Any]) -> t.Set[str]:
    return {each["metadata"]["name"] for each in objects}


@pytest.mark.parametrize(
    ("seen", "settings", "said"),
    [
        ({"version": "1.37.0"}, {}, ""),
        ({"version": "1.33.4+rke2r1"}, {}, ""),
        ({"version": "1.31.9"}, {}, "supports Kubernetes 1.32 to 1.37.*it runs 1.31.9"),
        ({"version": "1.38.0"}, {}, "supports Kubernetes 1.32 to 1.37"),
        ({"version": "1.31.9"}, {"version": "26.4.1"}, ""),
        ({"version": "1.38.0"}, {"allow_kubernetes": True}, ""),
        ({"multus": [MULTUS]}, {}, ""),
        ({"multus": [MULTUS, "kube-system/rke2-multus"]}, {}, "has a multus already.*kube-system/rke2-multus"),
        ({"multus": [MULTUS]}, {"multus": False}, "no multus"),
        ({"multus": ["kube-system/rke2-multus"]}, {"multus": False}, ""),
        # A bundle is of no cluster yet.
        ({"present": False}, {"multus": False}, ""),
        ({"network_operators": [OURS]}, {}, ""),
        ({"network_operators": [OURS, THEIRS]}, {}, "a network operator already.*gpu-team"),
        ({}, {"ofed_driver": {"version": "1"}}, "no Node Feature Discovery"),
        ({}, {"ofed_driver": {"version": "1"}, "nfd": True}, ""),
        ({"nfd": ["gpu/nfd-worker"]}, {"ofed_driver": {"version": "1"}}, ""),
        # Others' networks would lose their IPAM as well.
        ({"policy_ipam": "whereabouts", "other_pods": ["jobs/stranger"]}, {}, "running pods again.*jobs/stranger"),
        ({"policy_ipam": "whereabouts", "pods": ["jobs/ours"]}, {}, "running pods again.*jobs/ours"),
        ({"policy_ipam": "whereabouts"}, {}, ""),
        ({"policy_ipam": "nv-ipam", "pods": ["jobs/ours"]}, {}, ""),
        ({}, {"version": "0.0.1"}, "network_operator_version"),
    ],
)
def test_what_has_to_be_so_before_anything_is_changed(seen, settings, said):
    if not said:
        wish(seen, **settings)
        return
    with pytest.raises(FabricError, match=said):
        wish(seen, **settings)


@pytest.mark.parametrize(
    ("installed", "wanted", "more", "said"),
    [
        ("26.4.1", "26.7.1", {}, ""),
        (
            "25.10.0",
            "26.7.1",
            {},
            "next release line only.*to 26.1.2 and run site, then do the same with 26.4.2, then 26.7.1",
        ),
        ("25.10.0", "26.7.1", {"allow_skip": True}, ""),
        ("26.7.1", "26.4.1", {"allow_skip": True}, "no downgrade"),
    ],
)
def test_an_upgrade_leads_to_the_next_line(installed, wanted, more, said):
    seen = {"network_operators": [{**OURS, "version": installed}]}
    if not said:
        assert wish(seen, version=wanted, **more).settle == 15
        return
    with pytest.raises(FabricError, match=said):
        wish(seen, version=wanted, **more)


@pytest.mark.parametrize(
    ("release", "installed", "keeps"),
    [
        ("1.4.0", "1.4.0", (True, True)),
        ("1.4.0", "", (False, True)),
        ("23.4.0", "23.4.0", (False, True)),
        ("26.4.1", "26.4.1", (False, False)),
    ],
)
def test_what_a_release_reads_only_once(release, installed, keeps):
    seen = {"network_operators": [{**OURS, "version": installed}]} if installed else {}
    decided = wish(seen, version=release, ipam="whereabouts")
    assert (decided.keeps_policy, decided.keeps_config) == keeps
    assert decided.steps == [*(["before_upgrade"] if keeps[0] else []), "present"]
    assert decided.settle == 0


def test_helm_is_not_to_delete_the_policy_of_the_chart():
    assert wish({"policy_in_chart": True}).steps == ["before_upgrade", "present"]


def test_node_feature_discovery_of_others_serves():
    assert wish(nfd=True).release.values["nfd"]["enabled"]
    assert not wish({"nfd": ["gpu/nfd-worker"]}, nfd=True).release.values["nfd"]["enabled"]


def test_what_has_to_be_there_before_networks():
    assert "ippools.nv-ipam.nvidia.com" in wish().crds
    assert "ippools.nv-ipam.nvidia.com" not in wish(ipam="whereabouts").crds
    assert wish(rdma_nodes=["w1"]).labels == [{"name": "w1", "labels": {NIC_LABEL: "true"}}]


@pytest.mark.parametrize(
    ("multus", "whereabouts", "restart", "expected"),
    [
        (["nvidia/kube-multus-ds"], [], {}, []),
        (["nvidia/kube-multus-ds"], [], {"multus": ENDS}, ["kube-multus-ds"]),
        ([], ["kube-system/whereabouts"], {"whereabouts": ENDS}, []),
        (["nvidia/kube-multus-ds"], ["kube-system/whereabouts"], {"whereabouts": ENDS}, []),
        (["nvidia/kube-multus-ds"], ["nvidia/whereabouts"], {"whereabouts": ENDS}, ["whereabouts"]),
    ],
)
def test_only_cni_plugins_of_this_operator_start_again(multus, whereabouts, restart, expected):
    decided = wish({"multus": multus, "whereabouts": whereabouts}, namespace="nvidia", restart=restart)
    assert [each["name"] for each in decided.restarted] == expected
    annotations = [each["spec"]["template"]["metadata"]["annotations"] for each in decided.restarts]
    assert annotations == [{"fabric.ipu/token-ends": ENDS}] * len(expected)
    assert decided.steps == ["present", *(["restart_plugins"] if expected else [])]


def test_the_multus_of_others_does_not_start_again():
    decided = wish({"multus": ["kube-system/kube-multus-ds"]}, multus=False, restart={"multus": ENDS})
    assert decided.restarts == []


@pytest.mark.parametrize("operator", [THEIRS, OURS])
def test_an_operator_of_others_is_not_removed(operator):
    named = rf"{operator['namespace']}/network-operator \(release {operator['release']}\)"
    with pytest.raises(FabricError, match=named):
        removal(network_operators=[operator], own=[])


def test_nor_is_ours_beside_another():
    with pytest.raises(FabricError, match=r"Seen: gpu-team/network-operator \(release fabric\) in"):
        removal(network_operators=[OURS, THEIRS])


def test_the_removal_takes_what_is_ours():
    nodes = [{"name": "w1", "own_labels": [NIC_LABEL]}, {"name": "w2", "own_labels": []}]
    decided = removal(nodes=nodes, nv_ipam=["dpf/nv-ipam-node"])
    gone = names(decided.remnants)
    assert {"macvlannetworks.mellanox.com", "nvidia-network-operator"} <= gone
    assert "ippools.nv-ipam.nvidia.com" not in gone
    assert [(each["name"], NIC_LABEL in each["labels"]) for each in decided.labels] == [("w1", True), ("w2", False)]
    with_nfd = removal(nodes=nodes, nfd=["gpu/nfd-worker"]).labels
    assert not any(NIC_LABEL in each["labels"] for each in with_nfd)


@pytest.mark.parametrize(
    ("seen", "stays"),
    [
        ({}, ()),
        ({"nv_ipam": ["dpf/nv-ipam-node"]}, ("ippools.nv-ipam.nvidia.com", "/opt/cni/bin/nv-ipam")),
        (
            {"multus": ["kube-system/rke2-multus"]},
            ("network-attachment-definitions.k8s.cni.cncf.io", "/etc/cni/net.d/00-multus.conf"),
        ),
        ({"attachments": ["jobs/theirs"]}, ("network-attachment-definitions.k8s.cni.cncf.io",)),
        # That of the role whereabouts stays where its pools are.
        ({"whereabouts": ["nvidia-network-operator/whereabouts-whereabouts-chart"]}, ("nvidia-network-operator",)),
        ({"whereabouts": ["team/whereabouts"]}, ("/opt/cni/bin/whereabouts",)),
    ],
)
def test_what_others_have_too_stays(seen, stays):
    def found(**given):
        decided = removal(**given)
        return {*names(decided.remnants), *decided.paths}

    assert found() - found(**seen) >= set(stays)
    assert bool(found() - found(**seen)) is bool(stays)


# ---- the policy and the chart of each release


RELEASES = [operator.newest for operator in release_table.NETWORK_OPERATORS.values()]
FOLDER = SCHEMAS / "network-operator"
RELEASES_HERE = sorted(path.name for path in FOLDER.glob("*"))

RESOURCES = [{"resourceName": "a", "selectors": {"ifNames": ["ens1f0"]}}]


def policy(release, ipam, **settings):
    given = {"version": release, "ipam": ipam, "rdma_resources": RESOURCES, **settings}
    return network_operator.policy_spec(defaults("network_operator", **given))


def chart_values(nfd=False, **settings):
    return network_operator.chart_values(defaults("network_operator", **settings), nfd)


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


def test_what_the_proof_needs_runs_on_nodes_that_are_not_proved():
    taint = {"key": "ipu.fabric/unproved", "operator": "Exists", "effect": "NoSchedule"}
    usual = policy("26.4.1", "nv-ipam", admission=False)["tolerations"]  # as YAML reads a bare off
    assert policy("26.4.1", "nv-ipam", admission="warn")["tolerations"] == usual
    assert policy("26.4.1", "nv-ipam", admission="enforce")["tolerations"] == [*usual, taint]
    worker = {"worker": {"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]}}
    assert chart_values(nfd=True, admission="enforce")["node-feature-discovery"] == worker
    assert "node-feature-discovery" not in chart_values(admission="enforce")
    assert "node-feature-discovery" not in chart_values(nfd=True)


def test_what_the_proof_needs_would_not_run():
    with pytest.raises(FabricError, match="Set fabric_admission to warn"):
        wish(version="23.4.0", ipam="whereabouts", admission="enforce", allow_kubernetes=True)
    assert wish(version="23.4.0", ipam="whereabouts", admission="warn", allow_kubernetes=True).objects


def test_a_multus_that_is_there_already_is_used():
    """Such as that of RKE2; the operator still brings its plugins."""
    assert set(policy("26.4.1", "nv-ipam", multus=False)["secondaryNetwork"]) == {"cniPlugins"}
    assert set(policy("26.4.1", "nv-ipam", multus=True)["secondaryNetwork"]) == {"cniPlugins", "multus"}


def test_multus_gets_memory():
    assert policy("26.4.1", "nv-ipam")["secondaryNetwork"]["multus"]["containerResources"] == [
        {"name": "kube-multus", "requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}}
    ]
    assert "containerResources" not in policy("23.7.0", "whereabouts")["secondaryNetwork"]["multus"]


def test_without_rdma_the_plugin_is_left_out():
    assert "rdmaSharedDevicePlugin" not in policy("26.4.1", "nv-ipam", rdma_resources=[])


def test_own_images_and_image_pull_secrets():
    own = {"multus": {"repository": "mirror:5000/nvidia", "image": "multus-cni", "version": "x"}}
    spec = policy("26.4.1", "nv-ipam", images=own, image_pull_secrets=["one"])
    assert spec["secondaryNetwork"]["multus"]["repository"] == "mirror:5000/nvidia"
    assert spec["nvIpam"]["imagePullSecrets"] == ["one"]
    assert spec["nvIpam"]["repository"] == "nvcr.io/nvidia/mellanox"


def test_device_plugin_config():
    config = json.loads(policy("26.4.1", "nv-ipam")["rdmaSharedDevicePlugin"]["config"])
    assert config == {"periodicUpdateInterval": 300, "configList": RESOURCES}
    with pytest.raises(FabricError, match="single quote"):
        network_operator.device_plugin_config([{"resourceName": "a'b"}])


@pytest.mark.parametrize("release", ["26.4", "", "latest", "22.1.0"])
def test_an_unknown_release(release):
    with pytest.raises(FabricError, match="network_operator_version"):
        network_operator.release_features(release)


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        (
            {"version": "1.4.0", "cni_bin_directory": "/x"},
            {"deployCR": False, "nfd": {"enabled": False}, "sriovNetworkOperator": {"enabled": False}},
        ),
        (
            {
                "version": "26.4.1",
                "cni_bin_directory": "/x",
                "cni_network_directory": "/y",
                "image_pull_secrets": ["s"],
            },
            {
                "nfd": {"enabled": False, "deployNodeFeatureRules": False},
                "upgradeCRDs": False,
                "sriovNetworkOperator": {"enabled": False},
                "operator": {"cniBinDirectory": "/x", "cniNetworkDirectory": "/y"},
                "imagePullSecrets": ["s"],
            },
        ),
        (
            {"version": "26.7.1"},
            {
                "nfd": {"enabled": False, "deployNodeFeatureRules": False},
                "upgradeCRDs": False,
                "keepNCP": False,
                "sriovNetworkOperator": {"enabled": False},
            },
        ),
        (
            {"version": "24.1.0", "nfd": True, "values": {"nfd": {"enabled": False}, "operator": {"image": "x"}}},
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
    assert chart_values(**settings) == values


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
    assert upgrade_steps(installed, wanted) == (change, steps)


@given(st.permutations(RELEASES).map(lambda order: sorted(order[:2], key=release_table.parse)))
def test_each_step_of_an_upgrade_is_supported(ends):
    now, wanted = ends
    change, steps = upgrade_steps(now, wanted)
    assert (change == "upgrade") == (len(steps) == 1)
    for step in steps:
        assert upgrade_steps(now, step) == ("upgrade", [step])
        now = step
    assert now == wanted


@pytest.mark.parametrize(("release", "image"), [("1.4.0", "mofed"), ("23.7.0", "mofed"), ("24.1.0", "doca-driver")])
def test_driver_container(release, image):
    assert "ofedDriver" not in policy(release, "whereabouts")
    wanted = {"version": "5.8", "upgradePolicy": {"drain": {"force": True}}}
    driver = policy(release, "whereabouts", ofed_driver=wanted, image_pull_secrets=["one"])["ofedDriver"]
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
        "version": release,
        "nfd": nfd,
        "cni_bin_directory": "/x",
        "cni_network_directory": "/y",
        "image_pull_secrets": ["s"],
    }
    known = set(paths(yaml.safe_load((FOLDER / release / "values.yaml").read_text(encoding="utf-8"))))
    rendered = set(paths(chart_values(**everything)))
    assert rendered - known == set()
    # And the other way: what a chart can be told of these, it is told.
    said = {("operator", "cniBinDirectory"), ("operator", "cniNetworkDirectory"), ("deployCR",)}
    said |= {("upgradeCRDs",), ("keepNCP",)}
    assert said & known == said & rendered
