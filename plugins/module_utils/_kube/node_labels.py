# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels, annotations and taints of many nodes: an exact diff, and one patch per node that differs."""

from __future__ import annotations

import typing as t
from multiprocessing.pool import ThreadPool

from ansible.module_utils.basic import AnsibleModule

from .._common.result import FabricError, outcome
from .client import ApiError, Cluster, connect, refusal
from .query import Object, by_name, query

NODES = "/api/v1/nodes"
ATTEMPTS = 5
Strings = t.Dict[str, t.Optional[str]]


def as_text(value: t.Any) -> t.Optional[str]:
    """Labels are strings: true from YAML means the label value `true`. None stays None, and removes the label."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def changed_keys(current: t.Mapping[str, str], wanted: t.Mapping[str, t.Any]) -> Strings:
    """The part of `wanted` that differs; None for a key to remove."""
    texts = {key: as_text(value) for key, value in wanted.items()}
    return {key: text for key, text in texts.items() if current.get(key) != text}


def wanted_taints(current: t.Sequence[Object], wanted: t.Sequence[Object]) -> t.List[Object]:
    """The node's taints with `wanted` merged in. Key and effect identify a taint, which keeps its place in the list."""
    result = {(taint["key"], taint["effect"]): taint for taint in current}
    for taint in wanted:
        key = (taint["key"], taint["effect"])
        if taint.get("state") == "absent":
            result.pop(key, None)
            continue
        value = as_text(taint.get("value")) or ""
        if key not in result or result[key].get("value", "") != value:
            result[key] = {"key": taint["key"], "effect": taint["effect"], **({"value": value} if value else {})}
    return list(result.values())


def node_patch(node: Object, wanted: Object) -> Object:
    """The merge patch from the node to the wanted state; empty if nothing differs."""
    metadata = node["metadata"]
    patch: Object = {}
    for part in ("labels", "annotations"):
        keys = changed_keys(metadata.get(part) or {}, wanted.get(part) or {})
        if keys:
            patch.setdefault("metadata", {})[part] = keys
    taints = query("spec.taints", node) or []
    merged = wanted_taints(taints, wanted.get("taints") or [])
    if merged != taints:
        patch["spec"] = {"taints": merged}
        # A list is replaced as a whole: with the version, the server refuses a patch of outdated data.
        patch.setdefault("metadata", {})["resourceVersion"] = metadata.get("resourceVersion")
    return patch


def view(node: Object, wanted: Object) -> Object:
    """A node as shown in the diff: only the keys that the task names."""
    metadata = node["metadata"]
    shown: Object = {}
    for part in ("labels", "annotations"):
        current = metadata.get(part) or {}
        kept = {key: current[key] for key in sorted(wanted.get(part) or {}) if key in current}
        if wanted.get(part):
            shown[part] = kept
    if wanted.get("taints"):
        shown["taints"] = query("spec.taints", node) or []
    return shown


def patched(node: Object, patch: Object) -> Object:
    """The node after the patch."""
    metadata = dict(node["metadata"])
    for part in ("labels", "annotations"):
        merged = {**(metadata.get(part) or {}), **(patch.get("metadata", {}).get(part) or {})}
        metadata[part] = {key: value for key, value in merged.items() if value is not None}
    return {**node, "metadata": metadata, "spec": {**(node.get("spec") or {}), **patch.get("spec", {})}}


def patch_node(cluster: Cluster, node: Object, wanted: Object) -> None:
    """Patch a node; after a conflict, try again with its newer state."""
    path = f"{NODES}/{node['metadata']['name']}"
    for attempt in range(1, ATTEMPTS + 1):
        patch = node_patch(node, wanted)
        if not patch:
            return
        try:
            cluster.patch(path, patch)
            return
        except ApiError as error:
            if error.status != 409 or attempt == ATTEMPTS:
                raise refusal(error, "patch", f"Node {node['metadata']['name']}") from error
        node = cluster.get(path) or node


def merged_by_name(nodes: t.Sequence[Object]) -> t.Dict[str, Object]:
    """One entry per node; if a node is named twice, the entries are merged, and the later one wins."""
    result: t.Dict[str, Object] = {}
    for entry in nodes:
        known = result.setdefault(entry["name"], {"labels": {}, "annotations": {}, "taints": []})
        known["labels"].update(entry.get("labels") or {})
        known["annotations"].update(entry.get("annotations") or {})
        known["taints"] = known["taints"] + (entry.get("taints") or [])
    return result


def current_nodes(cluster: Cluster, names: t.Iterable[str], simulated: bool) -> t.Dict[str, Object]:
    """The nodes by name, from one request. In check mode, a node that will join later counts as having no labels."""
    known = by_name(cluster.items(NODES))
    missing = sorted(set(names) - set(known))
    if missing and not simulated:
        raise FabricError(
            "Nodes to label do not exist.",
            "the cluster's nodes",
            f"no node {', '.join(missing)}; the cluster has {', '.join(sorted(known)) or 'none'}",
            "Give the names that kubectl get nodes shows, or join the hosts first.",
            code="not-found",
        )
    return {name: known.get(name, {"metadata": {"name": name}}) for name in names}


def patch_nodes(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module node_labels."""
    wanted = merged_by_name(module.params["nodes"])
    cluster = connect(module)
    nodes = current_nodes(cluster, wanted, module.check_mode)
    patches = {name: node_patch(node, wanted[name]) for name, node in nodes.items()}
    differing = sorted(name for name, patch in patches.items() if patch)
    before = {name: view(nodes[name], wanted[name]) for name in differing}
    after = {name: view(patched(nodes[name], patches[name]), wanted[name]) for name in differing}
    if differing and not module.check_mode:
        with ThreadPool(min(module.params["concurrency"], len(differing))) as pool:
            pool.map(lambda name: patch_node(cluster, nodes[name], wanted[name]), differing)
    return outcome(before, after, nodes=differing)
