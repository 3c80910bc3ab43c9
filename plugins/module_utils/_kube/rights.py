# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which needed rights a kubeconfig lacks, all at once: the API would refuse one after the other."""

from __future__ import annotations

import typing as t

from .._common.result import FabricError
from .._model.stacks import SPIDERNET
from .client import ApiError, Cluster
from .query import query

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
AUTHENTICATION = "authentication.k8s.io/v1"
WHO_AM_I = f"/apis/{AUTHENTICATION}/selfsubjectreviews"
Rights = t.Mapping[str, t.Sequence[str]]  # verbs by resource and API group, in all namespaces
# The rights for site. Operators' charts need more, which an administrator has.
NEEDED: Rights = {
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

# The rights for proving any cluster. The proof writes to its own namespace, whose name is not known before.
TO_PROVE: Rights = {
    "nodes": ("list",),
    "namespaces": ("list", "create", "patch", "delete"),
    "serviceaccounts": ("create",),
    "pods": ("list", "create", "deletecollection"),
    "pods/exec": ("get", "create"),
    "events": ("list",),
    "configmaps": ("list",),
    "daemonsets.apps": ("list",),
    "network-attachment-definitions.k8s.cni.cncf.io": ("get", "list"),
    "nicclusterpolicies.mellanox.com": ("get", "list"),
    "nicnodepolicies.mellanox.com": ("list",),
    "macvlannetworks.mellanox.com": ("get", "list"),
    "hostdevicenetworks.mellanox.com": ("list",),
    "ipoibnetworks.mellanox.com": ("list",),
    "ippools.nv-ipam.nvidia.com": ("list",),
    "cidrpools.nv-ipam.nvidia.com": ("list",),
    f"spidermultusconfigs.{SPIDERNET}": ("get", "list"),
    f"spiderippools.{SPIDERNET}": ("list",),
    f"spiderendpoints.{SPIDERNET}": ("list",),
    "sriovnetworks.sriovnetwork.openshift.io": ("list",),
    "sriovibnetworks.sriovnetwork.openshift.io": ("list",),
    "sriovnetworknodepolicies.sriovnetwork.openshift.io": ("list",),
    "ippools.whereabouts.cni.cncf.io": ("list",),
    "overlappingrangeipreservations.whereabouts.cni.cncf.io": ("list",),
}

# The rights for marks on nodes: taints and conditions.
TO_MARK: Rights = {"nodes": ("patch",), "nodes/status": ("patch",)}


def may(cluster: Cluster, verb: str, resource: str, group: str, part: str = "") -> bool:
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": part}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool(query("status.allowed", cluster.request("post", REVIEWS, review)))


def missing_rights(cluster: Cluster, needed: t.Optional[Rights] = None) -> t.List[str]:
    """Missing rights, each as a verb and a resource. One request for an administrator, none without a cluster.

    needed: rights other than those for site.
    """
    if not cluster.present or may(cluster, "*", "*", "*"):
        return []
    missing = []
    for name, verbs in (NEEDED if needed is None else needed).items():
        resource, _dot, group = name.partition(".")
        resource, _slash, part = resource.partition("/")
        missing += [f"{verb} {name}" for verb in verbs if not may(cluster, verb, resource, group, part)]
    return missing


def require_rights(cluster: Cluster, needed: Rights, what: str, next_step: str) -> None:
    """FabricError with all missing rights, and the user who lacks them."""
    missing = missing_rights(cluster, needed)
    if missing:
        user = user_name(cluster)
        who = f"the user {user}" if user else "the user of the kubeconfig"
        raise FabricError(what, who, f"without {', '.join(missing)}", next_step, code="api-denied")


def user_name(cluster: Cluster) -> str:
    """The user that the API sees behind the kubeconfig; empty if it does not tell, as before Kubernetes 1.28."""
    if not cluster.present:
        return ""
    try:
        review = cluster.request("post", WHO_AM_I, {"apiVersion": AUTHENTICATION, "kind": "SelfSubjectReview"})
    except ApiError as error:
        if error.status not in (403, 404):
            raise
        return ""
    return str(query("status.userInfo.username", review) or "")


def served_rights(cluster: Cluster, needed: Rights) -> Rights:
    """The rights without those for API groups that the cluster does not serve: there is nothing to read in them."""
    served = {group["name"] for group in (cluster.get("/apis") or {}).get("groups") or ()}
    groups = {name: name.partition(".")[2] for name in needed}
    return {name: verbs for name, verbs in needed.items() if not groups[name] or groups[name] in served}
