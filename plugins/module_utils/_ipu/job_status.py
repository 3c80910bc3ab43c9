# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of an IPUJob, from its status and its pods: pure functions."""

from __future__ import annotations

import re
import typing as t

from .._common.pod_security import REFUSED
from .._host.ipu_operator import FAILED, has_ended
from .._kube.pod_problems import container_statuses, pod_problems
from .._kube.query import query
from .._kube.readiness import condition_true
from .._model.jobs import ContainerExit, JobProgress, JobView, PodView
from .job_spec import finalizers, has_finalizer, partition_names

if t.TYPE_CHECKING:
    from .._kube.query import Object

BACK_OFF_LIMIT = 3
# The operator's message if there is nothing to report.
RECONCILED = "Successfully reconciled"


class JobState(t.NamedTuple):
    """The state of a job at one point in time."""

    phase: str  # Pending, Running, Restarting, Completed, Failed or Deleting
    ready: bool  # every instance is running
    awaited: t.List[str]  # what the job waits for
    faults: t.List[str]  # what waiting does not fix


def own_pods(job: Object, pods: t.Sequence[Object]) -> t.List[Object]:
    """The job's pods among those of its namespace: the launcher first, then the workers by number."""
    pattern = re.compile(re.escape(query("metadata.name", job)) + r"-(?:launcher|worker-(\d+))")
    found = []
    for pod in pods:
        match = pattern.fullmatch(query("metadata.name", pod))
        # Pods of an earlier job with the same name have another owner.
        owners = query("metadata.ownerReferences[?kind == 'IPUJob'].uid", pod)
        if match and (not owners or query("metadata.uid", job) in owners):
            found.append((int(match[1] or -1), pod))
    return [pod for _number, pod in sorted(found, key=lambda pair: pair[0])]


def pod_role(pod: Object) -> str:
    return "launcher" if query("metadata.name", pod).endswith("-launcher") else "worker"


def has_launcher(job: Object) -> bool:
    return bool(query("spec.launcher || spec.interactive", job))


def may_restart(job: Object, failed: bool) -> bool:
    """Whether the operator may restart the job. Only the operator knows how ExitCode treats an exit code."""
    kind, limit = query("spec.restartPolicy.[type, backOffLimit]", job) or (None, None)
    restarts = query("status.restartCount", job) or 0
    if query("spec.cleanPodPolicy", job) == "All" or restarts >= (BACK_OFF_LIMIT if limit is None else limit):
        return False
    return kind == "Always" or (failed and kind in ("OnFailure", "ExitCode"))


def deciding_pod_failed(job: Object, pods: t.Sequence[Object]) -> bool:
    """Whether a decisive pod has failed: the launcher, or any worker of a job without one."""
    deciding = "launcher" if has_launcher(job) else "worker"
    return any(pod_role(pod) == deciding and query("status.phase", pod) == "Failed" for pod in pods)


def job_phase(job: Object, pods: t.Sequence[Object]) -> str:
    """The job's state in one word."""
    if query("metadata.deletionTimestamp", job):
        return "Deleting"
    word = query("status.launcherStatus", job) or "Pending"
    if not has_ended(job):
        return "Running" if word == "Running" else "Pending"
    failed = word in FAILED or condition_true(job, "Failed") or deciding_pod_failed(job, pods)
    if not query("status.completionTime", job) and may_restart(job, failed):
        return "Restarting"
    return "Failed" if failed else "Completed"


def all_instances_run(job: Object) -> bool:
    """Whether the status shows the wanted number of instances; right after scaling it still shows the former one."""
    wanted, desired, current = query("[spec.jobInstances, status.desiredReplicas, status.currentReplicas]", job)
    return has_launcher(job) or (desired == wanted and (current or 0) == wanted)


def surplus_pods(job: Object, pods: t.Sequence[Object]) -> t.List[str]:
    """Workers of instances that were scaled away, and whose deletion has not started."""
    instances, per, replicas = query("[spec.jobInstances, spec.workersPerJobInstance, spec.workers.replicas]", job)
    wanted = (instances or 0) * max(int(per or 1), replicas or 1)
    names = query("[?!(metadata.deletionTimestamp)].metadata.name", pods)
    numbers = {name: re.search(r"-worker-(\d+)$", name) for name in names}
    return [name for name, number in numbers.items() if number and int(number[1]) >= wanted]


def waiting_containers(pod: Object) -> t.List[str]:
    """Waiting containers, with the kubelet's reasons."""
    name = query("metadata.name", pod)
    waiting = query("[?state.waiting.reason].[name, state.waiting.reason]", container_statuses(pod))
    return [f"pod {name}, container {container}: {reason}" for container, reason in waiting]


