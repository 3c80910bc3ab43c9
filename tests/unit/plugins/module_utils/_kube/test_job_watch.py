import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube import job_watch

PARAMS = {"name": "mnist", "namespace": "ml", "kind": "Job", "log_lines": 5}


def job(*conditions, **status):
    listed = [dict(zip(("type", "status", "reason", "message"), one)) for one in conditions]
    return {"kind": "Job", "metadata": {"name": "mnist", "namespace": "ml"}, "status": {"conditions": listed, **status}}


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (job(), None),
        (job(("Suspended", "True")), None),
        (job(("Failed", "False")), None),
        (job(("Complete", "True")), (True, "")),
        (job(("Created", "True"), ("Succeeded", "True", "MPIJobSucceeded", "done")), (True, "MPIJobSucceeded: done")),
        (
            job(("FailureTarget", "True"), ("Failed", "True", "BackoffLimitExceeded", "reached")),
            (False, "BackoffLimitExceeded: reached"),
        ),
    ],
)
def test_ended(found, verdict):
    assert job_watch.ended(found) == verdict


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (job(), "no pod yet"),
        (job(active=2, failed=1), "2 active, 1 failed"),
        (job(replicaStatuses={"Launcher": {"active": 1}, "Worker": {"active": 4}}), "1 active"),
        (job(replicaStatuses={"Launcher": {}}), "no pod yet"),
    ],
)
def test_progress(found, said):
    assert job_watch.progress(found) == f"Job ml/mnist goes on: {said}"


def pod(name, created, phase="Succeeded", containers=(), inits=()):
    return {
        "metadata": {"name": name, "creationTimestamp": created},
        "status": {"phase": phase, "containerStatuses": list(containers), "initContainerStatuses": list(inits)},
    }


ROLES = ("launcher", "worker")
DONE, WAITS = {"terminated": {"exitCode": 1}}, {"waiting": {"reason": "PodInitializing"}}


def test_failed_pods_tell_first():
    pods = [pod("a", "1", "Failed"), pod("b", "3"), pod("c", "2", "Failed")]
    assert [p["metadata"]["name"] for p in job_watch.sort_by_failure(pods)] == ["c", "a", "b"]


def test_only_containers_that_started_have_logs():
    found = pod("a", "1", containers=[{"name": "main", "state": WAITS}], inits=[{"name": "memlock", "state": DONE}])
    assert job_watch.containers_with_logs(found) == ["memlock"]


class Cluster:
    """Answers from memory."""

    def __init__(self, found, pods=(), events=()):
        self.found, self.pods, self.events, self.asked = found, list(pods), list(events), []
        self.client = types.SimpleNamespace(request=self.request)

    def read(self, obj):
        return self.found

    def items(self, path, **query):
        self.asked.append((path, query))
        return self.events if path.endswith("/events") else self.pods

    def request(self, verb, path, query_params, **_rest):
        self.asked.append((path, dict(query_params)))
        return types.SimpleNamespace(data=b"ulimit \xff too low\n")


def watch(cluster, **params):
    return job_watch.JobWatch(cluster, {**PARAMS, **params})


def test_a_failure_shows_the_log_of_the_pod_that_failed():
    failed = pod("mnist-1", "1", "Failed", inits=[{"name": "memlock", "state": DONE}])
    cluster = Cluster(job(("Failed", "True", "BackoffLimitExceeded", "reached")), [failed])
    with pytest.raises(FabricError) as error:
        watch(cluster).problems()
    assert error.value.where == "Job ml/mnist"
    assert error.value.seen == "BackoffLimitExceeded: reached\nmnist-1/memlock:\nulimit \ufffd too low"
    assert error.value.next_step == (
        "Read the end of the log above. Fix the cause, remove the job (kubectl delete job -n ml mnist,"
        " or -e native_workload_state=absent -e native_workload_name=mnist with its playbook) and run again."
    )
    assert ("/api/v1/namespaces/ml/pods/mnist-1/log", {"container": "memlock", "tailLines": 5}) in cluster.asked


