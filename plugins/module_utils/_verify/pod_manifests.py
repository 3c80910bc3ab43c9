# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probe pods and their nodes as API objects: manifests, and the state of a pod. Pure functions."""

from __future__ import annotations

import json
import re
import typing as t

from .._kube.multus import NETWORK_STATUS
from .._kube.nodes import pressures
from .._kube.pod_problems import NEVER_STARTS
from .._kube.query import query, quoted
from .._model.plan import Plan
from .._model.probe import Attached, NodeFacts
from .._model.stacks import NETWORKS, OWN_DEVICES, host_nic
from .catalog import NO_NODE, NOT_READY
from .pods import GPUS, LABEL, Options, Target, gpu_of, resource_name, targets

# How a kubelet, or a quota, refuses what a node offers: other pods hold it, or its parts are too far apart.
NOT_GIVEN = re.compile(r"^(OutOf|UnexpectedAdmissionError|TopologyAffinityError|the API server refused)")
API_AWAY = re.compile("dial tcp .*connection refused")  # temporary, while the API server restarts
SANDBOX_FAILURES = 3  # the kubelet retries by itself: one failure may be temporary, three are not

ApiObject = t.Mapping[str, object]
Manifest = t.Dict[str, object]


DEVICES: Manifest = {"name": "infiniband", "hostPath": {"path": "/dev/infiniband"}}


class PodState(t.NamedTuple):
    state: str  # running, waiting or failed
    reason: str


# Nodes


def allocatable(node: ApiObject, resource: str) -> int:
    return int(query(f"status.allocatable.{quoted(resource)}", node) or 0)


def ready_condition(node: ApiObject) -> t.Tuple[bool, str]:
    """Whether a node is Ready, and the kubelet's message about it."""
    condition = query("status.conditions[?type=='Ready'] | [0]", node) or {"message": "no Ready condition"}
    return condition.get("status") == "True", condition.get("message", "")


def node_fault(node: t.Optional[ApiObject]) -> str:
    """Why no pod can start on a node; empty if one can."""
    if node is None:
        return NO_NODE[0]
    ready, message = ready_condition(node)
    return "" if ready else f"{NOT_READY}: {message}"


def node_facts(plan: Plan, node: ApiObject) -> NodeFacts:
    ready, message = ready_condition(node)
    resources = {network["name"]: resource_name(plan, network) for network in plan["networks"]}
    return {
        "ready": ready,
        "reason": message,
        "pressures": pressures(node),
        "labels": query("metadata.labels", node) or {},
        "allocatable": {
            name: {"resource": resource, "count": allocatable(node, resource)}
            for name, resource in resources.items()
            if resource
        },
    }


def awaited_resources(plan: Plan, nodes: t.Mapping[str, ApiObject]) -> t.List[t.Tuple[str, str]]:
    """Ready nodes without an RDMA resource that the plan has for their NICs, with the resource's name."""
    names = {network["name"]: resource_name(plan, network) for network in plan["networks"]}
    ready = [target for target in targets(plan) if not node_fault(nodes.get(target.node))]
    wanted = {(target.node, names[network]) for target in ready for network in target.networks if names[network]}
    return sorted((node, resource) for node, resource in wanted if not allocatable(nodes[node], resource))


def gpus_for(target: Target, plan: Plan, node: ApiObject, options: Options) -> int:
    """How many GPUs a pod requests: all of its node, since a part may not include those near the NICs."""
    wanted = options.gpu and options.asks("gpu_bandwidth") and not target.second
    rdma = [n["name"] for n in plan["networks"] if n["name"] in target.networks and resource_name(plan, n)]
    near = wanted and any(gpu_of(plan, network, target.host) is not None for network in rdma)
    return allocatable(node, GPUS) if near else 0


# Pods


