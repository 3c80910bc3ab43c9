# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the network operator has rendered from its policy, and somebody has edited since.

The operator notes on each object what it was rendered from, and never looks at one again that has the same note.
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
# Where a component is in the policy, and the workloads that run it, by their path below a namespace.
WORKLOADS = {
    "secondaryNetwork.multus": ("daemonsets/kube-multus-ds",),
    "secondaryNetwork.cniPlugins": ("daemonsets/cni-plugins-ds",),
    "rdmaSharedDevicePlugin": ("daemonsets/rdma-shared-dp-ds",),
    "nvIpam": ("daemonsets/nv-ipam-node", "deployments/nv-ipam-controller"),
}
KINDS = {"daemonsets": "DaemonSet", "deployments": "Deployment", "configmaps": "ConfigMap"}
PLUGIN_CONFIG, PLUGIN = "rdma-devices", "rdma-shared-dp"


class Rendered(t.NamedTuple):
    """An object of the operator, the part of it that the policy decides, and where that is in the object."""

    path: str
    kind: str
    part: str  # as JMESPath
    field: str  # the same in managedFields
    wanted: t.Any

    def value(self, obj: t.Optional[Object]) -> t.Any:
        return query(self.part, obj)


def image_of(component: Object) -> str:
    version = component.get("version") or ""
    return f"{component['repository']}/{component['image']}{'@' if version.startswith('sha256:') else ':'}{version}"


def rendered_objects(spec: Object, namespace: str, suffix: str = "") -> t.List[Rendered]:
    """What a policy says of the objects of its components, whose names end with that of a NicNodePolicy.

    Only 26.4 and 26.7 call its DaemonSet so: it is not found under another name.
    """
    found = []
    for place, workloads in WORKLOADS.items():
        component = query(place, spec)
        if not query("repository && image && version", component):
            continue  # the policy has them for all components in one place
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
    """Whether another than the operator wrote a field last: what a webhook makes of its requests is its own, too."""

    def writers(name: str) -> t.Set[str]:
        managed = query("metadata.managedFields", current) or []
        return {each["manager"] for each in managed if f'"{name}"' in json.dumps(each.get("fieldsV1"))}

    return not writers(field) & writers(f"f:{REVISION}")


def edited_objects(cluster: Cluster, namespace: str) -> t.Dict[str, t.Tuple[Rendered, t.Any]]:
    """The objects that are not what our policies say, by name, each with what it says."""
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
        # Without a note the operator repairs it by itself, and what it does not own is somebody else's.
        owned = query("metadata.uid", policy) in (query("metadata.ownerReferences[].uid", current) or ())
        noted = query(NOTE, current) and owned and was_edited(current, rendered.field)
        if noted and rendered.value(current) != rendered.wanted:
            found[describe({**t.cast(Object, current), "kind": rendered.kind})] = (rendered, rendered.value(current))
    return found


def plugin_is_behind(cluster: Cluster, namespace: str) -> bool:
    """Whether a pod of the device plugin is older than its configuration: a run was killed before it restarted them."""
    home = f"/api/v1/namespaces/{namespace}"
    managed = query("metadata.managedFields", cluster.get(f"{home}/configmaps/{PLUGIN_CONFIG}")) or []
    written = [each.get("time") or "" for each in managed if '"f:config.json"' in json.dumps(each.get("fieldsV1"))]
    pods = cluster.items(f"{home}/pods", labelSelector=f"app={PLUGIN}") if written else []
    started = [query("status.startTime", pod) for pod in pods]
    return any(time and time < max(written) for time in started)  # as RFC 3339 has them, in UTC


def still_edited(cluster: Cluster, rendered: t.Iterable[Rendered]) -> t.List[str]:
    """Take the operator's note off what is not as wanted: it renders that again. Returns what it has not done yet."""
    left = []
    for each in rendered:
        current = cluster.get(each.path)
        if each.value(current) == each.wanted:
            continue
        name = each.path.rpartition("/")[2]
        left.append(f"{each.kind} {name} says {each.value(current)!r}, planned is {each.wanted!r}")
        if query(NOTE, current):
            version = query("metadata.resourceVersion", current)
            body: Object = {"metadata": {"resourceVersion": version, "annotations": {REVISION: None}}}
            try:
                cluster.patch(each.path, body)
            except ApiError as error:
                if error.status not in (404, 409):  # changed meanwhile: asked again
                    raise refusal(error, "change", each.path) from error
    return left


def render_again(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """With state=rendered."""
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
