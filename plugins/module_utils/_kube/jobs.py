# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for a Job or an MPIJob to end, and what its pods wrote."""

from __future__ import annotations

import time
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import (
    ApiError,
    Cluster,
    Object,
    connect,
    describe,
    field,
    message_of,
    persist,
)
from ansible_collections.ipu.fabric.plugins.module_utils._kube.readiness import (
    Problem,
    Wait,
    container_statuses,
    pod_problems,
)

# By kind: its API, and the label of its pods.
KINDS = {
    "Job": ("batch/v1", "job-name={name}"),
    "MPIJob": ("kubeflow.org/v2beta1", "training.kubeflow.org/job-name={name}"),
}
ROLE = "training.kubeflow.org/job-role"
SUCCESS = ("Complete", "Succeeded")
LOG_TIMEOUT = 60


def ended(job: Object) -> t.Optional[t.Tuple[bool, str]]:
    """Whether a job went well, and what it says; None while it goes on."""
    for condition in field(job, "status.conditions") or []:
        if condition["status"] == "True" and condition["type"] in (*SUCCESS, "Failed"):
            parts = (condition.get("reason"), condition.get("message"))
            return condition["type"] in SUCCESS, ": ".join(part for part in parts if part)
    return None


def progress(job: Object) -> str:
    """How far a job is, in the words of its status."""
    status = job.get("status") or {}
    launcher = field(status, "replicaStatuses.Launcher")
    counts = status if launcher is None else launcher
    said = [f"{counts[key]} {key}" for key in ("active", "succeeded", "failed") if counts.get(key)]
    return f"{describe(job)} goes on: {', '.join(said) or 'no pod yet'}"


def containers_with_logs(pod: Object) -> t.List[str]:
    """The containers of a pod that have started."""
    return [e["name"] for e in container_statuses(pod) if {"running", "terminated"} & set(e.get("state") or {})]


def is_worker(pod: Object) -> bool:
    """Whether a pod of an MPIJob only does what its launcher says."""
    return (pod["metadata"].get("labels") or {}).get(ROLE) == "worker"


def has_failed(pod: Object) -> bool:
    return bool(field(pod, "status.phase") == "Failed")


def never_starts(pods: t.Sequence[Object]) -> str:
    """Why the launcher of an MPIJob, which waits until all workers are ready, will not come."""
    failed = [pod["metadata"]["name"] for pod in pods if is_worker(pod) and has_failed(pod)]
    waits = failed and all(map(is_worker, pods))
    return f"{', '.join(sorted(failed))} failed, so the launcher does not start" if waits else ""


def telling(pods: t.Sequence[Object]) -> t.List[Object]:
    """Pods in the order in which they tell why a job failed: failed ones first, the newest first."""
    pods = [pod for pod in pods if not is_worker(pod) or has_failed(pod)]
    newest = sorted(pods, key=lambda pod: pod["metadata"].get("creationTimestamp", ""), reverse=True)
    return sorted(newest, key=lambda pod: not has_failed(pod))


class JobWatch:
    """A job of the cluster."""

    def __init__(self, cluster: Cluster, params: Object) -> None:
        self.cluster, self.params = cluster, params
        version, labels = KINDS[params["kind"]]
        metadata = {"name": params["name"], "namespace": params["namespace"]}
        self.wanted: Object = {"apiVersion": version, "kind": params["kind"], "metadata": metadata}
        self.labels = labels.format(name=params["name"])

    def pods(self) -> t.List[Object]:
        path = f"/api/v1/namespaces/{self.params['namespace']}/pods"
        return self.cluster.items(path, labelSelector=self.labels)

    def refusal(self) -> t.List[Problem]:
        """What the MPI operator holds against a job: it says so in an event and leaves the job alone."""
        path = f"/api/v1/namespaces/{self.params['namespace']}/events"
        about = f"involvedObject.kind={self.params['kind']},involvedObject.name={self.params['name']}"
        events = self.cluster.items(path, fieldSelector=f"{about},reason=ValidationError")
        newest = sorted(events, key=lambda event: event.get("lastTimestamp") or "")[-1:]
        return [Problem(f"{event['reason']}: {event['message']}", True) for event in newest]

    def tail(self, pod: Object, container: str) -> str:
        path = f"/api/v1/namespaces/{self.params['namespace']}/pods/{pod['metadata']['name']}/log"
        query = [("container", container), ("tailLines", self.params["log_lines"])]

        def send() -> str:
            answer = self.cluster.client.request(
                "get", path, query_params=query, serialize=False, _request_timeout=LOG_TIMEOUT
            )
            return t.cast(str, answer.data.decode(errors="replace"))

        try:
            return persist(send, path)
        except ApiError as error:
            return f"(no log: {message_of(error)})"

    def logs(self) -> t.Dict[str, str]:
        """The end of each container's log, by pod/container."""
        return {
            f"{pod['metadata']['name']}/{container}": self.tail(pod, container)
            for pod in telling(self.pods())
            for container in containers_with_logs(pod)
        }

    def look(self) -> t.Tuple[t.Optional[Object], t.List[Problem]]:
        """The job, and why it is not done yet: nothing when it is. FabricError when it failed."""
        job = self.cluster.read(self.wanted)
        if job is None:
            return None, [Problem(f"{describe(self.wanted)} is not there", True)]
        end = ended(job)
        if end is None:
            pods = self.pods()
            if never_starts(pods):
                raise self.failure(never_starts(pods))
            stuck = [problem for pod in pods for problem in pod_problems(pod)]
            stuck += [] if pods or self.params["kind"] == "Job" else self.refusal()
            return job, [Problem(progress({**job, "kind": self.params["kind"]})), *stuck]
        if not end[0]:
            raise self.failure(end[1])
        return job, []

    def failure(self, message: str) -> FabricError:
        logs = [f"{where}:\n{text.strip()}" for where, text in self.logs().items() if text.strip()]
        return FabricError(
            "A job was expected to succeed.",
            describe(self.wanted),
            "\n".join([message or "it failed", *logs[:2]]),
            "Read the end of the log above, mend the cause, remove the job and run again.",
        )


def run(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module job_finished."""
    watch = JobWatch(connect(module), module.params)
    if module.check_mode:
        return {"changed": False, "waited": 0.0, "status": {}, "logs": {}}
    wait = Wait({**module.params, "what": describe(watch.wanted), "settle": 0})
    job, problems = watch.look()
    while not wait.done(problems):
        time.sleep(module.params["sleep"])
        job, problems = watch.look()
    status = (job or {}).get("status") or {}
    return {"changed": False, "waited": round(wait.elapsed(), 1), "status": status, "logs": watch.logs()}
