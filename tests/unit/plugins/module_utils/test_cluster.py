# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which add-ons a cluster has, and on which nodes they are ready."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._cluster import addon_facts
from ansible_collections.ipu.fabric.plugins.module_utils._kube import Cluster

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
