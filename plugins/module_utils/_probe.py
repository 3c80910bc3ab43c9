# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts from pods on the planned networks: made on every node, asked all at once, and removed."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import signal
import time
import typing as t
from concurrent.futures import ThreadPoolExecutor

from ansible_collections.ipu.fabric.plugins.module_utils import _probe_shell as shell
from ansible_collections.ipu.fabric.plugins.module_utils._kube import (
    ApiError,
    Cluster,
    TransportError,
    message_of,
    refusal,
)
from ansible_collections.ipu.fabric.plugins.module_utils._result import FabricError

try:
    from kubernetes.stream.ws_client import websocket_call
except ImportError:
    pass  # connect() says what is missing

LABEL = "fabric.ipu/verify"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status"
PSA = "pod-security.kubernetes.io/enforce"
# A container in one of these states does not get out of it while we wait.
HOPELESS = (
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
)
SANDBOX_FAILURES = 3  # the kubelet tries again by itself: one failure may pass, three will not
TRAFFIC_SECONDS = 30

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


class Target(t.NamedTuple):
    """A node to probe, and the planned networks that it has a NIC for."""

    host: str
    node: str
    networks: t.Tuple[str, ...]


def targets(plan: Facts) -> t.List[Target]:
    """Nodes that run work or have a NIC of a network; a control plane with neither is left alone."""
    names = [network["name"] for network in plan.get("networks", [])]
    found = []
    for host, facts in sorted(plan.get("hosts", {}).items()):
        mine = tuple(name for name in names if name in facts.get("links", {}))
        if mine or {"worker", "ipu"} & set(facts.get("roles", [])):
            found.append(Target(host, facts["node"], mine))
    return found


def resource_name(plan: Facts, network: Facts) -> str:
    """The network's RDMA resource with its prefix; empty when the plan has no RDMA for it."""
    name = network.get("resource") or ""
    if not network.get("rdma") or not name or "/" in name:
        return name if network.get("rdma") else ""
    prefixes = {r["resourceName"]: r.get("resourcePrefix") or "rdma" for r in plan.get("rdma_resources", [])}
    return f"{prefixes.get(name, 'rdma')}/{name}"


def allocatable(node: Facts, resource: str) -> int:
    return int(node.get("status", {}).get("allocatable", {}).get(resource, 0))


def condition(obj: Facts, kind: str) -> Facts:
    """The condition of this type, or one that says nothing."""
    conditions = obj.get("status", {}).get("conditions") or []
    return next((c for c in conditions if c.get("type") == kind), {})


# The pod


def pod_manifest(target: Target, plan: Facts, node: Facts, options: Options) -> Facts:
    """One pod a node: a container as uid 0, one as uid 1000, and one with the RDMA devices when the plan has any."""
    networks = {network["name"]: network for network in plan.get("networks", [])}
    wanted = sorted({resource_name(plan, networks[name]) for name in target.networks} - {""})
    containers = [
        container("root", options.image, options, {"runAsUser": 0}),
        container(
            "user",
            options.image,
            options,
            {"runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}},
        ),
    ]
    if wanted:
        rdma = container(
            "rdma", options.rdma_image or options.image, options,
            {"runAsUser": 0, "capabilities": {"add": ["IPC_LOCK"]}},
        )
        # A node without the resource would refuse the pod, and with it every other check.
        held = {name: "1" for name in wanted if allocatable(node, name) > 0}
        containers.append({**rdma, "resources": {"limits": held, "requests": held}})
    attached = ",".join(f"{networks[name].get('namespace', 'default')}/{name}" for name in target.networks)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"probe-{target.node}"[:253],
            "labels": {LABEL: options.namespace},
            "annotations": {NETWORKS: attached} if attached else {},
        },
        "spec": {
            "nodeName": target.node,  # a cordoned node is probed too
            "containers": containers,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": lifetime(options),
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "serviceAccountName": "probe",
            "enableServiceLinks": False,
            "tolerations": [{"operator": "Exists"}],
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        },
    }


