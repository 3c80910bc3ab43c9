# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about a fabric from the API alone: releases, kinds, networks, nodes, add-ons and the IPU operator."""

from __future__ import annotations

import contextlib
import json
import time
import typing as t
from concurrent.futures import Future, ThreadPoolExecutor

from .._common.cilium import CONFIG, is_exclusive
from .._common.digests import full_image, without_digest
from .._common.result import FabricError
from .._host.facts import ca_digest
from .._host.ipu_operator import CONTROLLERS, controllers_in
from .._ipam.pool_audit import running_pods
from .._ipu.job_spec import API as IPUJOB_API
from .._ipu.webhook import left_by_kill, read_certificate
from .._kube.client import ApiError, Cluster, TransportError, message_of
from .._kube.helm_storage import decode_release
from .._kube.kubelet_requests import judge, pending_requests
from .._kube.multus import NAD_API, network_fault
from .._kube.pod_logs import crash_reasons
from .._kube.pod_problems import pod_problems
from .._kube.query import Object, by_name, query, quoted
from .._kube.readiness import not_ready
from .._model.plan import IpuOperatorRelease, Plan, PlannedNetwork
from .._model.probe import (
    ChartRelease,
    ClusterFacts,
    ClusterNetwork,
    Deployment,
    Health,
    IpuFacts,
    KubeletRequest,
    RunningImage,
)
from .._model.stacks import STACKS, has_stack, is_derived, stack_name
from .._network.address_sources import address_sources
from .._network.cluster_info import POLICY, ROOT_CA, addon_facts
from .._network.stacks import network_path
from .pod_manifests import node_facts
from .pods import IPU_DEPLOYMENTS, ipu_release

Nodes = t.Dict[str, Object]
Pending = t.Tuple["Future[t.Optional[Object]]", "Future[t.Optional[Object]]"]
# Seconds before each attempt: a proxy that lost its controller for a moment recovers with its next readiness probe.
HEALTH_PAUSES = (0, 5, 10)


def cluster_facts(
    cluster: Cluster, plan: Plan, pool: ThreadPoolExecutor, ipu: bool, secrets: bool = True
) -> t.Tuple[ClusterFacts, Nodes]:
    """All facts, requested at the same time. The nodes are also returned as objects, since pods are created for them.

    secrets: false skips Helm's releases, and the IPU operator, whose certificate is in a Secret.
    """
    get = cluster.get
    group = STACKS[stack_name(plan["releases"])].group
    groups = [group, NAD_API, *([IPUJOB_API] if ipu else [])]
    policy = pool.submit(get, POLICY)
    version = pool.submit(get, "/version")
    ca = pool.submit(read_ca, cluster)
    listed = pool.submit(cluster.items, "/api/v1/nodes")
    wanted = secrets and (
        has_stack(plan["releases"]) or ipu
    )  # otherwise nothing is compared with a release, which is in a Secret
    releases = pool.submit(newest_releases, cluster, ipu_release(plan)) if wanted else None
    addons = pool.submit(addon_facts, cluster)
    exclusive = pool.submit(exclusive_cilium, cluster)
    dns = pool.submit(dns_problems, cluster)
    sources = pool.submit(address_sources, cluster)
    lacking = pool.submit(pods_without, cluster, plan["networks"])
    requests = pool.submit(kubelet_requests, cluster, plan)
    images = pool.submit(pinned_containers, cluster, plan.get("image_digests", {}))
    operator = pool.submit(ipu_facts, cluster) if ipu and secrets else None
    kinds = [pool.submit(get, f"/apis/{group}") for group in groups]
    networks = {network["name"]: request_network(cluster, plan, network, pool) for network in plan["networks"]}
    nodes = by_name(listed.result())
    facts = {
        "version": query("gitVersion", version.result()) or "",
        "ca": ca.result(),
        "nodes": {name: node_facts(plan, node) for name, node in nodes.items()},
        "kubelet_requests": requests.result(),
        "policy": status_of(policy.result()),
        "releases": releases.result() if releases else [],
        "addons": addons.result(),
        "exclusive_cilium": exclusive.result(),
        "dns_problems": dns.result(),
        "address_sources": sources.result(),
        "pods_without": lacking.result(),
        "images": images.result(),
        "kinds": query("[].resources[].kind", [seen.result() for seen in kinds]),
        "networks": {name: network_facts(*pending) for name, pending in networks.items()},
        "ipu": operator.result() if operator else {},
    }
    return t.cast(ClusterFacts, facts), nodes


