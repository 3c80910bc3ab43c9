# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the network operator rendered from its policy and somebody has edited since.

The operator annotates each object with what it was rendered from, and skips it while the annotation matches.
"""

from __future__ import annotations

import json
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.manager import is_ours
from .._common.result import outcome
from .._kube.client import ApiError, Cluster, connect, describe, refusal, wait_until
from .._kube.query import Object, query, quoted
from .cluster_info import NODE_POLICIES, POLICY

REVISION = "nvidia.network-operator.revision"
NOTE = f"metadata.annotations.{quoted(REVISION)}"
# The place of each component in the policy, and the workloads that run it, by their path below a namespace.
WORKLOADS = {
    "secondaryNetwork.multus": ("daemonsets/kube-multus-ds",),
    "secondaryNetwork.cniPlugins": ("daemonsets/cni-plugins-ds",),
    "rdmaSharedDevicePlugin": ("daemonsets/rdma-shared-dp-ds",),
    "nvIpam": ("daemonsets/nv-ipam-node", "deployments/nv-ipam-controller"),
}
KINDS = {"daemonsets": "DaemonSet", "deployments": "Deployment", "configmaps": "ConfigMap"}
PLUGIN_CONFIG, PLUGIN = "rdma-devices", "rdma-shared-dp"


class Rendered(t.NamedTuple):
    """An object of the operator, and the part of it that the policy decides."""

    path: str
    kind: str
    part: str  # JMESPath of that part
    field: str  # its name in managedFields
    wanted: t.Any

    def value(self, obj: t.Optional[Object]) -> t.Any:
        return query(self.part, obj)


def image_of(component: Object) -> str:
    version = component.get("version") or ""
    return f"{component['repository']}/{component['image']}{'@' if version.startswith('sha256:') else ':'}{version}"


def rendered_objects(spec: Object, namespace: str, suffix: str = "") -> t.List[Rendered]:
    """What a policy decides in the objects of its components; `suffix` ends their names if it is a NicNodePolicy.

    Only 26.4 and 26.7 name that policy's DaemonSet so: an object with another name is not found.
    """
    found = []
    for place, workloads in WORKLOADS.items():
        component = query(place, spec)
        if not query("repository && image && version", component):
            continue  # the policy sets them for all components in one place
        for workload in workloads:
            kind = KINDS[workload.partition("/")[0]]
            path = f"/apis/apps/v1/namespaces/{namespace}/{workload}{suffix}"
            found.append(Rendered(path, kind, "spec.template.spec.containers[0].image", "f:image", image_of(component)))
    config = query("rdmaSharedDevicePlugin.config", spec)
    if config:
        path = f"/api/v1/namespaces/{namespace}/configmaps/{PLUGIN_CONFIG}{suffix}"
        found.append(Rendered(path, "ConfigMap", f"data.{quoted('config.json')}", "f:config.json", config))
    return found


def was_edited(current: t.Optional[Object], field: str) -> bool:
    """Whether somebody other than the operator wrote a field last. Webhook changes to its requests count as its own."""

    def writers(name: str) -> t.Set[str]:
        managed = query("metadata.managedFields", current) or []
        return {each["manager"] for each in managed if f'"{name}"' in json.dumps(each.get("fieldsV1"))}

    return not writers(field) & writers(f"f:{REVISION}")


def edited_objects(cluster: Cluster, namespace: str) -> t.Dict[str, t.Tuple[Rendered, t.Any]]:
    """The objects that differ from our policies, by name, each with its current value."""
    found: t.Dict[str, t.Tuple[Rendered, t.Any]] = {}
    policy = cluster.get(POLICY)
    policies = [(policy, "")] if policy else []
    policies += [(each, f"-{each['metadata']['name']}") for each in cluster.items(NODE_POLICIES)]
    wanted = [
        (policy, rendered)
        for policy, suffix in policies
        if is_ours(policy)
        for rendered in rendered_objects(policy["spec"], namespace, suffix)
    ]
    for policy, rendered in wanted:
        current = cluster.get(rendered.path)
        # The operator itself repairs objects without the annotation. Those that it does not own belong to others.
        owned = query("metadata.uid", policy) in (query("metadata.ownerReferences[].uid", current) or ())
        noted = query(NOTE, current) and owned and was_edited(current, rendered.field)
        if noted and rendered.value(current) != rendered.wanted:
            found[describe({**t.cast(Object, current), "kind": rendered.kind})] = (rendered, rendered.value(current))
    return found


def plugin_is_behind(cluster: Cluster, namespace: str) -> bool:
    """Whether a device plugin pod is older than its configuration: a run was killed before it restarted the pods."""
    home = f"/api/v1/namespaces/{namespace}"
    managed = query("metadata.managedFields", cluster.get(f"{home}/configmaps/{PLUGIN_CONFIG}")) or []
    written = [each.get("time") or "" for each in managed if '"f:config.json"' in json.dumps(each.get("fieldsV1"))]
    pods = cluster.items(f"{home}/pods", labelSelector=f"app={PLUGIN}") if written else []
    started = [query("status.startTime", pod) for pod in pods]
    return any(time and time < max(written) for time in started)  # RFC 3339, in UTC


def still_edited(cluster: Cluster, rendered: t.Iterable[Rendered]) -> t.List[str]:
    """Remove the operator's annotation from edited objects, so that it renders them again. Returns what differs."""
    left = []
    for each in rendered:
        current = cluster.get(each.path)
        if each.value(current) == each.wanted:
            continue
        name = each.path.rpartition("/")[2]
        left.append(f"{each.kind} {name} says {each.value(current)!r}, but {each.wanted!r} is planned")
        if query(NOTE, current):
            version = query("metadata.resourceVersion", current)
            body: Object = {"metadata": {"resourceVersion": version, "annotations": {REVISION: None}}}
            try:
                cluster.patch(each.path, body)
            except ApiError as error:
                if error.status not in (404, 409):  # changed meanwhile: tried again
                    raise refusal(error, "change", each.path) from error
    return left


def render_again(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module for state=rendered."""
    cluster = connect(module)
    found = edited_objects(cluster, module.params["namespace"])
    before = {name: {rendered.part: value} for name, (rendered, value) in found.items()}
    after = {name: {rendered.part: rendered.wanted} for name, (rendered, _value) in found.items()}
    if found and not module.check_mode:
        wait_until(
            lambda: still_edited(cluster, [rendered for rendered, _value in found.values()]),
            module.params["timeout"],
            "The network operator has not restored an object that somebody edited.",
            "Read the log of the network operator's controller.",
        )
    empty: t.Dict[str, t.Any] = {"pods": [], "other_pods": [], "attachments": [], "needed_by": []}
    behind = plugin_is_behind(cluster, module.params["namespace"])
    configs = any(rendered.kind == "ConfigMap" for rendered, _value in found.values())
    return outcome(before, after, objects=sorted(found), behind=behind, configs=configs, **empty)