def container(name: str, image: str, options: Options, context: Facts) -> Facts:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", str(lifetime(options))],
        "securityContext": {"allowPrivilegeEscalation": False, **context},
    }


def lifetime(options: Options) -> int:
    """Seconds after which the kubelet stops a pod that nobody came back for."""
    return options.timeout + 600


class PodState(t.NamedTuple):
    state: str  # running, waiting or failed
    reason: str


def pod_state(pod: t.Optional[Facts], sandbox_failures: t.Sequence[str] = ()) -> PodState:
    """Whether a pod runs, may still start, or never will."""
    if pod is None:
        return PodState("failed", "the pod was removed by something else")
    status = pod.get("status", {})
    if status.get("phase") in ("Failed", "Succeeded"):
        return PodState("failed", "{0}: {1}".format(status.get("reason", "Ended"), status.get("message", "no message")))
    containers = status.get("containerStatuses") or []
    for entry in containers:
        waiting = entry.get("state", {}).get("waiting") or {}
        if waiting.get("reason") in HOPELESS:
            return PodState("failed", "{0} of {1}: {2}".format(
                waiting["reason"], entry.get("image", "an image"), waiting.get("message", "no message")))
    if len(sandbox_failures) >= SANDBOX_FAILURES:
        return PodState("failed", f"the pod's network could not be made: {sandbox_failures[-1]}")
    if containers and all("running" in entry.get("state", {}) for entry in containers):
        return PodState("running", "")
    if sandbox_failures:
        return PodState("waiting", f"the pod's network could not be made yet: {sandbox_failures[-1]}")
    reasons = {(entry.get("state", {}).get("waiting") or {}).get("reason") for entry in containers} - {None}
    return PodState("waiting", ", ".join(sorted(reasons)) or "the kubelet has not taken the pod up")


# The API


def probe(cluster: Cluster, plan: Facts, options: Options) -> Facts:
    """Everything that the verdict needs, from the API and from pods that are gone again afterwards."""
    start = time.monotonic()
    privileged = any(resource_name(plan, network) for network in plan.get("networks", []))
    with ThreadPoolExecutor(options.forks) as pool, stoppable():
        remove_leftovers(cluster, options)
        facts = cluster_facts(cluster, plan, options, pool)
        with namespace_for(cluster, options, privileged) as namespace:
            if options.ipu:
                facts["ipu"]["webhook"] = webhook(cluster, namespace)
            pods = start_pods(cluster, namespace, plan, facts["nodes"], options, pool)
            ask_pods(cluster, namespace, plan, pods, options, pool)
            pairs = ping_pairs(cluster, namespace, plan, pods, options, pool)
            traffic = run_traffic(cluster, namespace, plan, pods, options, pool)
            host_traffic = run_host_traffic(cluster, namespace, plan, pods, options)
    nodes = {name: node_facts(plan, node) for name, node in facts.pop("nodes").items()}
    return {
        "probed": True, "reason": "", **facts, "nodes": nodes, "pods": pods, "pairs": pairs, "traffic": traffic,
        "host_traffic": host_traffic, "rdma_image": options.rdma_image or options.image, "seconds": round(time.monotonic() - start, 1),
    }


@contextlib.contextmanager
def stoppable() -> t.Iterator[None]:
    """Make a kill unwind the stack like Ctrl-C does, so that the pods are removed."""

    def stop(number: int, frame: t.Any) -> None:
        raise KeyboardInterrupt(f"signal {number}")

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def remove_leftovers(cluster: Cluster, options: Options) -> None:
    """Remove what an interrupted run left behind."""
    for namespace in cluster.items("/api/v1/namespaces", labelSelector=f"{LABEL}={options.namespace}"):
        if "deletionTimestamp" not in namespace["metadata"]:
            remove_namespace(cluster, namespace["metadata"]["name"])


