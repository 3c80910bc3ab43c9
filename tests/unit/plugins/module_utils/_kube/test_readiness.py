import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.dns import LOOPED_STEP
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
        (deployment(updatedReplicas=1, readyReplicas=1), "0 of 1 pods are ready"),  # not for minReadySeconds
        (daemonset(), "0 nodes are selected to run it"),
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
        (
            {"state": "ready", "conditions": [NO_GPU]},
            "Reconciled",
            False,
            ["(NoGPUNodes: No GPU node found), expected"],
        ),
        ({"state": "notReady", "conditions": BROKEN}, "Reconciled", False, ["OperandNotReady: states not ready"]),
        ({"state": "notReady"}, "", False, ["status.state=notReady, expected ready"]),
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


@pytest.mark.parametrize(
    ("selector", "fault"),
    [
        ({"network.nvidia.com/operator.mofed.wait": "false"}, False),
        ({"feature.node.kubernetes.io/pci-15b3.present": "true"}, True),
        (
            {"network.nvidia.com/operator.mofed.wait": "false", "feature.node.kubernetes.io/pci-15b3.present": "true"},
            True,
        ),
    ],
)
def test_a_label_that_the_operator_sets_itself_is_waited_for(selector, fault):
    plugin = daemonset(desiredNumberScheduled=0)
    plugin["spec"] = {"template": {"spec": {"nodeSelector": selector}}}
    params = {"objects": [], "crds": [], "accepted": [], "watch": [], "idle_faults": True}
    (problem,) = readiness.ObjectWatch(FakeCluster({}), params).workload_problems(plugin)
    assert problem.fault == fault


def test_a_degraded_component_says_why():
    conditions = [
        {"type": "Available", "status": "False"},
        {"type": "Degraded", "status": "True", "reason": "ResourceValidationError", "message": "IPIP needs BGP"},
    ]
    status = {
        "api_version": "operator.tigera.io/v1", "kind": "TigeraStatus", "name": "calico", "namespace": "", "reason": "",
        "field": "status.conditions[?type=='Degraded'].status | [0]", "value": "False",
    }  # fmt: skip
    params = {"objects": [status], "crds": [], "accepted": [], "watch": [], "idle_faults": True}
    (problem,) = readiness.ObjectWatch(FakeCluster({"conditions": conditions}), params).problems()
    assert "ResourceValidationError: IPIP needs BGP" in problem.text
    conditions[1]["status"] = "False"
    assert readiness.ObjectWatch(FakeCluster({"conditions": conditions}), params).problems() == []


def daemon_pod(on, ready=True, revision="b", **status):
    condition = {"type": "Ready", "status": str(ready), "message": "" if ready else "containers with unready status"}
    return {
        "metadata": {
            "name": f"calico-node-{on}",
            "creationTimestamp": f"2026-01-01T00:00:0{'ab'.index(revision)}Z",
            "labels": {"controller-revision-hash": revision},
        },
        "spec": {"nodeName": on},
        "status": {"phase": "Running", "conditions": [condition], **status},
    }


NO_NETWORK = {"reason": "FailedCreatePodSandBox", "message": 'plugin type="macvlan" failed: no such device', "count": 2}


@pytest.mark.parametrize(
    ("status", "named"),
    [
        ({"phase": "Pending", "containerStatuses": [{"name": "a", "state": {"waiting": {}}}]}, True),
        ({"phase": "Pending"}, True),
        # It has a network by now: what events say is over.
        ({"phase": "Running", "containerStatuses": [{"name": "a", "state": {"running": {}}}]}, False),
        ({"phase": "Pending", "initContainerStatuses": [{"name": "a", "state": {"running": {}}}]}, False),
    ],
)
def test_a_pod_whose_network_is_not_set_up_is_named(status, named):
    pod = daemon_pod("w1", False, **status)
    asked = []

    class Events(NodesCluster):
        def items(self, path, **query):
            if not path.endswith("/events"):
                return super().items(path, **query)
            asked.append((path, query))
            about = {"kind": "Pod", "name": "calico-node-w1"}
            return [
                {**NO_NETWORK, "involvedObject": {**about, "name": "other"}},
                {**NO_NETWORK, "involvedObject": about},
            ]

    params = {"objects": [], "crds": [], "accepted": [], "watch": [], "idle_faults": True}
    cluster = Events(False, [pod], numberAvailable=0)
    found = readiness.ObjectWatch(cluster, params).workload_problems(cluster.daemonset)
    text = 'pod calico-node-w1 on w1: its network could not be set up yet: plugin type="macvlan" failed: no such device'
    assert (readiness.Problem(text) in found) == named
    assert asked == [("/api/v1/namespaces/n/events", {"fieldSelector": "reason=FailedCreatePodSandBox"})] * named


