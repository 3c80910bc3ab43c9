# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts from pods on the planned networks: created on every node, queried in parallel, and removed."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import typing as t
from concurrent.futures import ThreadPoolExecutor

from .._common.pod_security import POD_SECURITY, PRIVILEGED, REFUSED
from .._common.result import FabricError
from .._common.signals import termination_as_error
from .._ipam.pool_audit import audit
from .._ipu.job_spec import API as IPUJOB_API
from .._kube.client import ApiError, Cluster, TransportError, message_of, refusal
from .._kube.pod_exec import Output, run_in_pod
from .._kube.pod_problems import SANDBOX_EVENTS, sandbox_failures
from .._kube.query import Object, by_name, query, quoted
from .._model.plan import Plan
from .._model.probe import Answer, Crossing, HostTraffic, NodeFacts, PingPair, PodFacts, Probe, Traffic, TrafficFacts
from .._model.stacks import has_rdma, host_nic, is_derived
from . import pairs, parsers
from . import pod_manifests as objects
from . import pods as pod_data
from .catalog import NOT_READY
from .cluster_facts import Nodes, cluster_facts
from .pods import LABEL, End, Options, Pods
from .telling import telling_line

ALIVE = "fabric.ipu/alive"  # annotation of a namespace: the last sign of life of its run, in seconds since 1970
BEAT_SECONDS = 30  # between two signs of life
DEAD_SECONDS = 300  # without a sign of life; longer than the difference between two controllers' clocks
SETTLE_SECONDS = 5
REGISTERING = 0.25  # share of the pods' start time-out in which device plugins may register their resources
REGISTERING_SECONDS = 2  # between two reads of the nodes
EVENTS_SECONDS = 2  # a quick start needs no events
NODES_SECONDS = 20  # between two looks at whether nodes are still Ready: a list of 1,000 is long
TIMED_OUT = 124  # exit code of `timeout`
STOPPED = 143  # 128 and SIGTERM
ATTEMPTS = 5  # for an RDMA test that fails at once
HOST_TRAFFIC_SECONDS = 300
GATEWAY_SECONDS = 4  # until the pings of a silent gateway have ended
FIRST_PORT, PORTS = 18515, 4096  # perftest's default port, and the number of ports from it on
TRAFFIC_TOOLS = {  # by check
    "rping": "rping",
    "write_bandwidth": "ib_write_bw",
    "read_latency": "ib_read_lat",
    "gpu_bandwidth": "ib_write_bw",
}
HOST_TRAFFIC_TOOL = "gc-hosttraffictest"
RDMA_TOOLS = ("rping", "ib_write_bw", "ib_read_lat", HOST_TRAFFIC_TOOL)


