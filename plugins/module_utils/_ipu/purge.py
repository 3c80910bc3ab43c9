# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPUJobs, removed while their operator is there to give the partitions back, or without it when that is asked for."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_spec import held, partitions, release_patch
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.operator import installed, ipujobs
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import (
    ApiError,
    Object,
    connect,
    describe,
    refusal,
    wait_until,
)
from ansible_collections.ipu.fabric.plugins.module_utils._network.removal import Removal, name_of

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
WEBHOOKS = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
ATTEMPTS = 5
DEAD = (
    "Start the operator (the role ipu.fabric.ipu_operator installs it again) so that it gives the partitions back, or "
    "remove the jobs by force (ipu_operator_force: true): their partitions then stay in V-IPU."
)


def asks_about_jobs(configuration: Object) -> bool:
    """Whether the API server asks this webhook about IPUJobs."""
    rules = [rule for webhook in configuration.get("webhooks") or [] for rule in webhook.get("rules") or []]
    return any("ipujobs" in (rule.get("resources") or []) for rule in rules)


class JobRemoval(Removal):
    """The IPUJobs of a cluster."""

    def left(self) -> t.List[Object]:
        return ipujobs(self.cluster)

    def run(self, jobs: t.Sequence[Object], alive: bool, force: bool) -> t.List[Object]:
        """Delete the jobs. Returns those whose finalizer was taken off."""
        if alive:
            try:
                self.remove(jobs, self.left, f"See the log of the operator's controller. {DEAD}")
            except FabricError:
                if not force:
                    raise
        else:
            for job in jobs:
                self.cluster.delete(t.cast(str, self.cluster.path_of(job)))
        released = [job for job in self.left() if held(job)]
        if released:
            self.silence()
        for job in released:
            self.release(job)
        wait_until(
            lambda: [f"{describe(job)} still exists" for job in self.left()],
            self.timeout,
            "Deleted IPUJobs were expected to go.",
            "Somebody makes new ones, or they have other finalizers: look with kubectl get ipujobs -A -o yaml.",
        )
        return released

    def silence(self) -> None:
        """Remove the webhooks, which are asked about a finalizer too and refuse all when nobody answers for them."""
        for plural in WEBHOOKS:
            for configuration in self.cluster.items(f"{ADMISSION}/{plural}"):
                if asks_about_jobs(configuration):
                    self.cluster.delete(f"{ADMISSION}/{plural}/{configuration['metadata']['name']}")

    def release(self, job: Object) -> None:
        """Take the operator's finalizer off a job, and leave those of others."""
        path = t.cast(str, self.cluster.path_of(job))
        for attempt in range(1, ATTEMPTS + 1):
            current = self.cluster.get(path)
            if current is None or not held(current):
                return
            try:
                self.cluster.patch(path, release_patch(current))
            except ApiError as error:
                if error.status not in (404, 409) or attempt == ATTEMPTS:
                    raise refusal(error, "take the finalizer off", describe(job)) from error


def run(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module ipu_jobs_absent."""
    cluster, force = connect(module), module.params["force"]
    jobs = ipujobs(cluster)
    names = ["/".join(name_of(job)) for job in jobs]
    if jobs and not (force or module.params["delete"]):
        raise FabricError(
            "No IPUJob may be there when its operator is removed.",
            "IPUJobs of the cluster",
            f"{len(jobs)}: {', '.join(names[:20])}{' and more' if names[20:] else ''}",
            "Wait until they have ended and delete them, or have them deleted (ipu_operator_delete_jobs: true).",
        )
    alive = any(operator["available"] for operator in installed(cluster))
    if any(map(held, jobs)) and not alive and not force:
        raise FabricError(
            "IPUJobs can't be deleted without their operator: it takes off their finalizer.",
            f"{len(jobs)} IPUJobs: {', '.join(names[:20])}",
            "no controller of an IPU operator is available",
            DEAD,
        )
    released: t.Sequence[Object] = jobs if not alive else []
    if jobs and not module.check_mode:
        released = JobRemoval(cluster, module.params["timeout"]).run(jobs, alive, force)
    lost = [name for job in released if held(job) for name in partitions(job)]
    if lost:
        module.warn(f"Partitions that may still be in V-IPU, remove them there: {', '.join(lost)}")
    return outcome(names, [], jobs=names, partitions=lost)
