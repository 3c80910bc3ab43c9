# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a Pod: what keeps it from running, and whether waiting helps. Pure functions."""

from __future__ import annotations

import typing as t

from .query import Object, query

CRASHING = "CrashLoopBackOff"
# Reasons of waiting containers that the kubelet retries again and again without success.
NEVER_STARTS = (
    "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
    CRASHING, "CreateContainerError", "CreateContainerConfigError", "RunContainerError",
)  # fmt: skip
# After one failed pull the next may succeed, so it is a fault only if it stays during the wait.
FAILING = ("ErrImagePull", *NEVER_STARTS)
PULL_STEP = (
    "Correct the image, or have its registry answer the node, or the mirror in the node's /etc/containerd/certs.d. Then"
    " delete the pod: the kubelet would wait up to 5 minutes before it tries again. Run the same command again."
)
CRASHES = 3
LONGEST_MESSAGE = 2048  # bytes of a container's termination message that the kubelet keeps
# Events of a pod whose network could not be set up: its containers then show only ContainerCreating.
SANDBOX_EVENTS = "reason=FailedCreatePodSandBox"
# Events of a pod whose volumes are missing. Waiting does not create a missing host directory.
MOUNT_EVENTS, NO_HOST_PATH = "reason=FailedMount", "hostPath type check failed"
BEGUN = "[?state.running != `null` || state.terminated != `null` || lastState.terminated != `null`]"
UNSCHEDULABLE = "status.conditions[?type=='PodScheduled' && reason=='Unschedulable']"
CRASHED_STEP = "kubectl logs --previous shows what the container printed."
REVISION_LABELS = ("pod-template-hash", "controller-revision-hash")


class Problem(t.NamedTuple):
    """Something that is not ready. A fault does not go away by waiting."""

    text: str
    fault: bool = False
    step: str = ""  # how to fix just this; empty: the next step of the wait


def container_problem(container: Object, crash_is_fault: bool = True) -> t.Optional[Problem]:
    """What keeps a container from running, unless it is just a matter of time."""
    name = container["name"]
    waiting, ended = query("state.waiting", container) or {}, query("state.terminated", container) or {}
    if waiting.get("reason") in FAILING:
        last = query("lastState.terminated", container) or {}
        # The back-off time does not explain the crash; how the container ended does.
        crashed = waiting["reason"] == CRASHING and "exitCode" in last
        detail = how_it_ended(last, container.get("restartCount", 0)) if crashed else waiting.get("message") or ""
        fault = crash_is_fault or waiting["reason"] != CRASHING
        step = PULL_STEP if waiting["reason"] in ("ErrImagePull", "ImagePullBackOff") else ""
        return Problem(f"container {name}: {waiting['reason']} {detail}".strip(), fault, step)
    # Between restarts, a crashing container shows as terminated, on Kubernetes 1.35 most of the time.
    if ended.get("exitCode") and container.get("restartCount", 0) >= CRASHES:
        return Problem(f"container {name} ends with {how_it_ended(ended, container['restartCount'])}", crash_is_fault)
    return None


def running_containers(pod: Object) -> t.List[str]:
    return [each["name"] for each in container_statuses(pod) if "running" in (each.get("state") or {})]


def failed_containers(pod: Object) -> t.List[Problem]:
    """If no container of a pod runs, how they ended: not a fault, since they are retried, but worth showing."""
    found, containers = [], container_statuses(pod)
    if query("[?state.running != `null`]", containers):
        return []
    for container in containers:
        ended = query("state.terminated || lastState.terminated", container) or {}
        if ended.get("exitCode"):
            told = how_it_ended(ended, container.get("restartCount", 0))
            found.append(Problem(f"container {container['name']} ends with {told}", step=CRASHED_STEP))
    return found


def how_it_ended(terminated: Object, restarts: int = 0, longest: int = 300) -> str:
    """Exit code and last words of a container, at most `longest` characters of the latter."""
    words = (terminated.get("message") or terminated.get("reason") or "").strip()[-longest:]
    text = f"exit code {terminated['exitCode']}" + (f", {restarts} restarts" if restarts else "")
    return f"{text}: {words}" if words else text


def crashing(pod: Object) -> t.List[str]:
    """The containers of a pod that keep crashing and left no message."""
    return [
        container["name"]
        for container in container_statuses(pod)
        if container.get("restartCount", 0) >= CRASHES or query("state.waiting.reason", container) == CRASHING
        for end in [query("state.terminated || lastState.terminated", container) or {}]
        if end.get("exitCode") and not end.get("message")
    ]


def last_words(pod: Object) -> t.Dict[str, str]:
    """How the containers that are restarted within a pod failed, by pod/container."""
    # If the pod was deleted, the end of its container is not a failure.
    states = ["lastState"] if query("metadata.deletionTimestamp", pod) else ["state", "lastState"]
    found = {}
    for container in container_statuses(pod):
        ends = [query(f"{state}.terminated", container) or {} for state in states]
        failed = next((end for end in ends if end.get("exitCode")), None)
        if failed:
            where = f"{pod['metadata']['name']}/{container['name']}"
            found[where] = how_it_ended(failed, longest=LONGEST_MESSAGE)
    return found


def sandbox_failures(events: t.Iterable[Object]) -> t.Dict[str, t.List[str]]:
    """The kubelet's messages about pod networks that it could not set up, by pod, repeated as often as they came."""
    found: t.Dict[str, t.List[str]] = {}
    for event in events:
        count = query("series.count || count || `1`", event)
        found.setdefault(event["involvedObject"]["name"], []).extend([event.get("message", "")] * count)
    return found


def waits_for_its_parts(pod: Object) -> bool:
    """Whether a pod has a node, but no container has started: its network or a volume is missing."""
    begun = query(BEGUN, container_statuses(pod))
    return bool(query("spec.nodeName", pod) and query("status.phase", pod) == "Pending" and not begun)


def container_statuses(pod: Object) -> t.List[Object]:
    """The kubelet's status of a pod's containers: init containers first."""
    return query("status.[initContainerStatuses, containerStatuses][]", pod) or []


def pod_problems(pod: Object, crash_is_fault: bool = True) -> t.List[Problem]:
    """Problems of a pod. If it is restarted only a limited number of times, a crash is not a fault."""
    name, found = pod["metadata"]["name"], []
    for container in container_statuses(pod):
        problem = container_problem(container, crash_is_fault)
        if problem:
            found.append(problem._replace(text=f"pod {name}, {problem.text}"))
    for condition in query(UNSCHEDULABLE, pod) or []:
        found.append(Problem(f"pod {name} is on no node yet: {condition.get('message', '')}"))
    return found


def newest_pods(pods: t.Sequence[Object]) -> t.List[Object]:
    """The pods of the newest revision that have not ended.

    Pods of the previous revision may be broken and are being replaced, as are evicted ones.
    """

    def revision(pod: Object) -> str:
        labels = query("metadata.labels", pod) or {}
        return next((labels[key] for key in REVISION_LABELS if key in labels), "")

    pods = [pod for pod in pods if query("status.phase", pod) not in ("Failed", "Succeeded")]
    if not pods:
        return []
    newest = revision(max(pods, key=lambda pod: pod["metadata"].get("creationTimestamp", "")))
    return [pod for pod in pods if revision(pod) == newest]
