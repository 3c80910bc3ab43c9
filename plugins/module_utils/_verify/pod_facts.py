# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads any pod for explain(): from the API, and by a script in one of its containers. Changes nothing."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.cni import plugins_of
from .._common.result import FabricError
from .._kube.client import FIRST_LOOK, Cluster, connect
from .._kube.multus import ATTACHMENTS, NAD, network_fault, network_status, requests
from .._kube.pod_exec import run_in_pod
from .._kube.pod_problems import Problem, failed_containers, pod_problems, running_containers
from .._kube.pod_resources import NodeResources, device_resources
from .._kube.query import Object, query, quoted
from .._kube.readiness import mount_problems, network_problems
from . import look
from .explain import Amount, PodNetwork, PodSeen, as_text, explain, is_rdma

RESOURCE_OF_NETWORK = f"metadata.annotations.{quoted('k8s.v1.cni.cncf.io/resourceName')}"
# Pods on the host network that are used to read the MTU of its NICs: first those of network components, whose images
# have a shell.
TELLING = ("multus", "rdma", "network", "whereabouts", "cni", "flannel", "proxy")
TRIED = 4
NIC_PARTS = ("links",)


class PodReader:
    """One pod, and what could not be read."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self.cluster, self.namespace, self.name = cluster, namespace, name
        self.unread: t.List[str] = []

    def items(self, what: str, path: str, **query_: t.Any) -> t.Optional[t.List[Object]]:
        """The items; None if this user may not read them, which is reported and explains less."""
        try:
            return self.cluster.items(path, **query_)
        except FabricError as error:
            if error.code != "api-denied":
                raise
            self.unread.append(f"{what}: {error.seen}")
            return None

    def pod(self) -> Object:
        found = self.cluster.get(f"/api/v1/namespaces/{self.namespace}/pods/{self.name}")
        if found is None:
            pods = self.cluster.items(f"/api/v1/namespaces/{self.namespace}/pods")
            there = ", ".join(sorted(query("[].metadata.name", pods))[:10]) or "no pods"
            raise FabricError(
                "The pod to explain does not exist.",
                f"namespace {self.namespace}",
                f"no pod {self.name}; it has {there}",
                "Run it with -e pod=NAMESPACE/NAME; kubectl get pods -A lists them.",
                code="not-found",
            )
        return found

    def seen(self, container: str, plan: t.Mapping[str, t.Any]) -> PodSeen:
        """Everything that explain() needs. container: its name; empty: the one that requests an RDMA resource."""
        pod = self.pod()
        node = query("spec.nodeName", pod) or ""
        nads = self.items("networks", ATTACHMENTS)
        networks = pod_networks(pod, nads)
        asks = {each["name"]: device_amounts(each) for each in pod["spec"]["containers"]}
        chosen = self.choose(container, asks, networks)
        there = (
            None if not node else self.items("pods of the node", "/api/v1/pods", fieldSelector=f"spec.nodeName={node}")
        )
        inside = None
        if chosen in running_containers(pod):
            inside = self.look(f"/api/v1/namespaces/{self.namespace}/pods/{self.name}", chosen, look.FACTS)
        masters = {network.master for network in networks if network.master}
        return PodSeen(
            name=f"{self.namespace}/{self.name}",
            phase=query("status.phase", pod) or "",
            node=node,
            container=chosen,
            host_network=bool(query("spec.hostNetwork", pod)),
            privileged=bool(query(f"spec.containers[?name=='{chosen}'] | [0].securityContext.privileged", pod)),
            problems=self.problems(pod),
            networks=networks,
            available=None if nads is None else [place_of(nad) for nad in nads],
            served=nads != [] or self.cluster.resource(*NAD) is not None,
            asks=asks[chosen],
            others={name: other for other, amounts in asks.items() if other != chosen for name in amounts},
            node_has=self.node_resources(node, there),
            inside=inside,
            nics=self.nic_mtus(node, there or (), masters, plan) if inside and not inside.error else {},
            unread=self.unread,
        )

    def choose(
        self, container: str, asks: t.Mapping[str, t.Mapping[str, int]], networks: t.Sequence[PodNetwork]
    ) -> str:
        if not container:
            with_rdma = [name for name, amounts in asks.items() if any(is_rdma(each, networks) for each in amounts)]
            return (with_rdma or list(asks))[0]
        if container not in asks:
            raise FabricError(
                "The container to look into does not exist.",
                f"pod {self.namespace}/{self.name}",
                f"no container {container}; it has {', '.join(asks)}",
                "Name one of them with -e container=NAME, or leave that out.",
                code="not-found",
            )
        return container

    def look(self, path: str, container: str, parts: t.Sequence[str]) -> look.Inside:
        output = run_in_pod(self.cluster, path, container, look.argv(parts), look.SECONDS)
        return look.read(*output)

    def problems(self, pod: Object) -> t.List[Problem]:
        """Why the pod does not run, worded as in waits."""
        found = [problem for problem in pod_problems(pod) if "is on no node yet" not in problem.text]
        unknown = NodeResources(self.cluster).problems([pod])
        # The scheduler's message is less clear about resources that no node has.
        found += unknown or [problem for problem in pod_problems(pod) if "is on no node yet" in problem.text]
        try:
            found += network_problems(self.cluster, self.namespace, [pod])
            found += mount_problems(self.cluster, self.namespace, [pod])
        except FabricError as error:
            self.unread.append(f"events: {error.seen}")
        return found or failed_containers(pod)

    def node_resources(self, node: str, pods: t.Optional[t.Sequence[Object]]) -> t.Dict[str, Amount]:
        """Device resources of the node; for a pod without one, the maximum over all nodes."""
        nodes = self.items("nodes", "/api/v1/nodes") or []
        found: t.Dict[str, Amount] = {}
        for each in nodes:
            amounts = query("status.allocatable", each) or {}
            if node in ("", each["metadata"]["name"]):
                for name in device_resources(amounts):
                    count = int(amounts[name])
                    found[name] = Amount(max(count, found[name].allocatable if name in found else 0))
        if not node or pods is None:
            return found
        active = [pod for pod in pods if query("status.phase", pod) not in ("Succeeded", "Failed")]
        amounts = [device_amounts(each) for pod in active for each in pod["spec"]["containers"]]
        return {
            name: dataclasses.replace(amount, used=sum(each.get(name, 0) for each in amounts))
            for name, amount in found.items()
        }

    def nic_mtus(
        self, node: str, pods: t.Sequence[Object], masters: t.Set[str], plan: t.Mapping[str, t.Any]
    ) -> t.Dict[str, int]:
        """MTUs of the node's interfaces: from a pod on the host network if possible, else as in the plan."""
        if not masters:
            return {}
        for pod, container in host_network_pods(pods)[:TRIED]:
            path = "/api/v1/namespaces/{namespace}/pods/{name}".format(**pod["metadata"])
            seen = self.look(path, container, NIC_PARTS).mtus
            if masters & set(seen):
                return dict(seen)
        hosts = [host for host in (plan.get("hosts") or {}).values() if host.get("node") == node]
        return {link["netdev"]: link["mtu"] for host in hosts for link in host["links"].values()}


