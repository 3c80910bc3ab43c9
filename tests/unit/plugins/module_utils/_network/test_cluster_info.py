"""Which add-ons a cluster has, and on which nodes they are ready."""

from __future__ import annotations

import base64
import gzip
import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host.cluster import image_names
from ansible_collections.ipu.fabric.plugins.module_utils._host.facts import ca_digest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster
from ansible_collections.ipu.fabric.plugins.module_utils._network import cluster_info
from ansible_collections.ipu.fabric.plugins.module_utils._network.cluster_info import addon_facts

Object = t.Dict[str, t.Any]


def daemonset(name: str, image: str) -> Object:
    spec = {"selector": {"matchLabels": {"name": name}}, "template": {"spec": {"containers": [{"image": image}]}}}
    return {"metadata": {"namespace": "ns", "name": name}, "spec": spec}


def pod(node: str, ready: str, *started: str) -> Object:
    containers = [{"state": {"running": {"startedAt": each}}} for each in started]
    status = {"conditions": [{"type": "Ready", "status": ready}], "containerStatuses": containers}
    return {"spec": {"nodeName": node}, "status": status if started else {"conditions": status["conditions"]}}


class Api(Cluster):
    def __init__(self, *daemonsets: Object, **pods: t.Sequence[Object]) -> None:
        super().__init__(None)
        self.daemonsets, self.pods = daemonsets, pods

    def get(self, path: str, **query: t.Any) -> t.Optional[Object]:
        if path.endswith("/daemonsets"):
            return {"items": list(self.daemonsets)}
        return {"items": self.pods[query["labelSelector"].partition("=")[2]]}


def test_addons() -> None:
    api = Api(
        daemonset("nfd-worker", "registry.k8s.io/nfd/node-feature-discovery:v0.17"),
        daemonset("nfd-topology-updater", "registry.k8s.io/nfd/node-feature-discovery:v0.17"),
        daemonset("multus", "nvcr.io/nvidia/mellanox/multus-cni@sha256:0"),
        daemonset("spider-multus", "ghcr.io/k8snetworkplumbingwg/multus-cni:v4"),
        daemonset("cni-plugins-ds", "nvcr.io/nvidia/mellanox/plugins:v26"),
        daemonset("whereabouts", "ghcr.io/k8snetworkplumbingwg/whereabouts:v0.7.0"),
        **{
            "multus": [pod("w1", "True", "2026-11-26T09:00:00Z", "2026-11-26T10:00:00Z"), pod("w2", "False")],
            "spider-multus": [pod("w3", "True")],
            "whereabouts": [pod("w1", "True", "2026-11-01T00:00:00Z")],
        },
    )
    assert addon_facts(api) == {
        "nfd": ["ns/nfd-worker"],
        "multus": ["ns/multus", "ns/spider-multus"],
        "multus_nodes": ["w1", "w3"],
        "cni_since": {
            "multus": {"w1": "2026-11-26T10:00:00Z", "w3": ""},
            "whereabouts": {"w1": "2026-11-01T00:00:00Z"},
        },
    }


def test_a_bare_cluster_has_none() -> None:
    assert addon_facts(Api()) == {
        "nfd": [],
        "multus": [],
        "multus_nodes": [],
        "cni_since": {"multus": {}, "whereabouts": {}},
    }


def deployment(image, **metadata):
    containers = [{"name": "network-operator", "image": image}]
    names = {"namespace": "nvidia-network-operator", "name": "network-operator"}
    return {"metadata": {**names, **metadata}, "spec": {"template": {"spec": {"containers": containers}}}}


@pytest.mark.parametrize(
    ("image", "metadata", "version", "release"),
    [
        ("nvcr.io/nvidia/cloud-native/network-operator:v26.4.1", {}, "26.4.1", ""),
        ("mirror:5000/nvidia/network-operator@sha256:00", {}, "", ""),
        (
            "mirror:5000/nvidia/network-operator:patched",
            {
                "labels": {"app.kubernetes.io/version": "v1.4.0"},
                "annotations": {"meta.helm.sh/release-name": "network-operator"},
            },
            "1.4.0",
            "network-operator",
        ),
    ],
)
def test_operator_view(image, metadata, version, release):
    view = cluster_info.operator_view(deployment(image, **metadata))
    assert (view["version"], view["release"]) == (version, release)
    assert (view["namespace"], view["name"]) == ("nvidia-network-operator", "network-operator")