def remove_namespace(cluster: Cluster, name: str) -> None:
    """Pods first: the namespace controller waits before it empties a namespace."""
    cluster.delete(f"/api/v1/namespaces/{name}/pods")
    cluster.delete(f"/api/v1/namespaces/{name}")


@contextlib.contextmanager
def namespace_for(cluster: Cluster, options: Options, privileged: bool) -> t.Iterator[str]:
    """A namespace with no more rights than the pods need: only IPC_LOCK, for RDMA, needs `privileged`."""
    labels = {LABEL: options.namespace, PSA: "privileged" if privileged else "baseline"}
    body = {"metadata": {"generateName": f"{options.namespace}-", "labels": labels}}
    name = create(cluster, "/api/v1/namespaces", body)["metadata"]["name"]
    try:
        # Its own account: the default one comes a moment later, and a pod without one is refused.
        create(cluster, f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "probe"}})
        yield name
    finally:
        remove_namespace(cluster, name)


def create(cluster: Cluster, path: str, body: Facts) -> Facts:
    try:
        return cluster.request("post", path, body=body)
    except ApiError as error:
        raise refusal(error, "create", path) from error


def cluster_facts(cluster: Cluster, plan: Facts, options: Options, pool: ThreadPoolExecutor) -> Facts:
    """What the API says by itself, asked all at once."""
    groups = ["mellanox.com/v1alpha1", "k8s.cni.cncf.io/v1"] + (["graphcore.ai/v1alpha1"] if options.ipu else [])
    jobs: t.Dict[str, t.Callable[[], t.Any]] = {
        "nodes": lambda: {n["metadata"]["name"]: n for n in cluster.items("/api/v1/nodes")},
        "policy": lambda: cluster.get("/apis/mellanox.com/v1alpha1/nicclusterpolicies/nic-cluster-policy"),
        "releases": lambda: releases(cluster),
        "version": lambda: (cluster.get("/version") or {}).get("gitVersion", ""),
    }
    for group in groups:
        jobs[f"kinds {group}"] = lambda g=group: [r["kind"] for r in (cluster.get(f"/apis/{g}") or {}).get(
            "resources", [])]
    for network in plan.get("networks", []):
        name, namespace = network["name"], network.get("namespace", "default")
        path = f"/apis/k8s.cni.cncf.io/v1/namespaces/{namespace}/network-attachment-definitions/{name}"
        jobs[f"attachment {name}"] = lambda p=path: cluster.get(p)
        jobs[f"network {name}"] = lambda n=name: cluster.get(f"/apis/mellanox.com/v1alpha1/macvlannetworks/{n}")
    if options.ipu:
        selector = "app.kubernetes.io/name=ipu-operator"
        jobs["deployments"] = lambda: cluster.items("/apis/apps/v1/deployments", labelSelector=selector)
    waiting = {name: pool.submit(job) for name, job in jobs.items()}
    seen = {name: job.result() for name, job in waiting.items()}
    return {
        "version": seen["version"],
        "nodes": seen["nodes"],
        "releases": seen["releases"],
        "kinds": {group: seen[f"kinds {group}"] for group in groups},
        "policy": (seen["policy"] or {}).get("status", {}) if seen["policy"] else None,
        "networks": {n["name"]: network_facts(seen, n["name"]) for n in plan.get("networks", [])},
        "ipu": ipu_facts(cluster, seen["deployments"]) if options.ipu else {},
    }


def network_facts(seen: Facts, name: str) -> Facts:
    """The network's state, and its attachment's configuration as data (as text when it is not JSON)."""
    network, attachment = seen[f"network {name}"], seen[f"attachment {name}"]
    config = (attachment or {}).get("spec", {}).get("config") if attachment else None
    with contextlib.suppress(ValueError, TypeError):
        config = json.loads(config)
    return {"state": (network or {}).get("status", {}) if network else None, "attachment": config}