CRASHED = [{"name": "calico-node", "restartCount": 3, "state": {"terminated": {"exitCode": 1}}}]


LOOPS = """.:53
CoreDNS-1.12.0
[FATAL] plugin/loop: Loop (127.0.0.1:42384 -> :53) detected for zone ".", see https://coredns.io/plugins/loop.
"""


class NodesCluster:
    """A DaemonSet, its pods, and two nodes, of which w2 may have died."""

    def __init__(self, dead, pods, **status):
        self.pods = pods
        wanted = {"desiredNumberScheduled": 2, "updatedNumberScheduled": 1, "numberAvailable": 1, **status}
        self.daemonset = daemonset(**wanted)
        conditions = {"w1": "True", "w2": "Unknown" if dead else "True"}
        self.nodes = [
            {"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}]}}
            for name, ready in conditions.items()
        ]

    @property
    def client(self):
        return types.SimpleNamespace(request=lambda *_, **__: types.SimpleNamespace(data=LOOPS.encode()))

    def read(self, _obj):
        return self.daemonset

    def items(self, path, **_labels):
        return self.nodes if path.endswith("/nodes") else self.pods


@pytest.mark.parametrize(
    ("cluster", "texts"),
    [
        (NodesCluster(True, [daemon_pod("w1"), daemon_pod("w2", False)]), []),
        (NodesCluster(True, [daemon_pod("w1"), daemon_pod("w2", False, containerStatuses=CRASHED)]), []),
        (NodesCluster(True, [daemon_pod("w1")]), ["1 of 2 pods are ready"]),
        (NodesCluster(True, [daemon_pod("w1")], observedGeneration=1), ["its controller has not seen"]),
        (
            NodesCluster(True, [daemon_pod("w1", False), daemon_pod("w2", False)], numberAvailable=0),
            ["0 of 2 pods are ready", "calico-node-w1 on w1: containers with unready status"],
        ),
        (
            NodesCluster(True, [daemon_pod("w1", revision="a"), daemon_pod("w2", False)]),
            ["1 of 2 pods are ready"],
        ),
        (
            NodesCluster(False, [daemon_pod("w1"), daemon_pod("w2", False)]),
            ["1 of 2 pods are ready", "calico-node-w2 on w2: containers with unready status"],
        ),
        (
            NodesCluster(False, [daemon_pod("w1"), daemon_pod("w2", False, containerStatuses=CRASHED)]),
            [
                "1 of 2 pods are ready",
                "calico-node-w2, container calico-node ends with exit code 1, 3 restarts",
                "log of calico-node-w2, container calico-node: [FATAL] plugin/loop: Loop (127.0.0.1:42384 -> :53)",
            ],
        ),
    ],
)
def test_a_dead_node_does_not_hold_up_a_daemonset(cluster, texts):
    wanted = {"api_version": "apps/v1", "kind": "DaemonSet", "name": "calico-node", "namespace": "calico-system"}
    params = {"objects": [wanted], "crds": [], "accepted": [], "watch": [], "idle_faults": True}
    found = readiness.ObjectWatch(cluster, params).problems()
    assert [text in problem.text for text, problem in zip(texts, found)] == [True] * len(texts)
    assert len(found) == len(texts)


@pytest.mark.parametrize(
    ("dead", "states", "texts"),
    [
        (True, ["multus"], []),
        (True, ["multus", "nv-ipam"], ["(multus notReady, nv-ipam notReady)"]),  # one of them has another cause
        (False, ["multus"], ["(multus notReady)", "1 of 2 pods are ready", "containers with unready status"]),
    ],
)
def test_a_dead_node_does_not_hold_up_what_its_operator_says_of_its_daemonsets(dead, states, texts):
    """An operator counts pods, also those on a node that has died."""
    cluster = NodesCluster(dead, [daemon_pod("w1"), daemon_pod("w2", False)])
    applied = [{"name": name, "state": "notReady"} for name in states]
    policy = {"metadata": {"name": "policy"}, "status": {"state": "notReady", "appliedStates": applied}}
    items = {"daemonsets": [cluster.daemonset], "deployments": [], "nodes": cluster.nodes, "pods": cluster.pods}
    cluster.read = lambda _obj: policy
    cluster.items = lambda path, **_labels: items.get(path.rpartition("/")[2], [])
    wanted = {
        "api_version": "mellanox.com/v1alpha1", "kind": "NicClusterPolicy", "name": "policy", "namespace": "",
        "field": "status.state", "value": "ready", "reason": "",
    }  # fmt: skip
    params = {"objects": [wanted], "crds": [], "accepted": [], "watch": ["operator"], "idle_faults": False}
    found = readiness.ObjectWatch(cluster, params).problems()
    assert [text in problem.text for text, problem in zip(texts, found)] == [True] * len(texts)
    assert len(found) == len(texts)


@pytest.mark.parametrize("status", [None, {}, {"desiredNumberScheduled": 0, "currentNumberScheduled": 0}])
def test_a_daemonset_that_its_controller_has_not_seen_yet(status):
    cluster = NodesCluster(False, [])
    cluster.daemonset = {**cluster.daemonset, "status": status}
    wanted = {"api_version": "apps/v1", "kind": "DaemonSet", "name": "calico-node", "namespace": "calico-system"}
    params = {"objects": [wanted], "crds": [], "accepted": [], "watch": [], "idle_faults": True}
    (problem,) = readiness.ObjectWatch(cluster, params).problems()
    assert "its controller has not seen the last change" in problem.text


BACKING_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}}
ENDED = {"terminated": {"exitCode": 1, "reason": "Error"}}
TOLD = {"terminated": {"exitCode": 1, "message": "no config"}}
DNS = {"api_version": "apps/v1", "kind": "Deployment", "name": "coredns", "namespace": "kube-system", "required": False}


