import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube import pod_problems
from ansible_collections.ipu.fabric.plugins.module_utils._kube.pod_problems import Problem
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pod_manifests import pod_state


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
        (
            {
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed"}},
                "lastState": {"terminated": {"exitCode": 2, "message": "no RDMA device\n"}},
                "restartCount": 7,
            },
            "CrashLoopBackOff exit code 2, 7 restarts: no RDMA device",
            True,
        ),
        (
            {
                "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}},
                "lastState": {"terminated": {"exitCode": 2}},
            },
            "ImagePullBackOff no such image",
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
    problem = pod_problems.container_problem({"name": "main", **container})
    assert (problem is None) == (text is None)
    if problem and text:
        assert text in problem.text
        assert problem.fault is fault


def test_pods_without_a_node_may_still_get_one():
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "Insufficient rdma/a"}
    pod = {"metadata": {"name": "p"}, "status": {"conditions": [condition]}}
    assert pod_problems.pod_problems(pod) == [Problem("pod p is on no node yet: Insufficient rdma/a")]


def test_newest_pods():
    def pod(name, time, revision):
        labels = {"pod-template-hash": revision}
        return {"metadata": {"name": name, "creationTimestamp": time, "labels": labels}}

    listed = [
        pod("old", "2026-01-01T00:00:00Z", "a"),
        pod("n1", "2026-01-02T00:00:00Z", "b"),
        pod("n2", "2026-01-02T00:00:01Z", "b"),
    ]
    assert [p["metadata"]["name"] for p in pod_problems.newest_pods(listed)] == ["n1", "n2"]
    assert pod_problems.newest_pods([]) == []
    evicted = {**pod("evicted", "2026-01-03T00:00:00Z", "b"), "status": {"phase": "Failed", "reason": "Evicted"}}
    assert [p["metadata"]["name"] for p in pod_problems.newest_pods([*listed, evicted])] == ["n1", "n2"]


@pytest.mark.parametrize("reason", pod_problems.FAILING)
def test_a_wait_and_a_probe_give_up_for_the_same_reasons(reason):
    container = {"name": "main", "image": "x", "state": {"waiting": {"reason": reason, "message": "why"}}}
    assert pod_problems.container_problem(container).fault
    # A probe asks once: a pull that failed once may be the last one that did.
    state = "waiting" if reason == "ErrImagePull" else "failed"
    assert pod_state({"status": {"containerStatuses": [container]}}).state == state


@pytest.mark.parametrize(
    ("states", "told"),
    [
        (
            [{"state": {"terminated": {"exitCode": 2, "message": "no device"}}, "restartCount": 1}],
            ["exit code 2, 1 re"],
        ),
        ([{"state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 3}}}], ["ends with exit code 3"]),
        ([{"state": {"terminated": {"exitCode": 2}}}, {"state": {"running": {"startedAt": "x"}}}], []),
        ([{"state": {"terminated": {"exitCode": 0}}}], []),
        ([{"state": {"waiting": {"reason": "ContainerCreating"}}}], []),
    ],
)
def test_how_containers_ended_of_which_none_runs(states, told):
    pod = {"status": {"containerStatuses": [{"name": "c", **state} for state in states]}}
    found = pod_problems.failed_containers(pod)
    assert len(found) == len(told)
    assert all(words in problem.text for words, problem in zip(told, found))