def test_a_job_that_deletes_its_pod_has_last_words():
    """OnFailure: the container is started again in its pod, which goes with the Job, and its log with it."""
    failed = {"terminated": {"exitCode": 3, "message": "no dataset in /data\n"}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    killed = {"terminated": {"exitCode": 143, "message": "begins again"}}
    cluster = Cluster(job(active=1))
    watched = watch(cluster)
    for state, deleted in (({"state": failed}, {}), ({"state": waiting, "lastState": failed}, {}), (
        {"state": killed, "lastState": failed}, {"deletionTimestamp": "2"},
    )):  # fmt: skip
        cluster.pods = [pod("mnist-1", "1", "Running", [{"name": "main", "restartCount": 4, **state}])]
        cluster.pods[0]["metadata"].update(deleted)
        assert not any(problem.fault for problem in watched.problems())
    cluster.found, cluster.pods = job(("Failed", "True", "BackoffLimitExceeded", "reached")), []
    with pytest.raises(FabricError) as error:
        watched.problems()
    assert error.value.seen == "BackoffLimitExceeded: reached\nmnist-1/main:\nexit code 3: no dataset in /data"


def test_a_job_that_failed_before_has_no_log():
    with pytest.raises(FabricError) as error:
        watch(Cluster(job(("Failed", "True", "BackoffLimitExceeded", "reached"))), kind="MPIJob").problems()
    assert error.value.next_step == (
        "No log of it is left. Fix the cause, remove the job (kubectl delete mpijob -n ml mnist) and run again."
    )


def test_what_is_in_the_way_of_another_run():
    step = watch(Cluster(job(active=1)), kind="MPIJob").next_step
    assert step.endswith("remove the job first (kubectl delete mpijob -n ml mnist).")


def test_a_launcher_that_crashes_again_and_again_is_a_fault():
    crashing = {"name": "launcher", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    problems = watch(Cluster(job(active=1), [pod("mnist-1", "1", "Running", [crashing])]), kind="MPIJob").problems()
    assert [problem.fault for problem in problems] == [False, True]


def test_a_pod_that_is_stuck_is_named():
    stuck = {"name": "main", "image": "x", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no x"}}}
    problems = watch(Cluster(job(active=1), [pod("mnist-1", "1", "Pending", [stuck])])).problems()
    assert [(p.fault, "ImagePullBackOff" in p.text) for p in problems] == [(False, False), (True, True)]


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ('MountVolume.SetUp failed for volume "device" : hostPath type check failed: /dev/infiniband is no dir', True),
        ('MountVolume.SetUp failed for volume "key" : secret "mnist-ssh" not found', False),
    ],
)
def test_a_pod_whose_volume_is_not_there_is_named(message, fault):
    waiting = pod("mnist-1", "1", "Pending", [{"name": "main", "image": "x", "state": WAITS}])
    waiting["metadata"]["uid"], waiting["spec"] = "u1", {**waiting.get("spec", {}), "nodeName": "w1"}

    class Events(Cluster):
        def items(self, path, **query):
            found = super().items(path, **query)
            return [] if "FailedCreatePodSandBox" in query.get("fieldSelector", "") else found

    events = [{"involvedObject": {"uid": uid}, "message": text} for uid, text in (("old", "no"), ("u1", message))]
    problems = watch(Events(job(), [waiting], events), kind="MPIJob").problems()
    assert [tuple(problem)[:2] for problem in problems[1:]] == [(f"pod mnist-1 on w1: {message}", fault)]


def test_a_job_that_is_gone():
    problems = watch(Cluster(None)).problems()
    assert [(p.text, p.fault) for p in problems] == [("Job ml/mnist does not exist", True)]


def role(found, name):
    found["metadata"]["labels"] = {"training.kubeflow.org/job-role": name}
    return found


def test_of_an_mpijob_all_pods_are_looked_at_and_the_launcher_is_asked():
    pods = [role(pod(f"mnist-{name}", "1", containers=[{"name": name, "state": DONE}]), name) for name in ROLES]
    cluster = Cluster(job(("Succeeded", "True")), pods)
    assert watch(cluster, kind="MPIJob").problems() == []
    assert list(watch(cluster, kind="MPIJob").logs()) == ["mnist-launcher/launcher"]
    assert ("/api/v1/namespaces/ml/pods", {"labelSelector": "training.kubeflow.org/job-name=mnist"}) in cluster.asked


def test_an_mpijob_whose_worker_failed_never_starts():
    worker = role(pod("mnist-worker-1", "1", "Failed", inits=[{"name": "memlock", "state": DONE}]), "worker")
    with pytest.raises(FabricError) as error:
        watch(Cluster(job(("Created", "True")), [worker]), kind="MPIJob").problems()
    assert "mnist-worker-1 failed, so the launcher does not start" in error.value.seen
    assert "mnist-worker-1/memlock:\nulimit" in error.value.seen
    launcher = role(pod("mnist-launcher-x", "1", "Running"), "launcher")
    assert watch(Cluster(job(("Created", "True")), [worker, launcher]), kind="MPIJob").problems()


def test_pods_of_a_job_of_this_name_that_was_deleted_are_not_its_own():
    """The garbage collector may still be removing them when the job is created again."""
    old = role(pod("mnist-worker-0", "2026-01-01T00:00:00Z", "Failed"), "worker")
    new = role(pod("mnist-worker-1", "2026-01-01T00:00:07Z", "Running"), "worker")
    again = job(("Created", "True"))
    again["metadata"]["creationTimestamp"] = "2026-01-01T00:00:07Z"
    found = watch(Cluster(again, [old, new]), kind="MPIJob")
    assert [p.fault for p in found.problems()] == [False]
    assert found.pods() == [new]


def test_what_the_operator_refuses_ends_the_wait():
    event = {"type": "Warning", "reason": "ValidationError", "message": "bad policy", "lastTimestamp": "2"}
    cluster = Cluster(job(), events=[event, {**event, "message": "older", "lastTimestamp": "1"}])
    problems = watch(cluster, kind="MPIJob").problems()
    assert [(p.text, p.fault) for p in problems][1:] == [("ValidationError: bad policy", True)]
    assert watch(Cluster(job()), kind="MPIJob").problems()[0].text == "MPIJob ml/mnist goes on: no launcher yet"
