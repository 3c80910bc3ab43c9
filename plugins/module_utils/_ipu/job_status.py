# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an IPUJob is, judged from its status and its pods: pure functions."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_spec import held, partitions
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Object, field
from ansible_collections.ipu.fabric.plugins.module_utils._kube.pods import container_statuses, pod_problems
from ansible_collections.ipu.fabric.plugins.module_utils._kube.readiness import condition_true

ENDED = ("Completed", "Succeeded")
FAILED = ("Failed", "Error")
BACK_OFF_LIMIT = 3
# What the operator says when there is nothing to say.
CONTENT = "Successfully reconciled"
# A namespace that refuses the pods of a job goes on to do so; a quota may have room again later.
REFUSED = "violates PodSecurity"


class State(t.NamedTuple):
    """What can be said of a job at one moment.

    phase: Pending, Running, Restarting, Completed, Failed or Deleting; ready: every instance runs; awaited: what it
    waits for; faults: what no waiting mends.
    """

    phase: str
    ready: bool
    awaited: t.List[str]
    faults: t.List[str]


def own_pods(job: Object, pods: t.Sequence[Object]) -> t.List[Object]:
    """The job's pods among those of its namespace: the launcher first, then the workers by number."""
    pattern = re.compile(re.escape(job["metadata"]["name"]) + r"-(?:launcher|worker-(\d+))")
    found = []
    for pod in pods:
        match = pattern.fullmatch(pod["metadata"]["name"])
        # A job that was made anew under the same name is not meant by the pods of the one before.
        owners = [o["uid"] for o in pod["metadata"].get("ownerReferences") or [] if o.get("kind") == "IPUJob"]
        if match and (not owners or job["metadata"].get("uid") in owners):
            found.append((int(match[1] or -1), pod))
    return [pod for _number, pod in sorted(found, key=lambda pair: pair[0])]


def role(pod: Object) -> str:
    return "launcher" if pod["metadata"]["name"].endswith("-launcher") else "worker"


def has_launcher(job: Object) -> bool:
    return bool(field(job, "spec.launcher") or field(job, "spec.interactive"))


def restarts_left(job: Object, failed: bool) -> bool:
    """Whether the operator may start the job once more. It alone knows what ExitCode makes of an exit code."""
    policy = field(job, "spec.restartPolicy") or {}
    limit = policy.get("backOffLimit", BACK_OFF_LIMIT)
    if field(job, "spec.cleanPodPolicy") == "All" or (field(job, "status.restartCount") or 0) >= limit:
        return False
    return policy.get("type") == "Always" or (failed and policy.get("type") in ("OnFailure", "ExitCode"))


def pods_failed(job: Object, pods: t.Sequence[Object]) -> bool:
    """Whether a pod that decides about the job has failed: the launcher, or any worker of a job without one."""
    deciding = "launcher" if has_launcher(job) else "worker"
    return any(role(pod) == deciding and field(pod, "status.phase") == "Failed" for pod in pods)


def phase_of(job: Object, pods: t.Sequence[Object]) -> str:
    """The job's state in one word."""
    if field(job, "metadata.deletionTimestamp"):
        return "Deleting"
    word = field(job, "status.launcherStatus") or "Pending"
    complete = bool(field(job, "status.completionTime"))
    failed = word in FAILED
    if complete or word in ENDED:
        failed = failed or condition_true(job, "Failed") or pods_failed(job, pods)
    if not (complete or failed or word in ENDED):
        return "Running" if word == "Running" else "Pending"
    if not complete and restarts_left(job, failed):
        return "Restarting"
    return "Failed" if failed else "Completed"


def all_instances_run(job: Object) -> bool:
    """Whether the status is of the wanted number of instances; right after a scale it is still of the one before."""
    status, wanted = job.get("status") or {}, field(job, "spec.jobInstances")
    if has_launcher(job):
        return True
    return status.get("desiredReplicas") == wanted and status.get("currentReplicas", 0) == wanted


def starting(pod: Object) -> t.List[str]:
    """Containers that wait for something, in the kubelet's words."""
    waiting = [(each["name"], field(each, "state.waiting") or {}) for each in container_statuses(pod)]
    name = pod["metadata"]["name"]
    return [f"pod {name}, container {c}: {w['reason']}" for c, w in waiting if w.get("reason")]


