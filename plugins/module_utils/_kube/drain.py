# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drain a node within a time limit, and uncordon it unless somebody else has cordoned it.

Why not kubernetes.core's k8s_drain: it gives up at the first disruption budget without naming it, and does not remember
who cordoned the node.
"""

from __future__ import annotations

import json
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.result import FabricError, outcome
from .client import ApiError, Cluster, connect, message_of, refusal
from .query import Object

NODES = "/api/v1/nodes"
# A label on nodes that this collection has cordoned; its value is the purpose. It outlives a run that was killed.
MARK = "ipu.fabric/cordoned"
PAUSE = 2.0  # seconds between two attempts


def pod_name(pod: Object) -> str:
    return "{namespace}/{name}".format(**pod["metadata"])


def has_to_go(pod: Object) -> bool:
    """Whether a drain evicts the pod: not one that has ended, nor one that belongs to the node itself."""
    owners = [owner["kind"] for owner in pod["metadata"].get("ownerReferences") or []]
    mirrored = "kubernetes.io/config.mirror" in (pod["metadata"].get("annotations") or {})
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not ended and not mirrored and "DaemonSet" not in owners and "Node" not in owners


def what_is_lost(pod: Object) -> str:
    """What an eviction would irrevocably lose; empty if nothing."""
    if pod["metadata"].get("deletionTimestamp"):
        return ""
    if not pod["metadata"].get("ownerReferences"):
        return "no controller would recreate it"
    if any("emptyDir" in volume for volume in pod["spec"].get("volumes") or []):
        return "it has data in an emptyDir"
    return ""


def why_refused(error: t.Any) -> str:
    """Why the API server refuses an eviction; if because of a disruption budget, also the name of that."""
    try:
        causes = json.loads(error.body)["details"]["causes"]
        said = " ".join(cause["message"] for cause in causes if cause.get("message"))
    except (TypeError, ValueError, KeyError, AttributeError):
        said = ""
    return said or message_of(error)


class Drain:
    """The drain of one node."""

    def __init__(self, cluster: Cluster, name: str, wait: bool = True, simulated: bool = False) -> None:
        self.cluster, self.name, self.wait, self.simulated = cluster, name, wait, simulated

    def pods(self) -> t.List[Object]:
        """Pods that still have to go. On a dead node, nothing confirms that a pod has ended."""
        found = self.cluster.items("/api/v1/pods", fieldSelector=f"spec.nodeName={self.name}")
        return [pod for pod in found if has_to_go(pod) and (self.wait or not pod["metadata"].get("deletionTimestamp"))]

    def evict(self, pod: Object) -> str:
        """Evict a pod; returns why it may not go now, or nothing."""
        metadata = pod["metadata"]
        path = "/api/v1/namespaces/{namespace}/pods/{name}/eviction".format(**metadata)
        body: Object = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": metadata["namespace"], "name": metadata["name"]},
            # By now, another pod may have the same name.
            "deleteOptions": {"preconditions": {"uid": metadata.get("uid")}},
        }
        try:
            self.cluster.request("post", path, body=body, dryRun="All" if self.simulated else None)
        except ApiError as error:
            if error.status == 404:
                return ""
            if error.status in (409, 429, 500):
                return why_refused(error)
            raise refusal(error, "evict", f"Pod {pod_name(pod)}") from error
        return ""

    def attempt(self, pods: t.Sequence[Object]) -> t.Dict[str, str]:
        """Evict pods that are not ending yet; returns what holds up each remaining pod, by name."""
        return {
            pod_name(pod): "it is ending" if pod["metadata"].get("deletionTimestamp") else self.evict(pod)
            for pod in pods
        }

    def run(self, timeout: float) -> None:
        """Evict pods until none is left. The error names each remaining pod, and what holds it up."""
        start = time.monotonic()
        while True:
            pods = self.pods()
            if not pods:
                return
            held = self.attempt(pods)
            waited = time.monotonic() - start
            if waited + PAUSE > timeout:
                raise FabricError(
                    "A node could not be drained.",
                    f"node {self.name}, after {waited:.0f} s",
                    "; ".join(f"pod {name}: {why or 'it was evicted just now'}" for name, why in held.items()),
                    "Delete these pods, give them more replicas, let their PodDisruptionBudgets allow more disruptions,"
                    " or raise drain_timeout (upgrade_drain_timeout, rdma_host_drain_timeout). Then run again.",
                    code="timeout",
                )
            time.sleep(PAUSE)


def read_node(cluster: Cluster, name: str) -> t.Optional[Object]:
    return cluster.get(f"{NODES}/{name}") if name else None


def mark_of(node: Object) -> str:
    return str((node["metadata"].get("labels") or {}).get(MARK, ""))


def is_cordoned(node: Object) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def patch(cluster: Cluster, name: str, mark: t.Optional[str]) -> None:
    """Cordon a node and record the purpose, or uncordon it. One request, so nothing is half done."""
    try:
        body = {"metadata": {"labels": {MARK: mark}}, "spec": {"unschedulable": True if mark else None}}
        cluster.patch(f"{NODES}/{name}", body)
    except ApiError as error:
        raise refusal(error, "cordon" if mark else "uncordon", f"Node {name}") from error


def view(node: Object, pods: t.Sequence[str]) -> Object:
    """A node as shown in the diff."""
    return {"cordoned": is_cordoned(node), "for": mark_of(node), "pods": list(pods)}


def drain_node(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Cordon a node, and evict its pods."""
    params, cluster = module.params, connect(module)
    name, owner = params["name"], params["owner"]
    node = read_node(cluster, name)
    if node is None:
        if not cluster.present:  # check mode
            return outcome({}, {}, foreign=False, pods=[], blocked=[])
        raise FabricError(
            "There is no such node to drain.",
            f"node {name}" if name else "option name (drain_node)",
            "the cluster has no such node" if name else "no name",
            "Give the name that kubectl get nodes shows, and check which cluster the kubeconfig leads to.",
            code="not-found" if name else "invalid-input",
        )
    drain = Drain(cluster, name, params["wait"], module.check_mode)
    pods = drain.pods()
    lost = {pod_name(pod): why for pod in pods for why in [what_is_lost(pod)] if why}
    if lost and not params["force"]:
        raise FabricError(
            "A node can't be drained without losing pods or their data.",
            f"node {name}",
            "; ".join(f"pod {pod}: {why}" for pod, why in lost.items()),
            "Delete these pods yourself, or have them deleted: set drain_force to true (upgrade_drain_force for"
            " ipu.fabric.upgrade, rdma_host_drain_force for reboots). The node was left as it was.",
            code="unsafe",
        )
    foreign = is_cordoned(node) and not mark_of(node)
    before = view(node, [pod_name(pod) for pod in pods])
    after: Object = {"cordoned": True, "for": "" if foreign else owner, "pods": []}
    blocked = []
    if module.check_mode:
        blocked = [f"{pod}: {why}" for pod, why in drain.attempt(pods).items() if why]
        if blocked:
            module.warn(f"Node {name} can't be drained now: {'; '.join(blocked)}")
    else:
        if not foreign and (not before["cordoned"] or before["for"] != owner):
            patch(cluster, name, owner)
        drain.run(params["timeout"])
    return outcome(before, after, foreign=foreign, pods=before["pods"], blocked=blocked)


def uncordon_nodes(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Uncordon what was cordoned for this owner: one node, or all."""
    params, cluster = module.params, connect(module)
    name, owner = params["name"], params["owner"]
    found = [read_node(cluster, name)] if name else cluster.items(NODES, labelSelector=f"{MARK}={owner}")
    own = {node["metadata"]["name"]: node for node in found if node is not None and mark_of(node) == owner}
    if not module.check_mode:
        for each in own:
            patch(cluster, each, None)
    before = {each: {"cordoned": is_cordoned(node), "for": owner} for each, node in own.items()}
    return outcome(before, {each: {"cordoned": False, "for": ""} for each in own}, nodes=sorted(own))
