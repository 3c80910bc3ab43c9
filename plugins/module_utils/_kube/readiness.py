# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether workloads, custom resources and webhooks are ready, and why not."""

from __future__ import annotations

import typing as t

from .client import ApiError, Cluster, describe, message_of
from .nodes import PRESSURE, pressures
from .pod_logs import crash_reasons
from .pod_problems import (
    MOUNT_EVENTS,
    NO_HOST_PATH,
    SANDBOX_EVENTS,
    Problem,
    newest_pods,
    pod_problems,
    sandbox_failures,
    waits_for_its_parts,
)
from .pod_resources import NodeResources
from .query import Object, query, quoted

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet")
# The API's revisions of a workload's pods, and where each has its number and hash.
REVISIONS = {
    "Deployment": (
        "replicasets",
        f"metadata.annotations.{quoted('deployment.kubernetes.io/revision')}",
        "pod-template-hash",
    ),
    "DaemonSet": ("controllerrevisions", "revision", "controller-revision-hash"),
}
TAINTED = "untolerated taint"  # in the scheduler's message about a pod without a node
# The network operator sets these labels itself, when it gets to a node.
OPERATORS_LABELS = "network.nvidia.com/operator."


class WantedObject(t.TypedDict):
    """An object that must be ready, as in the module's option."""

    api_version: str
    kind: str
    name: str
    namespace: str  # empty for kinds that have none
    field: str  # of a custom resource, as JMESPath
    value: str  # empty: the object only has to exist
    reason: str  # of the condition Ready; empty: any
    required: bool  # whether it must exist


class ReadyOptions(t.TypedDict):
    """What must be ready. None: nothing of that kind."""

    objects: t.Optional[t.List[WantedObject]]
    crds: t.Optional[t.List[str]]
    accepted: t.Optional[t.List[Object]]
    watch: t.List[str]  # namespaces whose workloads explain a custom resource
    idle_faults: bool  # whether a DaemonSet there without nodes is a fault


def is_observed(workload: Object) -> bool:
    """Whether its controller has seen the last change."""
    return (query("status.observedGeneration", workload) or 0) >= workload["metadata"].get("generation", 0)


def runs_nowhere(workload: Object) -> bool:
    """Whether no node is selected to run it."""
    idle = workload["kind"] == "DaemonSet" and not query("status.desiredNumberScheduled", workload)
    return idle and is_observed(workload)


def rollout_pending(workload: Object) -> str:
    """Why a workload is not fully rolled out; empty if it is."""
    status = workload.get("status") or {}
    if not is_observed(workload):
        return "its controller has not seen the last change"
    if runs_nowhere(workload):
        return "0 nodes are selected to run it"
    if workload["kind"] == "DaemonSet":
        wanted, updated = status.get("desiredNumberScheduled", 0), status.get("updatedNumberScheduled", 0)
        available = status.get("numberAvailable", 0)
    else:
        wanted, updated = query("spec.replicas", workload), status.get("updatedReplicas", 0)
        wanted = 1 if wanted is None else wanted
        available = status.get("availableReplicas", 0)  # omitted by the API if there are none
        if status.get("replicas", 0) > updated:
            return f"{status['replicas'] - updated} old pods are still there"
    if updated < wanted or available < wanted:
        return f"{min(updated, available)} of {wanted} pods are ready"
    return ""


def tolerates(tolerations: t.Sequence[Object], taint: Object) -> bool:
    for one in tolerations:
        if one.get("effect") and one["effect"] != taint["effect"]:
            continue
        if one.get("operator") == "Exists" and one.get("key") in (None, "", taint["key"]):
            return True
        if one.get("key") == taint["key"] and one.get("value", "") == taint.get("value", ""):
            return True
    return False


def missing_labels(daemonset: Object, nodes: t.Sequence[Object]) -> t.List[str]:
    """Labels in a DaemonSet's node selector that no node has, each as `label=value`."""
    labels = [query("metadata.labels", node) or {} for node in nodes]
    selector = query("spec.template.spec.nodeSelector", daemonset) or {}
    return [f"{k}={v}" for k, v in sorted(selector.items()) if not any(own.get(k) == v for own in labels)]


