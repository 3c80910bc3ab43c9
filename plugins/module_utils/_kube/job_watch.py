# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a Job or an MPIJob has ended, and what its pods logged."""

from __future__ import annotations

import typing as t

from .._common.result import FabricError
from .._model.jobs import ASKED
from .client import ApiError, Cluster, describe, message_of
from .pod_logs import read_log
from .pod_problems import Problem, container_statuses, last_words, pod_problems
from .pod_resources import NodeResources
from .query import Object, query, quoted
from .readiness import mount_problems, network_problems

# By kind: its API, and the label of its pods.
KINDS = {
    "Job": ("batch/v1", "job-name={name}"),
    "MPIJob": ("kubeflow.org/v2beta1", "training.kubeflow.org/job-name={name}"),
}
ROLE = "training.kubeflow.org/job-role"
SUCCESS = ("Complete", "Succeeded")


class JobOptions(t.TypedDict):
    """A job, as in the module's option."""

    name: str
    namespace: str
    kind: str  # Job or MPIJob
    log_lines: int  # of each container


class JobRecorder(t.Protocol):
    """Examines the pods of a job while they run."""

    def look(self, pods: t.Sequence[Object], now: bool = False) -> None: ...

    def finish(self, job: Object, path: str) -> t.Dict[str, t.Any]: ...


Recorders = t.Callable[[Cluster, str], JobRecorder]  # creates one for a namespace


def ended(job: Object) -> t.Optional[t.Tuple[bool, str]]:
    """Whether a job succeeded, and its message; None while it runs."""
    for condition in query("status.conditions", job) or []:
        if condition["status"] == "True" and condition["type"] in (*SUCCESS, "Failed"):
            parts = (condition.get("reason"), condition.get("message"))
            return condition["type"] in SUCCESS, ": ".join(part for part in parts if part)
    return None


def progress(job: Object) -> str:
    """A job's progress, in the words of its status."""
    launcher = query("status.replicaStatuses.Launcher", job)
    counts = (query("status", job) or {}) if launcher is None else launcher
    pods = [f"{counts[key]} {key}" for key in ("active", "succeeded", "failed") if counts.get(key)]
    none = "no launcher yet" if job["kind"] == "MPIJob" else "no pod yet"
    return f"{describe(job)} goes on: {', '.join(pods) or none}"


def containers_with_logs(pod: Object) -> t.List[str]:
    """The containers of a pod that have started."""
    return [e["name"] for e in container_statuses(pod) if {"running", "terminated"} & set(e.get("state") or {})]


def is_worker(pod: Object) -> bool:
    """Whether a pod of an MPIJob only does what its launcher tells it."""
    return bool(query(f"metadata.labels.{quoted(ROLE)}", pod) == "worker")


def has_failed(pod: Object) -> bool:
    return bool(query("status.phase", pod) == "Failed")


def never_starts(pods: t.Sequence[Object]) -> str:
    """Why the launcher of an MPIJob, which starts only when all workers are ready, will not start."""
    failed = [pod["metadata"]["name"] for pod in pods if is_worker(pod) and has_failed(pod)]
    waits = failed and all(map(is_worker, pods))
    return f"{', '.join(sorted(failed))} failed, so the launcher does not start" if waits else ""


def sort_by_failure(pods: t.Sequence[Object]) -> t.List[Object]:
    """The pods whose logs explain a failure: failed ones first, and newest first."""
    pods = [pod for pod in pods if not is_worker(pod) or has_failed(pod)]
    newest = sorted(pods, key=lambda pod: pod["metadata"].get("creationTimestamp", ""), reverse=True)
    return sorted(newest, key=lambda pod: not has_failed(pod))


