# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the status of a Pod says: what keeps it from running, and whether that passes by waiting. Pure."""

from __future__ import annotations

import typing as t

from .query import Object, query

CRASHING = "CrashLoopBackOff"
# Reasons for which a container waits, and the kubelet tries again and again without success.
NEVER_STARTS = (
    "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
    CRASHING, "CreateContainerError", "CreateContainerConfigError", "RunContainerError",
)  # fmt: skip
# After one failed pull the next may succeed: a fault only for a wait that sees whether it stays.
FAILING = ("ErrImagePull", *NEVER_STARTS)
CRASHES = 3
LONGEST_MESSAGE = 2048  # bytes that the kubelet keeps of a container's last words
# Events of a pod whose network could not be set up: its containers show nothing but ContainerCreating then.
SANDBOX_EVENTS = "reason=FailedCreatePodSandBox"
# And of one whose volumes are not there. A directory of the host that is missing does not come by waiting.
MOUNT_EVENTS, NO_HOST_PATH = "reason=FailedMount", "hostPath type check failed"
BEGUN = "[?state.running != `null` || state.terminated != `null` || lastState.terminated != `null`]"
UNSCHEDULABLE = "status.conditions[?type=='PodScheduled' && reason=='Unschedulable']"
CRASHED_STEP = "kubectl logs --previous shows what the container printed."
REVISION_LABELS = ("pod-template-hash", "controller-revision-hash")


class Problem(t.NamedTuple):
    """Something that is not ready. A fault is one that does not pass by waiting."""

    text: str
    fault: bool = False
    step: str = ""  # what cures just this; empty: what the wait says


def container_problem(container: Object, crash_is_fault: bool = True) -> t.Optional[Problem]:
    """What keeps one container from running, if it is more than a matter of time."""
    name = container["name"]
    waiting, ended = query("state.waiting", container) or {}, query("state.terminated", container) or {}
    if waiting.get("reason") in FAILING:
        last = query("lastState.terminated", container) or {}
        # How long the kubelet backs off says nothing of why it does; how the container ended does.
        crashed = waiting["reason"] == CRASHING and "exitCode" in last
        detail = how_it_ended(last, container.get("restartCount", 0)) if crashed else waiting.get("message") or ""
        fault = crash_is_fault or waiting["reason"] != CRASHING
        return Problem(f"container {name}: {waiting['reason']} {detail}".strip(), fault)
    # Between two restarts a crashing container shows as terminated, on Kubernetes 1.35 most of the time.
    if ended.get("exitCode") and container.get("restartCount", 0) >= CRASHES:
        return Problem(f"container {name} ends with {how_it_ended(ended, container['restartCount'])}", crash_is_fault)
    return None


def running_containers(pod: Object) -> t.List[str]:
    return [each["name"] for each in container_statuses(pod) if "running" in (each.get("state") or {})]


def failed_containers(pod: Object) -> t.List[Problem]:
    """Of a pod in which none runs, how they ended: a wait gives them more attempts, a person wants to know."""
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
    """Exit code and last words of a container, at most `longest` characters of them."""
    words = (terminated.get("message") or terminated.get("reason") or "").strip()[-longest:]
    text = f"exit code {terminated['exitCode']}" + (f", {restarts} restarts" if restarts else "")
    return f"{text}: {words}" if words else text


def crashing(pod: Object) -> t.List[str]:
    """The containers of a pod that crash again and again, and left no message."""
    return [
        container["name"]
        for container in container_statuses(pod)
        if container.get("restartCount", 0) >= CRASHES or query("state.waiting.reason", container) == CRASHING
        for end in [query("state.terminated || lastState.terminated", container) or {}]
        if end.get("exitCode") and not end.get("message")
    ]


def last_words(pod: Object) -> t.Dict[str, str]:
    """How the containers of a pod failed that are started again in it, by pod/container."""
    # How a container of a deleted pod ends is no failure of its own.
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
    """Whether a pod is on a node, and none of its containers has begun: its network or a volume is not there yet."""
    begun = query(BEGUN, container_statuses(pod))
    return bool(query("spec.nodeName", pod) and query("status.phase", pod) == "Pending" and not begun)


def container_statuses(pod: Object) -> t.List[Object]:
    """What the kubelet says of a pod's containers: init containers first."""
    return query("status.[initContainerStatuses, containerStatuses][]", pod) or []


def pod_problems(pod: Object, crash_is_fault: bool = True) -> t.List[Problem]:
    """Of a pod that somebody starts again only so many times, a crash is not a fault."""
    name, found = pod["metadata"]["name"], []
    for container in container_statuses(pod):
        problem = container_problem(container, crash_is_fault)
        if problem:
            found.append(Problem(f"pod {name}, {problem.text}", problem.fault))
    for condition in query(UNSCHEDULABLE, pod) or []:
        found.append(Problem(f"pod {name} is on no node yet: {condition.get('message', '')}"))
    return found


def newest_pods(pods: t.Sequence[Object]) -> t.List[Object]:
    """The pods of the newest revision that have not ended.

    Those of the revision before may be broken, and are being replaced, as one is that was evicted.
    """

    def revision(pod: Object) -> str:
        labels = query("metadata.labels", pod) or {}
        return next((labels[key] for key in REVISION_LABELS if key in labels), "")

    pods = [pod for pod in pods if query("status.phase", pod) not in ("Failed", "Succeeded")]
    if not pods:
        return []
    newest = revision(max(pods, key=lambda pod: pod["metadata"].get("creationTimestamp", "")))
    return [pod for pod in pods if revision(pod) == newest]
