# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What explains why a job failed: its conditions, its events, and the logs of the operator and the V-IPU proxy."""

from __future__ import annotations

import json
import os
import tempfile
import typing as t

from .._common.result import FabricError
from .._kube.client import ApiError, Cluster, TransportError, message_of
from .._kube.query import Object, query
from .._model.jobs import ComponentLog, JobCondition, JobEvidence

# The label of the controller and the V-IPU proxy.
COMPONENTS = "app.kubernetes.io/name=ipu-operator"
# Containers whose logs contain only requests for metrics.
UNTOLD = ("kube-rbac-proxy",)
LINES = 200  # of each container
BYTES = 100_000
EVENTS = 50
LOG_TIMEOUT = (10, 20)


def job_conditions(job: Object) -> t.List[JobCondition]:
    """The conditions as the operator wrote them, oldest change first."""
    found: t.List[JobCondition] = [
        {
            "type": condition.get("type") or "",
            "status": condition.get("status") or "",
            "reason": condition.get("reason") or "",
            "message": condition.get("message") or "",
            "changed": condition.get("lastTransitionTime") or "",
        }
        for condition in query("status.conditions", job) or []
    ]
    return sorted(found, key=lambda condition: condition["changed"])


def event_time(event: Object) -> str:
    """When an event was last seen, as far as its source says."""
    return query("lastTimestamp || series.lastObservedTime || eventTime || metadata.creationTimestamp", event) or ""


def is_about(name: str, event: Object) -> bool:
    """Whether an event concerns the job or one of its pods."""
    kind, about = query("involvedObject.[kind, name]", event) or ("", "")
    if kind == "IPUJob":
        return bool(about == name)
    pods = (f"{name}-launcher", f"{name}-worker-")
    return bool(kind == "Pod" and about and (about == pods[0] or (about.startswith(pods[1]) and about[-1].isdigit())))


def job_events(name: str, events: t.Sequence[Object]) -> t.List[str]:
    """The newest events in chronological order, each in one line."""
    lines = []
    for event in sorted((event for event in events if is_about(name, event)), key=event_time):
        kind, about = query("involvedObject.[kind, name]", event)
        count = event.get("count") or 1
        times = f" ({count} times)" if count > 1 else ""
        text = " ".join((event.get("message") or "").split())
        lines.append(f"{event_time(event)} {event.get('type')} {kind} {about}: {event.get('reason')}: {text}{times}")
    return lines[-EVENTS:]


def component_containers(pods: t.Sequence[Object]) -> t.List[t.Tuple[str, str, str]]:
    """Namespace, pod and container of components whose logs may help."""
    found = [
        (*query("metadata.[namespace, name]", pod), container)
        for pod in pods
        for container in query("spec.containers[].name", pod) or []
        if container not in UNTOLD
    ]
    return sorted(found)


def read_tail(cluster: Cluster, namespace: str, pod: str, container: str, since: str) -> t.List[str]:
    """The last lines of a log, from the time of the job's creation on."""
    asked: t.List[t.Tuple[str, t.Any]] = [("container", container), ("timestamps", "true")]
    asked += [("tailLines", LINES), ("limitBytes", BYTES)]
    answer = cluster.client.request(
        "get",
        f"/api/v1/namespaces/{namespace}/pods/{pod}/log",
        query_params=asked + ([("sinceTime", since)] if since else []),
        serialize=False,
        _request_timeout=LOG_TIMEOUT,
    )
    return t.cast(t.List[str], answer.data.decode("utf-8", "replace").splitlines())


def component_logs(cluster: Cluster, since: str) -> t.List[ComponentLog]:
    """The logs of the controller and the V-IPU proxy. If the user may not read them, the reason instead."""
    try:
        pods = cluster.items("/api/v1/pods", labelSelector=COMPONENTS)
    except FabricError as error:
        return [{"name": "ipu-operator", "lines": [], "error": error.seen}]
    if not pods:
        return [{"name": "ipu-operator", "lines": [], "error": f"no pod has the labels {COMPONENTS}"}]
    logs: t.List[ComponentLog] = []
    for namespace, pod, container in component_containers(pods):
        lines, fault = [], ""
        try:
            lines = read_tail(cluster, namespace, pod, container, since)
        except (ApiError, TransportError, FabricError, OSError, ValueError) as error:
            fault = message_of(error) if isinstance(error, ApiError) else str(error)
        logs.append({"name": f"{namespace}/{pod}.{container}", "lines": lines, "error": fault})
    return logs


def collect_evidence(cluster: Cluster, namespace: str, name: str, job: Object) -> JobEvidence:
    """Everything that can be read now. What can't be read is reported, and does not affect the rest."""
    try:
        events, fault = cluster.items(f"/api/v1/namespaces/{namespace}/events"), ""
    except FabricError as error:
        events, fault = [], error.seen
    return {
        "conditions": job_conditions(job),
        "events": job_events(name, events) if not fault else [f"events can't be read: {fault}"],
        "operator": component_logs(cluster, query("metadata.creationTimestamp", job) or ""),
        "file": "",
    }


def write_evidence(evidence: JobEvidence, folder: str, name: str) -> JobEvidence:
    """Write the evidence atomically beside the logs; returns it with the path of the file."""
    path = os.path.join(folder, f"{name}.evidence.json")
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".", delete=False, encoding="utf-8") as file:
        json.dump({key: value for key, value in evidence.items() if key != "file"}, file, indent=2)
        file.write("\n")
    os.replace(file.name, path)
    return {**evidence, "file": path}


def shorten_evidence(evidence: JobEvidence, tail: int) -> JobEvidence:
    """Shorten the evidence for the result: the file has all lines."""
    logs: t.List[ComponentLog] = [
        {**log, "lines": log["lines"][-tail:] if tail else []} for log in evidence["operator"]
    ]
    return {**evidence, "operator": logs}
