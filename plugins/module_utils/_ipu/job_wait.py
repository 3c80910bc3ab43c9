# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for an IPUJob: progress, logs, and the decision when to stop."""

from __future__ import annotations

import time
import typing as t

from .._common.result import FabricError
from .._kube.client import Cluster
from .._kube.job_watch import JobRecorder
from .._kube.pod_resources import NodeResources
from .._kube.query import Object, query
from .._model.failure import Code
from .._model.jobs import ContainerExit, JobEvidence, LogView, ProgressStep
from .job_evidence import collect_evidence, shorten_evidence, write_evidence
from .job_logs import JobLogs
from .job_request import JobRequest
from .job_status import JobState, container_exits, job_progress, job_state, job_view, own_pods, pod_role, progress_line
from .operator import operator_fault

# Seconds for which a fault, a missing job, or an end that may still become a restart must persist before it counts.
PATIENCE = 20
# Seconds for which a restarted API server may refuse what it accepted before, while it fills its caches.
GRACE = 30
ASK_OPERATOR = 15  # seconds between two checks of the operator


class JobError(FabricError):
    """A FabricError with the known facts about the job."""


class Sustained:
    """How long a condition has been true without a break."""

    def __init__(self, clock: t.Callable[[], float]) -> None:
        self.clock = clock
        self.since: t.Optional[float] = None

    def lasts(self, condition: bool, seconds: float) -> bool:
        self.since = None if not condition else self.clock() if self.since is None else self.since
        return self.since is not None and self.clock() - self.since >= seconds


