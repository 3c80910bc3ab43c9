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
from concurrent.futures import Future, ThreadPoolExecutor

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.pools import audit
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_spec import API as IPUJOB_API
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.webhook import read_certificate
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import (
    ApiError,
    Cluster,
    TransportError,
    message_of,
    refusal,
)
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import NAD_API
from ansible_collections.ipu.fabric.plugins.module_utils._network.operator_info import POLICY, addon_facts
from ansible_collections.ipu.fabric.plugins.module_utils._network.overlaps import dealers
from ansible_collections.ipu.fabric.plugins.module_utils._network.providers import STACKS, network_path, stack_name
from ansible_collections.ipu.fabric.plugins.module_utils._verify import commands as shell
from ansible_collections.ipu.fabric.plugins.module_utils._verify import pods as pod_data
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pods import (
    IPU_DEPLOYMENTS,
    LABEL,
    PSA,
    End,
    Facts,
    Options,
)

with contextlib.suppress(ImportError):  # connect() says what is missing
    from kubernetes.stream.ws_client import websocket_call

SETTLE_SECONDS = 5
ASK_SECONDS = 60
PING_SECONDS = 30
TRAFFIC_SECONDS = 30
HOST_TRAFFIC_SECONDS = 300
FIRST_PORT, PORTS = 18515, 4096  # perftest's usual port, and how many there are from it on


class Output(t.NamedTuple):
    """What an exec gave; `error` says why there may be less than asked for."""

    text: str
    error: str