def no_node_reason(daemonset: Object, nodes: t.Sequence[Object]) -> str:
    """Why a DaemonSet runs on no node: labels that no node has, or taints that it does not tolerate."""
    pod = query("spec.template.spec", daemonset) or {}
    unmet = missing_labels(daemonset, nodes)
    if unmet:
        return f"no node has the label {', '.join(unmet)}"
    blocking = set()
    for node in nodes:
        for taint in query("spec.taints", node) or []:
            if taint["effect"] != "PreferNoSchedule" and not tolerates(pod.get("tolerations") or [], taint):
                blocking.add(f"{taint['key']}:{taint['effect']} on {node['metadata']['name']}")
    if blocking:
        return f"it does not tolerate {', '.join(sorted(blocking))}"
    return "no node matches its node affinity" if pod.get("affinity") else "no node matches its node selector"


def condition_true(obj: t.Optional[Object], name: str) -> bool:
    return query(f"status.conditions[?type=='{name}'].status | [0]", obj) == "True"


def answering_pods(pods: t.Sequence[Object], nodes: t.Sequence[Object]) -> t.List[Object]:
    """The pods except those on a node whose kubelet no longer answers, whose state is unknown."""
    ready = "status.conditions[?type=='Ready'].status | [0]"
    lost = {node["metadata"]["name"] for node in nodes if query(ready, node) == "Unknown"}
    return [pod for pod in pods if query("spec.nodeName", pod) not in lost]


def only_lost_nodes_miss_it(workload: Object, pods: t.Sequence[Object], answering: t.Sequence[Object]) -> bool:
    """Whether all other pods are ready and of the newest revision. A dead node must not hold up the others."""
    status, newest = workload.get("status") or {}, newest_pods(pods)
    if not is_observed(workload) or len(answering) == len(pods):
        return False
    running = [pod for pod in answering if pod in newest and condition_true(pod, "Ready")]
    of_daemon_set = workload["kind"] == "DaemonSet"
    wanted = status.get("desiredNumberScheduled", 0) if of_daemon_set else query("spec.replicas", workload) or 1
    # A Deployment needs at least one running pod.
    enough = of_daemon_set or bool(running)
    return enough and len(running) == len(answering) and len(pods) >= wanted


def of_current_revision(cluster: Cluster, workload: Object, pods: t.Sequence[Object]) -> t.List[Object]:
    """The pods of the revision that is rolled out. Pods of a former one are replaced anyway."""
    metadata = workload["metadata"]
    if not is_observed(workload):
        return []  # its controller has not started
    kind, number, label = REVISIONS[workload["kind"]]
    revisions = [
        revision
        for revision in cluster.items(f"/apis/apps/v1/namespaces/{metadata['namespace']}/{kind}")
        if metadata.get("uid") in (query("metadata.ownerReferences[].uid", revision) or ())
    ]
    if not revisions:
        return list(pods)
    current = max(revisions, key=lambda revision: int(query(number, revision) or 0))
    path = f"metadata.labels.{quoted(label)}"
    return [pod for pod in pods if query(path, pod) == query(path, current)]


def not_ready(pod: Object) -> t.List[Problem]:
    """What the kubelet reports about a running pod that is not ready."""
    message = query("status.conditions[?type=='Ready' && status=='False'].message | [0]", pod)
    where = f"pod {pod['metadata']['name']} on {query('spec.nodeName', pod)}"
    return [Problem(f"{where}: {message}")] if message else []


def _waiting(
    cluster: Cluster, namespace: str, pods: t.Sequence[Object], selector: str
) -> t.Tuple[t.Dict[str, Object], t.List[Object]]:
    """Pods without a started container, by UID, and their events, without those of earlier pods of the same name."""
    waiting = {pod["metadata"].get("uid"): pod for pod in pods if waits_for_its_parts(pod)}
    events = cluster.items(f"/api/v1/namespaces/{namespace}/events", fieldSelector=selector) if waiting else []
    return waiting, [event for event in events if event["involvedObject"].get("uid") in waiting]


