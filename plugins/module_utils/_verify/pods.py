# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe pods as data: on which nodes, what runs in them, how they are doing, where they are reached. Pure."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import NETWORK_STATUS, NETWORKS
from ansible_collections.ipu.fabric.plugins.module_utils._kube.pods import NEVER_STARTS

LABEL = "fabric.ipu/verify"
PSA = "pod-security.kubernetes.io/enforce"
IPU_DEPLOYMENTS = ("ipu-operator-controller-manager", "ipu-operator-vipu-proxy")
SANDBOX_FAILURES = 3  # the kubelet tries again by itself: one failure may pass, three will not

Facts = t.Dict[str, t.Any]


class Options(t.NamedTuple):
    namespace: str
    image: str
    rdma_image: str
    timeout: int
    max_pairs: int
    forks: int
    ipu: bool
    ipu_partition: str
    ipu_device: int

    @property
    def rdma_tools(self) -> str:
        """The image that should hold the RDMA tools."""
        return self.rdma_image or self.image

    def lifetime(self, rdma: bool) -> int:
        """Seconds after which the kubelet stops a pod that nobody came back for; RDMA tests go from pair to pair."""
        return self.timeout + (4 * 3600 if rdma else 600)


class Target(t.NamedTuple):
    """A node to probe, and the planned networks that it has a NIC for."""

    host: str
    node: str
    networks: t.Tuple[str, ...]


class PodState(t.NamedTuple):
    state: str  # running, waiting or failed
    reason: str


class End(t.NamedTuple):
    """One end of a pair on a network."""

    node: str
    pod: str
    interface: str
    address: str


def targets(plan: Facts) -> t.List[Target]:
    """Nodes that run work or have a NIC of a network; a control plane with neither is left alone."""
    names = [network["name"] for network in plan.get("networks", [])]
    found = []
    for host, facts in sorted(plan.get("hosts", {}).items()):
        mine = tuple(name for name in names if name in facts.get("links", {}))
        if mine or {"worker", "ipu"} & set(facts.get("roles", [])):
            found.append(Target(host, facts["node"], mine))
    return found


# The plan and the node


def resource_name(plan: Facts, network: Facts) -> str:
    """The network's RDMA resource with its prefix; empty when the plan has no RDMA for it."""
    name = network.get("resource") or ""
    if not network.get("rdma") or not name:
        return ""
    prefixes = {r["resourceName"]: r.get("resourcePrefix") or "rdma" for r in plan.get("rdma_resources", [])}
    return name if "/" in name else f"{prefixes.get(name, 'rdma')}/{name}"


def mtu_of(plan: Facts, network: Facts, host: str) -> int:
    """The planned MTU; where the plan leaves it to the NIC, the NIC's. 0: not known."""
    link = plan.get("hosts", {}).get(host, {}).get("links", {}).get(network["name"], {})
    return int(network.get("mtu") or link.get("mtu") or 0)


def nics_of(plan: Facts, network: str, host: str) -> t.List[str]:
    """The NICs that carry a network's traffic on a host: VLANs on one NIC share it."""
    link = plan.get("hosts", {}).get(host, {}).get("links", {}).get(network, {})
    return list(link.get("rdma_netdevs") or [link.get("netdev") or network])


def serving(plan: Facts, host: str) -> t.List[t.Tuple[str, int]]:
    """The V-IPU controllers that this host's pods must reach; one that names no host serves all."""
    return [
        (controller["address"], int(controller["port"]))
        for controller in plan.get("vipu", {}).get("controllers", [])
        if not controller.get("serves") or host in controller["serves"]
    ]


def allocatable(node: Facts, resource: str) -> int:
    return int(node.get("status", {}).get("allocatable", {}).get(resource, 0))


def readiness(node: Facts) -> Facts:
    """The condition Ready, or one that says that there is none."""
    conditions = node.get("status", {}).get("conditions") or []
    return next((c for c in conditions if c.get("type") == "Ready"), {"message": "no Ready condition"})


def node_fault(node: t.Optional[Facts]) -> str:
    """Why no pod can start on a node; empty when one can."""
    if node is None:
        return "the cluster has no node of this name"
    ready = readiness(node)
    return "" if ready.get("status") == "True" else f"the node is not Ready: {ready.get('message')}"


def node_facts(plan: Facts, node: Facts) -> Facts:
    ready = readiness(node)
    resources = {network["name"]: resource_name(plan, network) for network in plan.get("networks", [])}
    return {
        "ready": ready.get("status") == "True",
        "reason": ready.get("message", ""),
        "labels": node["metadata"].get("labels", {}),
        "allocatable": {
            name: {"resource": resource, "count": allocatable(node, resource)}
            for name, resource in resources.items()
            if resource
        },
    }


