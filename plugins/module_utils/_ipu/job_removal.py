# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes one IPUJob or all, even if the operator that releases their partitions is gone."""

from __future__ import annotations

import functools
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.result import FabricError, outcome
from .._kube.client import ApiError, Cluster, describe, message_of, refusal, wait_until
from .._kube.query import Object, query
from .job_info import read_jobs
from .job_request import JobRequest
from .job_spec import FINALIZER, finalizer_patch, finalizers, has_finalizer, job_name, partition_names
from .job_wait import PATIENCE, Sustained
from .operator import installed_operators, managers, operator_fault
from .webhook import failures_ignored, ignore_failures, is_unanswered

ASK_OPERATOR = 5  # seconds between two checks of the operator
ATTEMPTS = 5
# Seconds until the API server knows changed webhooks, and seconds for which the change is retried after that.
WEBHOOK_PAUSE, WEBHOOK_TIMEOUT = 0.5, 60
SHOWN = 20  # jobs to name in an error
OPERATOR_GONE = (
    "Start the operator (the role ipu.fabric.ipu_operator installs it again) so that it releases the partitions, or "
    "remove the jobs with force: true (ipu_operator_force: true): their partitions then stay in V-IPU."
)


# The finalizer


def finalizer_refusals(cluster: Cluster, job: Object) -> t.List[str]:
    """Remove the operator's finalizer, and no other. Returns the refusal if a webhook does not answer."""
    path = t.cast(str, cluster.path_of(job))
    for attempt in range(1, ATTEMPTS + 1):
        current = cluster.get(path)
        if current is None or query("metadata.uid", current) != query("metadata.uid", job):
            break
        if not has_finalizer(current):
            break
        try:
            cluster.patch(path, finalizer_patch(current))
            break
        except ApiError as error:
            if is_unanswered(message_of(error)):
                return [message_of(error)]
            if error.status not in (404, 409) or attempt == ATTEMPTS:
                raise refusal(error, "remove the finalizer of", describe(job)) from error
    return []


def refusals_meanwhile(cluster: Cluster, job: Object) -> t.List[str]:
    """Like finalizer_refusals(), but ignores failures again: another run of ipujob may have restored webhooks."""
    refused = finalizer_refusals(cluster, job)
    if refused:
        ignore_failures(cluster)
    return refused


def remove_finalizers(cluster: Cluster, jobs: t.Sequence[Object]) -> None:
    """Remove the operator's finalizer from all jobs, even if webhooks do not answer."""
    left = list(jobs)
    while left and not finalizer_refusals(cluster, left[0]):
        left.pop(0)
    if left:
        with failures_ignored(cluster):
            time.sleep(WEBHOOK_PAUSE)
            for job in left:
                wait_until(
                    functools.partial(refusals_meanwhile, cluster, job),
                    WEBHOOK_TIMEOUT,
                    f"The finalizer of {describe(job)} could not be removed.",
                    "A webhook that is not the IPU operator's does not answer: start it, or remove its configuration.",
                    WEBHOOK_PAUSE,
                )


# One job


def remove_job(cluster: Cluster, path: str, job: Object, request: JobRequest) -> t.List[str]:
    """Delete the job and wait until it is gone. Returns the partitions that remain in V-IPU (only with `force`)."""
    cluster.delete(path)
    start, asked, fault = time.monotonic(), 0.0, ""
    operator_gone = Sustained(time.monotonic)
    while True:
        current = cluster.get(path)
        if current is None or query("metadata.uid", current) != query("metadata.uid", job):
            return []
        waited = time.monotonic() - start
        if not asked or waited - asked >= ASK_OPERATOR:
            asked, fault = waited or 0.1, operator_fault(cluster)
        late = waited >= request.wait_timeout
        # A restarting operator is back soon: only one that stays away counts as gone.
        gone = operator_gone.lasts(bool(fault), min(PATIENCE, request.wait_timeout))
        if has_finalizer(current) and request.force and (gone or late):
            remove_finalizers(cluster, [current])
            return partition_names(job)
        if has_finalizer(current) and gone:
            raise FabricError(
                "Only the IPU operator can release the partitions of a job that is removed.",
                request.where,
                f"{fault}, and the finalizer {FINALIZER} is still there",
                "Start the operator: it completes the deletion. Or set force: true to remove the finalizer; partitions "
                "may then stay behind in V-IPU.",
                code="wrong-state",
            )
        if late:
            names = ", ".join(finalizers(current)) or "none"
            raise FabricError(
                "A deleted job did not go away.",
                f"{request.where}, after {waited:.0f} s",
                f"it is still there, finalizers: {names}" + (f"; {fault}" if fault else ""),
                "Read the log of the IPU operator's controller and of its V-IPU proxy.",
                code="timeout",
            )
        time.sleep(0.5)