def network_problems(cluster: Cluster, namespace: str, pods: t.Sequence[Object]) -> t.List[Problem]:
    """Pods whose network could not be set up so far: only events show that. The kubelet retries by itself."""
    waiting, events = _waiting(cluster, namespace, pods, SANDBOX_EVENTS)
    failures = sandbox_failures(events)
    return [
        Problem(f"pod {name} on {pod['spec']['nodeName']}: its network could not be set up yet: {failures[name][-1]}")
        for pod in waiting.values()
        for name in [pod["metadata"]["name"]]
        if failures.get(name)
    ]


def mount_problems(cluster: Cluster, namespace: str, pods: t.Sequence[Object]) -> t.List[Problem]:
    """Pods with a volume that could not be mounted so far: only events show that."""
    waiting, events = _waiting(cluster, namespace, pods, MOUNT_EVENTS)
    told = {event["involvedObject"]["uid"]: event.get("message", "") for event in events}
    return [
        Problem(
            f"pod {pod['metadata']['name']} on {pod['spec']['nodeName']}: {told[uid]}", fault=NO_HOST_PATH in told[uid]
        )
        for uid, pod in waiting.items()
        if uid in told
    ]


def pressure_problems(cluster: Cluster, found: t.Sequence[Problem]) -> t.List[Problem]:
    """What nodes are short of, if pods find none: the scheduler's message counts taints without naming them."""
    if not any(TAINTED in problem.text for problem in found):
        return []
    nodes = {node["metadata"]["name"]: pressures(node) for node in cluster.items("/api/v1/nodes")}
    return [
        Problem(f"node {name}: {text}", fault=True, step=PRESSURE) for name, texts in nodes.items() for text in texts
    ]


def stated_reason(obj: Object) -> t.Tuple[str, str]:
    """Reason and message of a custom resource, from its condition Error or Degraded if true, else from Ready."""
    conditions = {c["type"]: c for c in query("status.conditions", obj) or []}
    telling = next((name for name in ("Error", "Degraded") if condition_true(obj, name)), "Ready")
    speaking = conditions.get(telling) or {}
    return speaking.get("reason", ""), speaking.get("message", "")