# The pod


def pod_name(node: str) -> str:
    return f"probe-{node}"[:253].rstrip(".-")


def pod_manifest(target: Target, plan: Facts, node: Facts, options: Options) -> Facts:
    """One pod a node, with a container as uid 0, one as uid 1000, and one with the RDMA devices if the plan has any."""
    networks = {network["name"]: network for network in plan.get("networks", [])}
    attached = ",".join(f"{networks[name].get('namespace', 'default')}/{name}" for name in target.networks)
    wanted = sorted({resource_name(plan, networks[name]) for name in target.networks} - {""})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(target.node),
            "labels": {LABEL: options.namespace},
            "annotations": {NETWORKS: attached} if attached else {},
        },
        "spec": {
            "nodeName": target.node,  # a cordoned node is probed too
            "containers": containers(options, [name for name in wanted if allocatable(node, name) > 0], bool(wanted)),
            "restartPolicy": "Never",
            "activeDeadlineSeconds": options.lifetime(bool(wanted)),
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "serviceAccountName": "probe",
            "enableServiceLinks": False,
            "tolerations": [{"operator": "Exists"}],
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        },
    }


def containers(options: Options, resources: t.Sequence[str], rdma: bool) -> t.List[Facts]:
    """`resources` are those that the node has: asking for another would lose every other check of the node."""
    user = {"runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}}
    found = [
        container("root", options.image, options.lifetime(rdma), {"runAsUser": 0}),
        container("user", options.image, options.lifetime(rdma), user),
    ]
    if rdma:
        held = dict.fromkeys(resources, "1")
        context = {"runAsUser": 0, "capabilities": {"add": ["IPC_LOCK"]}}
        last = container("rdma", options.rdma_tools, options.lifetime(rdma), context)
        found.append({**last, "resources": {"limits": held, "requests": held}})
    return found


def container(name: str, image: str, lifetime: int, context: Facts) -> Facts:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", str(lifetime)],
        "securityContext": {"allowPrivilegeEscalation": False, **context},
    }


def pod_state(pod: t.Optional[Facts], sandbox_failures: t.Sequence[str] = ()) -> PodState:
    """Whether a pod runs, may still start, or never will."""
    if pod is None:
        return PodState("failed", "the pod was removed by something else")
    status = pod.get("status", {})
    if status.get("phase") in ("Failed", "Succeeded"):
        return PodState("failed", f"{status.get('reason', 'Ended')}: {status.get('message', 'no message')}")
    entries = status.get("containerStatuses") or []
    waiting = [(entry, entry.get("state", {}).get("waiting") or {}) for entry in entries]
    for entry, why in waiting:
        if why.get("reason") in NEVER_STARTS:
            return PodState("failed", f"{why['reason']}, {entry.get('image')}: {why.get('message', 'no message')}")
    if len(sandbox_failures) >= SANDBOX_FAILURES:
        return PodState("failed", f"the pod's network could not be made: {sandbox_failures[-1]}")
    if entries and all("running" in entry.get("state", {}) for entry in entries):
        return PodState("running", "")
    if sandbox_failures:
        return PodState("waiting", f"the pod's network could not be made yet: {sandbox_failures[-1]}")
    reasons = sorted({why["reason"] for entry, why in waiting if "reason" in why})
    return PodState("waiting", ", ".join(reasons) or "the kubelet has not taken the pod up")


def network_status(pod: t.Optional[Facts]) -> t.Any:
    """What multus wrote on the pod; None when it wrote nothing."""
    text = ((pod or {}).get("metadata", {}).get("annotations") or {}).get(NETWORK_STATUS)
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


# The facts of the pods


def running(pods: Facts) -> t.List[str]:
    return [node for node, pod in sorted(pods.items()) if pod["state"] == "running"]


def interface_of(pod: Facts, network: str) -> str:
    """Multus names them in the order of the annotation."""
    return f"net{pod['networks'].index(network) + 1}"


def link_of(pod: Facts, network: str) -> Facts:
    """The pod's interface on a network; empty when it has none."""
    if network not in pod.get("networks", []):
        return {}
    return ((pod.get("root") or {}).get("links") or {}).get(interface_of(pod, network)) or {}


def addresses_of(pod: Facts, network: str) -> t.List[str]:
    return [entry["address"] for entry in link_of(pod, network).get("addresses", [])]


def ends(pods: Facts, network: str) -> t.Dict[str, End]:
    """The pods that got an address on a network, by node."""
    found = {}
    for node in running(pods):
        addresses = addresses_of(pods[node], network)
        if addresses:
            found[node] = End(node, pods[node]["pod"], interface_of(pods[node], network), addresses[0])
    return found
