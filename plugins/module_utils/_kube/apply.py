# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applies or deletes objects of any kind in one call.

Why not kubernetes.core.k8s: here unknown fields are errors, and check mode works without a cluster.
"""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.manager import is_ours
from .._common.result import FabricError, outcome
from .._common.secrets import hide, in_objects
from .client import ApiError, Cluster, comparable, connect, describe, refusal, unknown_kind, wait_until
from .ownership import is_only_ours, why_kept
from .query import Object, query
from .readiness import condition_true


def check_objects(objects: t.Sequence[Object]) -> None:
    """Refuse anything that is not an object, before anything is changed."""
    for number, obj in enumerate(objects, 1):
        missing = [key for key in ("apiVersion", "kind") if not obj.get(key)]
        if not query("metadata.name", obj):
            missing.append("metadata.name")
        if missing:
            raise FabricError(
                "Every object needs apiVersion, kind and metadata.name.",
                f"object {number} of {len(objects)}",
                f"no {', '.join(missing)}",
                "Complete the object.",
                code="invalid-input",
            )


def apply_object(
    cluster: Cluster, obj: Object, dry_run: bool, validation: str, exact: bool = False
) -> t.Tuple[t.Any, t.Any]:
    """The object before and after; the wanted object as after, if the server can't dry-run it yet.

    exact: fields that others have added to its spec are removed.
    """
    before = cluster.read(obj)
    untried = dry_run and before is None and not can_dry_run(cluster, obj)
    after = obj if untried else cluster.apply(obj, dry_run, validation)
    added = added_fields(obj, after) if exact and obj.get("spec") else []
    if added and dry_run:
        after = {**after, "spec": {key: value for key, value in after["spec"].items() if key not in added}}
    elif added:
        after = remove_fields(cluster, obj, added)
    return comparable(before), comparable(after)


def added_fields(obj: Object, found: Object) -> t.List[str]:
    """Fields of the spec that are missing in `obj` and have a manager; the server's defaults have none."""
    written = query('metadata.managedFields[?!subresource].fieldsV1."f:spec"', found) or []
    names = {key[2:] for fields in written for key in fields if key.startswith("f:")}
    return sorted((names & set(found.get("spec") or {})) - set(obj["spec"]))


def remove_fields(cluster: Cluster, obj: Object, names: t.Sequence[str]) -> Object:
    try:
        return cluster.patch(t.cast(str, cluster.path_of(obj)), {"spec": dict.fromkeys(names)})
    except ApiError as error:
        raise refusal(error, "apply", describe(obj)) from error


def can_dry_run(cluster: Cluster, obj: Object) -> bool:
    """Whether the server can dry-run a new object: it knows the kind, and the namespace exists."""
    if cluster.path_of(obj) is None:
        return False
    namespace = query("metadata.namespace", obj)
    return not namespace or cluster.get(f"/api/v1/namespaces/{namespace}") is not None


def delete_objects(
    cluster: Cluster, module: AnsibleModule
) -> t.Tuple[t.Dict[str, t.Any], t.Dict[str, t.Any], t.List[str]]:
    """The changed objects by name, before and after, and the kept ones, each with the reason."""
    before: t.Dict[str, t.Any] = {}
    after: t.Dict[str, t.Any] = {}
    kept = []
    for obj in reversed(module.params["objects"]):
        found = cluster.read(obj)
        if found is None:
            continue
        reason = why_kept(cluster, {**found, "kind": obj["kind"]}) if module.params["only_ours"] else ""
        if reason and module.check_mode and query("metadata.ownerReferences", found):
            continue  # it will go with its owner, which still exists only because this is check mode
        if reason:
            kept.append(f"{describe(obj)}: {reason}")
            if obj["kind"] == "Namespace" and is_ours(found) and not is_only_ours(found):
                # Somebody else's: it loses the labels that only this collection has set.
                bare = {**obj, "metadata": {"name": obj["metadata"]["name"]}}
                before[describe(obj)], after[describe(obj)] = apply_object(cluster, bare, module.check_mode, "Strict")
            continue
        before[describe(obj)], after[describe(obj)] = comparable(found), None
        if not module.check_mode:
            cluster.delete(t.cast(str, cluster.path_of(obj)))
    return before, after, kept


