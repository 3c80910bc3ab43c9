# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ipujob: create, scale, recreate, wait for and remove an IPUJob."""

from __future__ import annotations

import os
import tempfile
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.result import FabricError, outcome
from .._common.secrets import hide, in_objects
from .._kube.client import ApiError, Cluster, comparable, connect, refusal, unknown_kind
from .._kube.job_watch import Recorders
from .._kube.query import Object, query
from .job_removal import remove_all_jobs, remove_job
from .job_request import JobRequest, check_request, request_warnings
from .job_spec import API, SCALED, build_job, differing_fields, job_name
from .job_status import job_phase, job_view, own_pods
from .job_wait import JobError, JobWait
from .operator import operator_fault
from .webhook import is_unanswered, restore_after_kill

INSTANCES, UID = "spec.jobInstances", "metadata.uid"
DELETE_FIRST = "Delete it first (state: absent), or set recreate: true to have that done here."


class JobReconciler:
    """One job of a cluster, and the request for it."""

    def __init__(self, cluster: Cluster, request: JobRequest, dry_run: bool) -> None:
        self.cluster, self.request, self.dry_run = cluster, request, dry_run
        self.partitions_left: t.List[str] = []  # partitions that remain in V-IPU
        resource = cluster.resource(API, "IPUJob")
        self.path = resource.path(request.name, request.namespace) if resource else ""

    def read(self) -> t.Optional[Object]:
        return self.cluster.get(self.path) if self.path else None

    def pods(self, job: Object) -> t.List[Object]:
        return own_pods(job, self.cluster.items(f"/api/v1/namespaces/{self.request.namespace}/pods"))

    def apply(self, job: Object, dry_run: bool) -> Object:
        """Apply the job, and return it as the server and the operator's webhook accept it."""
        try:
            return self.cluster.apply(job, dry_run)
        except FabricError as error:
            if not is_unanswered(error.seen):
                raise
            reason = operator_fault(self.cluster) or "its webhook does not answer"
            raise FabricError(
                "The IPU operator could not check the job.",
                self.request.where,
                f"{reason}: {error.seen}",
                "Look at the Deployment ipu-operator-controller-manager and at the webhook's certificate.",
                code=error.code,
                transient=error.transient,
            ) from error

    def wanted(self, before: t.Optional[Object]) -> Object:
        """The job as it will be, from a dry run; in check mode also if its kind or namespace does not exist yet."""
        job = build_job(self.request, query(INSTANCES, before) or 1)
        if not self.path:
            if self.dry_run:
                return job
            raise unknown_kind(job)
        if self.cluster.get(f"/api/v1/namespaces/{self.request.namespace}") is None:
            if self.dry_run:
                return job
            where, next_step = self.request.where, "Create the namespace first."
            raise FabricError("The job can't be created.", where, "no such namespace", next_step, code="not-found")
        return self.apply(job, dry_run=True)

    def ensure_present(self) -> t.Tuple[t.Optional[Object], Object]:
        """Create, scale or recreate. Returns the job before and after."""
        before = self.read()
        after = self.wanted(before)
        if before is not None and self.needs_recreation(before, after):
            recreated = build_job(self.request, query(INSTANCES, before))
            if self.dry_run:
                return before, recreated
            self.partitions_left = remove_job(self.cluster, self.path, before, self.request)
            return before, self.apply(recreated, dry_run=False)
        if not self.dry_run and comparable(before) != comparable(after):
            after = self.update(before, after)
        return before, after

    def needs_recreation(self, before: Object, after: Object) -> bool:
        """Whether the job must be recreated; FabricError if so and the request does not allow it."""
        if query("metadata.deletionTimestamp", before):
            self.check_recreate("is being deleted", "Wait until it is gone with state: absent, or set recreate: true.")
            return True
        phase = job_phase(before, self.pods(before))
        if self.request.recreate and phase == "Failed":
            return True
        over = phase in ("Completed", "Failed")
        fixed = [d for d in differing_fields(before["spec"], after["spec"]) if over or d != SCALED]
        if fixed:
            self.check_recreate(
                f"is {phase} and differs in {', '.join(fixed)}; only the number of instances can be changed, and only "
                "before the job has ended",
                DELETE_FIRST,
            )
        return bool(fixed)

    def check_recreate(self, seen: str, next_step: str) -> None:
        if not self.request.recreate:
            raise FabricError(
                "The job can't be changed.", self.request.where, f"it {seen}", next_step, code="wrong-state"
            )

    def scale(self, instances: int) -> None:
        """Scale by the scale subresource, as other clients do."""
        try:
            self.cluster.patch(f"{self.path}/scale", {"spec": {"replicas": instances}})
        except ApiError as error:
            raise refusal(error, "scale", self.request.where) from error

    def ensure_scaled(self) -> t.Tuple[t.Optional[Object], Object]:
        """Change the number of instances of an existing job. Returns the job before and after."""
        before, instances = self.read(), self.request.job_instances
        if before is None and self.dry_run:  # an earlier task would have created it
            metadata = {"name": self.request.name, "namespace": self.request.namespace}
            return None, {
                "apiVersion": API,
                "kind": "IPUJob",
                "metadata": metadata,
                "spec": {"jobInstances": instances},
            }
        if before is None:
            step = "Create it with state: present, or correct name and namespace."
            raise FabricError("The job can't be scaled.", self.request.where, "no such job", step, code="not-found")
        if query(INSTANCES, before) == instances:
            return before, before
        phase = job_phase(before, self.pods(before))
        if phase in ("Completed", "Failed", "Deleting"):
            step = "Scale a job only before it has ended; to run it again, create it again with another number."
            raise FabricError(
                "The job can't be scaled.", self.request.where, f"it is {phase}", step, code="wrong-state"
            )
        if self.dry_run:
            return before, {**before, "spec": {**before["spec"], "jobInstances": instances}}
        self.scale(t.cast(int, instances))
        return before, self.read() or before

    def update(self, before: t.Optional[Object], after: Object) -> Object:
        """Change the number of instances by a scale, everything else by an apply."""
        instances = query(INSTANCES, after)
        if before is not None and query(INSTANCES, before) != instances:
            self.scale(instances)
            before = self.read() or before
            if comparable(before) == comparable(after):
                return before
        return self.apply(build_job(self.request, instances), dry_run=False)

    def ensure_absent(self) -> t.Optional[Object]:
        """Delete the job, and return it as it was."""
        before = self.read()
        if before is not None and not self.dry_run:
            if self.request.wait:
                self.partitions_left = remove_job(self.cluster, self.path, before, self.request)
            else:
                self.cluster.delete(self.path)
        return before

    def warnings(self) -> t.List[str]:
        if not self.partitions_left:
            return []
        return [
            f"{self.request.where} was removed without its operator. Its partitions may still be there: "
            f"{', '.join(self.partitions_left)}. Look for them in V-IPU and in the ConfigMap ipu-partitions-tracker."
        ]


