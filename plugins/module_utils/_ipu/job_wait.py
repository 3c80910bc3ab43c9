# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for an IPUJob: its progress, its logs, and when to stop."""

from __future__ import annotations

import time
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_logs import Logs
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_status import (
    State,
    exits,
    job_view,
    judge,
    own_pods,
    step,
    step_line,
)
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster, Object, field
from ansible_collections.ipu.fabric.plugins.module_utils._kube.readiness import condition_true

# Seconds that a fault, a gone job or an end that may still become a restart has to stay before it counts.
PATIENCE = 20
# Seconds for which an API server that has just restarted may refuse what it answered before: it fills its caches.
GRACE = 30
ASK_OPERATOR = 15
OPERATOR_LABELS = "app.kubernetes.io/name=ipu-operator,app.kubernetes.io/component=controller-manager"


class JobError(FabricError):
    """A FabricError with what is known of the job."""

    def __init__(self, what: str, where: str, seen: str, next_step: str, **facts: t.Any) -> None:
        super().__init__(what, where, seen, next_step)
        self.facts = facts

    def as_dict(self) -> t.Dict[str, t.Any]:
        return {**super().as_dict(), **self.facts}


def operator_fault(cluster: Cluster) -> str:
    """Why the IPU operator can't act; empty when it can, or when this user may not look."""
    try:
        pods = cluster.items("/api/v1/pods", labelSelector=OPERATOR_LABELS)
    except FabricError:
        return ""
    if not pods:
        return "the IPU operator is not there (no pod of its controller in any namespace)"
    if any(condition_true(pod, "Ready") for pod in pods):
        return ""
    names = ", ".join(sorted(f"{p['metadata']['namespace']}/{p['metadata']['name']}" for p in pods))
    return f"the IPU operator has no ready pod ({names})"


class Stay:
    """How long something has been so without a break."""

    def __init__(self, clock: t.Callable[[], float]) -> None:
        self.clock = clock
        self.since: t.Optional[float] = None

    def long(self, so: bool, patience: float) -> bool:
        self.since = None if not so else self.clock() if self.since is None else self.since
        return self.since is not None and self.clock() - self.since >= patience


