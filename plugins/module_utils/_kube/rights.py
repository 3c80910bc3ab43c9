# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubeconfig lacks of the rights that site needs, all at once: the API would refuse one after the other."""

from __future__ import annotations

import typing as t

from .client import Cluster
from .query import query

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
# Verbs by resource and API group, in all namespaces. Charts of operators need more, which an administrator has.
NEEDED: t.Dict[str, t.Sequence[str]] = {
    "nodes": ("list", "patch"),
    "namespaces": ("create", "delete"),
    "pods": ("create", "delete"),
    "pods/exec": ("create",),
    "configmaps": ("create",),
    "secrets": ("create",),
    "services": ("create",),
    "serviceaccounts": ("create",),
    "daemonsets.apps": ("create", "patch"),
    "deployments.apps": ("create", "patch"),
    "jobs.batch": ("create",),
    "clusterroles.rbac.authorization.k8s.io": ("create", "escalate"),
    "clusterrolebindings.rbac.authorization.k8s.io": ("create",),
    "customresourcedefinitions.apiextensions.k8s.io": ("create", "patch"),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": ("create",),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": ("create",),
    "network-attachment-definitions.k8s.cni.cncf.io": ("create",),
}


def may(cluster: Cluster, verb: str, resource: str, group: str, part: str = "") -> bool:
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": part}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool(query("status.allowed", cluster.request("post", REVIEWS, review)))


def missing_rights(cluster: Cluster) -> t.List[str]:
    """Each as a verb and a resource. One question for an administrator, or where there is no cluster yet none."""
    if not cluster.present or may(cluster, "*", "*", "*"):
        return []
    missing = []
    for name, verbs in NEEDED.items():
        resource, _dot, group = name.partition(".")
        resource, _slash, part = resource.partition("/")
        missing += [f"{verb} {name}" for verb in verbs if not may(cluster, verb, resource, group, part)]
    return missing
