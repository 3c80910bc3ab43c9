import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import job_wait
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_request import JobRequest

REFUSED = FabricError("The API server refused to read an object.", "x", "forbidden", "y")
REQUEST = JobRequest("mnist", "n", wait_timeout=100)


OWNER = {"kind": "IPUJob", "uid": "u"}
POD = {"metadata": {"name": "mnist-worker-0", "namespace": "n", "ownerReferences": [OWNER]}, "status": {}}


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Cluster:
    """Gives what the test sets: a job, or an error."""

    def __init__(self, job=None, pods=(), own=(), nodes=()):
        self.job, self.pods, self.own, self.nodes = job, list(pods), own, nodes

    def get(self, _path):
        if isinstance(self.job, Exception):
            raise self.job
        return self.job

    def items(self, path, **_query):
        lists = {"/api/v1/pods": self.pods, "/api/v1/namespaces/n/pods": self.own, "/api/v1/nodes": self.nodes}
        return list(lists.get(path, ()))


def operator(ready="True", name="manager"):
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": {"name": name, "namespace": "o"}, "status": {"conditions": conditions}}


def job(word, **spec):
    metadata = {"name": "mnist", "namespace": "n", "uid": "u"}
    return {"metadata": metadata, "spec": {"jobInstances": 1, **spec}, "status": {"launcherStatus": word}}


def a_wait(cluster, clock):
    lines = []
    return job_wait.JobWait(cluster, "/path", REQUEST, lines.append, clock), lines


def test_a_break_starts_the_time_again():
    clock = Clock()
    sustained, seen = job_wait.Sustained(clock), []
    for clock.now, so in [(0, True), (4, True), (5, False), (6, True), (10, True), (11, True)]:
        seen.append(sustained.lasts(so, 5))
    assert seen == [False, False, False, False, False, True]


def test_a_refusal_during_a_wait_is_tolerated_for_a_while_and_not_at_its_start():
    clock, cluster = Clock(), Cluster(REFUSED)
    with pytest.raises(FabricError, match="forbidden"):
        a_wait(cluster, clock)[0].observe()
    cluster.job = job("Running")
    waiting, _lines = a_wait(cluster, clock)
    assert waiting.observe().phase == "Running"
    cluster.job, clock.now = REFUSED, 29
    assert waiting.observe() is None
    clock.now = 31
    with pytest.raises(FabricError, match="forbidden"):
        waiting.observe()


def test_the_record_is_of_the_workers():
    class Recorder:
        looked, finished = [], []

        def look(self, pods, now=False):
            self.looked.append([pod["metadata"]["name"] for pod in pods])

        def finish(self, job, path):
            self.finished.append((job["metadata"]["name"], path))
            return {"verdict": "rdma"}

    own = [{"metadata": {"name": f"mnist-{name}"}, "spec": {}, "status": {}} for name in ("launcher", "worker-0")]
    recorder = Recorder()
    waiting = job_wait.JobWait(Cluster(job("Completed"), own=own), "/path", REQUEST, print, Clock(), recorder)
    waiting.wait_for("finished")
    assert waiting.result()["record"] == {"verdict": "rdma"}
    assert (recorder.looked, recorder.finished) == ([["mnist-worker-0"]], [("mnist", "/path")])
    assert a_wait(Cluster(job("Completed")), Clock())[0].result()["record"] == {}


def test_a_job_counts_as_deleted_after_a_while():
    clock, cluster = Clock(), Cluster(job("Running"))
    waiting, _lines = a_wait(cluster, clock)
    waiting.observe()
    cluster.job = None
    assert waiting.observe() is None
    clock.now = job_wait.PATIENCE
    with pytest.raises(FabricError, match="was deleted during the wait"):
        waiting.observe()


def test_progress_has_only_what_changed():
    clock, cluster = Clock(), Cluster(job("Pending"), [operator()])
    waiting, lines = a_wait(cluster, clock)
    for clock.now, word in enumerate(["Pending", "Pending", "Running", "Running", "Completed"]):
        cluster.job = job(word)
        waiting.observe()
    assert [(step["seconds"], step["state"]) for step in waiting.progress] == [
        (0, "Pending"),
        (2, "Running"),
        (4, "Completed"),
    ]
    assert len(lines) == 3
    assert lines[1].startswith("IPUJob n/mnist, after 2 s: Running")


@pytest.mark.parametrize(
    ("word", "spec", "goal", "now", "ends"),
    [
        ("Pending", {}, "present", 0, ""),
        ("Running", {"launcher": {"command": ["x"]}}, "present", 0, "done"),
        ("Running", {"launcher": {"command": ["x"]}}, "finished", 0, ""),
        ("Completed", {}, "finished", 0, "done"),
        ("Failed", {}, "present", 0, "mnist failed"),
        ("Failed", {"restartPolicy": {"type": "OnFailure"}}, "finished", 0, ""),
        ("Running", {}, "finished", 101, "has not ended within wait_timeout"),
        ("Pending", {}, "present", 101, "does not run within wait_timeout"),
    ],
)
def test_when_a_wait_ends(word, spec, goal, now, ends):
    clock = Clock()
    waiting, _lines = a_wait(Cluster(job(word, **spec), [operator()]), clock)
    clock.now = now
    if ends in ("", "done"):
        assert waiting.is_done(goal) == (ends == "done")
        return
    with pytest.raises(job_wait.JobError, match=ends) as error:
        waiting.is_done(goal)
    assert error.value.facts["job"]["state"] == word
    assert error.value.facts["evidence"] == {"conditions": [], "events": [], "operator": [], "file": ""}
    assert error.value.facts["progress"]


