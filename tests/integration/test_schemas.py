"""What the roles render, checked against the real CRDs of every release."""

from __future__ import annotations

import copy
import itertools
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._component import macvlan, network_operator, whereabouts
from ansible_collections.ipu.fabric.plugins.module_utils._component.ipu_operator import PROBE
from ansible_collections.ipu.fabric.plugins.module_utils._component.network_operator import (
    nic_cluster_policy,
    nic_node_policy,
    release_features,
)
from ansible_collections.ipu.fabric.plugins.module_utils._network.macvlan_objects import network_object
from ansible_collections.ipu.fabric.plugins.module_utils._network.releases import OTHER_TYPES, parse
from ansible_collections.ipu.fabric.tests.integration.api_server import ModuleFailedError, Modules, crds
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import SCHEMAS

FOLDER = SCHEMAS / "network-operator"
RELEASES = sorted((p.name for p in FOLDER.glob("*")), key=lambda v: tuple(map(int, v.split(".")))) or ["none"]
RESOURCES = [
    {
        "resourceName": "rdma_shared_device_a",
        "resourcePrefix": "rdma",
        "rdmaHcaMax": 63,
        "selectors": {"ifNames": ["ens1f0"]},
    }
]
TOLERATIONS = [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}]
AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "fabric", "operator": "In", "values": ["yes"]}]}]
    }
}
POOL = {
    "name": "rdma-net",
    "subnet": "10.5.0.0/24",
    "perNodeBlockSize": 16,
    "gateway": "10.5.0.1",
    "exclusions": [{"startIP": "10.5.0.1", "endIP": "10.5.0.127"}],
}


IPAMS = {
    "whereabouts": {
        "type": "whereabouts",
        "range": "10.5.0.0/24",
        "range_start": "10.5.0.128",
        "exclude": ["10.5.0.200/32"],
        "kubernetes": {"kubeconfig": "/etc/cni/net.d/whereabouts.d/whereabouts.kubeconfig"},
    },
    "nv-ipam": {"type": "nv-ipam", "poolName": "rdma-net"},
}
NAMES = {"name": "rdma-net", "namespace": "default"}
NETWORK = {**NAMES, "master": "", "mode": "", "mtu": 0, "ipam": IPAMS["nv-ipam"]}
OLD = [each for each in RELEASES if parse(each)[:2] < OTHER_TYPES]


def policies(release: str) -> t.Iterator[t.Dict[str, t.Any]]:
    """A policy of every kind that a release can have."""
    can = release_features(release)
    driver = {"version": "24.10-0.7.0.0-0", "env": [{"name": "UNLOAD_STORAGE_MODULES", "value": "true"}]}
    for ipam in ["whereabouts"] + ["nv-ipam"] * can["nv_ipam_exclusions"]:
        for resources in (RESOURCES, []):
            settings = {"version": release, "ipam": ipam, "rdma_resources": resources, "tolerations": TOLERATIONS}
            more = {"node_affinity": AFFINITY, "image_pull_secrets": ["registry"], "ofed_driver": driver}
            for given in (settings, {**settings, **more}):
                yield nic_cluster_policy(defaults("network_operator", **given))
                if can["node_policies"] and resources:
                    group = {"name": "fabric-0a1b2c3d", "nodes": ["w1"], "resources": resources}
                    yield nic_node_policy(defaults("network_operator", **given), group)


def install(run: Modules, release: str) -> t.Set[str]:
    definitions = crds(*(path for path in sorted((FOLDER / release).glob("*.yaml")) if "_" in path.name))
    run("kube_apply", objects=definitions, validation="Warn")
    return {definition["metadata"]["name"] for definition in definitions}


@pytest.mark.usefixtures("schemas")
@pytest.mark.parametrize("release", RELEASES)
def test_network_operator(run: Modules, release: str) -> None:
    names = install(run, release)
    for policy in policies(release):
        run("kube_apply", objects=[policy])
    made = [
        network_object({**NAMES, "master": "ens1f0", "mode": mode, "mtu": 1500, "ipam": ipam})
        for ipam, mode in itertools.product(IPAMS.values(), ("bridge", "private", "vepa", "passthru"))
    ]
    for each in made:
        run("kube_apply", objects=[each])
    run("kube_apply", objects=made[:1], state="absent")
    network = {**NAMES, "pool": POOL}
    if "ippools.nv-ipam.nvidia.com" in names and release_features(release)["nv_ipam_exclusions"]:
        settings = defaults("macvlan", networks=[network], pool_namespace="default")
        pools = macvlan.decide(settings, macvlan.Seen()).objects
        run("kube_apply", objects=pools)
        run("kube_apply", objects=pools, state="absent")
    run("kube_apply", objects=[policy], state="absent")