def job_state(job: Object, pods: t.Sequence[Object]) -> JobState:
    """The state of a job, from the job object and its pods."""
    phase = job_phase(job, pods)
    found = [problem for pod in pods for problem in pod_problems(pod)]
    faults = [problem.text for problem in found if problem.fault]
    awaited: t.List[str] = []
    message = query("status.lastMessage", job) or ""
    if phase == "Deleting":
        awaited.append("finalizers " + ", ".join(finalizers(job)))
    elif not query("status", job):
        awaited.append("the IPU operator has not reconciled the job yet")
    elif phase in ("Pending", "Restarting") and message and not message.startswith(RECONCILED):
        # Such a namespace will not change its mind, unlike a quota, which may have room again later.
        (faults if REFUSED in message else awaited).append(message)
    awaited += [problem.text for problem in found if not problem.fault]
    if phase == "Pending" and not faults:
        awaited += [text for pod in pods for text in waiting_containers(pod)]
    surplus = surplus_pods(job, pods)
    counted = all_instances_run(job)
    ready = phase == "Running" and counted and not surplus
    if phase == "Running" and not counted:
        current, wanted = query("[status.currentReplicas, spec.jobInstances]", job)
        awaited.append(f"{current or 0} of {wanted} instances run")
    if phase in ("Pending", "Running") and surplus:
        awaited.append(f"the operator has not removed {', '.join(surplus)} yet")
    return JobState(phase, ready, list(dict.fromkeys(awaited)), faults)


def job_progress(job: Object, state: JobState) -> JobProgress:
    """The progress to show to people."""
    return {
        "state": state.phase,
        "status": query("status.launcherStatus", job) or "",
        "instances": query("status.currentReplicas", job) or 0,
        "instances_wanted": query("spec.jobInstances", job),
        "workers_active": query("status.workersStatus.active", job) or 0,
        "workers_succeeded": query("status.workersStatus.succeeded", job) or 0,
        "workers_failed": query("status.workersStatus.failed", job) or 0,
        "restarts": query("status.restartCount", job) or 0,
        "message": query("status.lastMessage", job) or "",
        "awaited": [*state.faults, *state.awaited],
    }


def progress_line(progress: JobProgress) -> str:
    """One line for the system log."""
    counts = [progress["workers_active"], progress["workers_succeeded"], progress["workers_failed"]]
    workers = ", ".join(f"{count} {word}" for count, word in zip(counts, ("active", "succeeded", "failed")))
    awaited = f"; awaited: {'; '.join(progress['awaited'])}" if progress["awaited"] else ""
    instances = f"{progress['instances']} of {progress['instances_wanted']} instances"
    return f"{progress['state']}, {instances}, workers {workers}, {progress['restarts']} restarts{awaited}"


def container_exits(pod: Object) -> t.List[ContainerExit]:
    """Containers of a pod that have ended, with their exit codes."""
    ended = query("[?state.terminated].[name, state.terminated]", container_statuses(pod))
    return [
        {"container": name, "exit_code": end.get("exitCode", 0), "reason": end.get("reason") or ""}
        for name, end in ended
    ]


def pod_view(pod: Object) -> PodView:
    return {
        "name": query("metadata.name", pod),
        "role": pod_role(pod),
        "phase": query("status.phase", pod) or "",
        "node": query("spec.nodeName", pod) or "",
        "ip": query("status.podIP", pod) or "",
        "deleting": bool(query("metadata.deletionTimestamp", pod)),
        "exits": container_exits(pod),
        "problems": [problem.text for problem in pod_problems(pod)],
    }


def job_view(job: Object, pods: t.Sequence[Object]) -> JobView:
    """A job as the modules return it."""
    instances, ipus = query("[spec.jobInstances, spec.ipusPerJobInstance]", job)
    return {
        "name": query("metadata.name", job),
        "namespace": query("metadata.namespace", job) or "",
        "labels": query("metadata.labels", job) or {},
        "uid": query("metadata.uid", job) or "",
        "created": query("metadata.creationTimestamp", job) or "",
        "started": query("status.startTime", job) or "",
        "ended": query("status.completionTime", job) or "",
        "deleting": bool(query("metadata.deletionTimestamp", job)),
        "held": has_finalizer(job),
        "ipus": (instances or 0) * int(ipus or 0),
        **job_progress(job, job_state(job, pods)),
        "partitions": partition_names(job),
        "pods": [pod_view(pod) for pod in pods],
        "spec": query("spec", job) or {},
    }