def place_of(nad: Object) -> str:
    return "{namespace}/{name}".format(**nad["metadata"])


def host_network_pods(pods: t.Sequence[Object]) -> t.List[t.Tuple[Object, str]]:
    """Running pods on the host network with a running container, those that most likely have a shell first."""

    def rank(pod: Object) -> int:
        name = pod["metadata"]["name"]
        return next((place for place, word in enumerate(TELLING) if word in name), len(TELLING))

    found = []
    for pod in sorted(pods, key=rank):
        running = running_containers(pod)
        if query("spec.hostNetwork", pod) and running:
            found.append((pod, running[-1]))
    return found


def device_amounts(container: Object) -> t.Dict[str, int]:
    """The amounts of device resources that a container requests."""
    limits = query("resources.limits", container) or {}
    return {name: int(limits[name]) for name in device_resources(limits)}


def pod_networks(pod: Object, nads: t.Optional[t.Sequence[Object]]) -> t.List[PodNetwork]:
    """The networks that a pod requests. If definitions are unreadable, each is assumed to exist."""
    known = {place_of(nad): nad for nad in nads or ()}
    status = network_status(pod)
    found: t.List[PodNetwork] = []
    for request in requests(pod):
        name = f"{request['namespace']}/{request['name']}"
        if name in [each.name for each in found]:
            continue
        mine = next((entry for entry in status if entry.get("name") == name), {})
        # In a chain, the first plugin creates the interface.
        config = next(iter(plugins_of(query("spec.config", known.get(name)))), {})
        found.append(
            PodNetwork(
                name=name,
                exists=nads is None or name in known,
                fault=network_fault(pod, (request["namespace"], request["name"])),
                interface=mine.get("interface") or "",
                addresses=[str(address).partition("/")[0] for address in mine.get("ips") or ()],
                kind=str(config.get("type") or ""),
                master=str(config.get("master") or ""),
                mtu=int(config.get("mtu") or 0),
                resource=query(RESOURCE_OF_NETWORK, known.get(name)) or "",
            )
        )
    return found


def explain_pod(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module pod_explain."""
    namespace, _slash, name = module.params["pod"].rpartition("/")
    cluster = connect(module, FIRST_LOOK)
    if not cluster.present:
        raise FabricError(
            "A pod can only be explained in a running cluster.",
            module.params["pod"],
            "no cluster answers",
            "Set fabric_kubeconfig to the kubeconfig of the cluster.",
            code="api-unreachable",
        )
    seen = PodReader(cluster, namespace or "default", name).seen(module.params["container"], module.params["plan"])
    found = explain(seen)
    return {
        "changed": False,
        "has": list(found.has),
        "lacks": [lack._asdict() for lack in found.lacks],
        "unread": list(found.unread),
        "text": as_text(seen.name, found),
    }