@pytest.mark.parametrize(
    ("image", "is_one"),
    [
        ("nvcr.io/nvidia/cloud-native/network-operator:v26.4.1", True),
        ("nvcr.io/nvidia/mellanox/sriov-network-operator:v26.4.1", False),
        ("ghcr.io/mellanox/network-operator-init-container:v0.0.2", False),
    ],
)
def test_a_network_operator_is_known_by_its_image(image, is_one):
    assert ("network-operator" in image_names(deployment(image))) == is_one


@pytest.mark.parametrize(
    ("labels", "annotations", "deleted"),
    [
        ({}, {}, False),
        ({"app.kubernetes.io/managed-by": "Helm"}, {}, True),
        ({"app.kubernetes.io/managed-by": "Helm"}, {"helm.sh/resource-policy": "keep"}, False),
        ({"app.kubernetes.io/managed-by": "flux"}, None, False),
    ],
)
def test_a_policy_that_the_chart_would_take_away(labels, annotations, deleted):
    assert cluster_info.in_chart({"metadata": {"labels": labels, "annotations": annotations}}) == deleted
    assert not cluster_info.in_chart(None)


@pytest.mark.parametrize(
    ("policy", "ipam"),
    [
        (None, ""),
        ({"spec": {"nvIpam": {"image": "x"}, "secondaryNetwork": {}}}, "nv-ipam"),
        ({"spec": {"secondaryNetwork": {"ipamPlugin": {"image": "x"}}}}, "whereabouts"),
        ({"spec": {"secondaryNetwork": {"multus": {"image": "x"}}}}, "whereabouts"),
    ],
)
def test_policy_ipam(policy, ipam):
    assert cluster_info.policy_ipam(policy) == ipam


def test_what_tells_one_cluster_from_another(monkeypatch):
    pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    node = {"metadata": {"name": "w1"}, "status": {"nodeInfo": {"machineID": "0b", "kubeletVersion": "v1.35.4"}}}
    answers = {cluster_info.ROOT_CA: {"data": {"ca.crt": pem}}, "/api/v1/nodes": {"items": [node]}}
    api = Cluster(None)
    monkeypatch.setattr(api, "get", lambda path, **_query: answers.get(path))
    seen = cluster_info.read_cluster(api)
    assert seen["ca"] == ca_digest(pem)
    assert [(one["name"], one["machine_id"]) for one in seen["nodes"]] == [("w1", "0b")]
    del answers[cluster_info.ROOT_CA]
    assert cluster_info.read_cluster(api)["ca"] == ""


OURS = [{"manager": "ipu.fabric", "operation": "Apply"}]
POLICY = {"kind": "NicClusterPolicy", "metadata": {"name": "nic-cluster-policy"}}


def release_secret(labels: t.Mapping[str, str]) -> Object:
    """One revision of a release, as helm keeps it."""
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps({"version": 1}).encode())))
    return {"metadata": {"labels": labels}, "data": {"release": packed.decode()}}


class Answers(Cluster):
    """Answers by path, and with nothing to all else."""

    def __init__(self, **answers: t.Any) -> None:
        super().__init__(None)
        self.answers = {key.replace("__", "/"): value for key, value in answers.items()}

    def get(self, path: str, **query: t.Any) -> t.Optional[Object]:
        found = next((value for key, value in self.answers.items() if path.endswith(key)), None)
        return {"items": found} if isinstance(found, list) else found


@pytest.mark.parametrize(("labels", "own"), [({"ipu.fabric/render": "none"}, True), ({"owner": "helm"}, False)])
def test_whose_operator_it_is(labels: t.Mapping[str, str], own: bool) -> None:
    names = {"meta.helm.sh/release-name": "mine", "meta.helm.sh/release-namespace": "nvidia-network-operator"}
    cluster = Answers(
        deployments=[deployment("nvcr.io/nvidia/cloud-native/network-operator:v26.4.1", annotations=names)],
        **{"nvidia-network-operator__secrets": [release_secret(labels)]},
    )
    assert cluster_info.read_cluster(cluster)["own"] == (["nvidia-network-operator/network-operator"] if own else [])


def test_an_operator_without_helm_is_somebody_elses() -> None:
    cluster = Answers(deployments=[deployment("ghcr.io/mellanox/network-operator:v26.4.1")])
    assert cluster_info.read_cluster(cluster)["own"] == []