class JobWait:
    """A wait for one job, from its start until it reaches the wanted state, or a JobError."""

    def __init__(
        self,
        cluster: Cluster,
        path: str,
        request: JobRequest,
        log: t.Callable[[str], None],
        clock: t.Callable[[], float] = time.monotonic,
        recorder: t.Optional[JobRecorder] = None,
    ) -> None:
        self.recorder = recorder
        self.cluster, self.path, self.request, self.log, self.clock = cluster, path, request, log, clock
        self.start = self.answered = clock()
        self.operator_asked, self.operator = -float(ASK_OPERATOR), ""
        self.resources = NodeResources(cluster, clock)
        self.progress: t.List[ProgressStep] = []
        self.exits: t.Dict[str, t.List[ContainerExit]] = {}
        self.job: Object = {}
        self.pods: t.List[Object] = []
        self.faulty, self.missing, self.restarting = Sustained(clock), Sustained(clock), Sustained(clock)
        self.logs = JobLogs(cluster, request.namespace, request.logs["path"] or "", request.logs["tail"])
        self.written: t.List[LogView] = []

    @property
    def elapsed(self) -> float:
        return self.clock() - self.start

    @property
    def where(self) -> str:
        return f"{self.request.where}, after {self.elapsed:.0f} s"

    def wait_for(self, goal: str) -> None:
        """Wait until the job runs (`present`, `scaled`) or has ended (`finished`)."""
        try:
            while not self.is_done(goal):
                time.sleep(min(1.0, 0.5 + self.elapsed / 60))
        finally:
            self.written = self.logs.close()

    def observe(self) -> t.Optional[JobState]:
        """Read the job and its pods; None if they can't be read."""
        try:
            job = self.cluster.get(self.path)
            pods = self.cluster.items(f"/api/v1/namespaces/{self.request.namespace}/pods", resourceVersion="0")
        except FabricError:
            if not self.job or self.clock() - self.answered > GRACE:
                raise
            return None
        self.answered = self.clock()
        if self.missing.lasts(job is None, PATIENCE):
            step = "Find out who deleted it."
            raise self.error("was deleted during the wait", "no such object", step, "not-found")
        if job is None:
            return None
        self.job, self.pods = job, own_pods(job, pods)
        # A recreated pod has no exits yet: keep those of the previous one.
        exits = [(query("metadata.name", pod), container_exits(pod)) for pod in self.pods]
        self.exits.update({name: ended for name, ended in exits if ended})
        self.logs.follow(self.pods)
        if self.recorder:
            self.recorder.look([pod for pod in self.pods if pod_role(pod) == "worker"])
        state, unknown = job_state(job, self.pods), self.resources.problems(self.pods)
        return self.record(state._replace(faults=[*state.faults, *(problem.text for problem in unknown)]))

    def record(self, state: JobState) -> JobState:
        """Record changes of the progress, and whether the operator is unavailable."""
        if state.phase in ("Pending", "Restarting", "Running") and self.clock() - self.operator_asked >= ASK_OPERATOR:
            self.operator_asked, self.operator = self.clock(), operator_fault(self.cluster)
        if self.operator:
            state = state._replace(awaited=[*state.awaited, self.operator])
        progress = job_progress(self.job, state)
        if not self.progress or {**progress, "seconds": self.progress[-1]["seconds"]} != self.progress[-1]:
            self.progress.append({**progress, "seconds": round(self.elapsed, 1)})
            self.log(f"{self.where}: {progress_line(progress)}")
        return state

    def is_done(self, goal: str) -> bool:
        """True if the job has reached its goal; JobError if it can't get there or the time is up."""
        state = self.observe()
        if state is not None:
            stuck = self.restarting.lasts(state.phase == "Restarting", PATIENCE)
            failed = query("status.launcherStatus", self.job) != "Completed"
            if state.phase == "Failed" or (stuck and failed):
                raise self.failure()
            if state.phase == "Completed" or stuck or (goal != "finished" and state.ready):
                return True
            if self.faulty.lasts(bool(state.faults), PATIENCE):
                raise self.error(
                    "can't start, so the wait was stopped early",
                    "; ".join(state.faults),
                    f"Fix what is named (image, resource, secret, rights), then {self.again()}",
                )
        if self.elapsed >= self.request.wait_timeout:
            seen = state or JobState("unknown", False, ["the Kubernetes API"], [])
            wanted = "has not ended" if goal == "finished" else "does not run"
            awaited = [*seen.faults, *seen.awaited, *self.warnings()]
            raise self.error(
                f"{wanted} within wait_timeout",
                f"state {seen.phase}; " + ("; ".join(dict.fromkeys(awaited)) or "it is at work"),
                "The job was left as it is: run again to wait longer, raise wait_timeout, or fix what it waits for.",
                "timeout",
            )
        return False

    def warnings(self) -> t.List[str]:
        """The newest warning about each pending pod: networks, volumes, scheduling."""
        names = query("[?status.phase == 'Pending'].metadata.name", self.pods)
        if not names:
            return []
        path = f"/api/v1/namespaces/{self.request.namespace}/events"
        try:
            events = self.cluster.items(path, fieldSelector="type=Warning")
        except FabricError:
            return []
        texts = query("[?involvedObject.kind == 'Pod'].[involvedObject.name, reason, message]", events)
        newest = {name: f"pod {name}: {reason}: {message}" for name, reason, message in texts}
        return [newest[name] for name in sorted(set(names) & set(newest))]

    def failure(self) -> JobError:
        """The error for a failed job: the last message, exit codes, and the last lines of the logs."""
        self.written = self.logs.close()
        ends = [
            f"{pod}, container {end['container']}: exit code {end['exit_code']} {end['reason']}".strip()
            for pod, exits in sorted(self.exits.items())
            for end in exits
            if end["exit_code"]
        ]
        lines = [f"{log['name']} ends with: {' | '.join(log['tail'][-5:])}" for log in self.written if log["tail"]]
        message = query("status.lastMessage", self.job) or "no message"
        restarts = query("status.restartCount", self.job) or 0
        return self.error(
            "failed",
            "; ".join([message, *ends, f"{restarts} restarts", *lines]),
            f"Fix what its log names, then {self.again()}",
        )

    def again(self) -> str:
        """How to replace a job that did not succeed, and what it holds until then."""
        name, namespace = self.request.name, self.request.namespace
        return (
            f"run again{'' if self.request.recreate else ' with recreate: true'}. Until then the job keeps its"
            f" {'pods and IPUs' if self.pods else 'IPUs'}; kubectl delete ipujob -n {namespace} {name} frees them."
        )

    def error(self, how: str, seen: str, next_step: str, code: Code = "not-ready") -> JobError:
        self.written = self.logs.close()
        what = f"The job {self.request.name} {how}."
        facts = {**self.result(), "evidence": self.evidence()}
        return JobError(what, self.where, seen, next_step, code=code, facts=facts)

    def evidence(self) -> JobEvidence:
        """What explains the failure besides the job's own logs. Errors here do not hide that failure."""
        found = collect_evidence(self.cluster, self.request.namespace, self.request.name, self.job)
        if self.request.logs["path"]:
            try:
                found = write_evidence(found, self.request.logs["path"], self.request.name)
            except OSError as error:
                self.log(f"{self.where}: the evidence could not be written: {error}")
        return shorten_evidence(found, self.request.logs["tail"])

    def result(self) -> t.Dict[str, t.Any]:
        """The module's result of the wait, however it ended."""
        return {
            "job": job_view(self.job, self.pods) if self.job else {},
            "progress": self.progress,
            "logs": self.written,
            "waited": round(self.elapsed, 1),
            "record": self.recorder.finish(self.job, self.path) if self.recorder else {},
        }
