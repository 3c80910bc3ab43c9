# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When an operator and what it runs is ready, and when it never will be."""

from __future__ import annotations

import time
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import (
    ApiError,
    Cluster,
    Object,
    connect,
    describe,
    field,
    message_of,
)

# Reasons for which the kubelet goes on trying, and which no waiting mends.
HOPELESS = (
    "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
    "CrashLoopBackOff", "CreateContainerError", "CreateContainerConfigError", "RunContainerError",
)  # fmt: skip
CRASHES = 3
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet")
REVISION_LABELS = ("pod-template-hash", "controller-revision-hash")


class Problem(t.NamedTuple):
    """Something that is not ready. A fault is one that no waiting mends."""

    text: str
    fault: bool = False


def rollout_pending(workload: Object) -> str:
    """Why a workload is not fully rolled out; empty when it is."""
    status, spec = workload.get("status") or {}, workload.get("spec") or {}
    if status.get("observedGeneration", 0) < workload["metadata"].get("generation", 0):
        return "its controller has not seen the last change"
    if workload["kind"] == "DaemonSet":
        wanted, updated = status.get("desiredNumberScheduled", 0), status.get("updatedNumberScheduled", 0)
        available = status.get("numberAvailable", 0)
        if not wanted:
            return "0 nodes are to run it"
    else:
        wanted, updated = spec.get("replicas", 1), status.get("updatedReplicas", 0)
        available = status.get("availableReplicas", status.get("readyReplicas", 0))
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


def no_node_reason(daemonset: Object, nodes: t.Sequence[Object]) -> str:
    """Why no node is to run a DaemonSet: labels that no node has, or taints that it does not tolerate."""
    pod = field(daemonset, "spec.template.spec") or {}
    labels = [node["metadata"].get("labels") or {} for node in nodes]
    selector = pod.get("nodeSelector") or {}
    unmet = [f"{k}={v}" for k, v in sorted(selector.items()) if not any(own.get(k) == v for own in labels)]
    if unmet:
        return f"no node has the label {', '.join(unmet)}"
    blocking = set()
    for node in nodes:
        for taint in field(node, "spec.taints") or []:
            if taint["effect"] != "PreferNoSchedule" and not tolerates(pod.get("tolerations") or [], taint):
                blocking.add(f"{taint['key']}:{taint['effect']} on {node['metadata']['name']}")
    if blocking:
        return f"it does not tolerate {', '.join(sorted(blocking))}"
    return "no node matches its node affinity" if pod.get("affinity") else "no node matches its node selector"


def container_problem(container: Object) -> t.Optional[Problem]:
    """What keeps one container from running, if it is more than a matter of time."""
    name, state = container["name"], container.get("state") or {}
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    if waiting.get("reason") in HOPELESS:
        last = field(container, "lastState.terminated") or {}
        detail = waiting.get("message") or (f"exit code {last['exitCode']}" if "exitCode" in last else "")
        return Problem(f"container {name}: {waiting['reason']} {detail}".strip(), True)
    # Between two restarts a crashing container shows as terminated, on Kubernetes 1.35 most of the time.
    if ended.get("exitCode") and container.get("restartCount", 0) >= CRASHES:
        text = f"container {name} ends with exit code {ended['exitCode']}, {container['restartCount']} restarts"
        return Problem(f"{text}: {(ended.get('message') or ended.get('reason') or '').strip()[-300:]}", True)
    return None


