import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import job_status


def job(spec=None, status=None, **metadata):
    made = {"metadata": {"name": "mnist", "namespace": "n", **metadata}, "spec": {"jobInstances": 1, **(spec or {})}}
    return {**made, **({"status": status} if status is not None else {})}


def pod(name="mnist-worker-0", phase="Running", owner=None, containers=(), conditions=()):
    metadata = {"name": name}
    if owner:
        metadata["ownerReferences"] = [{"kind": "IPUJob", "uid": owner}]
    status = {"phase": phase, "containerStatuses": list(containers), "conditions": list(conditions)}
    return {"metadata": metadata, "spec": {}, "status": status}


ALWAYS = {"restartPolicy": {"type": "Always"}}
ON_FAILURE = {"restartPolicy": {"type": "OnFailure", "backOffLimit": 2}}
EXIT_CODE = {"restartPolicy": {"type": "ExitCode", "exitCodes": "1"}}
DONE = {"launcherStatus": "Completed", "completionTime": "t"}
FAILED = {"type": "Failed", "status": "True"}


@pytest.mark.parametrize(
    ("spec", "status", "pods", "phase"),
    [
        ({}, None, [], "Pending"),
        ({}, {"launcherStatus": "Pending"}, [], "Pending"),
        ({}, {"launcherStatus": "Running"}, [], "Running"),
        ({}, DONE, [], "Completed"),
        ({}, {"launcherStatus": "Completed"}, [], "Completed"),
        ({}, {"launcherStatus": "Failed"}, [], "Failed"),
        ({}, {"launcherStatus": "Failed", "completionTime": "t"}, [], "Failed"),
        # An operator that knows no word for failure still says it in a condition or leaves a failed pod.
        ({}, {**DONE, "conditions": [FAILED]}, [], "Failed"),
        ({}, {**DONE, "conditions": [{**FAILED, "status": "False"}]}, [], "Completed"),
        ({}, DONE, [pod(phase="Failed")], "Failed"),
        ({"launcher": {"command": ["x"]}}, DONE, [pod(phase="Failed")], "Completed"),
        ({"launcher": {"command": ["x"]}}, DONE, [pod("mnist-launcher", "Failed")], "Failed"),
        ({}, {"launcherStatus": "Running", "completionTime": "t"}, [], "Completed"),
        # Restarts: only the time of completion says that there is none to come, or the policy.
        (ON_FAILURE, {"launcherStatus": "Failed"}, [], "Restarting"),
        (ON_FAILURE, {"launcherStatus": "Failed", "restartCount": 2}, [], "Failed"),
        ({"restartPolicy": {"type": "Always", "backOffLimit": 1}}, {"launcherStatus": "Failed"}, [], "Restarting"),
        ({"restartPolicy": {"type": "Always", "backOffLimit": 0}}, {"launcherStatus": "Failed"}, [], "Failed"),
        (ON_FAILURE, {"launcherStatus": "Failed", "completionTime": "t"}, [], "Failed"),
        (ON_FAILURE, {"launcherStatus": "Completed"}, [], "Completed"),
        (EXIT_CODE, {"launcherStatus": "Failed", "restartCount": 1}, [], "Restarting"),
        (EXIT_CODE, {"launcherStatus": "Failed", "restartCount": 3}, [], "Failed"),
        (ALWAYS, {"launcherStatus": "Completed"}, [], "Restarting"),
        (ALWAYS, {**DONE, "restartCount": 3}, [], "Completed"),
        ({**ALWAYS, "cleanPodPolicy": "All"}, {"launcherStatus": "Completed"}, [], "Completed"),
    ],
)
def test_phase(spec, status, pods, phase):
    assert job_status.job_phase(job(spec, status), pods) == phase


def test_deleting_goes_before_everything():
    assert job_status.job_phase(job({}, DONE, deletionTimestamp="t"), []) == "Deleting"