@pytest.mark.parametrize(
    ("container", "log", "step"),
    [
        ({"state": BACKING_OFF, "lastState": ENDED, "restartCount": 2}, LOOPS, LOOPED_STEP),
        ({"state": ENDED, "restartCount": 4}, LOOPS, LOOPED_STEP),
        ({"state": BACKING_OFF, "lastState": ENDED, "restartCount": 2}, "listen udp :53: address in use\n", ""),
        ({"state": BACKING_OFF, "lastState": ENDED, "restartCount": 2}, "", ""),
        ({"state": BACKING_OFF, "lastState": TOLD, "restartCount": 2}, None, None),
        ({"state": {"running": {}}, "lastState": ENDED, "restartCount": 1}, None, None),
    ],
)
def test_why_coredns_crashes(container, log, step):
    """It tells its log alone, and the kubelet only that it ended."""
    asked = []

    def request(_method, path, query_params, **_rest):
        asked.append((path, dict(query_params)["container"]))
        return types.SimpleNamespace(data=log.encode())

    pod = {"metadata": {"name": "coredns-1"}, "spec": {"nodeName": "w1"}}
    pod["status"] = {"phase": "Running", "containerStatuses": [{"name": "coredns", **container}]}
    cluster = NodesCluster(False, [pod])
    cluster.daemonset = {
        **deployment(2, updatedReplicas=2),
        "metadata": {"name": "coredns", "namespace": "kube-system"},
    }
    watch = readiness.ObjectWatch(ClientOf(cluster, request), {"objects": [DNS], "crds": [], "accepted": []})
    logs = [problem for problem in watch.problems() if problem.text.startswith("log of coredns-1, container coredns: ")]
    assert asked == [("/api/v1/namespaces/kube-system/pods/coredns-1/log", "coredns")] * (log is not None)
    last = (log or "it printed nothing\n").strip().splitlines()[-1]
    assert [(each.text.partition(": ")[2], each.fault, each.step) for each in logs] == [(last, True, step)] * len(asked)


class ClientOf:
    """A cluster that is asked for logs by a client of its own."""

    def __init__(self, cluster, request):
        self.client, self.read, self.items = types.SimpleNamespace(request=request), cluster.read, cluster.items


def test_what_does_not_have_to_be_there():
    class Empty:
        def read(self, _obj):
            return None

    params = {"objects": [DNS], "crds": [], "accepted": []}
    assert readiness.ObjectWatch(Empty(), params).problems() == []
    params["objects"] = [{**DNS, "required": True}]
    assert [each.text for each in readiness.ObjectWatch(Empty(), params).problems()] == [
        "Deployment kube-system/coredns does not exist"
    ]


@pytest.mark.parametrize(
    ("dead", "on", "ready"), [(True, ["w1", "w2"], True), (False, ["w1", "w2"], False), (True, ["w2", "w2"], False)]
)
def test_a_dead_node_does_not_hold_up_a_deployment_that_runs_elsewhere(dead, on, ready):
    cluster = NodesCluster(dead, [daemon_pod(name, name == "w1") for name in on])
    cluster.daemonset = deployment(2, updatedReplicas=2, availableReplicas=1)
    assert (readiness.ObjectWatch(cluster, {}).workload_problems(cluster.daemonset) == []) == ready