def releases(cluster: Cluster) -> t.List[Facts]:
    """The newest revision of the two operators' Helm releases: name, namespace, chart, version, status."""
    found: t.Dict[str, Facts] = {}
    selector = "owner=helm,name in (network-operator,ipu-operator)"
    for secret in cluster.items("/api/v1/secrets", labelSelector=selector):
        release = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
        if release["version"] >= found.get(release["name"], {}).get("revision", 0):
            chart = release.get("chart", {}).get("metadata", {})
            found[release["name"]] = {
                "name": release["name"],
                "namespace": release["namespace"],
                "revision": release["version"],
                "version": chart.get("version", ""),
                "status": release.get("info", {}).get("status", ""),
            }
    return list(found.values())


def ipu_facts(cluster: Cluster, deployments: t.Sequence[Facts]) -> Facts:
    """The IPU operator's Deployments, and its V-IPU proxy's health through the API server."""
    states = [
        {
            "name": d["metadata"]["name"],
            "namespace": d["metadata"]["namespace"],
            "ready": d.get("status", {}).get("readyReplicas", 0),
            "wanted": d.get("spec", {}).get("replicas", 1),
        }
        for d in deployments
    ]
    proxy = next((s for s in states if s["name"].endswith("vipu-proxy")), None)
    if proxy is None:
        return {"deployments": states, "proxy": {"healthy": False, "seen": "no Deployment of the V-IPU proxy"}}
    path = "/api/v1/namespaces/{namespace}/services/http:{name}:80/proxy/health".format(**proxy)
    try:
        cluster.client.request("get", path, serialize=False, _request_timeout=10)
    except (ApiError, TransportError) as error:
        return {"deployments": states, "proxy": {"healthy": False, "seen": message_of(error)}}
    return {"deployments": states, "proxy": {"healthy": True, "seen": "GET /health: 200"}}


def webhook(cluster: Cluster, namespace: str) -> Facts:
    """Whether a dry-run IPUJob passes the operator's webhook."""
    template = {"spec": {"containers": [{"name": "worker", "image": "none"}]}}
    job = {
        "apiVersion": "graphcore.ai/v1alpha1",
        "kind": "IPUJob",
        "metadata": {"name": "probe"},
        "spec": {"jobInstances": 1, "ipusPerJobInstance": "1", "workers": {"template": template}},
    }
    path = f"/apis/graphcore.ai/v1alpha1/namespaces/{namespace}/ipujobs"
    try:
        cluster.request("post", path, body=job, dryRun="All")
    except (ApiError, TransportError) as error:
        return {"passed": False, "seen": message_of(error)}
    return {"passed": True, "seen": "a dry-run IPUJob was accepted"}


def node_facts(plan: Facts, node: Facts) -> Facts:
    ready = condition(node, "Ready")
    resources = {network["name"]: resource_name(plan, network) for network in plan.get("networks", [])}
    return {
        "ready": ready.get("status") == "True",
        "reason": ready.get("message", "no Ready condition"),
        "labels": node["metadata"].get("labels", {}),
        "allocatable": {
            name: {"resource": resource, "count": allocatable(node, resource)}
            for name, resource in resources.items()
            if resource
        },
    }


# Pods


def start_pods(
    cluster: Cluster, namespace: str, plan: Facts, nodes: Facts, options: Options, pool: ThreadPoolExecutor
) -> Facts:
    """Make the pods and wait for them; the facts of each by node name."""
    pods: Facts = {}
    made = []
    for target in targets(plan):
        node = nodes.get(target.node)
        ready = condition(node or {}, "Ready")
        pods[target.node] = {"host": target.host, "networks": list(target.networks), "state": "waiting", "reason": ""}
        if node is None:
            pods[target.node].update(state="failed", reason="the cluster has no node of this name")
        elif ready.get("status") != "True":
            reason = "the node is not Ready: {0}".format(ready.get("message", "no Ready condition"))
            pods[target.node].update(state="failed", reason=reason)
        else:
            made.append(pod_manifest(target, plan, node, options))
    path = f"/api/v1/namespaces/{namespace}/pods"
    for answer in pool.map(lambda body: try_create(cluster, path, body), made):
        pods[answer.pop("node")].update(answer)
    wait_for_pods(cluster, namespace, pods, options.timeout)
    return pods