def kubelet_requests(cluster: Cluster, plan: Plan) -> t.List[KubeletRequest]:
    """Pending requests of kubelets for serving certificates, compared with the plan."""
    if is_derived(plan):
        return []  # no check uses them
    planned = {host["node"]: host["address"].split(",") for host in plan["hosts"].values()}
    return [judge(request, planned) for request in pending_requests(cluster)]


def status_of(obj: t.Optional[Object]) -> t.Any:
    """The status of an object; None without the object."""
    return None if obj is None else obj.get("status") or {}


def request_network(cluster: Cluster, plan: Plan, network: PlannedNetwork, pool: ThreadPoolExecutor) -> Pending:
    """Request the object of a network and its attachment."""
    attachment = f"/apis/{NAD_API}/namespaces/{network['namespace']}/network-attachment-definitions/{network['name']}"
    path = network_path(plan, network)
    return pool.submit(cluster.get, path) if path else pool.submit(lambda: None), pool.submit(cluster.get, attachment)


def network_facts(network: Future[t.Optional[Object]], attachment: Future[t.Optional[Object]]) -> ClusterNetwork:
    """The network's state, and its attachment's configuration as data (as text if it is not JSON)."""
    config = query("spec.config", attachment.result())
    with contextlib.suppress(ValueError, TypeError):
        config = json.loads(config)
    return {"state": status_of(network.result()), "attachment": config}


def pods_without(cluster: Cluster, networks: t.Sequence[PlannedNetwork]) -> t.Dict[str, t.List[str]]:
    """For each network, the running pods that request it but lack it, with the reason."""
    found: t.Dict[str, t.List[str]] = {network["name"]: [] for network in networks}
    for pod in running_pods(cluster):
        for network in networks:
            fault = network_fault(pod, (network["namespace"], network["name"]))
            if fault:
                place = "{namespace}/{name}".format(**pod["metadata"])
                found[network["name"]].append(f"{place} on {pod['spec']['nodeName']}: {fault}")
    return found


def dns_problems(cluster: Cluster) -> t.List[str]:
    """Why pods of CoreDNS do not work, whoever installed it: they all have this label."""
    namespace = "kube-system"
    pods = cluster.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector="k8s-app=kube-dns")
    if not pods:
        return [f"no pod in {namespace} has the label k8s-app=kube-dns"]
    found = [problem for pod in pods for problem in pod_problems(pod) or not_ready(pod)]
    return [problem.text for problem in [*found, *crash_reasons(cluster, namespace, pods)]]


def read_ca(cluster: Cluster) -> str:
    """The digest of the cluster's CA, which distinguishes it from an earlier one of that name; empty if unreadable."""
    selector = f"metadata.name={ROOT_CA.rpartition('/')[2]}"
    with contextlib.suppress(ApiError, FabricError):
        for found in cluster.items(ROOT_CA.rpartition("/")[0], fieldSelector=selector):
            return ca_digest(query(f"data.{quoted('ca.crt')}", found) or "")
    return ""


def exclusive_cilium(cluster: Cluster) -> str:
    """Where Cilium is configured to rename other CNI configurations; empty if nowhere, or if that can't be read."""
    with contextlib.suppress(ApiError, FabricError):
        for found in cluster.items("/api/v1/configmaps", fieldSelector=f"metadata.name={CONFIG}"):
            if is_exclusive(found.get("data") or {}):
                return "ConfigMap {namespace}/{name}".format(**found["metadata"])
    return ""