class Run(t.NamedTuple):
    """One run of the probe: cluster, plan, options, and a pool for parallel requests."""

    cluster: Cluster
    plan: Plan
    options: Options
    pool: ThreadPoolExecutor
    namespace: str = ""

    def path(self, kind: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/{kind}"


def probe(cluster: Cluster, plan: Plan, options: Options) -> Probe:
    """Everything that the checks need, from the API and from pods that are removed afterwards."""
    if not plan.get("hosts"):
        raise FabricError(
            "The plan names no hosts to probe.",
            "option plan",
            "no hosts in it",
            "Run the playbook ipu.fabric.plan first, and pass its fact fabric_plan, or the content of plan.json.",
            code="invalid-input",
        )
    start = time.monotonic()
    with ThreadPoolExecutor(options.forks) as pool, termination_as_error():  # otherwise pods would stay
        outside = Run(cluster, plan, options, pool)
        pools = audit(cluster, SETTLE_SECONDS)  # before anything of ours takes or releases an address
        if options.own_namespace:
            remove_leftovers(outside)
        wait_for_resources(outside)
        facts, nodes = cluster_facts(cluster, plan, pool, options.ipu, options.own_namespace)
        with namespace_for(outside) as run:
            seen = pod_facts(run, nodes)
    facts["nodes"] = with_lost_nodes(facts["nodes"], seen["pods"])
    seconds = round(time.monotonic() - start, 1)
    head = {"probed": True, "reason": "", "seconds": seconds, "rdma_image": options.image_for(plan), "pools": pools}
    return t.cast(Probe, {**head, "any_cluster": is_derived(plan), **facts, **seen})


def with_lost_nodes(nodes: t.Mapping[str, NodeFacts], pods: Pods) -> t.Dict[str, NodeFacts]:
    """The nodes; one that was no longer Ready when its pod was to start is not Ready, though it was read before."""
    found = dict(nodes)
    for key, pod in pods.items():
        name, (said, _colon, why) = pod_data.node_of(key), pod["reason"].partition(": ")
        if said == NOT_READY and name in found:
            found[name] = {**found[name], "ready": False, "reason": why}
    return found


def pod_facts(run: Run, nodes: Nodes) -> TrafficFacts:
    """The facts that need a namespace and pods."""
    accepted = run.pool.submit(webhook, run) if run.options.ipu and run.options.own_namespace else None
    pods = start_pods(run, nodes)
    ask_pods(run, pods)
    return {
        "pods": pods,
        "pairs": ping_pairs(run, pods) if run.options.asks("ping", "full_size") else [],
        **(
            {"crossings": cross_rails(run, pods)}
            if run.options.across_rails and run.options.asks("rail_isolation")
            else {}
        ),
        "traffic": measure_pairs(run, pods) if run.options.asks(*TRAFFIC_TOOLS, "rdma_counters") else [],
        "host_traffic": measure_hosts(run, pods) if run.options.asks("host_traffic") else [],
        "webhook": accepted.result() if accepted else None,
    }


def wait_for_resources(outside: Run) -> None:
    """Wait until kubelets count RDMA resources: device plugins are ready earlier after an installation or a reboot."""
    end = time.monotonic() + outside.options.timeout * REGISTERING
    while pod_data.rdma_networks(outside.plan):
        nodes = by_name(outside.cluster.items("/api/v1/nodes"))
        if not objects.awaited_resources(outside.plan, nodes) or time.monotonic() >= end:
            return
        time.sleep(REGISTERING_SECONDS)


# Namespace


def remove_leftovers(run: Run) -> None:
    """Remove what interrupted runs left. Runs that are still active show signs of life."""
    for namespace in run.cluster.items("/api/v1/namespaces", labelSelector=f"{LABEL}={run.options.namespace}"):
        seen = query(f"metadata.annotations.{quoted(ALIVE)}", namespace) or "0"
        if "deletionTimestamp" not in namespace["metadata"] and time.time() - float(seen) > DEAD_SECONDS:
            remove(run._replace(namespace=namespace["metadata"]["name"]))


@contextlib.contextmanager
def signs_of_life(run: Run) -> t.Iterator[None]:
    """Keep other runs from treating this one's namespace as a leftover."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(BEAT_SECONDS):
            with contextlib.suppress(ApiError, TransportError, FabricError):  # the next one may get through
                run.cluster.patch(f"/api/v1/namespaces/{run.namespace}", {"metadata": {"annotations": alive_now()}})

    threading.Thread(target=renew, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def alive_now() -> t.Dict[str, str]:
    return {ALIVE: f"{time.time():.0f}"}


def remove(run: Run) -> None:
    """Delete a namespace, but its pods first: the namespace controller waits before it empties a namespace."""
    run.cluster.delete(run.path("pods"))
    run.cluster.delete(f"/api/v1/namespaces/{run.namespace}")


@contextlib.contextmanager
def namespace_for(outside: Run) -> t.Iterator[Run]:
    """A namespace with minimal rights: only pods with RDMA need `privileged`."""
    prefix = outside.options.namespace
    if not outside.options.own_namespace:
        with pods_only(outside._replace(namespace=prefix)) as run:
            yield run
        return
    labels = {LABEL: prefix, POD_SECURITY: PRIVILEGED if has_rdma(outside.plan) else "baseline"}
    body = {"metadata": {"generateName": f"{prefix}-", "labels": labels, "annotations": alive_now()}}
    run = outside._replace(namespace=create(outside, "/api/v1/namespaces", body)["metadata"]["name"])
    try:
        # Its own account: the default one appears a moment later, and a pod without an account is refused.
        create(run, run.path("serviceaccounts"), {"metadata": {"name": "probe"}})
        with signs_of_life(run):
            yield run
    finally:
        remove(run)


@contextlib.contextmanager
def pods_only(run: Run) -> t.Iterator[Run]:
    """Use an existing namespace and account, for a user who may create only pods in it."""
    remove_pods(run)  # left by a run that was killed
    try:
        yield run
    finally:
        remove_pods(run)


def remove_pods(run: Run) -> None:
    """Delete only a probe's pods, and wait until they are gone: the next run has pods of the same names."""
    end, ours = time.monotonic() + run.options.timeout, {"labelSelector": f"{LABEL}={run.options.namespace}"}
    run.cluster.request("delete", run.path("pods"), **ours)
    while run.cluster.items(run.path("pods"), **ours) and time.monotonic() < end:
        time.sleep(1)


def create(run: Run, path: str, body: Object) -> Object:
    try:
        return run.cluster.request("post", path, body=body)
    except ApiError as error:
        raise refusal(error, "create", path) from error


def webhook(run: Run) -> Answer:
    """Whether a dry run of an IPUJob passes the operator's webhook."""
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


def start_pods(run: Run, nodes: Nodes) -> Pods:
    """Create the pods and wait for them."""
    pods: Pods = {}
    chosen: t.Dict[str, pod_data.Target] = {}
    for target in [*pod_data.targets(run.plan), *pod_data.second_targets(run.plan)]:
        fault = objects.node_fault(nodes.get(target.node))
        pods[target.key] = {
            "host": target.host,
            "pod": target.pod,
            "networks": list(target.networks),
            "state": "failed" if fault else "waiting",
            "reason": fault,
        }
        if not fault:
            chosen[target.key] = target
            pods[target.key]["gpus"] = objects.gpus_for(target, run.plan, nodes[target.node], run.options)
    create_pods(run, nodes, chosen, pods)
    refused = {key: target._replace(again=True) for key, target in chosen.items() if gpus_refused(pods[key])}
    if refused:  # all else can be proved without GPUs; refused pods are removed together with the others
        for key, target in refused.items():
            pod = pods[key]
            pod["gpus_refused"], pod["gpus"] = pod["reason"], 0
            pod["state"], pod["reason"], pod["pod"] = "waiting", "", target.pod
        create_pods(run, nodes, refused, pods)
    return pods


def gpus_refused(pod: PodFacts) -> bool:
    return bool(pod.get("gpus") and pod["state"] == "failed" and objects.NOT_GIVEN.search(pod["reason"]))


def create_pods(run: Run, nodes: Nodes, chosen: t.Mapping[str, pod_data.Target], pods: Pods) -> None:
    def create_one(key: str) -> str:
        target = chosen[key]
        node, gpus = nodes[target.node], pods[key].get("gpus", 0)
        return create_pod(run, objects.pod_manifest(target, run.plan, node, run.options, gpus))

    for key, refusal_text in zip(chosen, run.pool.map(create_one, chosen)):
        if refusal_text:
            pods[key]["state"], pods[key]["reason"] = "failed", refusal_text
    wait_for_pods(run, {key: target.node for key, target in chosen.items()}, pods)


def create_pod(run: Run, body: Object) -> str:
    """Create a pod; returns why the API server refuses it, which fails only its node, not the run.

    A refusal by Pod Security says nothing of a node: FabricError.
    """
    try:
        run.cluster.request("post", run.path("pods"), body=body, fieldValidation="Strict")
    except ApiError as error:
        if REFUSED in message_of(error):
            raise FabricError(
                "Pod Security of the namespace refuses the pods of the proof.",
                f"namespace {run.namespace}",
                message_of(error),
                f"If all of its pods may be privileged: `kubectl label namespace {run.namespace}"
                f" {POD_SECURITY}={PRIVILEGED} --overwrite`. Otherwise set verify_namespace to another.",
                code="api-refused",
            ) from error
        return f"the API server refused the pod: {message_of(error)}"
    return ""


def wait_for_pods(run: Run, places: t.Mapping[str, str], pods: Pods) -> None:
    """Poll until each pod runs or can't run, or its node (in places) is not Ready any more.

    Pods that still wait at the time-out have failed.
    """
    timeout = run.options.timeout
    start = asked_events = asked_nodes = time.monotonic()
    failures: t.Dict[str, t.List[str]] = {}
    faults: t.Dict[str, str] = {}  # of nodes
    while any(pod["state"] == "waiting" for pod in pods.values()):
        time.sleep(0.2 + len(pods) / 400)  # listing many pods is expensive for the API server
        now = time.monotonic()
        if now - asked_events > EVENTS_SECONDS:
            events = run.cluster.items(run.path("events"), fieldSelector=SANDBOX_EVENTS)
            failures, asked_events = sandbox_failures(events), now
        if now - asked_nodes > NODES_SECONDS:
            nodes, asked_nodes = by_name(run.cluster.items("/api/v1/nodes")), now
            faults = {key: objects.node_fault(nodes.get(node)) for key, node in places.items()}
        seen = by_name(run.cluster.items(run.path("pods")))
        for key, facts in pods.items():
            if facts["state"] == "waiting":
                pod = seen.get(facts["pod"])
                facts["state"], facts["reason"] = objects.pod_state(pod, failures.get(facts["pod"], ()))
                facts["network_status"] = objects.network_status(pod)
                if facts["state"] == "waiting" and faults.get(key):
                    facts["state"], facts["reason"] = "failed", faults[key]
                elif facts["state"] == "waiting" and now - start > timeout:
                    facts["state"], facts["reason"] = "failed", f"not running after {timeout} s: {facts['reason']}"


# Commands in pods


def run_in(run: Run, pod: str, container: str, command: t.Sequence[str], timeout: int) -> Output:
    """Run a command of pod.sh in a pod."""
    argv = ["sh", "-c", run.options.script, "pod.sh", *command]
    return run_in_pod(run.cluster, run.path(f"pods/{pod}"), container, argv, timeout)


def ask_pods(run: Run, pods: Pods) -> None:
    """One exec per container, all in parallel; adds `root`, `user` and `rdma` to each pod's facts."""
    rdma = pod_data.rdma_networks(run.plan)
    jobs: t.List[t.Tuple[PodFacts, str, t.List[str]]] = []
    for node in pod_data.running(pods):
        pod = pods[node]
        controllers = pod_data.controllers_of(run.plan, pod["host"]) if run.options.ipu else []
        jobs.append((pod, "root", ["network", *(str(part) for controller in controllers for part in controller)]))
        jobs.append((pod, "user", ["limits"]))
        if rdma & set(pod["networks"]) or host_nic(run.plan, pod["host"]):
            jobs.append((pod, "rdma", ["rdma", *RDMA_TOOLS]))
    asked = [run.pool.submit(ask_gateways, run, pods[node]) for node in pod_data.running(pods)]
    seconds = 2 * run.options.command_timeout
    outputs = run.pool.map(lambda job: run_in(run, job[0]["pod"], job[1], job[2], seconds), jobs)
    for (pod, container, _command), output in zip(jobs, outputs):
        if container == "root":
            pod["root"] = parsers.read_network(*output)
        elif container == "user":
            pod["user"] = parsers.read_user(*output)
        else:
            pod["rdma"] = parsers.read_rdma(*output)
    for answer in asked:
        answer.result()


def ask_gateways(run: Run, pod: PodFacts) -> None:
    """Add `gateways` to the pod's facts, if one of its networks has a gateway."""
    wanted = pod_data.gateways_of(run.plan, pod)
    if wanted:
        command = ["gateways", *(part for pair in wanted for part in pair)]
        output = run_in(run, pod["pod"], "root", command, run.options.command_timeout + GATEWAY_SECONDS * len(wanted))
        pod["gateways"] = parsers.read_gateways(output.text, wanted)
        pod["gateways_error"] = output.error


def ping_pairs(run: Run, pods: Pods) -> t.List[PingPair]:
    """Ping between the chosen pairs on every network, all in parallel."""
    jobs = []
    for network in run.plan["networks"]:
        ends = pod_data.ends(pods, network["name"])
        for a, b in pairs.choose_pairs(sorted(ends), run.options.max_pairs):
            mtu = min(pod_data.mtu_of(run.plan, network, pods[node]["host"]) for node in (a, b))
            mtu = mtu or min(pod_data.link_of(pods[node], network["name"])["mtu"] or 0 for node in (a, b))
            jobs.append((network["name"], mtu, ends[a], ends[b]))

    def ping(job: t.Tuple[str, int, End, End]) -> PingPair:
        network, mtu, a, b = job
        payload = str(parsers.ping_payload(b.address, mtu))
        output = run_in(run, a.pod, "root", ["reach", b.address, a.interface, payload], run.options.command_timeout)
        pair: PingPair = {
            "network": network, "from": a.node, "to": b.node, "address": b.address, "mtu": mtu, "error": output.error
        }  # fmt: skip
        pair.update(t.cast(PingPair, parsers.read_pings(output.text)))
        return pair

    return list(run.pool.map(ping, jobs))


def cross_rails(run: Run, pods: Pods) -> t.List[Crossing]:
    """Ping from network to network, all in parallel."""
    ends = {network["name"]: pod_data.ends(pods, network["name"]) for network in run.plan["networks"]}

    def cross(job: t.Tuple[pairs.Pair, pairs.Pair]) -> Crossing:
        (network, a), (other, b) = job
        client, server = ends[network][a], ends[other][b]
        command = ["cross", server.link_local or "-", server.address, client.interface, client.address]
        output = run_in(run, client.pod, "root", command, run.options.command_timeout)
        near, far, mac = parsers.read_crossing(output.text, server.link_local)
        return {
            "network": network, "from": a, "to": b, "other": other, "asked": server.link_local,
            "near": near, "far": far, "mac": mac, "error": output.error,
        }  # fmt: skip

    return list(run.pool.map(cross, pairs.crossings({name: sorted(each) for name, each in ends.items()})))


class PairTest(t.NamedTuple):
    """The RDMA tests between two pods on one network: the client asks, the server answers."""

    network: str
    client: End
    server: End
    port: int
    client_device: str  # RDMA device of the network in the pod; empty if unknown
    server_device: str
    client_gpu: t.Sequence[str] = ()  # options for its GPU's memory; empty if it has none
    server_gpu: t.Sequence[str] = ()


def pair_tests(run: Run, pods: Pods) -> t.Iterator[t.List[PairTest]]:
    """The tests of all RDMA networks, in the steps of `by_distance`."""
    networks = {}
    for network in sorted(pod_data.rdma_networks(run.plan)):
        ends, devices = pod_data.ends(pods, network), pod_data.devices_on(pods, network)
        names = {node: devices[node].name if node in devices else "" for node in ends}
        way = run.options.gpu_rdma
        gpus = {node: pod_data.gpu_options(run.plan, pods[node], network, way) for node in ends}
        networks[network] = (ends, names, gpus, pairs.by_distance(sorted(ends)))
    # perftest listens on all addresses of the pod, so parallel tests need different ports.
    ports = itertools.cycle(range(FIRST_PORT, FIRST_PORT + PORTS))
    while True:
        step: t.List[PairTest] = []
        for network, (ends, names, gpus, distances) in networks.items():
            for a, b in next(distances, []):
                step.append(PairTest(network, ends[a], ends[b], next(ports), names[a], names[b], gpus[a], gpus[b]))
        if not step:
            return
        yield step


def measure_pairs(run: Run, pods: Pods) -> t.List[Traffic]:
    """Run RDMA tests on the pairs of every RDMA network, in parallel if they share no NIC.

    The steps that tell a bad node from a bad path always run, other pairs until the time limit.
    """

    def nics(test: PairTest) -> t.Iterator[t.Tuple[str, str]]:
        for node in (test.client.node, test.server.node):
            yield from ((node, nic) for nic in pod_data.nics_of(run.plan, test.network, pods[node]["host"]))

    results: t.List[Traffic] = []
    start, longest = time.monotonic(), 0.0
    for step, jobs in enumerate(pair_tests(run, pods)):
        for together in pairs.rounds(jobs, nics):
            begun = time.monotonic()
            if step >= pairs.NEEDED and begun + longest > start + run.options.rdma_seconds:
                return results
            for answers in run.pool.map(lambda test: measure_pair(run, pods, test), together):
                results += answers
            longest = max(longest, time.monotonic() - begun)
    return results


def tools_of(pod: PodFacts) -> t.Set[str]:
    """The tools in the pod's image; if listing them failed, all are worth a try."""
    if "rdma" not in pod:
        return set()
    return set(RDMA_TOOLS if pod["rdma"]["error"] else pod["rdma"]["tools"])


def measure_pair(run: Run, pods: Pods, job: PairTest) -> t.List[Traffic]:
    """Run the tests of a pair one by one; if rping finds no path, the others would only time out."""
    tools = [tools_of(pods[end.node]) for end in (job.client, job.server)]
    results: t.List[Traffic] = []
    blocked = False
    for check, tool in TRAFFIC_TOOLS.items():
        if check == "gpu_bandwidth" and not (job.client_gpu and job.server_gpu):
            continue
        test: Traffic = {
            "network": job.network,
            "from": job.client.node,
            "to": job.server.node,
            "check": check,
            "tool": tool,
            "missing": not all(tool in have for have in tools),
            "blocked": blocked,
        }
        if not test["missing"] and not blocked:
            measure(run, test, job)
        blocked = blocked or (check == "rping" and bool(test.get("rc")))
        results.append(test)
    return results


def measure(run: Run, test: Traffic, job: PairTest) -> None:
    """Run both ends until the client succeeds, and add the figure.

    perftest's client connects twice. If it fails in between, or crashes as in some releases, its server keeps waiting
    for that client: so both are restarted, within the time limit of one test.
    """
    seconds = run.options.command_timeout
    deadline = time.monotonic() + seconds
    attempts = 0
    while True:
        attempts += 1
        asked, served = run_both(run, test["check"], job)
        if asked["client"].rc == 0 or attempts == ATTEMPTS or time.monotonic() > deadline:
            break
    answer, other = asked["client"], served["server"]
    figure = parsers.read_traffic(test["check"], answer.text)
    test["rc"], test["value"], test["unit"] = answer.rc, figure["value"], figure["unit"]
    ends = {"client": answer, "server": other}
    test["seen"] = "; ".join(f"{name}: {_last_words(end, seconds)}" for name, end in ends.items())
    if attempts > 1 and answer.rc != 0:
        test["seen"] += f"; tried {attempts} times"
    test["sent"] = parsers.read_sent(test["check"], answer.text)
    test["moved"] = [parsers.read_moved(asked), parsers.read_moved(served)]


Answers = t.Dict[str, parsers.Answer]


def run_both(run: Run, check: str, job: PairTest) -> t.Tuple[Answers, Answers]:
    """Run both ends and return their output. The server starts first, and is stopped if the client fails."""
    seconds = run.options.command_timeout
    limit = seconds + 10
    port, pod = str(job.port), job.server.pod
    about = [check, job.server.address, job.client.address, port, str(seconds)]
    gpu = check == "gpu_bandwidth"
    serve = ["serve", *about, job.server_device, *(job.server_gpu if gpu else ())]
    ask = ["ask", *about, job.client_device, *(job.client_gpu if gpu else ())]
    with ThreadPoolExecutor(1) as one:
        waiting = one.submit(run_in, run, pod, "rdma", serve, limit)
        run_in(run, pod, "rdma", ["listening", port, str(max(2, seconds // 15))], seconds)
        client = run_in(run, job.client.pod, "rdma", ask, limit)
        asked = parsers.sections(client.text)
        asked.setdefault("client", parsers.Answer(1, client.error))
        if asked["client"].rc != 0:
            run_in(run, pod, "rdma", ["stop", port], seconds)
        server = waiting.result()
    served = parsers.sections(server.text)
    served.setdefault("server", parsers.Answer(1, server.error))
    return asked, served


def _last_words(end: parsers.Answer, seconds: int) -> str:
    words = {TIMED_OUT: f"timed out after {seconds} s", STOPPED: "waited for the client"}
    return words.get(end.rc) or telling_line(end.text)


def measure_hosts(run: Run, pods: Pods) -> t.List[HostTraffic]:
    """Run gc-hosttraffictest on the IPU nodes one by one: a partition serves one user at a time."""
    results: t.List[HostTraffic] = []
    if not (run.options.ipu and run.options.ipu_partition):
        return results
    for node in pod_data.running(pods):
        pod = pods[node]
        controllers = pod_data.controllers_of(run.plan, pod["host"])
        ipu = "ipu" in run.plan["hosts"][pod["host"]]["roles"] and node == pod_data.node_of(node)
        if not ipu or not controllers or "rdma" not in pod:
            continue
        if HOST_TRAFFIC_TOOL not in tools_of(pod):
            results.append({"node": node, "missing": True})
            continue
        host, port = controllers[0]
        command = ["host_traffic", str(run.options.ipu_device), host, str(port), run.options.ipu_partition]
        output = run_in(run, pod["pod"], "rdma", command, HOST_TRAFFIC_SECONDS)
        answer = parsers.sections(output.text).get("host_traffic", parsers.Answer(1, output.error))
        results.append(
            {
                "node": node,
                "missing": False,
                "rc": answer.rc,
                "seen": telling_line(answer.text),
                **parsers.read_host_traffic(answer.text),
            }
        )
    return results