class ObjectWatch:
    """Workloads, custom resources, CRDs and webhooks that must be ready."""

    what = "the objects"
    next_step = "Fix what is named (image, label, toleration, log of the crashing container) and run again."

    def __init__(self, cluster: Cluster, params: ReadyOptions) -> None:
        self.cluster, self.params, self.resources = cluster, params, NodeResources(cluster)

    def problems(self) -> t.List[Problem]:
        """Everything that is not ready now."""
        wanted = self.params["objects"] or ()
        found = [each for one in wanted if one["kind"] in WORKLOADS for each in self.object_problems(one)]
        # Until the operator itself runs, its DaemonSets belong to its former release or settings.
        rolled_out = not found
        for one in wanted:
            if one["kind"] not in WORKLOADS:
                found += [each._replace(fault=each.fault and rolled_out) for each in self.object_problems(one)]
        found += [problem for name in self.params["crds"] or () for problem in self.crd_problems(name)]
        found += [problem for obj in self.params["accepted"] or () for problem in self.refusals(obj)]
        return found

    def object_problems(self, wanted: WantedObject) -> t.List[Problem]:
        metadata = {"name": wanted["name"], "namespace": wanted["namespace"]}
        obj = {"apiVersion": wanted["api_version"], "kind": wanted["kind"], "metadata": metadata}
        name, current = describe(obj), self.cluster.read(obj)
        if current is None:
            return [Problem(f"{name} does not exist")] if wanted["required"] else []
        if wanted["kind"] in WORKLOADS:
            return self.workload_problems({**current, "kind": wanted["kind"]})
        return self.state_problems(name, current, wanted)

    def crd_problems(self, name: str) -> t.List[Problem]:
        crd = self.cluster.get(f"{CRDS}/{name}")
        if crd is None:
            return [Problem(f"CustomResourceDefinition {name} does not exist")]
        return (
            []
            if condition_true(crd, "Established")
            else [Problem(f"CustomResourceDefinition {name} is not Established")]
        )

    def state_problems(self, name: str, current: Object, wanted: WantedObject) -> t.List[Problem]:
        """A custom resource reports whether it is ready; its workloads show why not.

        Its operator also counts pods on dead nodes, which must not hold up the others.
        """
        seen, (reason, message) = query(wanted["field"], current), stated_reason(current)
        if not wanted["value"] or (seen == wanted["value"] and wanted["reason"] in ("", reason)):
            return []
        states = query("status.appliedStates[?state!='ready' && state!='ignore']", current) or []
        causes: t.List[Problem] = []
        held_up = 0  # DaemonSets that only dead nodes keep from being ready
        for namespace in self.params["watch"]:
            for kind in ("DaemonSet", "Deployment"):
                for workload in self.cluster.items(f"/apis/apps/v1/namespaces/{namespace}/{kind.lower()}s"):
                    typed = {**workload, "kind": kind}
                    problems = self.workload_problems(typed, self.params["idle_faults"])
                    causes += problems
                    held_up += bool(rollout_pending(typed)) and not problems and not runs_nowhere(typed)
        if not causes and 0 < len(states) <= held_up:
            return []
        parts = [f"{part.get('name')} {part.get('state')}" for part in states]
        parts += [text for text in (query("status.reason", current), f"{reason}: {message}".strip(": ")) if text]
        detail = f" ({', '.join(parts)})" if parts else ""
        goal = f"{wanted['value']}, {wanted['reason']}" if wanted["reason"] else wanted["value"]
        return [Problem(f"{name} has {wanted['field']}={seen}{detail}, expected {goal}"), *causes]

    def workload_problems(self, workload: Object, idle_is_fault: bool = True) -> t.List[Problem]:
        pending = rollout_pending(workload)
        idle = runs_nowhere(workload)
        if not pending or (idle and not idle_is_fault):
            return []
        name = describe(workload)
        if idle:
            nodes = self.cluster.items("/api/v1/nodes")
            unmet = missing_labels(workload, nodes)
            by_operator = bool(unmet) and all(label.startswith(OPERATORS_LABELS) for label in unmet)
            return [Problem(f"{name}: {pending}: {no_node_reason(workload, nodes)}", not by_operator)]
        labels = query("spec.selector.matchLabels", workload) or {}
        pods = self.cluster.items(
            f"/api/v1/namespaces/{workload['metadata']['namespace']}/pods",
            labelSelector=",".join(f"{k}={v}" for k, v in sorted(labels.items())),
        )
        newest = newest_pods(pods)
        if workload["kind"] in ("DaemonSet", "Deployment"):
            answering = answering_pods(pods, self.cluster.items("/api/v1/nodes"))
            if only_lost_nodes_miss_it(workload, pods, answering):
                return []
            newest = [pod for pod in newest if pod in answering]
            if any(problem.fault for pod in newest for problem in pod_problems(pod)):
                newest = of_current_revision(self.cluster, workload, newest)
        reasons = network_problems(self.cluster, workload["metadata"]["namespace"], newest)
        reasons += [problem for pod in newest for problem in pod_problems(pod) or not_ready(pod)]
        reasons += pressure_problems(self.cluster, reasons)
        reasons += crash_reasons(self.cluster, workload["metadata"]["namespace"], newest)
        return [Problem(f"{name}: {pending}"), *reasons, *self.resources.problems(newest)]

    def refusals(self, obj: Object) -> t.List[Problem]:
        """Problems if the API server, with its webhooks, refuses a new object. Nothing is stored."""
        resource = self.cluster.resource(obj["apiVersion"], obj["kind"])
        if resource is None:
            return [Problem(f"the kind {obj['kind']} is not served")]
        path = resource.path(namespace=obj["metadata"].get("namespace") or "default")
        try:
            self.cluster.request("post", path, body=obj, dryRun="All", fieldValidation="Strict")
        except ApiError as error:
            return [Problem(f"{describe(obj)} is refused in a dry run: {message_of(error)}")]
        return []