@pytest.mark.parametrize(
    ("spec", "status", "ready"),
    [
        ({}, {"launcherStatus": "Running", "desiredReplicas": 1, "currentReplicas": 1}, True),
        ({}, {"launcherStatus": "Pending", "desiredReplicas": 1, "currentReplicas": 1}, False),
        # Right after a scale the status is still of the former number.
        ({"jobInstances": 3}, {"launcherStatus": "Running", "desiredReplicas": 1, "currentReplicas": 1}, False),
        ({"jobInstances": 3}, {"launcherStatus": "Running", "desiredReplicas": 3, "currentReplicas": 2}, False),
        ({"jobInstances": 3}, {"launcherStatus": "Running", "desiredReplicas": 3}, False),
        ({"jobInstances": 1}, {"launcherStatus": "Running", "desiredReplicas": 3, "currentReplicas": 3}, False),
        ({"launcher": {"command": ["x"]}}, {"launcherStatus": "Running", "desiredReplicas": 0}, True),
    ],
)
def test_ready(spec, status, ready):
    found = job_status.job_state(job(spec, status), [])
    assert found.ready == ready
    assert ready or found.awaited or status["launcherStatus"] == "Pending"


@pytest.mark.parametrize(
    ("spec", "workers", "left"),
    [
        ({"jobInstances": 1}, ["worker-0"], []),
        ({"jobInstances": 1}, ["worker-0", "worker-1", "worker-2"], ["mnist-worker-1", "mnist-worker-2"]),
        ({"jobInstances": 2, "workersPerJobInstance": "2"}, ["worker-3", "worker-4"], ["mnist-worker-4"]),
        ({"jobInstances": 1, "workers": {"replicas": 2}}, ["worker-0", "worker-1"], []),
        ({"jobInstances": 1}, ["launcher", "worker-0"], []),
    ],
)
def test_a_smaller_scale_is_done_when_the_other_pods_go(spec, workers, left):
    pods = [pod(f"mnist-{name}") for name in workers]
    running = {"launcherStatus": "Running", "desiredReplicas": spec["jobInstances"]}
    made = job(spec, {**running, "currentReplicas": spec["jobInstances"]})
    found = job_status.job_state(made, pods)
    assert found.ready == (not left)
    assert found.awaited == ([f"the operator has not removed {', '.join(left)} yet"] if left else [])
    for each in pods:
        each["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    assert job_status.job_state(made, pods).ready


NO_IMAGE = {"name": "c", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}
CREATING = {"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}
NO_ROOM = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "Insufficient rdma/a."}


@pytest.mark.parametrize(
    ("status", "pods", "awaited", "faults"),
    [
        (None, [], ["the IPU operator has not reconciled the job yet"], []),
        ({"launcherStatus": "Pending", "lastMessage": "Successfully reconciled IPUJob"}, [], [], []),
        ({"lastMessage": "partition not ready yet!"}, [], ["partition not ready yet!"], []),
        ({}, [pod(conditions=[NO_ROOM])], ["pod mnist-worker-0 is on no node yet: Insufficient rdma/a."], []),
        ({}, [pod(containers=[NO_IMAGE])], [], ["pod mnist-worker-0, container c: ErrImagePull not found"]),
        ({"lastMessage": 'pods "x" is forbidden: exceeded quota'}, [], ['pods "x" is forbidden: exceeded quota'], []),
        ({"lastMessage": 'violates PodSecurity "baseline"'}, [], [], ['violates PodSecurity "baseline"']),
        ({"launcherStatus": "Pending"}, [pod(containers=[CREATING])],
         ["pod mnist-worker-0, container c: ContainerCreating"], []),
        ({"launcherStatus": "Running", "desiredReplicas": 1, "currentReplicas": 1}, [pod()], [], []),
    ],
)  # fmt: skip
def test_what_is_awaited_and_what_is_hopeless(status, pods, awaited, faults):
    found = job_status.job_state(job({}, status if status is None else {"x": 0, **status}), pods)
    assert found.faults == faults
    assert found.awaited == awaited


def test_own_pods():
    names = ["mnist-worker-10", "mnist-worker-2", "mnist-launcher", "mnist-2-worker-0", "mnist-worker-x", "other"]
    mine = job_status.own_pods(job(uid="u"), [pod(name) for name in names])
    assert [each["metadata"]["name"] for each in mine] == ["mnist-launcher", "mnist-worker-2", "mnist-worker-10"]


def test_pods_of_a_job_of_the_same_name_before():
    assert job_status.own_pods(job(uid="new"), [pod(owner="old")]) == []
    assert len(job_status.own_pods(job(uid="new"), [pod(owner="new")])) == 1


def test_view():
    ended = {"name": "c", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    spec = {"jobInstances": 2, "ipusPerJobInstance": "4"}
    status = {
        "launcherStatus": "Failed",
        "lastMessage": "m",
        "startTime": "s",
        "completionTime": "e",
        "restartCount": 3,
    }
    workers = {"workersStatus": {"active": 1, "succeeded": 2, "failed": 3}, "currentReplicas": 1, "restartCount": 3}
    worker = pod(containers=[ended])
    worker["spec"]["nodeName"], worker["status"]["podIP"] = "w1", "10.0.0.1"
    finalizers = ["ipu.finalizers.graphcore.ai"]
    metadata = {"uid": "u", "labels": {"a": "b"}, "creationTimestamp": "c", "finalizers": finalizers}
    assert job_status.job_view(job(spec, {**status, **workers}, **metadata), [worker]) == {
        "name": "mnist",
        "namespace": "n",
        "labels": {"a": "b"},
        "uid": "u",
        "created": "c",
        "started": "s",
        "ended": "e",
        "deleting": False,
        "held": True,
        "ipus": 8,
        "state": "Failed",
        "status": "Failed",
        "instances": 1,
        "instances_wanted": 2,
        "workers_active": 1,
        "workers_succeeded": 2,
        "workers_failed": 3,
        "restarts": 3,
        "message": "m",
        "awaited": [],
        "partitions": ["p-mnist-n-0", "p-mnist-n-1"],
        "pods": [
            {
                "name": "mnist-worker-0",
                "role": "worker",
                "phase": "Running",
                "node": "w1",
                "ip": "10.0.0.1",
                "deleting": False,
                "exits": [{"container": "c", "exit_code": 137, "reason": "OOMKilled"}],
                "problems": [],
            }
        ],
        "spec": spec,
    }


def test_view_of_a_new_job():
    view = job_status.job_view({"metadata": {"name": "mnist", "namespace": "n"}}, [pod(phase="Pending")])
    texts = ("uid", "created", "started", "ended", "status", "message")
    assert {view[key] for key in texts} == {""}
    assert (view["labels"], view["spec"], view["partitions"], view["ipus"], view["restarts"]) == ({}, {}, [], 0, 0)
    assert (view["pods"][0]["node"], view["pods"][0]["ip"], view["pods"][0]["exits"]) == ("", "", [])


def test_view_says_which_pods_go():
    going = pod("worker-1", "Running")
    going["metadata"]["deletionTimestamp"] = "2026-11-23T00:00:00Z"
    view = job_status.job_view({"metadata": {"name": "mnist", "namespace": "n"}}, [pod(), going])
    assert [each["deleting"] for each in view["pods"]] == [False, True]


def test_line_of_progress():
    status = {"launcherStatus": "Pending", "lastMessage": "partition not ready yet!", "workersStatus": {"active": 1}}
    made = job({"jobInstances": 4}, {**status, "currentReplicas": 2, "restartCount": 1})
    line = job_status.progress_line(job_status.job_progress(made, job_status.job_state(made, [])))
    assert line == (
        "Pending, 2 of 4 instances, workers 1 active, 0 succeeded, 0 failed, 1 restarts; "
        "awaited: partition not ready yet!"
    )