class Run(t.NamedTuple):
    """One run of the probe: who is asked, for which plan, and how many at once."""

    cluster: Cluster
    plan: Facts
    options: Options
    pool: ThreadPoolExecutor
    namespace: str = ""

    @property
    def networks(self) -> t.List[Facts]:
        return self.plan.get("networks", [])

    @property
    def rdma(self) -> t.Set[str]:
        """Names of the networks that the plan has RDMA for."""
        return {n["name"] for n in self.networks if pod_data.resource_name(self.plan, n)}

    def path(self, kind: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/{kind}"


def probe(cluster: Cluster, plan: Facts, options: Options) -> Facts:
    """Everything that the verdict needs, from the API and from pods that are gone again afterwards."""
    if not plan.get("hosts"):
        raise FabricError(
            "The plan was looked at for the hosts to probe.",
            "option plan",
            "no hosts in it",
            "Run the plan first (playbook ipu.fabric.plan) and pass its fact, or the content of plan.json.",
        )
    start = time.monotonic()
    with ThreadPoolExecutor(options.forks) as pool, stoppable():
        outside = Run(cluster, plan, options, pool)
        pools = audit(cluster, SETTLE_SECONDS)  # before anything of ours takes an address, or gives one back
        remove_leftovers(outside)
        facts = cluster_facts(outside)
        with namespace_for(outside) as run:
            seen = inside(run, facts["nodes"])
    facts["nodes"] = {name: pod_data.node_facts(plan, node) for name, node in facts["nodes"].items()}
    seconds = round(time.monotonic() - start, 1)
    told = {"probed": True, "reason": "", "seconds": seconds, "rdma_image": options.rdma_tools, "pools": pools}
    return {**told, **facts, **seen}


def inside(run: Run, nodes: Facts) -> Facts:
    """What can only be seen with a namespace and pods."""
    accepted = run.pool.submit(webhook, run) if run.options.ipu else None
    pods = start_pods(run, nodes)
    ask_pods(run, pods)
    return {
        "pods": pods,
        "pairs": ping_pairs(run, pods),
        "traffic": run_traffic(run, pods),
        "host_traffic": run_host_traffic(run, pods),
        "webhook": accepted.result() if accepted else None,
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


# Namespace


def remove_leftovers(run: Run) -> None:
    """Remove what an interrupted run left behind."""
    for namespace in run.cluster.items("/api/v1/namespaces", labelSelector=f"{LABEL}={run.options.namespace}"):
        if "deletionTimestamp" not in namespace["metadata"]:
            remove(run._replace(namespace=namespace["metadata"]["name"]))


def remove(run: Run) -> None:
    """Pods first: the namespace controller waits before it empties a namespace."""
    run.cluster.delete(run.path("pods"))
    run.cluster.delete(f"/api/v1/namespaces/{run.namespace}")


@contextlib.contextmanager
def namespace_for(outside: Run) -> t.Iterator[Run]:
    """A namespace with no more rights than the pods need: only IPC_LOCK, for RDMA, needs `privileged`."""
    prefix = outside.options.namespace
    labels = {LABEL: prefix, PSA: "privileged" if outside.rdma else "baseline"}
    body = {"metadata": {"generateName": f"{prefix}-", "labels": labels}}
    run = outside._replace(namespace=create(outside, "/api/v1/namespaces", body)["metadata"]["name"])
    try:
        # Its own account: the default one comes a moment later, and a pod without one is refused.
        create(run, run.path("serviceaccounts"), {"metadata": {"name": "probe"}})
        yield run
    finally:
        remove(run)


def create(run: Run, path: str, body: Facts) -> Facts:
    try:
        return run.cluster.request("post", path, body=body)
    except ApiError as error:
        raise refusal(error, "create", path) from error


# What the API says by itself


def cluster_facts(run: Run) -> Facts:
    """Asked all at once."""
    get, items = run.cluster.get, run.cluster.items
    group = STACKS[stack_name(run.plan)].group
    groups = [group, NAD_API, *([IPUJOB_API] if run.options.ipu else [])]
    policy = run.pool.submit(get, POLICY)
    version = run.pool.submit(get, "/version")
    nodes = run.pool.submit(items, "/api/v1/nodes")
    installed = run.pool.submit(releases, run.cluster)
    addons = run.pool.submit(addon_facts, run.cluster)
    dealing = run.pool.submit(dealers, run.cluster)
    operator = run.pool.submit(ipu_facts, run.cluster) if run.options.ipu else None
    kinds = [run.pool.submit(get, f"/apis/{group}") for group in groups]
    networks = {network["name"]: network_requests(run, network) for network in run.networks}
    return {
        "version": (version.result() or {}).get("gitVersion", ""),
        "nodes": {node["metadata"]["name"]: node for node in nodes.result()},
        "policy": status_of(policy.result()),
        "releases": installed.result(),
        "addons": addons.result(),
        "dealers": dealing.result(),
        "kinds": [kind["kind"] for seen in kinds for kind in (seen.result() or {}).get("resources", [])],
        "networks": {name: network_facts(*requests) for name, requests in networks.items()},
        "ipu": operator.result() if operator else {},
    }


def status_of(obj: t.Optional[Facts]) -> t.Optional[Facts]:
    return None if obj is None else obj.get("status") or {}


def network_requests(run: Run, network: Facts) -> t.Tuple[Future[t.Any], Future[t.Any]]:
    """The object of the network and its attachment."""
    name, namespace = network["name"], network.get("namespace", "default")
    attachment = f"/apis/{NAD_API}/namespaces/{namespace}/network-attachment-definitions/{name}"
    return (
        run.pool.submit(run.cluster.get, network_path(run.plan, network)),
        run.pool.submit(run.cluster.get, attachment),
    )


def network_facts(network: Future[t.Any], attachment: Future[t.Any]) -> Facts:
    """The network's state, and its attachment's configuration as data (as text when it is not JSON)."""
    config: t.Any = ((attachment.result() or {}).get("spec") or {}).get("config")
    with contextlib.suppress(ValueError, TypeError):
        config = json.loads(config)
    return {"state": status_of(network.result()), "attachment": config}


def releases(cluster: Cluster) -> t.List[Facts]:
    """The newest revision of the operators' Helm releases: name, namespace, revision, chart version, status."""
    found: t.Dict[str, Facts] = {}
    selector = "owner=helm,name in (network-operator,spiderpool,ipu-operator)"
    for secret in cluster.items("/api/v1/secrets", labelSelector=selector):
        release = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
        if release["version"] >= found.get(release["name"], {}).get("revision", 0):
            found[release["name"]] = {
                "name": release["name"],
                "namespace": release["namespace"],
                "revision": release["version"],
                "version": release.get("chart", {}).get("metadata", {}).get("version", ""),
                "status": release.get("info", {}).get("status", ""),
            }
    return list(found.values())


def ipu_facts(cluster: Cluster) -> Facts:
    """The IPU operator's Deployments, in whichever namespace, its certificate, and its V-IPU proxy's health."""
    found = []
    for name in IPU_DEPLOYMENTS:
        for deployment in cluster.items("/apis/apps/v1/deployments", fieldSelector=f"metadata.name={name}"):
            status, spec = deployment.get("status", {}), deployment.get("spec", {})
            found.append(
                {
                    "name": name,
                    "namespace": deployment["metadata"]["namespace"],
                    "ready": status.get("readyReplicas", 0),
                    "wanted": spec.get("replicas", 1),
                }
            )
    proxy = next((each for each in found if each["name"] == IPU_DEPLOYMENTS[-1]), None)
    namespace = found[0]["namespace"] if found else "ipu-operator"
    return {
        "deployments": found,
        "proxy": proxy_health(cluster, proxy),
        "certificate": read_certificate(cluster, namespace),
    }


# Seconds before each question: a proxy whose controller was away for a moment is back after its next readiness probe.
HEALTH_PAUSES = (0, 5, 10)


def proxy_health(cluster: Cluster, proxy: t.Optional[Facts]) -> Facts:
    """Asked through the API server: the proxy is not to be reached from outside."""
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


def webhook(run: Run) -> Facts:
    """Whether a dry-run IPUJob passes the operator's webhook."""
    template = {"spec": {"containers": [{"name": "worker", "image": "none"}]}}
    job = {
        "apiVersion": IPUJOB_API,
        "kind": "IPUJob",
        "metadata": {"name": "probe"},
        "spec": {"jobInstances": 1, "ipusPerJobInstance": "1", "workers": {"template": template}},
    }
    path = f"/apis/{IPUJOB_API}/namespaces/{run.namespace}/ipujobs"
    try:
        run.cluster.request("post", path, body=job, dryRun="All")
    except (ApiError, TransportError) as error:
        return {"passed": False, "seen": message_of(error)}
    return {"passed": True, "seen": "accepted"}


# Pods


def start_pods(run: Run, nodes: Facts) -> Facts:
    """Make the pods and wait for them; the facts of each by node name."""
    pods: Facts = {}
    made = []
    for target in pod_data.targets(run.plan):
        fault = pod_data.node_fault(nodes.get(target.node))
        state = "failed" if fault else "waiting"
        pods[target.node] = {
            "host": target.host,
            "pod": pod_data.pod_name(target.node),
            "networks": list(target.networks),
            "state": state,
            "reason": fault,
        }
        if not fault:
            made.append(pod_data.pod_manifest(target, run.plan, nodes[target.node], run.options))
    for node, refused in run.pool.map(lambda body: create_pod(run, body), made):
        if refused:
            pods[node].update(state="failed", reason=refused)
    wait_for_pods(run, pods)
    return pods


def create_pod(run: Run, body: Facts) -> t.Tuple[str, str]:
    """A pod that the API server refuses fails its own node, not the run."""
    try:
        run.cluster.request("post", run.path("pods"), body=body, fieldValidation="Strict")
    except ApiError as error:
        return body["spec"]["nodeName"], f"the API server refused the pod: {message_of(error)}"
    return body["spec"]["nodeName"], ""


def wait_for_pods(run: Run, pods: Facts) -> None:
    """Ask until each pod runs or can't; stops early, and what is still waiting at the end has failed."""
    timeout = run.options.timeout
    start = asked_events = time.monotonic()
    failures: t.Dict[str, t.List[str]] = {}
    while any(pod["state"] == "waiting" for pod in pods.values()):
        time.sleep(0.2 + len(pods) / 400)  # a list of many pods is dear
        now = time.monotonic()
        if now - asked_events > 2:  # only a slow start is worth the question
            failures, asked_events = sandbox_failures(run), now
        seen = {pod["metadata"]["name"]: pod for pod in run.cluster.items(run.path("pods"))}
        for facts in pods.values():
            if facts["state"] == "waiting":
                pod = seen.get(facts["pod"])
                state = pod_data.pod_state(pod, failures.get(facts["pod"], ()))
                facts.update(state=state.state, reason=state.reason, network_status=pod_data.network_status(pod))
                if state.state == "waiting" and now - start > timeout:
                    facts.update(state="failed", reason=f"not running after {timeout} s: {state.reason}")


def sandbox_failures(run: Run) -> t.Dict[str, t.List[str]]:
    """The kubelet's messages about networks that it could not make, by pod, repeated as often as they came."""
    found: t.Dict[str, t.List[str]] = {}
    for event in run.cluster.items(run.path("events"), fieldSelector="reason=FailedCreatePodSandBox"):
        count = (event.get("series") or {}).get("count") or event.get("count") or 1
        found.setdefault(event["involvedObject"]["name"], []).extend([event.get("message", "")] * count)
    return found


# Commands in pods


def run_in(run: Run, pod: str, container: str, script: str, timeout: int) -> Output:
    """Run a script in a container, on a connection of its own: the library's exec call is not thread-safe."""
    configuration = run.cluster.client.configuration
    token = configuration.auth_settings().get("BearerToken", {}).get("value")
    query = [("container", container), ("stdout", "true"), ("stderr", "true"), ("command", ["sh", "-c", script])]
    try:
        client = websocket_call(
            configuration,
            "get",
            configuration.host + run.path(f"pods/{pod}/exec"),
            query_params=query,
            headers={"authorization": token} if token else {},
            _preload_content=False,
            capture_all=False,
        )
        client.run_forever(timeout=timeout)
        text = client.read_channel(1) + client.read_channel(2)
        if client.is_open():
            client.close()
            return Output(text, f"no end within {timeout} s")
    except (ApiError, OSError, ValueError) as error:
        reason = " ".join(str(getattr(error, "reason", None) or error).split())
        return Output("", f"exec failed: {reason[:200]}")
    return Output(text, "")


def ask_pods(run: Run, pods: Facts) -> None:
    """One exec a container, all at once; each pod's facts gain `root`, `user` and `rdma`."""
    jobs: t.List[t.Tuple[str, str, str]] = []
    for node in pod_data.running(pods):
        controllers = pod_data.serving(run.plan, pods[node]["host"]) if run.options.ipu else []
        jobs.append((node, "root", shell.network_script(controllers)))
        jobs.append((node, "user", shell.limits_script()))
        if run.rdma & set(pods[node]["networks"]):
            jobs.append((node, "rdma", shell.rdma_script()))
    outputs = run.pool.map(lambda job: run_in(run, pods[job[0]]["pod"], job[1], job[2], ASK_SECONDS), jobs)
    readers = {"root": shell.read_network, "user": shell.read_user, "rdma": shell.read_rdma}
    for (node, container, _script), output in zip(jobs, outputs):
        pods[node][container] = {**readers[container](output.text), "error": output.error}


def ping_pairs(run: Run, pods: Facts) -> t.List[Facts]:
    """Ping across the chosen pairs of every network, all at once."""
    jobs = []
    for network in run.networks:
        found = pod_data.ends(pods, network["name"])
        for a, b in shell.choose_pairs(sorted(found), run.options.max_pairs):
            mtu = min(pod_data.mtu_of(run.plan, network, pods[node]["host"]) for node in (a, b))
            jobs.append((network["name"], mtu, found[a], found[b]))

    def ping(job: t.Tuple[str, int, End, End]) -> Facts:
        network, mtu, a, b = job
        output = run_in(run, a.pod, "root", shell.ping_script(b.address, a.interface, mtu), PING_SECONDS)
        facts = {"network": network, "from": a.node, "to": b.node, "address": b.address, "mtu": mtu}
        return {**facts, "error": output.error, **shell.read_pings(output.text)}

    return list(run.pool.map(ping, jobs))


class Test(t.NamedTuple):
    """The RDMA tests between two pods on one network: a asks, b serves."""

    network: str
    a: End
    b: End
    port: int


def run_traffic(run: Run, pods: Facts) -> t.List[Facts]:
    """RDMA tests over the pairs of every RDMA network, at the same time where no NIC has two of them."""
    jobs: t.List[Test] = []
    for network in sorted(run.rdma):
        found = pod_data.ends(pods, network)
        for a, b in shell.choose_directed(sorted(found), run.options.max_pairs):
            # perftest listens on all addresses of the pod: tests at the same time need ports of their own.
            jobs.append(Test(network, found[a], found[b], FIRST_PORT + len(jobs) % PORTS))

    def nics(test: Test) -> t.Iterator[t.Tuple[str, str]]:
        for node in (test.a.node, test.b.node):
            yield from ((node, nic) for nic in pod_data.nics_of(run.plan, test.network, pods[node]["host"]))

    results: t.List[Facts] = []
    for together in shell.rounds(jobs, nics):
        for answers in run.pool.map(lambda test: traffic_of(run, pods, test), together):
            results += answers
    return results


def traffic_of(run: Run, pods: Facts, job: Test) -> t.List[Facts]:
    """The tests of a pair, one after the other; where rping finds no way, the others would only wait for it."""
    have = [set((pods[end.node].get("rdma") or {}).get("tools", [])) for end in (job.a, job.b)]
    results: t.List[Facts] = []
    for test in shell.traffic_tests(server=job.b.address, client=job.a.address, port=job.port):
        facts = {"network": job.network, "from": job.a.node, "to": job.b.node, "check": test.check, "tool": test.tool}
        missing = not all(test.tool in tools for tools in have)
        blocked = any(result.get("rc") for result in results if result["check"] == "rping")
        answer = {} if missing or blocked else measure(run, test, job.a, job.b)
        results.append({**facts, "missing": missing, "blocked": blocked, **answer})
    return results


def measure(run: Run, test: shell.Traffic, a: End, b: End) -> Facts:
    """Start the server in a thread of its own, run the client, and read its figure."""
    limit = TRAFFIC_SECONDS + 10
    with ThreadPoolExecutor(1) as one:
        waiting = one.submit(run_in, run, b.pod, "rdma", shell.server_script(test.server, TRAFFIC_SECONDS), limit)
        client = run_in(run, a.pod, "rdma", shell.client_script(test.client, TRAFFIC_SECONDS), limit)
        server = waiting.result()
    answer = shell.sections(client.text).get("client", shell.Answer(1, client.error))
    other = shell.sections(server.text).get("server", shell.Answer(1, server.error))
    seen = f"client: {shell.last_line(answer.text)}; server: {shell.last_line(other.text)}"
    return {"rc": answer.rc, "seen": seen, **shell.read_traffic(test.check, answer.text)}


def run_host_traffic(run: Run, pods: Facts) -> t.List[Facts]:
    """gc-hosttraffictest on each IPU node, one after the other: a partition serves one user at a time."""
    results: t.List[Facts] = []
    if not (run.options.ipu and run.options.ipu_partition):
        return results
    for node in pod_data.running(pods):
        pod = pods[node]
        controllers = pod_data.serving(run.plan, pod["host"])
        is_ipu = "ipu" in run.plan["hosts"][pod["host"]].get("roles", [])
        if not is_ipu or not controllers or "rdma" not in pod:
            continue
        if "gc-hosttraffictest" not in pod["rdma"]["tools"]:
            results.append({"node": node, "missing": True})
            continue
        script = shell.host_traffic_script(run.options.ipu_device, *controllers[0], run.options.ipu_partition)
        output = run_in(run, pod["pod"], "rdma", script, HOST_TRAFFIC_SECONDS)
        answer = shell.sections(output.text).get("host_traffic", shell.Answer(1, output.error))
        seen = {"rc": answer.rc, "seen": shell.last_line(answer.text)}
        results.append({"node": node, "missing": False, **seen, **shell.read_host_traffic(answer.text)})
    return results