def try_create(cluster: Cluster, path: str, body: Facts) -> Facts:
    """A pod that the API server refuses fails its own node, not the run."""
    name = body["metadata"]["name"]
    answer: Facts = {"node": body["spec"]["nodeName"], "pod": name}
    try:
        cluster.request("post", path, body=body)
    except ApiError as error:
        answer.update(state="failed", reason=f"the API server refused the pod: {message_of(error)}")
    return answer


def wait_for_pods(cluster: Cluster, namespace: str, pods: Facts, timeout: int) -> None:
    """Ask until each pod runs or can't; stops early, and what is still waiting at the end has failed."""
    start = asked_events = time.monotonic()
    failures: t.Dict[str, t.List[str]] = {}
    while any(pod["state"] == "waiting" for pod in pods.values()):
        now = time.monotonic()
        if now - asked_events > 2:  # only a slow start is worth the question
            failures, asked_events = sandbox_failures(cluster, namespace), now
        seen = {p["metadata"]["name"]: p for p in cluster.items(f"/api/v1/namespaces/{namespace}/pods")}
        for facts in pods.values():
            if facts["state"] == "waiting":
                state = pod_state(seen.get(facts["pod"]), failures.get(facts["pod"], ()))
                facts.update(state=state.state, reason=state.reason, **pod_facts(seen.get(facts["pod"])))
                if state.state == "waiting" and now - start > timeout:
                    facts.update(state="failed", reason=f"not running after {timeout} s: {state.reason}")
        time.sleep(0.2)


def sandbox_failures(cluster: Cluster, namespace: str) -> t.Dict[str, t.List[str]]:
    """The kubelet's messages about networks that it could not make, by pod, repeated as often as they came."""
    found: t.Dict[str, t.List[str]] = {}
    events = cluster.items(f"/api/v1/namespaces/{namespace}/events", fieldSelector="reason=FailedCreatePodSandBox")
    for event in events:
        count = (event.get("series") or {}).get("count") or event.get("count") or 1
        found.setdefault(event["involvedObject"]["name"], []).extend([event.get("message", "")] * count)
    return found


def pod_facts(pod: t.Optional[Facts]) -> Facts:
    """What multus wrote on the pod: None when it wrote nothing."""
    text = ((pod or {}).get("metadata", {}).get("annotations") or {}).get(NETWORK_STATUS)
    try:
        return {"network_status": json.loads(text) if text else None}
    except ValueError:
        return {"network_status": None}


class Output(t.NamedTuple):
    """What an exec gave; rc None when it did not end."""

    rc: t.Optional[int]
    text: str
    error: str


def run_in(cluster: Cluster, namespace: str, pod: str, name: str, script: str, timeout: int) -> Output:
    """Run a script in a container of a pod. Uses one connection of its own: the library's exec call is not thread-safe."""
    configuration = cluster.client.configuration
    token = configuration.auth_settings().get("BearerToken", {}).get("value")
    query = [("container", name), ("stdout", "true"), ("stderr", "true"), ("command", ["sh", "-c", script])]
    url = f"{configuration.host}/api/v1/namespaces/{namespace}/pods/{pod}/exec"
    headers = {"authorization": token} if token else {}
    try:
        client = websocket_call(
            configuration, "get", url, query_params=query, headers=headers, _preload_content=False, capture_all=False
        )
        client.run_forever(timeout=timeout)
        text = client.read_channel(1) + client.read_channel(2)
        if client.is_open():
            client.close()
            return Output(None, text, f"no end within {timeout} s")
        return Output(client.returncode, text, "")
    except (ApiError, OSError, KeyError, TypeError, ValueError) as error:
        return Output(None, "", f"exec failed: {error}")