# All jobs of a namespace or of the cluster


def check_removal(jobs: t.Sequence[Object], request: JobRequest, operator_available: bool) -> None:
    """FabricError, before any change, if there are jobs that may not or can't be removed."""
    names = [job_name(job) for job in jobs]
    shown = f"{', '.join(names[:SHOWN])}{' and more' if names[SHOWN:] else ''}"
    if jobs and not request.delete_all:
        raise FabricError(
            "There must be no IPUJobs.",
            request.where,
            f"{len(jobs)}: {shown}",
            "Wait until they have ended and delete them, or have all of them deleted: delete_all: true "
            "(ipu_operator_delete_jobs: true).",
            code="unsafe",
        )
    if any(map(has_finalizer, jobs)) and not operator_available and not request.force:
        raise FabricError(
            "IPUJobs can't be deleted without their operator: it removes their finalizer.",
            f"{len(jobs)} IPUJobs: {shown}",
            "no controller of an IPU operator is available",
            OPERATOR_GONE,
            code="wrong-state",
        )


def wait_until_gone(cluster: Cluster, request: JobRequest, next_step: str) -> None:
    wait_until(
        lambda: [f"{describe(job)} still exists" for job in read_jobs(cluster, request.namespace)],
        request.wait_timeout,
        "Deleted IPUJobs did not go away.",
        next_step,
    )


def delete_jobs(cluster: Cluster, jobs: t.Sequence[Object], request: JobRequest, operator_available: bool) -> None:
    """Delete the jobs, and wait until the operator has released them; with `force`, a time-out is no error."""
    for job in jobs:
        cluster.delete(t.cast(str, cluster.path_of(job)))
    if request.wait and operator_available:
        try:
            wait_until_gone(cluster, request, f"See the log of the operator's controller. {OPERATOR_GONE}")
        except FabricError:
            if not request.force:
                raise


def remove_all_jobs(module: AnsibleModule, cluster: Cluster, request: JobRequest) -> t.Dict[str, t.Any]:
    """Body for the state absent of all jobs in a namespace or in the cluster."""
    jobs = read_jobs(cluster, request.namespace)
    operator_available = any(operator["available"] for operator in installed_operators(managers(cluster)))
    check_removal(jobs, request, operator_available)
    forced = [] if operator_available else [job for job in jobs if has_finalizer(job)]
    if not module.check_mode:
        delete_jobs(cluster, jobs, request, operator_available)
        left = read_jobs(cluster, request.namespace) if request.force and request.wait else []
        forced = [job for job in left if has_finalizer(job)]
        remove_finalizers(cluster, forced)
        if request.wait:
            other = "Another client creates them, or they have other finalizers: see kubectl get ipujobs -A -o yaml."
            wait_until_gone(cluster, request, other)
    partitions = [name for job in forced for name in partition_names(job)]
    if partitions:
        module.warn(f"Partitions may still be in V-IPU. Remove them there: {', '.join(partitions)}")
    names = [job_name(job) for job in jobs]
    return outcome(names, [], jobs=names, partitions_left=partitions)