@pytest.mark.parametrize(("word", "ends"), [("Completed", "done"), ("Failed", "mnist failed")])
def test_a_restart_that_does_not_come_counts_after_a_while(word, ends):
    clock = Clock()
    waiting, _lines = a_wait(Cluster(job(word, restartPolicy={"type": "Always"}), [operator()]), clock)
    for clock.now in (0, 19):
        assert not waiting.is_done("finished")
    clock.now = 20
    if ends == "done":
        assert waiting.is_done("finished")
        return
    with pytest.raises(job_wait.JobError, match=ends) as error:
        waiting.is_done("finished")
    assert "no message; 0 restarts" in error.value.seen


@pytest.mark.parametrize("recreate", [False, True])
@pytest.mark.parametrize(("own", "kept"), [([], "its IPUs"), ([POD], "its pods and IPUs")])
def test_a_failed_job_says_what_it_holds_and_how_to_free_it(recreate, own, kept):
    """An example has recreate: true already: to name it is no advice."""
    request = JobRequest("mnist", "n", recreate=recreate)
    waiting = job_wait.JobWait(Cluster(job("Failed"), [operator()], own), "/path", request, print, Clock())
    with pytest.raises(job_wait.JobError) as error:
        waiting.is_done("finished")
    freed = f"Until then the job keeps {kept}; kubectl delete ipujob -n n mnist frees them."
    how = "" if recreate else " with recreate: true"
    assert error.value.next_step == f"Fix what its log names, then run again{how}. {freed}"


def test_an_operator_is_asked_for_again_after_a_while():
    clock, cluster = Clock(), Cluster(job("Pending"))
    waiting, _lines = a_wait(cluster, clock)
    for clock.now in (0, 14):
        assert "the IPU operator does not run" in str(waiting.observe().awaited)
        cluster.pods = [operator()]
    clock.now = 15
    assert waiting.observe().awaited == []


def test_the_api_server_is_named_when_it_does_not_answer_at_the_end_of_the_time():
    clock, cluster = Clock(), Cluster(job("Running", launcher={"command": ["x"]}), [operator()])
    waiting, _lines = a_wait(cluster, clock)
    clock.now = 99
    assert not waiting.is_done("finished")
    cluster.job, clock.now = REFUSED, 101
    with pytest.raises(job_wait.JobError) as error:
        waiting.is_done("finished")
    assert error.value.seen == "state unknown; the Kubernetes API"


def test_the_newest_warning_of_each_pending_pod_is_named():
    class Events(Cluster):
        def items(self, path, **query):
            if not path.endswith("/events"):
                return []
            assert query == {"fieldSelector": "type=Warning"}
            about = [("Pod", "a", "old"), ("Pod", "a", "new"), ("Pod", "b", "runs"), ("Job", "c", "other")]
            return [
                {"involvedObject": {"kind": kind, "name": name}, "reason": "R", "message": message}
                for kind, name, message in about
            ]

    waiting, _lines = a_wait(Events(), Clock())
    assert waiting.warnings() == []
    phases = {"a": "Pending", "b": "Running", "c": "Pending"}
    waiting.pods = [{"metadata": {"name": name}, "status": {"phase": phase}} for name, phase in phases.items()]
    assert waiting.warnings() == ["pod a: R: new"]


def test_logs_go_where_they_were_wanted(tmp_path):
    request = JobRequest("mnist", "n", logs={"path": str(tmp_path), "tail": 3})
    logs = job_wait.JobWait(Cluster(), "/path", request, print).logs
    assert (logs.folder, logs.tail, logs.namespace) == (str(tmp_path), 3, "n")


def test_a_resource_that_no_node_has_ends_the_wait_early():
    unscheduled = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "Insufficient rdma/a",
    }
    pod = {
        "metadata": {"name": "mnist-worker-0", "namespace": "n"},
        "spec": {"containers": [{"name": "train", "resources": {"limits": {"rdma/a": "1"}}}]},
        "status": {"phase": "Pending", "conditions": [unscheduled]},
    }
    node = {"metadata": {"name": "w1"}, "status": {"capacity": {"cpu": "8", "nvidia.com/gpu": "0"}}}
    clock = Clock()
    waiting, _lines = a_wait(Cluster(job("Pending"), [operator()], [pod], [node]), clock)
    assert not waiting.is_done("finished")
    clock.now = job_wait.PATIENCE
    expected = "asks for rdma/a, which no node has; the nodes have nvidia.com/gpu.*resource"
    with pytest.raises(job_wait.JobError, match=expected):
        waiting.is_done("finished")