def others_of(cluster: Cluster, objects: t.Sequence[Object]) -> t.List[str]:
    """Existing objects that this collection has not applied."""
    found = [(obj, cluster.read(obj)) for obj in objects]
    return [describe(obj) for obj, current in found if current is not None and not is_ours(current)]


def refuse_others(names: t.Sequence[str]) -> None:
    """Refuse to change objects of others, or anything together with them."""
    if names:
        raise FabricError(
            "Objects of these names exist already, and this collection did not apply them.",
            ", ".join(names),
            "somebody else's objects",
            "Use the existing objects as they are, or choose other names.",
            code="not-ours",
        )


def established(cluster: Cluster, obj: Object) -> bool:
    """Whether a CustomResourceDefinition serves its kind. Everything else is usable as soon as it is applied."""
    if obj["kind"] != "CustomResourceDefinition":
        return True
    return condition_true(cluster.read(obj), "Established")


def still_exists(obj: Object, found: Object) -> str:
    """A deleted object that is not gone, and, if it is a CustomResourceDefinition, what the API server waits for."""
    terminating = [c for c in query("status.conditions", found) or [] if c["type"] == "Terminating"]
    reasons = [f" ({c.get('message') or c.get('reason')})" for c in terminating if c["status"] == "True"]
    return f"{describe(obj)} still exists{''.join(reasons)}"


def wait_for_kinds(cluster: Cluster, objects: t.Sequence[Object], absent: bool, timeout: float) -> None:
    """Wait until new kinds are served, or until deleted objects are gone."""

    def pending() -> t.List[str]:
        if absent:
            return [still_exists(obj, found) for obj in objects for found in [cluster.read(obj)] if found is not None]
        return [f"{describe(obj)} is not Established" for obj in objects if not established(cluster, obj)]

    what = "Deleted objects are still there." if absent else "New kinds are not served yet."
    wait_until(pending, timeout, what, "Check the object's finalizers and conditions with kubectl describe.", 0.5)


def apply_objects(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module kube_apply."""
    objects: t.List[Object] = module.params["objects"]
    absent = module.params["state"] == "absent"
    check_objects(objects)
    cluster = connect(module)
    before: t.Dict[str, t.Any] = {}
    after: t.Dict[str, t.Any] = {}
    kept: t.List[str] = []
    if absent:
        before, after, kept = delete_objects(cluster, module)
    refuse = not absent and not module.params["adopt"]
    if refuse:
        refuse_others(others_of(cluster, [obj for obj in objects if obj["kind"] != "Namespace"]))
    others = others_of(cluster, objects) if module.check_mode and not absent else []
    for obj in [] if absent else objects:
        if not module.check_mode and cluster.path_of(obj) is None:
            raise unknown_kind(obj)
        before[describe(obj)], after[describe(obj)] = apply_object(
            cluster, obj, module.check_mode, module.params["validation"], module.params["exact"]
        )
    if kept:
        module.warn(f"Not removed: {'; '.join(kept)}.")
    changed = [name for name in before if before[name] != after[name]]
    if changed and not module.check_mode:
        waited = [obj for obj in objects if describe(obj) in changed and (after[describe(obj)] is None) is absent]
        wait_for_kinds(cluster, waited, absent, module.params["timeout"])
    updated = [name for name in changed if before[name] is not None and after[name] is not None]
    differing = hide({name: before[name] for name in changed}, {name: after[name] for name in changed}, in_objects)
    return outcome(*differing, objects=changed, updated=updated, kept=kept, others=others)
