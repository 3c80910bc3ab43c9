# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ipujob: make, scale, wait for and remove an IPUJob."""

from __future__ import annotations

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import job_spec as data
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_removal import remove
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_status import job_view, own_pods, phase_of
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_wait import JobError, Wait, operator_fault
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import (
    ApiError,
    Cluster,
    Object,
    comparable,
    connect,
    field,
    refusal,
    unknown_kind,
)

DELETE_FIRST = "Delete it first (state: absent), or set recreate: true to have that done here."


class Jobs:
    """One job of a cluster, as the options want it."""

    def __init__(self, module: AnsibleModule, cluster: Cluster) -> None:
        self.module, self.cluster, self.params = module, cluster, module.params
        self.dry_run: bool = module.check_mode
        self.left: t.List[str] = []  # partitions that nobody gives back
        resource = cluster.resource(data.API, "IPUJob")
        self.path = resource.path(self.params["name"], self.params["namespace"]) if resource else ""

    @property
    def where(self) -> str:
        return f"IPUJob {self.params['namespace']}/{self.params['name']}"

    def current(self) -> t.Optional[Object]:
        return self.cluster.get(self.path) if self.path else None

    def pods(self, job: Object) -> t.List[Object]:
        return own_pods(job, self.cluster.items(f"/api/v1/namespaces/{self.params['namespace']}/pods"))

    def judged(self, job: Object, dry_run: bool) -> Object:
        """The job as the server, with the operator's webhook, takes it."""
        try:
            return self.cluster.apply(job, dry_run)
        except FabricError as error:
            if "failed calling webhook" not in error.seen:
                raise
            reason = operator_fault(self.cluster) or "its webhook does not answer"
            raise FabricError(
                "The IPU operator was asked to check the job.",
                self.where,
                f"{reason}: {error.seen}",
                "Look at the Deployment ipu-operator-controller-manager and at the webhook's certificate.",
            ) from error

    def wanted(self, before: t.Optional[Object]) -> Object:
        """What the job is to become, in a dry run; in check mode also where neither kind nor namespace is there yet."""
        job = data.build_job(self.params, field(before, "spec.jobInstances") or 1)
        if not self.path:
            if self.dry_run:
                return job
            raise unknown_kind(job)
        if self.cluster.get(f"/api/v1/namespaces/{self.params['namespace']}") is None:
            if self.dry_run:
                return job
            raise FabricError("A job was to be made.", self.where, "no such namespace", "Create the namespace first.")
        return self.judged(job, dry_run=True)

    def ensure_present(self) -> t.Tuple[t.Optional[Object], Object]:
        """Create, scale or recreate. Returns the job before and after."""
        before = self.current()
        after = self.wanted(before)
        if before is not None and self.must_go(before, after):
            anew = data.build_job(self.params, field(before, "spec.jobInstances"))
            if self.dry_run:
                return before, anew
            self.left = remove(self.cluster, self.path, before, self.params)
            return before, self.judged(anew, dry_run=False)
        if not self.dry_run and comparable(before) != comparable(after):
            after = self.change(before, after)
        return before, after

    def must_go(self, before: Object, after: Object) -> bool:
        """Whether the job has to be made anew; FabricError where that is so and was not asked for."""
        if field(before, "metadata.deletionTimestamp"):
            return self.allowed("is being deleted", "Wait for its end with state: absent, or set recreate: true.")
        phase = phase_of(before, self.pods(before))
        if self.params["recreate"] and phase == "Failed":
            return True
        over = phase in ("Completed", "Failed")
        fixed = [d for d in data.differences(before["spec"], after["spec"]) if over or d != data.SCALED]
        if not fixed:
            return False
        return self.allowed(
            f"is {phase} and differs in {', '.join(fixed)}; only the number of instances can be changed, and only "
            "before the job has ended",
            DELETE_FIRST,
        )

    def allowed(self, seen: str, next_step: str) -> bool:
        if self.params["recreate"]:
            return True
        raise FabricError("A job was to be changed.", self.where, f"it {seen}", next_step)

    def change(self, before: t.Optional[Object], after: Object) -> Object:
        """Scale by the scale subresource, as everybody else does; the rest by an apply."""
        instances = field(after, "spec.jobInstances")
        if before is not None and field(before, "spec.jobInstances") != instances:
            try:
                self.cluster.patch(f"{self.path}/scale", {"spec": {"replicas": instances}})
            except ApiError as error:
                raise refusal(error, "scale", self.where) from error
            before = self.current() or before
            if comparable(before) == comparable(after):
                return before
        return self.judged(data.build_job(self.params, instances), dry_run=False)

    def ensure_absent(self) -> t.Optional[Object]:
        """Delete. Returns the job before."""
        before = self.current()
        if before is not None and not self.dry_run:
            if self.params["wait"]:
                self.left = remove(self.cluster, self.path, before, self.params)
            else:
                self.cluster.delete(self.path)
        return before

    def warn_of_partitions(self) -> None:
        if self.left:
            self.module.warn(
                f"{self.where} was removed without its operator. Its partitions may still be there: "
                f"{', '.join(self.left)}. Look for them in V-IPU and in the ConfigMap ipu-partitions-tracker."
            )