@pytest.mark.parametrize(
    ("cluster", "nodes", "has"),
    [
        ({"rdmaSharedDevicePlugin": {"image": "a"}}, [], "cluster"),
        ({"nvIpam": {"image": "a"}}, [{"rdmaSharedDevicePlugin": {"image": "a"}}], "node"),
        ({"nvIpam": {"image": "a"}}, [{"ofedDriver": {"image": "a"}}], ""),
        (None, [], ""),
    ],
)
def test_which_policy_has_the_device_plugin(cluster: t.Any, nodes: t.Any, has: str) -> None:
    managed = {"managedFields": [{"manager": "ipu.fabric", "operation": "Apply"}]}
    policy = cluster and {"metadata": managed, "spec": cluster}
    assert cluster_info.device_plugin(policy, [{"metadata": managed, "spec": spec} for spec in nodes]) == has
    if policy:
        assert cluster_info.device_plugin({**policy, "metadata": {}}, []) == ""


@pytest.mark.parametrize(("managers", "own"), [(OURS, ["ns/whereabouts"]), ([], [])])
def test_what_the_policy_has_installed_is_whose_the_policy_is(managers: t.Any, own: t.List[str]) -> None:
    plugin = daemonset("whereabouts", "ghcr.io/k8snetworkplumbingwg/whereabouts:v0.9.2")
    plugin["metadata"]["ownerReferences"] = [{"kind": "NicClusterPolicy", "name": "nic-cluster-policy"}]
    policy = {"metadata": {**POLICY["metadata"], "managedFields": managers}, "spec": {}}
    cluster = Answers(daemonsets=[plugin], **{"nic-cluster-policy": policy})
    found = cluster_info.read_cluster(cluster)
    assert (found["whereabouts"], found["own"]) == (["ns/whereabouts"], own)


def test_networks_of_others_that_take_from_whereabouts() -> None:
    def attachment(name: str, ipam: str, owner: str = "") -> Object:
        metadata: Object = {"namespace": "jobs", "name": name}
        if owner:
            metadata["ownerReferences"] = [{"kind": "MacvlanNetwork", "name": owner}]
        return {"metadata": metadata, "spec": {"config": json.dumps({"ipam": {"type": ipam}})}}

    networks = [{"metadata": {"name": "ours", "managedFields": OURS}, "spec": {}}]
    networks.append({"metadata": {"name": "theirs", "managedFields": []}, "spec": {}})
    nads = [attachment("ours", "whereabouts", "ours"), attachment("theirs", "whereabouts", "theirs")]
    nads += [attachment("alone", "whereabouts"), attachment("static", "static")]
    found = cluster_info.read_cluster(Answers(macvlannetworks=networks, **{"network-attachment-definitions": nads}))
    assert found["whereabouts_networks"] == ["jobs/theirs", "jobs/alone"]


def test_what_a_control_plane_runs() -> None:
    def pod(component: str, image: str, node: str, mirror: bool = True) -> Object:
        annotations = {"kubernetes.io/config.mirror": "1f"} if mirror else {}
        metadata = {"name": f"{component}-{node}", "labels": {"component": component}, "annotations": annotations}
        return {"metadata": metadata, "spec": {"nodeName": node, "containers": [{"image": image}]}}

    pods = [pod("kube-apiserver", "mirror.site:5000/k8s/kube-apiserver:v1.36.3@sha256:1f", "cp1")]
    pods += [pod("etcd", "registry.k8s.io/etcd:3.6.6-0", "cp1"), pod("kube-apiserver", "a:5000/b", "cp2")]
    pods.append(pod("etcd", "registry.k8s.io/etcd:9.9.9-0", "cp2", mirror=False))  # anybody may make a pod like it
    nodes = [{"metadata": {"name": name}} for name in ("cp1", "cp2", "w1")]
    found = cluster_info.read_cluster(Answers(nodes=nodes, **{"kube-system__pods": pods}))
    assert [node["components"] for node in found["nodes"]] == [
        {"kube-apiserver": "1.36.3", "etcd": "3.6.6-0"},
        {"kube-apiserver": ""},
        {},
    ]


def test_labels_that_this_collection_has_set() -> None:
    fields = {"f:metadata": {"f:labels": {"f:feature.node.kubernetes.io/pci-15b3.present": {}}}}
    mine = {"manager": "ipu.fabric", "operation": "Update", "fieldsV1": fields}
    nodes = [{"metadata": {"name": "w1", "managedFields": [mine]}, "status": {}}, {"metadata": {"name": "w2"}}]
    found = cluster_info.read_cluster(Answers(nodes=nodes))
    assert [node["own_labels"] for node in found["nodes"]] == [["feature.node.kubernetes.io/pci-15b3.present"], []]