def judge(job: Object, pods: t.Sequence[Object]) -> State:
    """The state of a job, from the object and its pods."""
    phase = phase_of(job, pods)
    found = [problem for pod in pods for problem in pod_problems(pod)]
    faults = [problem.text for problem in found if problem.fault]
    awaited: t.List[str] = []
    message = field(job, "status.lastMessage") or ""
    if phase == "Deleting":
        awaited.append("finalizers " + ", ".join(field(job, "metadata.finalizers") or []))
    elif not job.get("status"):
        awaited.append("the IPU operator has not taken the job up yet")
    elif phase in ("Pending", "Restarting") and message and not message.startswith(CONTENT):
        (faults if REFUSED in message else awaited).append(message)
    awaited += [problem.text for problem in found if not problem.fault]
    if phase == "Pending":
        awaited += [text for pod in pods for text in starting(pod) if not faults]
    ready = phase == "Running" and all_instances_run(job)
    if phase == "Running" and not ready:
        counts = [field(job, f"status.{name}") or 0 for name in ("currentReplicas", "desiredReplicas")]
        awaited.append(f"{counts[0]} of {field(job, 'spec.jobInstances')} instances are there")
    return State(phase, ready, list(dict.fromkeys(awaited)), faults)


def step(job: Object, state: State) -> Object:
    """One entry of the progress: what a person wants to see change."""
    workers = field(job, "status.workersStatus") or {}
    return {
        "state": state.phase,
        "status": field(job, "status.launcherStatus") or "",
        "instances": field(job, "status.currentReplicas") or 0,
        "instances_wanted": field(job, "spec.jobInstances"),
        "workers_active": workers.get("active", 0),
        "workers_succeeded": workers.get("succeeded", 0),
        "workers_failed": workers.get("failed", 0),
        "restarts": field(job, "status.restartCount") or 0,
        "message": field(job, "status.lastMessage") or "",
        "awaited": [*state.faults, *state.awaited],
    }


def step_line(entry: Object) -> str:
    workers = ", ".join(f"{entry['workers_' + w]} {w}" for w in ("active", "succeeded", "failed"))
    awaited = f"; awaited: {'; '.join(entry['awaited'])}" if entry["awaited"] else ""
    instances = f"{entry['instances']} of {entry['instances_wanted']} instances"
    return f"{entry['state']}, {instances}, workers {workers}, {entry['restarts']} restarts{awaited}"


def exits(pod: Object) -> t.List[Object]:
    """Containers of a pod that have ended: name, exit code and reason."""
    found = []
    for container in container_statuses(pod):
        ended = field(container, "state.terminated")
        if ended:
            reason = ended.get("reason") or ""
            found.append({"container": container["name"], "exit_code": ended.get("exitCode", 0), "reason": reason})
    return found


def pod_view(pod: Object) -> Object:
    return {
        "name": pod["metadata"]["name"],
        "role": role(pod),
        "phase": field(pod, "status.phase") or "",
        "node": field(pod, "spec.nodeName") or "",
        "ip": field(pod, "status.podIP") or "",
        "exits": exits(pod),
        "problems": [problem.text for problem in pod_problems(pod)],
    }


def job_view(job: Object, pods: t.Sequence[Object]) -> Object:
    """What the modules return of a job."""
    state, metadata, spec = judge(job, pods), job["metadata"], job.get("spec") or {}
    return {
        "name": metadata["name"],
        "namespace": metadata.get("namespace", ""),
        "labels": metadata.get("labels") or {},
        "uid": metadata.get("uid", ""),
        "created": metadata.get("creationTimestamp", ""),
        "started": field(job, "status.startTime") or "",
        "ended": field(job, "status.completionTime") or "",
        "deleting": bool(metadata.get("deletionTimestamp")),
        "held": held(job),
        "ipus": (spec.get("jobInstances") or 0) * int(spec.get("ipusPerJobInstance") or 0),
        **step(job, state),
        "partitions": partitions(job),
        "pods": [pod_view(pod) for pod in pods],
        "spec": spec,
    }