def prepare_folder(path: str) -> None:
    """Before the job is made: a job whose logs can't be kept is not worth its IPUs."""
    try:
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, f".probe.{os.getpid()}"), "w", encoding="utf-8") as probe:
            pass
        os.unlink(probe.name)
    except OSError as error:
        raise FabricError(
            "The logs were to be written.",
            path,
            str(error),
            "Give logs.path a directory that this module may write to, on the host where it runs.",
        ) from error


def attach(job: Object) -> str:
    """The command that opens a shell where the job's commands run."""
    metadata = job["metadata"]
    pod = "launcher" if field(job, "spec.launcher") or field(job, "spec.interactive") else "worker-0"
    return f"kubectl exec -it --namespace {metadata['namespace']} {metadata['name']}-{pod} -- bash"


def present(module: AnsibleModule, jobs: Jobs) -> t.Dict[str, t.Any]:
    params = module.params
    folder = params["logs"].get("path")
    if params["wait"] and folder and not module.check_mode:
        prepare_folder(folder)
    before, after = jobs.ensure_present()
    jobs.warn_of_partitions()
    result = outcome(comparable(before), comparable(after))
    result["changed"] = result["changed"] or uid_of(before) != uid_of(after)
    facts: Object = {"progress": [], "logs": [], "waited": 0.0, "partitions_left": jobs.left}
    facts["attach"] = attach(after)
    if params["wait"] and not module.check_mode:
        wait = Wait(jobs.cluster, jobs.path, params, module.log)
        try:
            wait.until(params["state"])
        except JobError as error:
            error.facts.update(result)
            raise
        return {**result, **facts, **wait.facts()}
    pods = jobs.pods(after) if before is not None and not module.check_mode else []
    return {**result, **facts, "job": job_view(after, pods)}


def uid_of(job: t.Optional[Object]) -> t.Optional[str]:
    return field(job, "metadata.uid")


def absent(jobs: Jobs) -> t.Dict[str, t.Any]:
    before = jobs.ensure_absent()
    facts: Object = {"job": {}, "progress": [], "logs": [], "waited": 0.0, "attach": ""}
    jobs.warn_of_partitions()
    return outcome(comparable(before), None, partitions_left=jobs.left, **facts)


def run(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module ipujob."""
    params = module.params
    params["logs"] = params["logs"] or {"path": None, "tail": 20}
    data.refuse_problems(params)
    for text in data.advice(params):
        module.warn(text)
    jobs = Jobs(module, connect(module))
    return absent(jobs) if params["state"] == "absent" else present(module, jobs)