class JobWatch:
    """A job that must succeed."""

    def __init__(self, cluster: Cluster, params: JobOptions, recorders: t.Optional[Recorders] = None) -> None:
        self.cluster, self.params, self.recorders = cluster, params, recorders
        self.recorder: t.Optional[JobRecorder] = None
        self.job: Object = {}
        self.resources = NodeResources(cluster)
        self.status: Object = {}  # as the job reports it
        self.created = ""  # creation time, RFC 3339
        self.words: t.Dict[str, str] = {}  # of failed containers, by pod/container: a Job may delete its pods
        version, labels = KINDS[params["kind"]]
        metadata = {"name": params["name"], "namespace": params["namespace"]}
        self.wanted: Object = {"apiVersion": version, "kind": params["kind"], "metadata": metadata}
        self.what = describe(self.wanted)
        # A Job can't be changed, and the operator does not update the pods of an MPIJob.
        role = f", or -e native_workload_state=absent -e native_workload_name={params['name']} with its playbook"
        role = role if params["kind"] == "Job" else ""
        self.removal = f"kubectl delete {params['kind'].lower()} -n {params['namespace']} {params['name']}{role}"
        self.next_step = (
            "Fix what is named (image, label, resource, toleration, log of the crashing container) and run again. To"
            f" run it with other settings, remove the job first ({self.removal})."
        )
        self.labels = labels.format(name=params["name"])

    def pods(self) -> t.List[Object]:
        """The job's pods, without older ones: those belong to a deleted job of this name, and are being removed."""
        path = f"/api/v1/namespaces/{self.params['namespace']}/pods"
        pods = self.cluster.items(path, labelSelector=self.labels)
        return [pod for pod in pods if pod["metadata"].get("creationTimestamp", "") >= self.created]

    def refusal(self) -> t.List[Problem]:
        """Why the MPI operator rejects a job: it reports that in an event, and does nothing else."""
        path = f"/api/v1/namespaces/{self.params['namespace']}/events"
        about = f"involvedObject.kind={self.params['kind']},involvedObject.name={self.params['name']}"
        events = self.cluster.items(path, fieldSelector=f"{about},reason=ValidationError")
        newest = sorted(events, key=lambda event: event.get("lastTimestamp") or "")[-1:]
        return [Problem(f"{event['reason']}: {event['message']}", True) for event in newest]

    def tail(self, pod: Object, container: str) -> str:
        try:
            return read_log(
                self.cluster, self.params["namespace"], pod["metadata"]["name"], container, self.params["log_lines"]
            )
        except ApiError as error:
            return f"(no log: {message_of(error)})"

    def logs(self) -> t.Dict[str, str]:
        """The end of each container's log, by pod/container."""
        return {
            f"{pod['metadata']['name']}/{container}": self.tail(pod, container)
            for pod in sort_by_failure(self.pods())
            for container in containers_with_logs(pod)
        }

    def problems(self) -> t.List[Problem]:
        """Why the job is not done yet; empty if it is. FabricError if it failed."""
        job = self.cluster.read(self.wanted)
        if job is None:
            return [Problem(f"{self.what} does not exist", True)]
        self.job, self.status = job, job.get("status") or {}
        self.created = job["metadata"].get("creationTimestamp", "")
        end = ended(job)
        if end is None:
            pods = self.pods()
            self.look(pods)
            for pod in pods:
                self.words.update(last_words(pod))
            if never_starts(pods):
                raise self.failure(never_starts(pods))
            stuck = network_problems(self.cluster, self.params["namespace"], pods)
            stuck += mount_problems(self.cluster, self.params["namespace"], pods)
            # A Job gives up by itself, after a given number of restarts.
            endless = self.params["kind"] != "Job"
            stuck += [problem for pod in pods for problem in pod_problems(pod, crash_is_fault=endless)]
            stuck += self.resources.problems(pods)
            stuck += [] if pods or self.params["kind"] == "Job" else self.refusal()
            return [Problem(progress({**job, "kind": self.params["kind"]})), *stuck]
        if not end[0]:
            raise self.failure(end[1])
        return []

    def look(self, pods: t.Sequence[Object]) -> None:
        """Examine the pods that do the work, if the job asks for a record."""
        if self.recorders and query(f"metadata.annotations.{quoted(ASKED)}", self.job) == "true":
            self.recorder = self.recorder or self.recorders(self.cluster, self.params["namespace"])
            self.recorder.look([pod for pod in pods if self.params["kind"] == "Job" or is_worker(pod)])

    def record(self) -> t.Dict[str, t.Any]:
        """The record of a job that asks for one; otherwise empty."""
        self.look([])  # for a job that had ended before the wait began
        path = self.recorder and self.cluster.path_of(self.wanted)
        return self.recorder.finish(self.job, path) if self.recorder and path else {}

    def failure(self, message: str) -> FabricError:
        texts = self.logs() or self.words
        logs = [f"{where}:\n{text.strip()}" for where, text in texts.items() if text.strip()]
        read = "Read the end of the log above" if logs else "No log of it is left"
        return FabricError(
            "A job did not succeed.",
            self.what,
            "\n".join([message or "it failed", *logs[:2]]),
            f"{read}. Fix the cause, remove the job ({self.removal}) and run again.",
            code="not-ready",
        )