PULLING = [{"name": "kube-multus", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]
OLD_POD = daemon_pod("w1", False, "a", phase="Pending", containerStatuses=PULLING)
NEW_POD = daemon_pod("w1", False, "b", phase="Pending", containerStatuses=PULLING)


@pytest.mark.parametrize(
    ("message", "named"), [("2 node(s) had untolerated taint(s)", True), ("Insufficient a", False)]
)
def test_a_pod_finds_no_node_because_nodes_are_short_of_something(message, named):
    """The scheduler counts taints; only the node says that its disk is full."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    homeless = {"metadata": {"name": "p", "labels": {}}, "spec": {}, "status": {"conditions": [condition]}}
    cluster = NodesCluster(False, [homeless], numberAvailable=0)
    cluster.nodes[0]["status"]["conditions"].append({"type": "DiskPressure", "status": "True", "message": "full"})
    workload = {**deployment(updatedReplicas=1), "kind": "StatefulSet"}
    found = readiness.ObjectWatch(cluster, {}).workload_problems(workload)
    short = [problem for problem in found if problem.text == "node w1: DiskPressure: full"]
    assert [problem.fault for problem in short] == [True] * named
    assert all("df -h" in problem.step for problem in short)


GONE = {**NEW_POD, "status": {"phase": "Failed"}}  # evicted


def revision(number, label, digest, owner="own"):
    annotations = {"deployment.kubernetes.io/revision": str(number)}
    metadata = {"annotations": annotations, "labels": {label: digest}, "ownerReferences": [{"uid": owner}]}
    return {"metadata": metadata, "revision": number}


@pytest.mark.parametrize(
    ("pods", "revisions", "generation", "faults"),
    [
        ([OLD_POD], [("a", 1)], 2, 1),
        ([OLD_POD], [("a", 1), ("b", 2)], 2, 0),  # no pod of the new one is there yet
        ([OLD_POD, GONE], [("a", 1), ("b", 10), ("c", 9)], 2, 0),
        ([OLD_POD, NEW_POD], [("b", 2), ("a", 1)], 2, 1),
        ([OLD_POD], [("a", 1)], 3, 0),  # the controller has not seen the change
        ([OLD_POD], [], 2, 1),  # nothing is known of revisions
    ],
)
@pytest.mark.parametrize("kind", ["DaemonSet", "Deployment"])
def test_a_pod_that_is_being_replaced_does_not_end_the_wait(kind, pods, revisions, generation, faults):
    label = readiness.REVISIONS[kind][2]
    digests = [pod["metadata"]["labels"]["controller-revision-hash"] for pod in pods]
    pods = [{**pod, "metadata": {**pod["metadata"], "labels": {label: digest}}} for pod, digest in zip(pods, digests)]
    cluster = NodesCluster(False, pods, numberAvailable=0)
    make = daemonset if kind == "DaemonSet" else deployment
    workload = make(desiredNumberScheduled=1, updatedNumberScheduled=0)
    workload["metadata"] = {**workload["metadata"], "generation": generation, "uid": "own"}
    of_others = revision(99, label, "z", "other")
    items = {
        readiness.REVISIONS[kind][0]: [of_others, *(revision(number, label, digest) for digest, number in revisions)],
        "nodes": cluster.nodes,
        "pods": pods,
    }
    cluster.items = lambda path, **_labels: items.get(path.rpartition("/")[2], [])
    found = readiness.ObjectWatch(cluster, {}).workload_problems(workload)
    assert sum(problem.fault for problem in found) == faults
    assert found


@pytest.mark.parametrize(("available", "faults"), [(1, 1), (0, 0)])
def test_daemonsets_of_an_operator_that_is_replaced_do_not_end_the_wait(available, faults):
    """What was rendered with the former settings is rendered again."""
    operator = {**deployment(updatedReplicas=1, availableReplicas=available), "kind": "Deployment"}
    policy = {"metadata": {"name": "policy"}, "status": {"state": "notReady"}}
    cluster = NodesCluster(False, [OLD_POD], numberAvailable=0)
    items = {"daemonsets": [cluster.daemonset], "nodes": cluster.nodes}
    cluster.read = lambda obj: operator if obj["kind"] == "Deployment" else policy
    cluster.items = lambda path, **labels: (
        [OLD_POD] * (labels.get("labelSelector") != "app=d")
        if path.endswith("/pods")
        else items.get(path.split("/")[-1], [])
    )
    of_operator = {"api_version": "apps/v1", "kind": "Deployment", "name": "d", "namespace": "n", "required": True}
    of_policy = {
        "api_version": "mellanox.com/v1alpha1", "kind": "NicClusterPolicy", "name": "policy", "namespace": "",
        "field": "status.state", "value": "ready", "reason": "", "required": True,
    }  # fmt: skip
    params = {"objects": [of_policy, of_operator], "crds": [], "accepted": [], "watch": ["n"], "idle_faults": False}
    found = readiness.ObjectWatch(cluster, params).problems()
    assert sum(problem.fault for problem in found) == faults
    assert any("ImagePullBackOff" in problem.text for problem in found)
