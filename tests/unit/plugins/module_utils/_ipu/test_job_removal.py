import contextlib
import copy
import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import job_removal, job_spec
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_request import JobRequest

SILENT = 'Internal error occurred: failed calling webhook "v": no endpoints available'


class RefusalError(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status, self.body = status, json.dumps({"message": message})


def job(name, *finalizers, uid="1"):
    metadata = {"name": name, "namespace": "n", "uid": uid, "finalizers": list(finalizers), "resourceVersion": "7"}
    return {"apiVersion": job_spec.API, "kind": "IPUJob", "metadata": metadata, "spec": {"jobInstances": 1}}


class Cluster:
    """Keeps jobs by name, and fails as the test wants: by name, the errors of the next patches."""

    def __init__(self, *jobs):
        self.jobs = {each["metadata"]["name"]: each for each in jobs}
        self.errors, self.patched, self.deleted = {}, [], []

    def path_of(self, obj):
        return obj["metadata"]["name"]

    def get(self, path):
        return copy.deepcopy(self.jobs.get(path))

    def patch(self, path, body):
        if self.errors.get(path):
            raise self.errors[path].pop(0)
        self.patched.append(path)
        self.jobs[path]["metadata"].update(body["metadata"])

    def delete(self, path):
        self.deleted.append(path)

    def finalizers(self):
        return {name: each["metadata"]["finalizers"] for name, each in self.jobs.items()}


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr(job_removal, "ApiError", RefusalError)
    monkeypatch.setattr(job_removal, "WEBHOOK_PAUSE", 0.01)
    monkeypatch.setattr(job_removal, "WEBHOOK_TIMEOUT", 0.2)


@pytest.fixture
def ignored(monkeypatch):
    """How often failures of webhooks were ignored."""
    times = []

    @contextlib.contextmanager
    def failures_ignored(_cluster):
        times.append("begin")
        yield
        times.append("end")

    monkeypatch.setattr(job_removal, "failures_ignored", failures_ignored)
    monkeypatch.setattr(job_removal, "ignore_failures", lambda _cluster: times.append("again"))
    return times


def test_webhooks_that_answer_are_left_alone(ignored):
    cluster = Cluster(job("a", job_spec.FINALIZER), job("b", job_spec.FINALIZER, "example.org/x"), job("c"))
    job_removal.remove_finalizers(cluster, [cluster.get(name) for name in "abc"])
    assert cluster.finalizers() == {"a": [], "b": ["example.org/x"], "c": []}
    assert (cluster.patched, ignored) == (["a", "b"], [])


def test_webhooks_that_do_not_answer_are_ignored_once_for_all_jobs(ignored):
    cluster = Cluster(*(job(name, job_spec.FINALIZER) for name in "abc"))
    cluster.errors = {"b": [RefusalError(500, SILENT)]}
    job_removal.remove_finalizers(cluster, [cluster.get(name) for name in "abc"])
    assert cluster.finalizers() == {"a": [], "b": [], "c": []}
    assert ignored == ["begin", "end"]


def test_webhooks_that_another_run_has_restored_meanwhile_are_ignored_again(ignored):
    cluster = Cluster(job("a", job_spec.FINALIZER))
    cluster.errors = {"a": [RefusalError(500, SILENT), RefusalError(500, SILENT)]}
    job_removal.remove_finalizers(cluster, [cluster.get("a")])
    assert (cluster.finalizers(), ignored) == ({"a": []}, ["begin", "again", "end"])


@pytest.mark.usefixtures("ignored")
def test_a_webhook_of_somebody_else_is_named():
    cluster = Cluster(job("a", job_spec.FINALIZER))
    cluster.errors = {"a": [RefusalError(500, SILENT)] * 1000}
    with pytest.raises(FabricError, match=r"IPUJob n/a could not be removed.*failed calling webhook .v.") as error:
        job_removal.remove_finalizers(cluster, [cluster.get("a")])
    assert "not the IPU operator's" in error.value.next_step


def test_a_conflict_is_tried_again_and_a_refusal_is_not():
    cluster = Cluster(job("a", job_spec.FINALIZER))
    cluster.errors = {"a": [RefusalError(409, "conflict")] * (job_removal.ATTEMPTS - 1)}
    assert job_removal.finalizer_refusals(cluster, cluster.get("a")) == []
    assert cluster.finalizers() == {"a": []}
    cluster = Cluster(job("a", job_spec.FINALIZER))
    for errors in ([RefusalError(403, "forbidden")], [RefusalError(409, "conflict")] * job_removal.ATTEMPTS):
        cluster.errors = {"a": list(errors)}
        with pytest.raises(FabricError, match="remove the finalizer of"):
            job_removal.finalizer_refusals(cluster, cluster.get("a"))
    assert cluster.finalizers() == {"a": [job_spec.FINALIZER]}


def test_a_new_job_of_the_same_name_keeps_its_finalizer():
    cluster = Cluster(job("a", job_spec.FINALIZER, uid="new"))
    assert job_removal.finalizer_refusals(cluster, job("a", job_spec.FINALIZER, uid="old")) == []
    assert cluster.finalizers() == {"a": [job_spec.FINALIZER]}


ALL = {"state": "absent", "scope": "cluster", "namespace": ""}


@pytest.mark.parametrize(
    ("options", "finalizers", "available", "message"),
    [
        ({}, [], True, "There must be no IPUJobs. Where: IPUJobs of the cluster. Seen: 1: n/a."),
        ({"force": True}, [], True, "There must be no IPUJobs"),
        ({"delete_all": True}, [], False, ""),
        ({"delete_all": True}, [job_spec.FINALIZER], True, ""),
        ({"delete_all": True}, [job_spec.FINALIZER], False, "no controller of an IPU operator is available"),
        ({"delete_all": True, "force": True}, [job_spec.FINALIZER], False, ""),
    ],
)
def test_what_is_refused_before_anything_is_deleted(options, finalizers, available, message):
    request = JobRequest(**ALL, **options)
    refused = pytest.raises(FabricError, match=message) if message else contextlib.nullcontext()
    with refused:
        job_removal.check_removal([job("a", *finalizers)], request, available)
    job_removal.check_removal([], request, available)


def test_many_jobs_are_named_in_part():
    with pytest.raises(FabricError) as error:
        job_removal.check_removal([job(f"j{n}") for n in range(25)], JobRequest(**ALL), True)
    assert error.value.seen.startswith("25: n/j0, n/j1,")
    assert error.value.seen.endswith("n/j19 and more")


class Module:
    check_mode = False

    def __init__(self):
        self.warnings = []

    def warn(self, text):
        self.warnings.append(text)


@pytest.mark.parametrize("force", [False, True])
def test_only_with_force_finalizers_are_removed(monkeypatch, ignored, force):
    """A job that is created while the others are removed is somebody's who needs its IPUs."""
    cluster = Cluster(job("a"), job("late", job_spec.FINALIZER))
    reads = [[cluster.get("a")], [cluster.get("late")], []]
    monkeypatch.setattr(job_removal, "read_jobs", lambda *_args: reads.pop(0))
    monkeypatch.setattr(job_removal, "managers", lambda _cluster: [])
    module, request = Module(), JobRequest(**ALL, delete_all=True, force=force, wait_timeout=0)
    if force:
        result = job_removal.remove_all_jobs(module, cluster, request)
        assert (result["jobs"], result["partitions_left"], ignored) == (["n/a"], ["p-late-n-0"], [])
        assert "p-late-n-0" in module.warnings[0]
    else:
        with pytest.raises(FabricError, match="IPUJob n/late still exists"):
            job_removal.remove_all_jobs(module, cluster, request)
    assert (cluster.deleted, cluster.patched) == (["a"], ["late"] if force else [])
