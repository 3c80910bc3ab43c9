# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which add-ons a cluster has, and on which nodes they are ready."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host.facts import ca_digest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster
from ansible_collections.ipu.fabric.plugins.module_utils._network import cluster_info
from ansible_collections.ipu.fabric.plugins.module_utils._network.cluster_info import addon_facts

Object = t.Dict[str, t.Any]


def daemonset(name: str, image: str) -> Object:
    spec = {"selector": {"matchLabels": {"name": name}}, "template": {"spec": {"containers": [{"image": image}]}}}
    return {"metadata": {"namespace": "ns", "name": name}, "spec": spec}


def pod(node: str, ready: str) -> Object:
    return {"spec": {"nodeName": node}, "status": {"conditions": [{"type": "Ready", "status": ready}]}}


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
        **{"multus": [pod("w1", "True"), pod("w2", "False")], "spider-multus": [pod("w3", "True")]},
    )
    assert addon_facts(api) == {
        "nfd": ["ns/nfd-worker"],
        "multus": ["ns/multus", "ns/spider-multus"],
        "multus_nodes": ["w1", "w3"],
    }


def test_a_bare_cluster_has_none() -> None:
    assert addon_facts(Api()) == {"nfd": [], "multus": [], "multus_nodes": []}


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
    assert ("network-operator" in cluster_info.image_names(deployment(image))) == is_one


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
    monkeypatch.setattr(cluster_info, "connect", lambda _module: api)
    seen = cluster_info.read_cluster(None)
    assert seen["ca"] == ca_digest(pem)
    assert [(one["name"], one["machine_id"]) for one in seen["nodes"]] == [("w1", "0b")]
    del answers[cluster_info.ROOT_CA]
    assert cluster_info.read_cluster(None)["ca"] == ""
