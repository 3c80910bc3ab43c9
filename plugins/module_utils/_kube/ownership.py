# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who owns an object: metadata.managedFields records who applied it. A copy of our object is not ours."""

from __future__ import annotations

import typing as t

from .._common.helm_record import RENDER_LABEL
from .._common.manager import MANAGER, is_ours
from .client import Cluster, describe
from .helm_storage import read_releases
from .query import Object, query, quoted

# Kinds that show that somebody uses a namespace.
CONTENT = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Secret"),
    ("v1", "ConfigMap"),
    ("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition"),
)
# Annotations of objects that helm installed. Other releases show by the Secret or ConfigMap in which helm stores them.
RELEASE_NAME, RELEASE_NAMESPACE, HOOK = (
    f"metadata.annotations.{quoted(key)}"
    for key in ("meta.helm.sh/release-name", "meta.helm.sh/release-namespace", "helm.sh/hook")
)


def is_only_ours(obj: t.Optional[Object]) -> bool:
    """Whether this collection has applied the object, and nobody else has written more than its status."""
    writers = query("metadata.managedFields[?!subresource].manager", obj) or ()
    return is_ours(obj) and set(writers) == {MANAGER}


def own_labels(obj: Object) -> t.List[str]:
    """The labels that this collection has set on a foreign object, such as a node."""
    entries = query(f"metadata.managedFields[?manager=='{MANAGER}'].fieldsV1", obj) or ()
    found = [query('"f:metadata"."f:labels"', fields) or {} for fields in entries]
    return sorted({key[2:] for labels in found for key in labels if key.startswith("f:")})


def release_is_ours(cluster: Cluster, workload: Object) -> bool:
    """Whether this collection has installed or upgraded the helm release of a workload."""
    name, namespace = query(RELEASE_NAME, workload), query(RELEASE_NAMESPACE, workload)
    if not name:
        return False
    releases = read_releases(cluster, name, namespace or workload["metadata"]["namespace"])
    return any(release.ours for release in releases)


def comes_and_goes(obj: Object) -> bool:
    """Whether an object in a namespace is ours, or will go with another object or with the namespace."""
    metadata = obj["metadata"]
    return bool(
        is_ours(obj)
        or metadata.get("ownerReferences")
        or metadata.get("deletionTimestamp")
        or metadata["name"] == "kube-root-ca.crt"
        or obj.get("type") == "kubernetes.io/service-account-token"
        or RENDER_LABEL in (metadata.get("labels") or {})
        or query(RELEASE_NAME, obj)
        or query(HOOK, obj)
    )


def found_in(cluster: Cluster, namespace: str) -> t.Optional[Object]:
    """An object in a namespace that somebody else created."""
    for api_version, kind in CONTENT:
        resource = cluster.resource(api_version, kind)
        for item in cluster.items(resource.path(namespace=namespace)) if resource else ():
            if not comes_and_goes(item):
                return {**item, "kind": kind}
    return None


def why_kept(cluster: Cluster, obj: Object) -> str:
    """Why this collection may not remove an object; empty if it may."""
    if not is_ours(obj):
        return "this collection did not apply it"
    if obj["kind"] != "Namespace":
        return ""
    if not is_only_ours(obj):
        return "somebody else has written to it as well"
    left = found_in(cluster, obj["metadata"]["name"])
    return f"it contains somebody else's {describe(left)}" if left else ""