def running(pods: Facts) -> t.List[str]:
    return [node for node, pod in sorted(pods.items()) if pod["state"] == "running"]


def ask_pods(
    cluster: Cluster, namespace: str, plan: Facts, pods: Facts, options: Options, pool: ThreadPoolExecutor
) -> None:
    """One exec a container, all at once; each pod's facts gain `root`, `user` and `rdma`."""

    def ask(job: t.Tuple[str, str, str]) -> t.Tuple[str, str, Output]:
        node, name, script = job
        return node, name, run_in(cluster, namespace, pods[node]["pod"], name, script, 60)

    rdma_networks = {n["name"] for n in plan.get("networks", []) if resource_name(plan, n)}
    jobs = []
    for node in running(pods):
        controllers = serving(plan, pods[node]["host"]) if options.ipu else []
        jobs.append((node, "root", shell.network_script(controllers)))
        jobs.append((node, "user", shell.limits_script()))
        if rdma_networks & set(pods[node]["networks"]):
            jobs.append((node, "rdma", shell.rdma_script()))
    readers = {
        "root": shell.read_network,
        "user": lambda text: shell.read_limits(shell.sections(text)),
        "rdma": shell.read_rdma,
    }
    for node, name, output in pool.map(ask, jobs):
        pods[node][name] = {**readers[name](output.text), "error": output.error}


def serving(plan: Facts, host: str) -> t.List[t.Tuple[str, int]]:
    """The V-IPU controllers that this host's pods must reach; one that names no host serves all."""
    return [
        (c["address"], int(c["port"]))
        for c in plan.get("vipu", {}).get("controllers", [])
        if not c.get("serves") or host in c["serves"]
    ]


class End(t.NamedTuple):
    """One end of a pair on a network."""

    node: str
    pod: str
    interface: str
    address: str


def ends(plan: Facts, pods: Facts, network: str) -> t.Dict[str, End]:
    """The pods that got an address on a network, by node."""
    found = {}
    for node in running(pods):
        pod = pods[node]
        if network in pod["networks"]:
            interface = interface_of(pod, network)
            link = ((pod.get("root") or {}).get("links") or {}).get(interface, {})
            if link.get("addresses"):
                found[node] = End(node, pod["pod"], interface, link["addresses"][0]["address"])
    return found


def interface_of(pod: Facts, network: str) -> str:
    """Multus names them in the order of the annotation."""
    return f"net{pod['networks'].index(network) + 1}"


def mtu_of(plan: Facts, network: Facts, host: str) -> int:
    """The planned MTU; where the plan leaves it to the NIC, the NIC's. 0: not known."""
    link = plan.get("hosts", {}).get(host, {}).get("links", {}).get(network["name"], {})
    return int(network.get("mtu") or link.get("mtu") or 0)


def ping_pairs(
    cluster: Cluster, namespace: str, plan: Facts, pods: Facts, options: Options, pool: ThreadPoolExecutor
) -> t.List[Facts]:
    """Ping across the chosen pairs of every network."""
    jobs = []
    for network in plan.get("networks", []):
        found = ends(plan, pods, network["name"])
        for a, b in shell.choose_pairs(sorted(found), options.max_pairs):
            mtu = min(mtu_of(plan, network, pods[n]["host"]) for n in (a, b))
            jobs.append((network["name"], mtu, found[a], found[b]))

    def ping(job: t.Tuple[str, int, End, End]) -> Facts:
        network, mtu, a, b = job
        script = shell.ping_script(b.address, a.interface, mtu)
        output = run_in(cluster, namespace, a.pod, "root", script, 30)
        return {
            "network": network, "from": a.node, "to": b.node, "address": b.address, "mtu": mtu, "error": output.error,
            **shell.read_pings(output.text),
        }

    return list(pool.map(ping, jobs))