def pod_manifest(target: Target, plan: Plan, node: ApiObject, options: Options, gpus: int = 0) -> Manifest:
    """A pod for a node, with a container as uid 0, one as uid 1000, and one with the RDMA devices if the plan has any.

    The latter holds the GPUs too.
    """
    networks = {network["name"]: network for network in plan["networks"]}
    attached = ",".join(f"{networks[name]['namespace']}/{name}" for name in target.networks)
    wanted = sorted({resource_name(plan, networks[name]) for name in target.networks} - {""})
    own = [networks[name] for name in target.networks if networks[name].get("cni") in OWN_DEVICES]
    taken = [resource_name(plan, network) for network in own]  # each network takes one
    held = {name: max(1, taken.count(name)) for name in wanted if allocatable(node, name) > 0}
    if gpus:
        held[GPUS] = gpus
    privileged = host_nic(plan, target.host) is not None
    image, lifetime = options.image_for(plan), options.lifetime(bool(wanted) or privileged)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": target.pod,
            "labels": {LABEL: options.namespace},
            "annotations": {NETWORKS: attached} if attached else {},
        },
        "spec": {
            "nodeName": target.node,  # this way, a cordoned node is probed too
            "containers": containers(image, lifetime, held if wanted else None, privileged),
            **({"volumes": [DEVICES]} if privileged else {}),
            "restartPolicy": "Never",
            "activeDeadlineSeconds": lifetime,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "serviceAccountName": "probe",
            "enableServiceLinks": False,
            "tolerations": [{"operator": "Exists"}],
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        },
    }


def containers(
    image: str, lifetime: int, resources: t.Optional[t.Mapping[str, int]], privileged: bool
) -> t.List[Manifest]:
    """`resources` are those that the node has: requesting others would lose all other checks of the node.

    None: the plan has none. `privileged`: use the host's devices, for which there is no resource.
    """
    user = {"runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}}
    found = [
        container("root", image, lifetime, {"runAsUser": 0}),
        container("user", image, lifetime, user),
    ]
    if privileged:
        rights: Manifest = {"runAsUser": 0, "privileged": True, "allowPrivilegeEscalation": True}
        mounts = [{"name": DEVICES["name"], "mountPath": "/dev/infiniband"}]
        found.append({**container("rdma", image, lifetime, rights), "volumeMounts": mounts})
    elif resources is not None:
        held = {name: str(count) for name, count in resources.items()}
        context = {"runAsUser": 0, "capabilities": {"add": ["IPC_LOCK"]}}
        last = container("rdma", image, lifetime, context)
        found.append({**last, "resources": {"limits": held, "requests": held}})
    return found


def container(name: str, image: str, lifetime: int, context: Manifest) -> Manifest:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", str(lifetime)],
        "securityContext": {"allowPrivilegeEscalation": False, **context},
    }


def pod_state(pod: t.Optional[ApiObject], sandbox_failures: t.Sequence[str] = ()) -> PodState:
    """Whether a pod runs, may still start, or never will."""
    if pod is None:
        return PodState("failed", "the pod was removed by something else")
    status = query("status", pod) or {}
    if status.get("phase") in ("Failed", "Succeeded"):
        return PodState("failed", f"{status.get('reason', 'Ended')}: {status.get('message', 'no message')}")
    waiting = query("containerStatuses[?state.waiting != `null`].{image: image, why: state.waiting}", status) or []
    for entry in waiting:
        why = entry["why"]
        if why.get("reason") in NEVER_STARTS:
            return PodState("failed", f"{why['reason']}, {entry['image']}: {why.get('message', 'no message')}")
    if len([failure for failure in sandbox_failures if not API_AWAY.search(failure)]) >= SANDBOX_FAILURES:
        return PodState("failed", f"the pod's network could not be set up: {sandbox_failures[-1]}")
    entries = status.get("containerStatuses") or []
    if entries and len(query("[?state.running != `null`]", entries)) == len(entries):
        return PodState("running", "")
    if sandbox_failures:
        return PodState("waiting", f"the pod's network could not be set up yet: {sandbox_failures[-1]}")
    reasons = sorted(set(query("[].why.reason", waiting)))
    return PodState("waiting", ", ".join(reasons) or "the kubelet has not started the pod")


def network_status(pod: t.Optional[ApiObject]) -> t.Optional[t.List[Attached]]:
    """What multus wrote on the pod; None if it wrote nothing."""
    text = query(f"metadata.annotations.{quoted(NETWORK_STATUS)}", pod)
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None