class Wait:
    """A wait for one job, from its start to a JobError or to the state that is wanted."""

    def __init__(
        self,
        cluster: Cluster,
        path: str,
        params: Object,
        say: t.Callable[[str], None],
        clock: t.Callable[[], float] = time.monotonic,
    ) -> None:
        self.cluster, self.path, self.params, self.say, self.clock = cluster, path, params, say, clock
        self.start = self.answered = clock()
        self.asked_operator, self.operator = -float(ASK_OPERATOR), ""
        self.progress: t.List[Object] = []
        self.exits: t.Dict[str, t.List[Object]] = {}
        self.job: Object = {}
        self.pods: t.List[Object] = []
        self.faulty, self.gone, self.restarting = Stay(clock), Stay(clock), Stay(clock)
        logs = params["logs"]
        self.logs = Logs(cluster, params["namespace"], logs.get("path") or "", logs["tail"])
        self.written: t.List[Object] = []

    @property
    def where(self) -> str:
        return f"IPUJob {self.params['namespace']}/{self.params['name']}, after {self.clock() - self.start:.0f} s"

    def until(self, goal: str) -> None:
        """Wait until the job runs (`present`) or has ended (`finished`)."""
        try:
            while not self.done(goal):
                time.sleep(min(1.0, 0.5 + (self.clock() - self.start) / 60))
        finally:
            self.written = self.logs.close()

    def look(self) -> t.Optional[State]:
        """Read the job and its pods; None while they can't be seen."""
        try:
            job = self.cluster.get(self.path)
            pods = self.cluster.items(f"/api/v1/namespaces/{self.params['namespace']}/pods", resourceVersion="0")
        except FabricError:
            if not self.job or self.clock() - self.answered > GRACE:
                raise
            return None
        self.answered = self.clock()
        if self.gone.long(job is None, PATIENCE):
            raise self.error("was deleted while it was waited for", "no such object", "Find out who deleted it.")
        if job is None:
            return None
        self.job, self.pods = job, own_pods(job, pods)
        self.exits.update({pod["metadata"]["name"]: exits(pod) for pod in self.pods if exits(pod)})
        self.logs.follow(self.pods)
        return self.note(judge(job, self.pods))

    def note(self, state: State) -> State:
        """Keep what has changed, with what the operator's absence explains."""
        if state.phase in ("Pending", "Restarting", "Running") and self.clock() - self.asked_operator >= ASK_OPERATOR:
            self.asked_operator, self.operator = self.clock(), operator_fault(self.cluster)
        if self.operator:
            state = state._replace(awaited=[*state.awaited, self.operator])
        entry = step(self.job, state)
        if not self.progress or {**entry, "seconds": self.progress[-1]["seconds"]} != self.progress[-1]:
            self.progress.append({"seconds": round(self.clock() - self.start, 1), **entry})
            self.say(f"{self.where}: {step_line(entry)}")
        return state

    def done(self, goal: str) -> bool:
        """True when the job is where it is wanted; JobError when it can't get there or the time is up."""
        state = self.look()
        if state is not None:
            stuck = self.restarting.long(state.phase == "Restarting", PATIENCE)
            failed = field(self.job, "status.launcherStatus") != "Completed"
            if state.phase == "Failed" or (stuck and failed):
                raise self.failure()
            if state.phase == "Completed" or stuck or (goal == "present" and state.ready):
                return True
            if self.faulty.long(bool(state.faults), PATIENCE):
                raise self.error(
                    "can't start, the wait was stopped early",
                    "; ".join(state.faults),
                    "Mend what is named (image, secret, rights of the namespace) and run again with recreate: true.",
                )
        if self.clock() - self.start >= self.params["wait_timeout"]:
            seen = state or State("unknown", False, ["the Kubernetes API"], [])
            wanted = "has not ended" if goal == "finished" else "does not run"
            awaited = [*seen.faults, *seen.awaited, *self.warnings()]
            raise self.error(
                f"{wanted} within wait_timeout",
                f"state {seen.phase}; " + ("; ".join(dict.fromkeys(awaited)) or "nothing is awaited, it is at work"),
                "The job goes on: run again to wait on, give it more wait_timeout, or mend what is awaited.",
            )
        return False

    def warnings(self) -> t.List[str]:
        """The newest warning about each pod that does not run yet: networks, volumes, scheduling."""
        path = f"/api/v1/namespaces/{self.params['namespace']}/events"
        names = {pod["metadata"]["name"] for pod in self.pods if field(pod, "status.phase") == "Pending"}
        if not names:
            return []
        try:
            events = self.cluster.items(path, fieldSelector="type=Warning")
        except FabricError:
            return []
        newest = {e["involvedObject"]["name"]: e for e in events if e["involvedObject"].get("kind") == "Pod"}
        return [f"pod {n}: {newest[n].get('reason')}: {newest[n].get('message')}" for n in sorted(names & set(newest))]

    def failure(self) -> JobError:
        """A failed job: the last message, exit codes, and the last lines of whoever failed."""
        self.written = self.logs.close()
        ends = [
            f"{pod}, container {e['container']}: exit code {e['exit_code']} {e['reason']}".strip()
            for pod, codes in sorted(self.exits.items())
            for e in codes
            if e["exit_code"]
        ]
        lines = [f"{log['name']} ends with: {' | '.join(log['tail'][-5:])}" for log in self.written if log["tail"]]
        message = field(self.job, "status.lastMessage") or "no message"
        restarts = field(self.job, "status.restartCount") or 0
        return self.error(
            "failed",
            "; ".join([message, *ends, f"{restarts} restarts", *lines]),
            "Mend what its log names, then run again with recreate: true.",
        )

    def error(self, how: str, seen: str, next_step: str) -> JobError:
        self.written = self.logs.close()
        what = f"The job {self.params['name']} {how}."
        return JobError(what, self.where, seen, next_step, **self.facts())

    def facts(self) -> Object:
        """What the module returns of the wait, however it ended."""
        return {
            "job": job_view(self.job, self.pods) if self.job else {},
            "progress": self.progress,
            "logs": self.written,
            "waited": round(self.clock() - self.start, 1),
        }
