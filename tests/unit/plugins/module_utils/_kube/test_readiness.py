# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube import readiness
from ansible_collections.ipu.fabric.plugins.module_utils._kube.readiness import Problem


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


@pytest.mark.parametrize(
    ("container", "text", "fault"),
    [
        ({"state": {"running": {}}}, None, False),
        ({"state": {"waiting": {"reason": "ContainerCreating"}}}, None, False),
        (
            {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}},
            "ImagePullBackOff no such",
            True,
        ),
        (
            {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 2}}},
            "CrashLoopBackOff exit code 2",
            True,
        ),
        ({"state": {"terminated": {"exitCode": 0}}, "restartCount": 9}, None, False),
        ({"state": {"terminated": {"exitCode": 1}}, "restartCount": 1}, None, False),
        (
            {"state": {"terminated": {"exitCode": 1, "message": "no RDMA"}}, "restartCount": 3},
            "ends with exit code 1, 3 restarts: no RDMA",
            True,
        ),
        (
            {"state": {"waiting": {"reason": "CreateContainerError", "message": "not a shared mount"}}},
            "not a shared",
            True,
        ),
    ],
)
def test_container_problem(container, text, fault):
    problem = readiness.container_problem({"name": "main", **container})
    assert (problem is None) == (text is None)
    if problem and text:
        assert text in problem.text
        assert problem.fault is fault


def test_pods_without_a_node_may_still_get_one():
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "Insufficient rdma/a"}
    pod = {"metadata": {"name": "p"}, "status": {"conditions": [condition]}}
    assert readiness.pod_problems(pod) == [Problem("pod p is on no node yet: Insufficient rdma/a")]


def test_newest_pods():
    def pod(name, time, revision):
        labels = {"pod-template-hash": revision}
        return {"metadata": {"name": name, "creationTimestamp": time, "labels": labels}}

    pods = [
        pod("old", "2026-01-01T00:00:00Z", "a"),
        pod("n1", "2026-01-02T00:00:00Z", "b"),
        pod("n2", "2026-01-02T00:00:01Z", "b"),
    ]
    assert [p["metadata"]["name"] for p in readiness.newest_pods(pods)] == ["n1", "n2"]
    assert readiness.newest_pods([]) == []


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
    found = readiness.Readiness(FakeCluster(status), params).problems()
    assert len(found) == len(texts)
    assert all(text in problem.text for text, problem in zip(texts, found))


FAULT, SLOW = Problem("image", True), Problem("starting")


@pytest.mark.parametrize(
    ("looks", "params", "ending"),
    [
        ([[]], {}, True),
        ([[SLOW], []], {}, True),
        ([[], []], {"settle": 2}, False),
        ([[], [], []], {"settle": 2}, True),
        ([[], [SLOW], []], {"settle": 2}, False),
        ([[SLOW]] * 11, {"timeout": 10}, "took too long.*starting"),
        ([[FAULT]] * 6, {"patience": 5}, "stopped early.*image"),
        ([[FAULT]] * 5, {"patience": 5}, False),
        ([[FAULT], [SLOW], [FAULT], [FAULT]], {"patience": 3}, False),
    ],
)
def test_wait(looks, params, ending):
    now = [0.0]
    wait = readiness.Wait({"settle": 0, "patience": 20, "timeout": 100, "what": "it", **params}, lambda: now[0])

    def watch():
        done = False
        for problems in looks:
            done = wait.done(problems)
            now[0] += 1
        return done

    if isinstance(ending, str):
        with pytest.raises(FabricError, match=ending):
            watch()
    else:
        assert watch() is ending
