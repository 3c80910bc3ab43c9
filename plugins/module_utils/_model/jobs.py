# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPUJobs, their pods and logs, and the IPUs that are free, as ipujob and ipujob_info return them."""

from __future__ import annotations

import typing as t

# Annotations of a job: whether to record which path its data takes, and what was recorded.
ASKED, MOVED = "fabric.ipu/record", "fabric.ipu/moved"


class ContainerExit(t.TypedDict):
    """A container that has ended."""

    container: str
    exit_code: int
    reason: str  # the kubelet's word, such as OOMKilled; may be empty


class PodView(t.TypedDict):
    """A pod of a job. Empty text: not known yet."""

    name: str
    role: str  # launcher or worker
    phase: str  # as the API has it
    node: str
    ip: str
    deleting: bool  # it is being deleted
    exits: t.List[ContainerExit]
    problems: t.List[str]


class JobProgress(t.TypedDict):
    """How far a job is."""

    state: str  # Pending, Running, Restarting, Completed, Failed or Deleting
    status: str  # the operator's own word; empty until it has reconciled the job
    instances: int
    instances_wanted: t.Optional[int]
    workers_active: int
    workers_succeeded: int
    workers_failed: int
    restarts: int
    message: str  # the operator's latest
    awaited: t.List[str]  # what the job waits for, faults first


class ProgressStep(JobProgress):
    """A change that was seen during a wait."""

    seconds: float  # since the wait began


class JobView(JobProgress):
    """A job. Times are text, as in the API; empty: not yet."""

    name: str
    namespace: str
    labels: t.Dict[str, str]
    uid: str
    created: str
    started: str
    ended: str
    deleting: bool
    held: bool  # the operator's finalizer is set: it has not released the partitions yet
    ipus: int  # of all instances
    partitions: t.List[str]  # names in V-IPU
    pods: t.List[PodView]
    spec: t.Mapping[str, object]  # as the API has it


class LogView(t.TypedDict):
    """The log of one container."""

    name: str  # POD.CONTAINER
    file: str  # path; empty: none was written
    tail: t.List[str]  # the last lines
    error: str  # why it could not be read; empty: it could


class JobCondition(t.TypedDict):
    """A condition of a job's status, in the operator's words."""

    type: str
    status: str  # True or False
    reason: str
    message: str
    changed: str  # time, as in the API


class ComponentLog(t.TypedDict):
    """The end of the log of the IPU operator's controller or V-IPU proxy, since the job was created."""

    name: str  # NAMESPACE/POD.CONTAINER
    lines: t.List[str]
    error: str  # why it could not be read; empty: it could


class JobEvidence(t.TypedDict):
    """What explains a job that did not end well, apart from its own logs."""

    conditions: t.List[JobCondition]
    events: t.List[str]  # of the job and its pods, newest last
    operator: t.List[ComponentLog]
    file: str  # holds all of it; empty: none was written


class IpuCount(t.TypedDict):
    """IPUs as the V-IPU proxy reports them."""

    used: int
    available: int
    ipus: int  # used and available together


class PartitionRoom(t.TypedDict):
    """How many more partitions of one size are possible."""

    size: int  # IPUs
    partitions: int
    fits: bool  # at least one is possible
    message: str  # the proxy's


class IpuUsage(t.TypedDict):
    """The answers of the V-IPU proxy."""

    total: IpuCount
    namespaces: t.Dict[str, IpuCount]
    sizes: t.List[PartitionRoom]