def pinned_containers(cluster: Cluster, digests: t.Mapping[str, str]) -> t.List[RunningImage]:
    """The containers whose image has a digest in the plan, with what the runtime reports that they run."""
    wanted = {full_image(image): image for image in digests}
    found: t.Dict[t.Tuple[str, str], RunningImage] = {}
    for pod in running_pods(cluster) if wanted else ():
        spec = query("[spec.initContainers, spec.containers][] | []", pod) or []
        images = {each["name"]: full_image(without_digest(each["image"])) for each in spec}
        states = query("[status.initContainerStatuses, status.containerStatuses][] | []", pod) or []
        place = "{namespace}/{name}".format(**pod["metadata"])
        for state in states:
            image = wanted.get(images.get(state["name"], ""))
            if image and state.get("imageID"):
                one: RunningImage = {"image": image, "id": state["imageID"], "pods": []}
                pods = found.setdefault((image, state["imageID"]), one)["pods"]
                pods.append(f"{place} on {pod['spec'].get('nodeName', '?')}")
    return list(found.values())


def newest_releases(cluster: Cluster, ipu: IpuOperatorRelease) -> t.List[ChartRelease]:
    """The newest revision of each operator's Helm release."""
    found: t.Dict[str, ChartRelease] = {}
    names = ",".join([*(stack.release for stack in STACKS.values()), ipu["release"]])
    selector = f"owner=helm,name in ({names})"
    for secret in cluster.items("/api/v1/secrets", labelSelector=selector):
        release, name = decode_release(secret), secret["metadata"]["labels"]["name"]
        if name == ipu["release"] and secret["metadata"]["namespace"] != ipu["namespace"]:
            continue  # a release of others may have the same name
        if name not in found or release.revision >= found[name]["revision"]:
            found[name] = {
                "name": name,
                "namespace": secret["metadata"]["namespace"],
                "revision": release.revision,
                "version": release.version,
                "status": release.status,
            }
    return list(found.values())


def ipu_facts(cluster: Cluster) -> IpuFacts:
    """The IPU operator's Deployments, in any namespace, its certificate and controllers, and its proxy's health."""
    found: t.List[Deployment] = [
        {
            "name": name,
            "namespace": deployment["metadata"]["namespace"],
            "ready": query("not_null(status.readyReplicas, `0`)", deployment),
            "wanted": query("not_null(spec.replicas, `1`)", deployment),
        }
        for name in IPU_DEPLOYMENTS
        for deployment in cluster.items("/apis/apps/v1/deployments", fieldSelector=f"metadata.name={name}")
    ]
    proxy = next((each for each in found if each["name"] == IPU_DEPLOYMENTS[-1]), None)
    namespace = found[0]["namespace"] if found else "ipu-operator"
    return {
        "deployments": found,
        "proxy": proxy_health(cluster, proxy),
        "certificate": read_certificate(cluster, namespace),
        "ignored": list(left_by_kill(cluster)[0]),
        "controllers": read_controllers(cluster, namespace),
    }


def read_controllers(cluster: Cluster, namespace: str) -> t.Optional[t.List[str]]:
    """The controllers in the ConfigMap; None if there is none, or if this user may not read it."""
    with contextlib.suppress(FabricError):
        config_map = cluster.get(f"/api/v1/namespaces/{namespace}/configmaps/{CONTROLLERS}")
        return None if config_map is None else controllers_in(config_map)
    return None


def proxy_health(cluster: Cluster, proxy: t.Optional[Deployment]) -> Health:
    """The proxy's health, through the API server, since the proxy can't be reached from outside."""
    if proxy is None:
        return {"healthy": False, "seen": "no Deployment of the V-IPU proxy"}
    path = "/api/v1/namespaces/{namespace}/services/http:{name}:80/proxy/health".format(**proxy)
    for pause in HEALTH_PAUSES:
        time.sleep(pause)
        try:
            cluster.client.request("get", path, serialize=False, _request_timeout=10)
            return {"healthy": True, "seen": "GET /health: 200"}
        except (ApiError, TransportError) as error:
            seen = message_of(error)
    return {"healthy": False, "seen": seen}