def run_traffic(
    cluster: Cluster, namespace: str, plan: Facts, pods: Facts, options: Options, pool: ThreadPoolExecutor
) -> t.List[Facts]:
    """RDMA tests over the pairs of every RDMA network, in rounds that use no node twice."""
    results: t.List[Facts] = []
    for network in plan.get("networks", []):
        if not resource_name(plan, network):
            continue
        found = ends(plan, pods, network["name"])
        pairs = shell.choose_pairs(sorted(found), options.max_pairs)
        for some in shell.rounds(pairs):
            tests = [(network["name"], pods, found[a], found[b]) for a, b in some]
            for answers in pool.map(lambda test: traffic_of(cluster, namespace, *test), tests):
                results += answers
    return results


def traffic_of(cluster: Cluster, namespace: str, network: str, pods: Facts, a: End, b: End) -> t.List[Facts]:
    """The tests between two pods, one after the other."""
    tools = [set((pods[end.node].get("rdma") or {}).get("tools", [])) for end in (a, b)]
    results = []
    for test in shell.traffic_tests(server=b.address, client=a.address):
        result: Facts = {"check": test.check, "network": network, "from": a.node, "to": b.node, "tool": test.tool}
        if not all(test.tool in have for have in tools):
            results.append({**result, "missing": True})
            continue
        with ThreadPoolExecutor(1) as one:
            server = one.submit(
                run_in, cluster, namespace, b.pod, "rdma", shell.server_script(test.server, TRAFFIC_SECONDS),
                TRAFFIC_SECONDS + 10,
            )
            client = run_in(
                cluster, namespace, a.pod, "rdma", shell.client_script(test.client, TRAFFIC_SECONDS),
                TRAFFIC_SECONDS + 10,
            )
            waited = server.result()
        answer = shell.sections(client.text).get("client", shell.Answer(1, client.error or "no output"))
        side = shell.sections(waited.text).get("server", shell.Answer(1, waited.error))
        seen = f"client: {shell.last_line(answer.text)}; server: {shell.last_line(side.text)}"
        results.append({
            **result, "missing": False, "rc": answer.rc, "seen": seen, **shell.read_traffic(test.check, answer.text)})
    return results


def run_host_traffic(
    cluster: Cluster, namespace: str, plan: Facts, pods: Facts, options: Options
) -> t.List[Facts]:
    """gc-hosttraffictest on each IPU node, one after the other: a partition serves one user at a time."""
    results: t.List[Facts] = []
    if not (options.ipu and options.ipu_partition):
        return results
    for node in running(pods):
        controllers = serving(plan, pods[node]["host"])
        is_ipu = "ipu" in plan["hosts"][pods[node]["host"]].get("roles", [])
        if not is_ipu or not controllers or "rdma" not in pods[node]:
            continue
        if "gc-hosttraffictest" not in pods[node]["rdma"]["tools"]:
            results.append({"node": node, "missing": True})
            continue
        script = shell.host_traffic_script(options.ipu_device, *controllers[0], options.ipu_partition)
        output = run_in(cluster, namespace, pods[node]["pod"], "rdma", script, 300)
        answer = shell.sections(output.text).get("host_traffic", shell.Answer(1, output.error))
        results.append({
            "node": node, "missing": False, "rc": answer.rc, "seen": shell.last_line(answer.text),
            **shell.read_host_traffic(answer.text)})
    return results


def not_probed(reason: str) -> Facts:
    """Facts of a run that made no pods."""
    return {"probed": False, "reason": reason}


def check_plan(plan: Facts) -> None:
    """A plan without hosts proves nothing."""
    if not plan.get("hosts"):
        raise FabricError(
            "The plan was looked at for the hosts to probe.",
            "option plan",
            "no hosts in it",
            "Run the plan first (playbook ipu.fabric.plan) and pass its fact, or the content of plan.json.",
        )
