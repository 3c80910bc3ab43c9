# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube import readiness


def deployment(replicas=1, generation=2, **status):
    return {
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "n", "generation": generation},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "d"}}},
        "status": {"observedGeneration": 2, **status},
    }


def daemonset(**status):
    return {**deployment(**status), "kind": "DaemonSet", "spec": {}}


@pytest.mark.parametrize(
    ("workload", "reason"),
    [
        (deployment(updatedReplicas=1, replicas=1, availableReplicas=1), ""),
        (deployment(0), ""),
        (deployment(generation=3, updatedReplicas=1, availableReplicas=1), "its controller has not seen"),
        (deployment(2, updatedReplicas=2, availableReplicas=1), "1 of 2 pods are ready"),
        (daemonset(desiredNumberScheduled=2, updatedNumberScheduled=2, numberAvailable=2), ""),
        (daemonset(desiredNumberScheduled=2, updatedNumberScheduled=1, numberAvailable=2), "1 of 2 pods are ready"),
        (daemonset(), "0 nodes are to run it"),
    ],
)
def test_rollout_pending(workload, reason):
    found = readiness.rollout_pending(workload)
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


def test_old_pods_that_are_still_there():
    workload = deployment(updatedReplicas=1, availableReplicas=1)
    workload["status"]["replicas"] = 2
    assert readiness.rollout_pending(workload) == "1 old pods are still there"


def node(name="w1", labels=None, taints=None):
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {"taints": taints or []}}


CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("pod", "nodes", "reason"),
    [
        ({"nodeSelector": {"pci-15b3": "true"}}, [node()], "no node has the label pci-15b3=true"),
        (
            {},
            [node(taints=[CONTROL_PLANE])],
            "it does not tolerate node-role.kubernetes.io/control-plane:NoSchedule on w1",
        ),
        (
            {"tolerations": [{"key": CONTROL_PLANE["key"], "operator": "Exists"}], "affinity": {"nodeAffinity": {}}},
            [node(taints=[CONTROL_PLANE])],
            "no node matches its node affinity",
        ),
        (
            {"tolerations": [{"operator": "Exists"}]},
            [node(taints=[CONTROL_PLANE])],
            "no node matches its node selector",
        ),
        (
            {"tolerations": [{"key": "x", "value": "y", "effect": "NoExecute"}]},
            [node(taints=[{"key": "x", "value": "y", "effect": "NoSchedule"}])],
            "it does not tolerate x:NoSchedule",
        ),
    ],
)
def test_no_node_reason(pod, nodes, reason):
    assert reason in readiness.no_node_reason({"spec": {"template": {"spec": pod}}}, nodes)


READY = {"type": "Ready", "status": "True", "reason": "Reconciled", "message": "all resources"}
NO_GPU = {**READY, "reason": "NoGPUNodes", "message": "No GPU node found"}
BROKEN = [
    {"type": "Ready", "status": "False", "reason": "Error"},
    {"type": "Error", "status": "True", "reason": "OperandNotReady", "message": "states not ready: [state-driver]"},
]
IDLE = {"metadata": {"name": "mig", "namespace": "gpu"}, "spec": {"template": {"spec": {"nodeSelector": {"mig": "1"}}}}}


class FakeCluster:
    """One ClusterPolicy, and one DaemonSet that no node is to run."""

    def __init__(self, status):
        self.status = status

    def read(self, _obj):
        return {"metadata": {"name": "cluster-policy"}, "status": self.status}

    def items(self, path):
        return [IDLE] if path.endswith("/daemonsets") else []


@pytest.mark.parametrize(
    ("status", "wanted", "idle_faults", "texts"),
    [
        ({"state": "ready", "conditions": [READY]}, "Reconciled", True, []),
        ({"state": "ready", "conditions": [NO_GPU]}, "", True, []),
        ({"state": "ready"}, "", True, []),
        ({"state": "ready", "conditions": [NO_GPU]}, "Reconciled", False, ["(NoGPUNodes: No GPU node found), wanted"]),
        ({"state": "notReady", "conditions": BROKEN}, "Reconciled", False, ["OperandNotReady: states not ready"]),
        ({"state": "notReady"}, "", False, ["status.state=notReady, wanted is ready"]),
        ({"state": "notReady"}, "", True, ["status.state=notReady", "no node has the label mig=1"]),
        (
            {"state": "notReady", "reason": "r", "appliedStates": [{"name": "ofed", "state": "notReady"}]},
            "",
            False,
            ["(ofed notReady, r)"],
        ),
    ],
)
def test_what_a_custom_resource_says(status, wanted, idle_faults, texts):
    policy = {
        "api_version": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "cluster-policy", "namespace": "",
        "field": "status.state", "value": "ready", "reason": wanted,
    }  # fmt: skip
    params = {"objects": [policy], "crds": [], "accepted": [], "watch": ["gpu"], "idle_faults": idle_faults}
    found = readiness.ObjectWatch(FakeCluster(status), params).problems()
    assert len(found) == len(texts)
    assert all(text in problem.text for text, problem in zip(texts, found))
