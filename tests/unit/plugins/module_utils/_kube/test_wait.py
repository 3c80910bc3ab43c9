import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube import wait as waiting
from ansible_collections.ipu.fabric.plugins.module_utils._kube.pod_problems import Problem
from ansible_collections.ipu.fabric.plugins.module_utils._kube.wait import Limits, Wait

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
    limits = Limits(**{"what": "it", "next_step": "", "settle": 0, "patience": 20, "timeout": 100, **params})
    wait = Wait(limits, lambda: now[0])

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


@pytest.mark.parametrize(("step", "told"), [("Do this.", "Do this."), ("", "Look.")])
def test_what_cures_just_this_problem_comes_before_what_the_wait_says(step, told):
    wait = Wait(Limits("it", "Look.", timeout=100, patience=0, settle=0))
    with pytest.raises(FabricError) as caught:
        wait.done([SLOW, FAULT, Problem("loop", True, step)])
    assert (caught.value.seen, caught.value.next_step) == ("image; loop", told)


NODES = {"w1": "False", "w2": "True"}
RAIL = {"name": "rail", "namespace": "jobs", "master": "eth1", "mode": "bridge", "mtu": 0, "ipam": {}}


class Memory:
    """Two nodes, a finished job, and no network."""

    present = True

    def items(self, path, **query):
        if path != "/api/v1/nodes":
            return []
        ready = {name: {"type": "Ready", "status": status, "reason": "NoCNI"} for name, status in NODES.items()}
        return [{"metadata": {"name": name}, "status": {"conditions": [one]}} for name, one in ready.items()]

    def read(self, obj):
        done = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}
        return {**obj, "status": done} if obj["kind"] == "Job" else None


def wait_for(monkeypatch, check=False, present=True, cluster=None, **params):
    cluster = cluster or Memory()
    cluster.present = present
    monkeypatch.setattr(waiting, "connect", lambda module: cluster)
    monkeypatch.setattr(waiting.time, "sleep", lambda seconds: None)
    unset = dict.fromkeys(("nodes", "objects", "crds", "accepted", "attachments", "pods", "job"))
    limits = {"what": "", "timeout": 0, "patience": 0, "settle": 0, "sleep": 0, "watch": [], "idle_faults": True}
    return waiting.wait_for(types.SimpleNamespace(params={**unset, **limits, **params}, check_mode=check))


JOB = {"name": "mnist", "namespace": "ml", "kind": "Job", "log_lines": 5}


@pytest.mark.parametrize(
    ("params", "pending"),
    [
        ({"nodes": []}, ["w1: NoCNI"]),
        ({"nodes": ["w2"]}, []),
        ({"attachments": [RAIL]}, ["NetworkAttachmentDefinition jobs/rail does not exist"]),
        (
            {"nodes": ["w1"], "attachments": [RAIL]},
            ["w1: NoCNI", "NetworkAttachmentDefinition jobs/rail does not exist"],
        ),
        ({"job": {**JOB, "kind": "MPIJob"}}, []),
        ({"pods": [{"name": "", "namespace": "jobs", "hosts": []}]}, []),
    ],
)
def test_check_mode_says_what_is_pending_and_does_not_wait(monkeypatch, params, pending):
    assert wait_for(monkeypatch, check=True, **params)["pending"] == pending
    assert wait_for(monkeypatch, check=True, present=False, **params)["pending"] == []


def test_all_that_is_named_is_waited_for(monkeypatch):
    with pytest.raises(FabricError) as error:
        wait_for(monkeypatch, nodes=["w1"], attachments=[RAIL])
    assert error.value.what == "Waiting for nodes and network attachments took too long."
    assert error.value.seen == "w1: NoCNI; NetworkAttachmentDefinition jobs/rail does not exist"
    assert "journalctl -u kubelet" in error.value.next_step
    assert "controller that creates them" in error.value.next_step


def test_a_node_whose_pod_network_has_left_no_files(monkeypatch):
    cluster = Memory()
    seen = (
        "container runtime network not ready: NetworkReady=false message:Network plugin returns error: cni plugin not"
    )
    lost = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": f"{seen} initialized"}
    node = {"metadata": {"name": "w1"}, "status": {"conditions": [lost]}}
    monkeypatch.setattr(cluster, "items", lambda path, **_query: [node] if path == "/api/v1/nodes" else [])
    with pytest.raises(FabricError, match="first the node's kube-flannel-ds or calico-node"):
        wait_for(monkeypatch, nodes=["w1"], cluster=cluster)


def test_the_result_of_a_job(monkeypatch):
    result = wait_for(monkeypatch, nodes=["w2"], job=JOB)
    assert (result["status"]["succeeded"], result["logs"], result["pending"]) == (1, {}, [])
