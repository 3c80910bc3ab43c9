# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which the network operator's objects go, on a cluster in memory with a garbage collector."""

from __future__ import annotations

import json
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster, Resource
from ansible_collections.ipu.fabric.plugins.module_utils._network import operator_removal

KEY = "k8s.v1.cni.cncf.io/networks"
OPERATOR = "nvidia-network-operator"
KINDS = {
    "MacvlanNetwork": Resource("/apis/mellanox.com/v1alpha1", "macvlannetworks", False),
    "NicClusterPolicy": Resource("/apis/mellanox.com/v1alpha1", "nicclusterpolicies", False),
    "IPPool": Resource("/apis/nv-ipam.nvidia.com/v1alpha1", "ippools", True),
    "NetworkAttachmentDefinition": Resource("/apis/k8s.cni.cncf.io/v1", "network-attachment-definitions", True),
    "DaemonSet": Resource("/apis/apps/v1", "daemonsets", True),
    "Deployment": Resource("/apis/apps/v1", "deployments", True),
    "Pod": Resource("/api/v1", "pods", True),
}


class Memory(Cluster):
    """Objects by path. Deleting one takes those that it owns along, some looks later."""

    def __init__(self, *objects, lag=0):
        super().__init__(None)
        self.objects = {self.path_of(obj): obj for obj in objects}
        self.deleted, self.doomed, self.lag = [], {}, lag

    def resource(self, api_version, kind):
        return KINDS.get(kind)

    def items(self, path, **query):
        for name, looks in list(self.doomed.items()):
            self.doomed[name] = looks - 1
            if looks <= 0:
                self.objects.pop(name, None)
        plural = path.rpartition("/")[2]
        return [obj for obj in self.objects.values() if KINDS[obj["kind"]].plural == plural]

    def delete(self, path):
        self.deleted.append(self.objects[path]["kind"])
        self.doom(path)
        return True

    def doom(self, path):
        kind, name = self.objects[path]["kind"], self.objects[path]["metadata"]["name"]
        self.doomed[path] = self.lag
        for other, obj in self.objects.items():
            owners = obj["metadata"].get("ownerReferences") or []
            if any((owner["kind"], owner["name"]) == (kind, name) for owner in owners):
                self.doom(other)


def obj(kind, name, namespace="", owner=None, **more):
    api = KINDS[kind].prefix.replace("/apis/", "").replace("/api/", "")
    metadata = {"name": name, "uid": f"{kind}-{name}", **more.pop("metadata", {})}
    if namespace:
        metadata["namespace"] = namespace
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1]}]
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def pod(name, namespace="default", owner=None, labels=None, **annotations):
    return obj("Pod", name, namespace, owner, metadata={"annotations": annotations, "labels": labels or {}})


SERVED = [
    obj("NicClusterPolicy", "nic-cluster-policy"),
    obj("MacvlanNetwork", "rdma-net"),
    obj("NetworkAttachmentDefinition", "rdma-net", "default", ("MacvlanNetwork", "rdma-net")),
    obj("NetworkAttachmentDefinition", "foreign", "jobs"),
    obj("IPPool", "rdma-net", OPERATOR),
    obj(
        "DaemonSet",
        "kube-multus-ds",
        OPERATOR,
        ("NicClusterPolicy", "nic-cluster-policy"),
        spec={"selector": {"matchLabels": {"name": "multus"}}},
    ),
    pod("kube-multus-ds-x", OPERATOR, ("DaemonSet", "kube-multus-ds"), {"name": "multus"}),
    pod("operator", OPERATOR),
    pod("stranger", "jobs", **{KEY: "foreign"}),
]


def remove(cluster, monkeypatch, check=False, force=False, timeout=5):
    monkeypatch.setattr(operator_removal, "connect", lambda module: cluster)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    params = {"force": force, "timeout": timeout}
    return operator_removal.remove_networks(types.SimpleNamespace(params=params, check_mode=check))


@pytest.mark.parametrize("lag", [0, 3])
def test_each_is_gone_before_the_next_goes(monkeypatch, lag):
    cluster = Memory(*SERVED, lag=lag)
    result = remove(cluster, monkeypatch)
    assert cluster.deleted == ["MacvlanNetwork", "IPPool", "NicClusterPolicy"]
    assert result["objects"] == [
        "MacvlanNetwork rdma-net",
        f"IPPool {OPERATOR}/rdma-net",
        "NicClusterPolicy nic-cluster-policy",
    ]
    assert result["attachments"] == ["jobs/foreign"]
    left = {path.rpartition("/")[2] for path in cluster.objects}
    assert left == {"foreign", "operator", "stranger"}
    assert not remove(cluster, monkeypatch)["changed"]


def test_check_mode_changes_nothing(monkeypatch):
    cluster = Memory(*SERVED)
    result = remove(cluster, monkeypatch, check=True)
    assert result["changed"]
    assert len(result["objects"]) == 3
    assert cluster.deleted == []


@pytest.mark.parametrize("check", [True, False])
def test_pods_that_use_a_network_keep_it(monkeypatch, check):
    user = pod("worker", "jobs", **{KEY: json.dumps([{"name": "rdma-net", "namespace": "default"}])})
    cluster = Memory(*SERVED, user)
    with pytest.raises(FabricError, match="1 pods have an address on them: jobs/worker"):
        remove(cluster, monkeypatch, check=check)
    assert cluster.deleted == []


def test_pods_go_first_when_forced(monkeypatch):
    cluster = Memory(*SERVED, pod("worker", **{KEY: "rdma-net"}), lag=2)
    assert remove(cluster, monkeypatch, force=True)["pods"] == ["default/worker"]
    assert cluster.deleted[:2] == ["Pod", "MacvlanNetwork"]


def test_what_does_not_go_is_named(monkeypatch):
    cluster = Memory(*SERVED, lag=10**6)
    with pytest.raises(FabricError, match="MacvlanNetwork rdma-net still exists; NetworkAttachmentDefinition default/"):
        remove(cluster, monkeypatch, timeout=0)
    assert cluster.deleted == ["MacvlanNetwork"]


def test_a_cluster_without_the_operator(monkeypatch):
    monkeypatch.setattr(Memory, "resource", lambda *unused: None)
    assert not remove(Memory(), monkeypatch)["changed"]