def container_statuses(pod: Object) -> t.List[Object]:
    """What the kubelet says of a pod's containers: init containers first."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def pod_problems(pod: Object) -> t.List[Problem]:
    name, found = pod["metadata"]["name"], []
    for container in container_statuses(pod):
        problem = container_problem(container)
        if problem:
            found.append(Problem(f"pod {name}, {problem.text}", problem.fault))
    for condition in field(pod, "status.conditions") or []:
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            found.append(Problem(f"pod {name} is on no node yet: {condition.get('message', '')}"))
    return found


def newest_pods(pods: t.Sequence[Object]) -> t.List[Object]:
    """The pods of the newest revision: those of the one before may be broken, and are on their way out."""

    def revision(pod: Object) -> str:
        labels = pod["metadata"].get("labels") or {}
        return next((labels[key] for key in REVISION_LABELS if key in labels), "")

    if not pods:
        return []
    newest = revision(max(pods, key=lambda pod: pod["metadata"].get("creationTimestamp", "")))
    return [pod for pod in pods if revision(pod) == newest]


def condition_true(obj: Object, name: str) -> bool:
    conditions = field(obj, "status.conditions") or []
    return any(c["type"] == name and c["status"] == "True" for c in conditions)


def said(obj: Object) -> t.Tuple[str, str]:
    """Reason and message of a custom resource: of its condition Error while that is true, else of Ready."""
    conditions = {c["type"]: c for c in field(obj, "status.conditions") or []}
    error = conditions.get("Error") or {}
    told = error if error.get("status") == "True" else conditions.get("Ready") or {}
    return told.get("reason", ""), told.get("message", "")


class Readiness:
    """What a module call waits for."""

    def __init__(self, cluster: Cluster, params: Object) -> None:
        self.cluster, self.params = cluster, params

    def problems(self) -> t.List[Problem]:
        """Everything that is not ready now."""
        found = [problem for wanted in self.params["objects"] for problem in self.object_problems(wanted)]
        found += [problem for name in self.params["crds"] for problem in self.crd_problems(name)]
        found += [problem for obj in self.params["accepted"] for problem in self.refusals(obj)]
        return found

    def object_problems(self, wanted: Object) -> t.List[Problem]:
        metadata = {"name": wanted["name"], "namespace": wanted["namespace"]}
        obj = {"apiVersion": wanted["api_version"], "kind": wanted["kind"], "metadata": metadata}
        name, current = describe(obj), self.cluster.read(obj)
        if current is None:
            return [Problem(f"{name} is not there")]
        if wanted["kind"] in WORKLOADS:
            return self.workload_problems({**current, "kind": wanted["kind"]})
        return self.state_problems(name, current, wanted)

    def crd_problems(self, name: str) -> t.List[Problem]:
        crd = self.cluster.get(f"{CRDS}/{name}")
        if crd is None:
            return [Problem(f"CustomResourceDefinition {name} is not there")]
        return (
            []
            if condition_true(crd, "Established")
            else [Problem(f"CustomResourceDefinition {name} is not Established")]
        )

    def state_problems(self, name: str, current: Object, wanted: Object) -> t.List[Problem]:
        """A custom resource says itself whether it is ready; its workloads say why not."""
        seen, (reason, message) = field(current, wanted["field"]), said(current)
        if not wanted["value"] or (seen == wanted["value"] and wanted["reason"] in ("", reason)):
            return []
        parts = [
            f"{part.get('name')} {part.get('state')}"
            for part in field(current, "status.appliedStates") or []
            if part.get("state") not in ("ready", "ignore")
        ]
        parts += [text for text in (field(current, "status.reason"), f"{reason}: {message}".strip(": ")) if text]
        detail = f" ({', '.join(parts)})" if parts else ""
        goal = f"{wanted['value']}, {wanted['reason']}" if wanted["reason"] else wanted["value"]
        found = [Problem(f"{name} has {wanted['field']}={seen}{detail}, wanted is {goal}")]
        for namespace in self.params["watch"]:
            for kind in ("DaemonSet", "Deployment"):
                for workload in self.cluster.items(f"/apis/apps/v1/namespaces/{namespace}/{kind.lower()}s"):
                    found += self.workload_problems({**workload, "kind": kind}, self.params["idle_faults"])
        return found

    def workload_problems(self, workload: Object, idle_is_fault: bool = True) -> t.List[Problem]:
        pending = rollout_pending(workload)
        if not pending or (pending.startswith("0 nodes") and not idle_is_fault):
            return []
        name = describe(workload)
        if workload["kind"] == "DaemonSet" and pending.startswith("0 nodes"):
            reason = no_node_reason(workload, self.cluster.items("/api/v1/nodes"))
            return [Problem(f"{name}: {pending}: {reason}", True)]
        labels = field(workload, "spec.selector.matchLabels") or {}
        pods = self.cluster.items(
            f"/api/v1/namespaces/{workload['metadata']['namespace']}/pods",
            labelSelector=",".join(f"{k}={v}" for k, v in sorted(labels.items())),
        )
        return [Problem(f"{name}: {pending}")] + [p for pod in newest_pods(pods) for p in pod_problems(pod)]

    def refusals(self, obj: Object) -> t.List[Problem]:
        """Whether the API server, with its webhooks, takes a new object. Nothing is stored."""
        resource = self.cluster.resource(obj["apiVersion"], obj["kind"])
        if resource is None:
            return [Problem(f"the kind {obj['kind']} is not served")]
        path = resource.path(namespace=obj["metadata"].get("namespace") or "default")
        try:
            self.cluster.request("post", path, body=obj, dryRun="All", fieldValidation="Strict")
        except ApiError as error:
            return [Problem(f"{describe(obj)} is refused in a dry run: {message_of(error)}")]
        return []


class Wait:
    """Time of a wait: a fault counts when it has stayed for a while, and so does being ready."""

    def __init__(self, params: Object, clock: t.Callable[[], float] = time.monotonic) -> None:
        self.params, self.clock = params, clock
        self.start = clock()
        self.faulty_since: t.Optional[float] = None
        self.ready_since: t.Optional[float] = None

    def elapsed(self) -> float:
        return self.clock() - self.start

    def done(self, problems: t.Sequence[Problem]) -> bool:
        """True when ready; FabricError when it never will be or the time is up."""
        now, faults = self.clock(), [problem.text for problem in problems if problem.fault]
        self.ready_since = None if problems else now if self.ready_since is None else self.ready_since
        self.faulty_since = None if not faults else now if self.faulty_since is None else self.faulty_since
        if self.ready_since is not None and now - self.ready_since >= self.params["settle"]:
            return True
        if self.faulty_since is not None and now - self.faulty_since >= self.params["patience"]:
            raise self.error("was stopped early: this can't become ready by waiting", faults)
        if self.elapsed() >= self.params["timeout"]:
            raise self.error("took too long", [problem.text for problem in problems] or ["not ready for long enough"])
        return False

    def error(self, how: str, texts: t.Sequence[str]) -> FabricError:
        return FabricError(
            f"Waiting for {self.params['what']} {how}.",
            f"after {self.elapsed():.0f} s",
            "; ".join(dict.fromkeys(texts)),
            "Mend what is named (image, label, toleration, log of the crashing container) and run again.",
        )


def run(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module operator_ready."""
    cluster = connect(module)
    readiness = Readiness(cluster, module.params)
    if module.check_mode:
        missing = readiness.problems() if cluster.present else []
        return {"changed": False, "waited": 0.0, "pending": [problem.text for problem in missing]}
    wait = Wait(module.params)
    while not wait.done(readiness.problems()):
        time.sleep(module.params["sleep"])
    return {"changed": False, "waited": round(wait.elapsed(), 1), "pending": []}
