# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The IPU operator's webhook: when its certificate expires, and how to update IPUJobs while it does not answer.

Webhooks are never removed: their failures are ignored for a moment, so one that answers again is called again. The
changes are recorded in an annotation, from which a later run restores them if this one is killed.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import typing as t

from .._common.result import FabricError
from .._common.signals import termination_as_error
from .._kube.certificates import first_end
from .._kube.client import STRATEGIC, ApiError, Cluster, refusal
from .._kube.query import Object, query, quoted
from .._model.probe import Certificate
from .controllers import SECRET

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
KINDS = {
    "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
    "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
}
# Annotation of a configuration: the failure policies to restore, as JSON by webhook name.
ANNOTATION = "ipu.fabric/failure-policies"
SAVED = f"metadata.annotations.{quoted(ANNOTATION)}"
# Names of webhooks that make requests about IPUJobs fail if they do not answer. Fail is the API's default.
STRICT = (
    "webhooks[?(failurePolicy || 'Fail') == 'Fail' && rules[?contains(apiGroups || `[]`, 'graphcore.ai')"
    " && (contains(resources || `[]`, 'ipujobs') || contains(resources || `[]`, '*'))]].name"
)

Policies = t.Dict[str, t.Dict[str, str]]  # by configuration, then by webhook name


def read_certificate(cluster: Cluster, namespace: str) -> Certificate:
    """The certificate of the operator in a namespace."""
    end = first_end(cluster.get(f"/api/v1/namespaces/{namespace}/secrets/{SECRET}"))
    if end is None:
        return {"end": "", "days": None}
    return {"end": end.isoformat(), "days": (end - datetime.datetime.now(datetime.timezone.utc)).days}


def is_unanswered(message: str) -> bool:
    """Whether the API server refused a request because a webhook did not answer."""
    return "failed calling webhook" in message


def set_failure_policies(
    cluster: Cluster, path: str, policies: t.Mapping[str, str], saved: t.Optional[t.Mapping[str, str]]
) -> None:
    """Set failure policies by webhook name, and record what to restore; with None, remove the record."""
    note = None if saved is None else json.dumps(saved, sort_keys=True)
    webhooks = [{"name": name, "failurePolicy": policy} for name, policy in policies.items()]
    body: Object = {"metadata": {"annotations": {ANNOTATION: note}}, **({"webhooks": webhooks} if webhooks else {})}
    try:
        # Merged by name: everything else in a webhook, such as a new certificate, stays.
        cluster.request("patch", path, body=body, content_type=STRATEGIC)
    except ApiError as error:
        if error.status != 404:  # uninstalled in the meantime
            raise refusal(error, "change the failure policies of the IPU operator's webhooks in", path) from error


def read_configurations(cluster: Cluster) -> t.List[t.Tuple[str, Object]]:
    """All webhook configurations of the cluster, with their paths."""
    return [
        (f"{CONFIGURATIONS}/{kind}/{query('metadata.name', configuration)}", configuration)
        for kind in KINDS
        for configuration in cluster.items(f"{CONFIGURATIONS}/{kind}")
    ]


def ignore_failures(cluster: Cluster) -> None:
    """Let updates of IPUJobs pass if a webhook does not answer."""
    for path, configuration in read_configurations(cluster):
        names = query(STRICT, configuration)
        if names:
            saved = json.loads(query(SAVED, configuration) or "{}")
            policies = dict.fromkeys(names, "Ignore")
            set_failure_policies(cluster, path, policies, {**saved, **dict.fromkeys(names, "Fail")})


def saved_policies(configuration: Object) -> t.Dict[str, str]:
    """The failure policies of a configuration before a run changed them."""
    present = query("webhooks[].name", configuration) or []
    saved = json.loads(query(SAVED, configuration) or "{}")
    return {name: policy for name, policy in saved.items() if name in present}


def restore_failures(cluster: Cluster) -> None:
    """Restore the failure policies that this run, or a killed one, changed."""
    for path, configuration in read_configurations(cluster):
        if query(SAVED, configuration):
            set_failure_policies(cluster, path, saved_policies(configuration), None)


def left_by_kill(cluster: Cluster) -> t.Tuple[Policies, Policies]:
    """The failure policies that a killed run changed: the current ones, and those to restore.

    A user who may not read webhooks can't have changed any either.
    """
    before: Policies = {}
    after: Policies = {}
    with contextlib.suppress(FabricError):
        for path, configuration in read_configurations(cluster):
            if query(SAVED, configuration):
                kind, name = path.rsplit("/", 2)[1:]
                place, saved = f"{KINDS[kind]} {name}", saved_policies(configuration)
                now = {hook["name"]: hook.get("failurePolicy", "Fail") for hook in configuration.get("webhooks") or ()}
                before[place], after[place] = {each: now[each] for each in saved}, saved
    return before, after


def restore_after_kill(cluster: Cluster, dry_run: bool = False) -> t.Tuple[Policies, Policies]:
    """Restore what a killed run left. Returns the policies before and after this."""
    before, after = left_by_kill(cluster)
    if before and not dry_run:
        restore_failures(cluster)
    return before, after


@contextlib.contextmanager
def failures_ignored(cluster: Cluster) -> t.Iterator[None]:
    """Ignore failures of the operator's webhooks within the block."""
    with termination_as_error():
        try:
            ignore_failures(cluster)
            yield
        finally:
            restore_failures(cluster)