def prepare_log_directory(path: str) -> None:
    """Check this before the job is created: it should not occupy IPUs if its logs can't be kept."""
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path):
            pass
    except OSError as error:
        raise FabricError(
            "The logs can't be written.",
            path,
            str(error),
            "Give logs.path a directory that this module may write to, on the host where it runs.",
            code="unusable-file",
        ) from error


def attach_command(job: Object) -> str:
    """The command that opens a shell in the pod where the job's commands run."""
    pod = "launcher" if query("spec.launcher || spec.interactive", job) else "worker-0"
    namespace, name = query("metadata.[namespace, name]", job)
    return f"kubectl exec -it --namespace {namespace} {name}-{pod} -- bash"


def ensure_job(
    module: AnsibleModule, reconciler: JobReconciler, recorders: t.Optional[Recorders]
) -> t.Dict[str, t.Any]:
    """Body for the states present, finished and scaled."""
    request, will_wait = reconciler.request, reconciler.request.wait and not module.check_mode
    if will_wait and request.logs["path"]:
        prepare_log_directory(request.logs["path"])
    before, after = reconciler.ensure_scaled() if request.state == "scaled" else reconciler.ensure_present()
    for text in reconciler.warnings():
        module.warn(text)
    facts = {
        "progress": [],
        "logs": [],
        "waited": 0.0,
        "record": {},
        "jobs": [],
        "partitions_left": reconciler.partitions_left,
    }
    result = outcome(comparable(before), comparable(after), **facts, attach=attach_command(after))
    result["changed"] = result["changed"] or query(UID, before) != query(UID, after)
    result["diff"] = dict(zip(("before", "after"), hide(comparable(before), comparable(after), in_objects)))
    if will_wait:
        recorder = recorders(reconciler.cluster, request.namespace) if recorders and request.record else None
        wait = JobWait(reconciler.cluster, reconciler.path, request, module.log, recorder=recorder)
        try:
            wait.wait_for(request.state)
        except JobError as error:
            error.facts.update(changed=result["changed"], diff=result["diff"])
            raise
        return {**result, **wait.result()}
    pods = reconciler.pods(after) if before is not None and not module.check_mode else []
    return {**result, "job": job_view(after, pods)}


def remove_one_job(module: AnsibleModule, reconciler: JobReconciler) -> t.Dict[str, t.Any]:
    """Body for the state absent of one job."""
    before = reconciler.ensure_absent()
    for text in reconciler.warnings():
        module.warn(text)
    names = [] if before is None else [job_name(before)]
    result = outcome(comparable(before), None, jobs=names, partitions_left=reconciler.partitions_left)
    return {**result, "diff": {"before": hide(comparable(before), None, in_objects)[0], "after": None}}


def restore_webhooks(module: AnsibleModule, cluster: Cluster, request: JobRequest) -> t.Dict[str, t.Any]:
    """Body for the state restored, and first step of all others: restore webhooks that a killed run left at Ignore."""
    try:
        before, after = restore_after_kill(cluster, module.check_mode)
    except FabricError as error:
        if error.code != "api-denied" or request.state == "restored":
            raise
        # A user who runs jobs need not have the right to change webhooks.
        module.warn(f"A run that was killed has left the IPU operator's webhooks at Ignore. {error}")
        return outcome({}, {})
    if before and request.state != "restored":
        verb = "would be" if module.check_mode else "were"
        module.warn(f"Webhooks that a killed run had left at Ignore {verb} restored: {', '.join(before)}.")
    return outcome(before, after)


def reconcile_jobs(module: AnsibleModule, recorders: t.Optional[Recorders] = None) -> t.Dict[str, t.Any]:
    """Body of the module ipujob. recorders: record jobs if `record` asks for it."""
    request = JobRequest.from_options(module.params)
    check_request(request)
    for text in request_warnings(request):
        module.warn(text)
    cluster = connect(module)
    restored = restore_webhooks(module, cluster, request)
    if request.state == "restored":
        result = {**restored, "jobs": [], "partitions_left": []}
    elif request.scope == "job":
        reconciler = JobReconciler(cluster, request, module.check_mode)
        if request.state != "absent":
            result = ensure_job(module, reconciler, recorders)
            return {**result, "changed": result["changed"] or restored["changed"]}
        result = remove_one_job(module, reconciler)
    else:
        result = remove_all_jobs(module, cluster, request)
    result["changed"] = result["changed"] or restored["changed"]
    return {**result, "job": {}, "progress": [], "logs": [], "waited": 0.0, "record": {}, "attach": ""}
