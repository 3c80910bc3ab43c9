# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removing an IPUJob, also when the operator that should do it is gone."""

from __future__ import annotations

import contextlib
import time
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_spec import FINALIZER, held, partitions, release_patch
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_wait import PATIENCE, Stay, operator_fault
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import (
    ApiError,
    Cluster,
    Object,
    field,
    message_of,
    refusal,
)

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"
WEBHOOK_KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
ASK_OPERATOR = 5
ATTEMPTS = 10


def remove(cluster: Cluster, path: str, job: Object, params: Object) -> t.List[str]:
    """Delete the job and wait until it is gone. Returns the partitions that nobody gives back (with `force` only)."""
    cluster.delete(path)
    where = f"IPUJob {params['namespace']}/{params['name']}"
    uid, start, asked, reason = field(job, "metadata.uid"), time.monotonic(), 0.0, ""
    alone = Stay(time.monotonic)
    while True:
        left = cluster.get(path)
        if left is None or field(left, "metadata.uid") != uid:
            return []
        waited = time.monotonic() - start
        if not asked or waited - asked >= ASK_OPERATOR:
            asked, reason = waited or 0.1, operator_fault(cluster)
        late = waited >= params["wait_timeout"]
        # An operator that restarts is back in a moment: only one that stays away counts as gone.
        gone = alone.long(bool(reason), min(PATIENCE, params["wait_timeout"]))
        if held(left) and params["force"] and (gone or late):
            release(cluster, path, left, where)
            return partitions(job)
        if held(left) and gone:
            raise FabricError(
                "A job was to be removed; only the IPU operator can give its partitions back.",
                where,
                f"{reason}, and the finalizer {FINALIZER} is still there",
                "Start the operator: it ends the deletion, which is on record. Or set force: true to remove the "
                "finalizer; partitions may then stay behind in V-IPU.",
            )
        if late:
            finalizers = ", ".join(field(left, "metadata.finalizers") or []) or "none"
            raise FabricError(
                "A deleted job was expected to go.",
                f"{where}, after {waited:.0f} s",
                f"it is still there, finalizers: {finalizers}" + (f"; {reason}" if reason else ""),
                "Read the log of the IPU operator's controller and of its V-IPU proxy.",
            )
        time.sleep(0.5)


def release(cluster: Cluster, path: str, job: Object, where: str) -> None:
    """Remove the operator's finalizer, and nobody else's."""
    body = release_patch(job)
    try:
        cluster.patch(path, body)
    except ApiError as error:
        if error.status == 404:
            return
        if "failed calling webhook" not in message_of(error):
            raise refusal(error, "remove the finalizer of", where) from error
        with webhooks_that_let_pass(cluster):
            patch_soon(cluster, path, body, where)


def patch_soon(cluster: Cluster, path: str, body: Object, where: str) -> None:
    """Patch; the API server takes a moment to know changed webhooks."""
    for attempt in range(ATTEMPTS):
        time.sleep(0.5)
        try:
            cluster.patch(path, body)
            return
        except ApiError as error:
            if attempt + 1 == ATTEMPTS or "failed calling webhook" not in message_of(error):
                raise refusal(error, "remove the finalizer of", where) from error


@contextlib.contextmanager
def webhooks_that_let_pass(cluster: Cluster) -> t.Iterator[None]:
    """The webhooks of an operator that is gone refuse every update: ignore their silence for as long as this takes."""
    changed = []
    try:
        for kind in WEBHOOK_KINDS:
            for found in cluster.items(f"{WEBHOOKS}/{kind}"):
                path = f"{WEBHOOKS}/{kind}/{found['metadata']['name']}"
                if any(about_jobs(hook) for hook in found.get("webhooks") or []):
                    hooks = [{**h, "failurePolicy": "Ignore"} if about_jobs(h) else h for h in found["webhooks"]]
                    set_webhooks(cluster, path, hooks)
                    changed.append((path, found["webhooks"]))
        yield
    finally:
        for path, hooks in changed:
            set_webhooks(cluster, path, hooks)


def about_jobs(hook: Object) -> bool:
    return any("graphcore.ai" in (rule.get("apiGroups") or []) for rule in hook.get("rules") or [])


def set_webhooks(cluster: Cluster, path: str, hooks: t.List[Object]) -> None:
    try:
        cluster.patch(path, {"webhooks": hooks})
    except ApiError as error:
        raise refusal(error, "change the webhooks of the IPU operator in", path) from error
