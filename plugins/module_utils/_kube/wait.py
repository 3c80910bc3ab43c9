# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for nodes, objects, networks, pods and jobs: one loop, which stops early if waiting can't help."""

from __future__ import annotations

import contextlib
import time
import typing as t
from dataclasses import dataclass

from ansible.module_utils.basic import AnsibleModule

from .._common.cni import NO_CNI, WRITE_AGAIN
from .._common.result import FabricError
from .._model.failure import Code
from .client import Cluster, connect
from .job_watch import JobWatch, Recorders
from .multus import Attachment, nad_faults, nad_reference
from .nodes import not_ready
from .pod_problems import Problem
from .query import Object
from .readiness import ObjectWatch, ReadyOptions
from .start_pods import PodWatch


class Watch(t.Protocol):
    """Something to wait for."""

    what: str  # its name in the error message
    next_step: str

    def problems(self) -> t.List[Problem]:
        """Everything that is not ready now."""


class NodeWatch:
    """Nodes that must be Ready."""

    what = "nodes"
    next_step = "See journalctl -u kubelet on these hosts, and kubectl get pods -A for the pod network."

    def __init__(self, cluster: Cluster, names: t.Sequence[str]) -> None:
        self.cluster, self.names = cluster, names

    def problems(self) -> t.List[Problem]:
        reasons = not_ready(self.cluster.items("/api/v1/nodes"), self.names)
        step = f"If it stays so, {WRITE_AGAIN}."
        return [Problem(f"{name}: {why}", step=step if NO_CNI.search(why) else "") for name, why in reasons.items()]


class AttachmentWatch:
    """NetworkAttachmentDefinitions that must match the plan, whichever controller creates them."""

    what = "network attachments"
    next_step = "Read the log of the controller that creates them."

    def __init__(self, cluster: Cluster, attachments: t.Sequence[Attachment]) -> None:
        self.cluster, self.attachments = cluster, attachments

    def problems(self) -> t.List[Problem]:
        faults = [nad_faults(self.cluster.read(nad_reference(wanted)), wanted) for wanted in self.attachments]
        return [Problem(text) for texts in faults for text in texts]


@dataclass
class Limits:
    """How long to wait, in seconds, and the next step in the error."""

    what: str
    next_step: str
    timeout: float  # in all
    patience: float  # for which a fault must persist before the wait is given up
    settle: float  # for which everything must stay ready


class Wait:
    """The clock of a wait: faults, and readiness, count only after they have persisted for a while."""

    def __init__(self, limits: Limits, clock: t.Callable[[], float] = time.monotonic) -> None:
        self.limits, self.clock = limits, clock
        self.start = clock()
        self.faulty_since: t.Optional[float] = None
        self.ready_since: t.Optional[float] = None

    def elapsed(self) -> float:
        return self.clock() - self.start

    def done(self, problems: t.Sequence[Problem]) -> bool:
        """True if ready; FabricError if that will never happen or the time is up."""
        now, faults = self.clock(), [problem for problem in problems if problem.fault]
        self.ready_since = None if problems else now if self.ready_since is None else self.ready_since
        self.faulty_since = None if not faults else now if self.faulty_since is None else self.faulty_since
        if self.ready_since is not None and now - self.ready_since >= self.limits.settle:
            return True
        if self.faulty_since is not None and now - self.faulty_since >= self.limits.patience:
            raise self.error("was stopped early, since waiting longer can't help", faults, "not-ready")
        if self.elapsed() >= self.limits.timeout:
            raise self.error("took too long", problems or [Problem("not ready for long enough")], "timeout")
        return False

    def error(self, how: str, problems: t.Sequence[Problem], code: Code) -> FabricError:
        steps = dict.fromkeys(problem.step for problem in problems if problem.step)
        return FabricError(
            f"Waiting for {self.limits.what} {how}.",
            f"after {self.elapsed():.0f} s",
            "; ".join(dict.fromkeys(problem.text for problem in problems)),
            " ".join(steps) or self.limits.next_step,
            code=code,
        )


def watches(cluster: Cluster, params: Object, recorders: t.Optional[Recorders] = None) -> t.List[Watch]:
    """The watches for what the options ask to wait for."""
    found: t.List[Watch] = []
    if params["nodes"] is not None:
        found.append(NodeWatch(cluster, params["nodes"]))
    if any(params[name] is not None for name in ("objects", "crds", "accepted")):
        found.append(ObjectWatch(cluster, t.cast(ReadyOptions, params)))
    if params["attachments"] is not None:
        found.append(AttachmentWatch(cluster, params["attachments"]))
    if params["pods"] is not None:
        found.append(PodWatch(cluster, params["pods"], params["timeout"]))
    if params["job"] is not None:
        found.append(JobWatch(cluster, params["job"], recorders))
    return found


def wait_for(module: AnsibleModule, recorders: t.Optional[Recorders] = None) -> t.Dict[str, t.Any]:
    """Body of the module kube_wait. recorders: record jobs that ask for it."""
    params, cluster = module.params, connect(module)
    found = watches(cluster, params, recorders)
    jobs = [watch for watch in found if isinstance(watch, JobWatch)]
    if module.check_mode:
        # A job is left out, since the existing one may be of a former run, and so are pods, which would be created.
        asked = [watch for watch in found if not isinstance(watch, (JobWatch, PodWatch)) and cluster.present]
        pending = [problem.text for watch in asked for problem in watch.problems()]
        return {"changed": False, "waited": 0.0, "pending": pending, "status": {}, "logs": {}, "record": {}}
    what = params["what"] or " and ".join(watch.what for watch in found)
    next_step = " ".join(dict.fromkeys(watch.next_step for watch in found))
    wait = Wait(Limits(what, next_step, params["timeout"], params["patience"], params["settle"]))
    with contextlib.ExitStack() as stack:
        for watch in found:
            if isinstance(watch, PodWatch):
                stack.enter_context(watch)
        try:
            while not wait.done([problem for watch in found for problem in watch.problems()]):
                time.sleep(params["sleep"])
        except FabricError as error:
            error.facts["record"] = record_of(jobs)
            raise
    status = {key: value for watch in jobs for key, value in watch.status.items()}
    logs = {place: text for watch in jobs for place, text in watch.logs().items()}
    ended = {"changed": False, "waited": round(wait.elapsed(), 1), "pending": []}
    return {**ended, "status": status, "logs": logs, "record": record_of(jobs)}


def record_of(jobs: t.Sequence[JobWatch]) -> t.Dict[str, t.Any]:
    """The record of the only job, if there is one."""
    return {key: value for watch in jobs for key, value in watch.record().items()}