TYPES = [
    {"cni": "ipoib", "master": "ibs1f0"},
    {"cni": "host-device", "resource": "nvidia.com/host_device_a"},
    {"cni": "sriov", "resource": "nvidia.com/sriov_a"},
    {"cni": "ib-sriov", "resource": "nvidia.com/sriov_b"},
]
DEVICES = {
    "device_resources": [
        {
            "resourceName": "host_device_a",
            "resourcePrefix": "nvidia.com",
            "selectors": {"pciAddresses": ["0000:81:00.0"], "isRdma": True},
        }
    ],
    "sriov_policies": [
        {"name": name, "resource": "sriov_a", "pci": ["0000:81:00.0"], "vfs": 8, "mtu": mtu, "link_layer": layer}
        for name, layer, mtu in (("rail-0", "Ethernet", 9000), ("rail-1", "InfiniBand", 0))
    ],
    "ipoib": True,
}


@pytest.mark.usefixtures("schemas")
@pytest.mark.parametrize("release", [each for each in RELEASES if each not in OLD])
def test_networks_of_other_types(run: Modules, release: str) -> None:
    """Each kind, strictly; that of the SR-IOV operator by the definitions of the one release that has some here."""
    install(run, release)
    operator = sorted((SCHEMAS / "sriov-network-operator" / "26.7.0").glob("*sriovnetwork.openshift.io_*.yaml"))
    run("kube_apply", objects=crds(*operator), validation="Warn")
    settings = defaults("network_operator", version=release, namespace="default", **DEVICES)
    asked = network_operator.decide(settings, network_operator.Seen()).objects
    made = [network_object({**NETWORK, **each}, "default") for each in TYPES]
    assert run("kube_apply", objects=[*asked, *made])["changed"]
    assert not run("kube_apply", objects=[*asked, *made])["changed"]
    run("kube_apply", objects=[*made, *asked], state="absent")


@pytest.mark.usefixtures("schemas")
@pytest.mark.parametrize("release", RELEASES)
def test_a_typo_in_a_policy_is_refused(run: Modules, release: str) -> None:
    install(run, release)
    wrong = copy.deepcopy(next(policies(release)))
    wrong["spec"]["secondaryNetwork"]["multus"]["imagePullSecret"] = []
    with pytest.raises(ModuleFailedError, match="imagePullSecret: field not declared"):
        run("kube_apply", check=True, objects=[wrong])


@pytest.mark.usefixtures("schemas")
@pytest.mark.parametrize("release", sorted(path.name for path in (SCHEMAS / "whereabouts").glob("*")) or ["none"])
def test_whereabouts(run: Modules, release: str) -> None:
    definitions = crds(*sorted((SCHEMAS / "whereabouts" / release).glob("*.yaml")))
    run("kube_apply", objects=definitions, validation="Warn")
    names = {definition["metadata"]["name"] for definition in definitions}
    wish = whereabouts.decide(defaults("whereabouts", state="absent"), whereabouts.Seen())
    assert {remnant["metadata"]["name"] for remnant in wish.remnants} == names
    assert not run("kube_wait", crds=wish.crds, timeout=5)["pending"]
    run("kube_apply", objects=wish.remnants, state="absent")


@pytest.mark.usefixtures("schemas")
def test_ipu_job(run: Modules) -> None:
    definition = SCHEMAS / "ipu-operator" / "1.2.0" / "graphcore.ai_ipujobs.yaml"
    run("kube_apply", objects=crds(definition), validation="Warn")
    assert not run("kube_wait", accepted=[PROBE], timeout=5)["pending"]
    run("kube_apply", objects=[PROBE])
    run("kube_apply", objects=[PROBE], state="absent")
    typo = {**PROBE, "spec": {**PROBE["spec"], "workerPerJobInstance": "1"}}
    with pytest.raises(ModuleFailedError, match=r'unknown field "spec.workerPerJobInstance"'):
        run("kube_wait", accepted=[typo], timeout=1)
