"""The probe against an API that lives in this process: what it makes, what it removes, and when it stops."""

from __future__ import annotations

import base64
import gzip
import json
import os
import signal
import threading
import time
import types
import typing as t
from concurrent.futures import ThreadPoolExecutor

import pytest
import websocket
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube import pod_exec
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Expect
from ansible_collections.ipu.fabric.plugins.module_utils._model.probe import Probe, Traffic
from ansible_collections.ipu.fabric.plugins.module_utils._verify import (
    cluster_facts,
    parsers,
    pod_manifests,
    probe,
    report,
)
from ansible_collections.ipu.fabric.plugins.module_utils._verify import pods as pod_data
from ansible_collections.ipu.fabric.plugins.module_utils._verify.checks import PER_POD, check_fabric
from ansible_collections.ipu.fabric.plugins.module_utils._verify.gpu_checks import check_gpu_bandwidth
from ansible_collections.ipu.fabric.plugins.module_utils._verify.traffic_checks import check_traffic
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import FIXTURES

Facts = t.Dict[str, t.Any]
LINK = {"ifname": "net1", "mtu": 1500, "linkinfo": {"info_kind": "macvlan"}}
PING = "2 packets transmitted, 2 received, 0% packet loss\nrtt min/avg/max/mdev = 0.05/0.06/0.07/0.01 ms"


VIPU_CONTROLLERS = "/api/v1/namespaces/elsewhere/configmaps/ipu-operator-vipu-controllers"


class FakeApi(Cluster):
    """Namespaces, pods that run at the second look, and whatever objects a test puts in."""

    def __init__(self, nodes: t.Sequence[str], **objects: t.Any) -> None:
        super().__init__(client=self)
        self.nodes = list(nodes)
        self.objects = objects
        self.namespaces: t.Dict[str, Facts] = {}
        self.pods: t.Dict[str, Facts] = {}
        self.deleted: t.List[str] = []
        self.labels: Facts = {}  # of the last namespace
        self.looks = 0
        self.pod_status: Facts = {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}
        self.lock = threading.Lock()

    def request(self, verb: str, path: str, body: t.Any = None, content_type: str = "", **query: t.Any) -> Facts:
        with self.lock:
            return t.cast(Facts, getattr(self, f"do_{verb}")(path, body, query))

    def do_post(self, path: str, body: Facts, query: Facts) -> Facts:
        if path == "/api/v1/namespaces":
            name = body["metadata"]["generateName"] + "x1"
            self.namespaces[name] = {"metadata": {**body["metadata"], "name": name}}
            self.labels = body["metadata"]["labels"]
            return self.namespaces[name]
        if path.endswith("/pods"):
            self.pods[body["metadata"]["name"]] = body
        return body or {}

    def do_delete(self, path: str, body: Facts, query: Facts) -> Facts:
        self.deleted.append(path)
        if path.endswith("/pods"):
            self.pods.clear()
        else:
            self.namespaces.pop(path.rsplit("/", 1)[-1], None)
        return {}

    def do_get(self, path: str, body: Facts, query: Facts) -> Facts:
        if path == "/api/v1/namespaces":
            return {"items": list(self.namespaces.values())}
        if path == "/api/v1/nodes":
            condition = {"type": "Ready", "status": "True"}
            return {"items": [{"metadata": {"name": n}, "status": {"conditions": [condition]}} for n in self.nodes]}
        if path.endswith("/pods") and path != "/api/v1/pods":
            self.looks += 1
            status = self.pod_status if self.looks > 1 else {"phase": "Pending"}
            return {"items": [{**pod, "status": status} for pod in self.pods.values()]}
        return t.cast(Facts, self.objects.get(path, {}))


def plan(count: int = 2) -> Facts:
    subnet = {"cidr": "10.5.0.0/16", "range_start": "10.5.1.0", "range_end": "10.5.2.255", "exclude": []}
    subnet.update(gateway="", needed=0)
    network = {"name": "rdma-net", "namespace": "default", "master": "eth1", "mode": "bridge", "mtu": 1500, "ipam": {}}
    link = {"netdev": "eth1", "rdma_netdevs": ["eth1"], "device": "mlx5_0", "mtu": 1500, "addresses": []}
    host = {"roles": ["worker"], "links": {"rdma-net": link}}
    return {
        "releases": {},
        "cluster": {},
        "hosts": {f"h{i}": {**host, "node": f"n{i}", "address": f"10.88.0.{i}"} for i in range(count)},
        "networks": [{**network, "rdma": False, "subnet": subnet, "subnets": [subnet], "pools": []}],
        "vipu": {"controllers": [], "node_labels": {}},
    }


def options(**changes: t.Any) -> pod_data.Options:
    return pod_data.Options("", "verify", "tools", "", 60, 30, 100, 300, 8, False, "", 0)._replace(**changes)


def answer(run: probe.Run, pod: str, container: str, command: t.Sequence[str], timeout: int) -> probe.Output:
    """What a healthy pod says."""
    number = int(pod.rsplit("n", 1)[-1])
    if command[0] == "gateways":
        return probe.Output(f"@@ gateway {command[1]} {command[2]}\n{PING}\n@@ rc 0\n", "")
    if command[0] == "reach":
        return probe.Output(f"@@ full\n{PING}\n@@ rc 0\n@@ small\n{PING}\n@@ rc 0\n", "")
    number += 100 * pod.startswith("second")
    uid = {"root": 0, "user": 1000}[container]
    limits = f"@@ uid\n{uid}\n@@ rc 0\n@@ limits\nMax locked memory  unlimited  unlimited  bytes\n@@ rc 0\n"
    address = {"local": f"10.5.{1 + number // 256}.{number % 256}", "prefixlen": 24, "scope": "global"}
    links = json.dumps([{**LINK, "addr_info": [address]}])
    routes = '@@ routes\n[{"dev":"eth0"}]\n\n[]\n@@ rc 0\n@@ tables\n[{"dst":"10.5.0.0/16","dev":"net1"}]\n@@ rc 0\n'
    return probe.Output(f"{limits}@@ links\n{links}\n@@ rc 0\n{routes}", "")


@pytest.fixture(autouse=True)
def _no_exec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "run_in", answer)


def rdma_plan() -> Facts:
    """With a resource for the NIC of each host."""
    planned = plan()
    planned["networks"][0].update(rdma=True, resource="nics")
    return planned


@pytest.mark.parametrize(
    ("checks", "pinged", "measured"),
    [([], True, True), (["mtu"], False, False), (["ping"], True, False), (["mtu", "read_latency"], False, True)],
)
def test_what_takes_long_is_left_out_where_no_check_needs_it(
    monkeypatch: pytest.MonkeyPatch, checks: t.List[str], pinged: bool, measured: bool
) -> None:
    monkeypatch.setattr(probe, "measure_pairs", lambda run, pods: ["measured"])
    facts = probe.probe(FakeApi(["n0", "n1"]), plan(2), options(checks=checks))
    assert (bool(facts["pairs"]), bool(facts["traffic"])) == (pinged, measured)


@pytest.mark.parametrize(
    ("allocatable", "awaited"),
    [
        ({"n0": "63", "n1": "63"}, []),
        ({"n0": "63", "n1": "0"}, ["n1"]),
        ({"n0": "63", "n1": None}, ["n1"]),
        ({"n0": "0", "n1": "lost"}, ["n0"]),  # no pod starts on a node that is not Ready
        ({"n0": "0"}, ["n0"]),
    ],
)
def test_which_nodes_have_not_registered_their_resource(allocatable: t.Dict[str, t.Any], awaited: t.List[str]) -> None:
    nodes = {
        name: {
            "status": {
                "conditions": [{"type": "Ready", "status": "False" if count == "lost" else "True"}],
                "allocatable": {"rdma/nics": count} if count not in (None, "lost") else {},
            }
        }
        for name, count in allocatable.items()
    }
    assert pod_manifests.awaited_resources(rdma_plan(), nodes) == [(name, "rdma/nics") for name in awaited]
    assert pod_manifests.awaited_resources(plan(), nodes) == []


@pytest.mark.parametrize(("registered_at", "timeout", "looks"), [(1, 60, 1), (3, 60, 3), (9, 0, 1)])
def test_device_plugins_have_time_to_register(
    monkeypatch: pytest.MonkeyPatch, registered_at: int, timeout: int, looks: int
) -> None:
    monkeypatch.setattr(probe, "REGISTERING_SECONDS", 0)
    seen: t.List[str] = []

    class Api(FakeApi):
        def do_get(self, path: str, body: Facts, query: Facts) -> Facts:
            answer = super().do_get(path, body, query)
            seen.append(path)
            for node in answer["items"]:
                node["status"]["allocatable"] = {"rdma/nics": "63"} if len(seen) >= registered_at else {}
            return answer

    probe.wait_for_resources(probe.Run(Api(["n0", "n1"]), rdma_plan(), options(timeout=timeout), ThreadPoolExecutor(1)))
    assert seen == ["/api/v1/nodes"] * looks


def test_a_healthy_run_is_proved_and_leaves_nothing() -> None:
    api = FakeApi(["n0", "n1"])
    facts = probe.probe(api, plan(), options())
    assert (api.namespaces, api.pods) == ({}, {})
    assert api.deleted == ["/api/v1/namespaces/verify-x1/pods", "/api/v1/namespaces/verify-x1"]
    checks = check_fabric(plan(), facts, Expect(ipu=False))
    in_pods = [check for check in checks if check.check in (*PER_POD, "pod", "ping", "full_size", "memlock_user")]
    assert {check.status for check in in_pods} == {"passed"}
    json.dumps(facts)  # a module's result


def test_each_pod_asks_for_its_gateways() -> None:
    planned = plan()
    planned["networks"][0]["subnet"]["gateway"] = "10.5.0.1"
    facts = probe.probe(FakeApi(["n0", "n1"]), planned, options())
    found = [check for check in check_fabric(planned, facts, Expect(ipu=False)) if check.check == "gateway"]
    assert {(check.node, check.status) for check in found} == {("n0", "passed"), ("n1", "passed")}


@pytest.mark.parametrize(("rdma", "level"), [(False, "baseline"), (True, "privileged")])
def test_the_namespace_allows_no_more_than_the_pods_need(
    rdma: bool, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "ask_pods", lambda run, pods: None)
    monkeypatch.setattr(probe, "REGISTERING", 0)  # no node ever has the resource
    planned, api = plan(), FakeApi(["n0", "n1"])
    planned["networks"][0].update(rdma=rdma, resource="rdma/shared")
    probe.probe(api, planned, options())
    assert api.labels == {pod_data.LABEL: "verify", "pod-security.kubernetes.io/enforce": level}


@pytest.mark.parametrize(
    ("mode", "pods", "status"),
    [
        ("bridge", ["n0", "n0 (second pod)"], "passed"),
        ("private", ["n0"], "unproven"),
        ("passthru", ["n0"], "unproven"),
    ],
)
def test_two_pods_stand_for_a_pair_where_there_is_one_node(mode: str, pods: t.List[str], status: str) -> None:
    planned, api = plan(1), FakeApi(["n0"])
    planned["networks"][0]["mode"] = mode
    facts = probe.probe(api, planned, options())
    assert list(facts["pods"]) == pods
    assert api.pods == {}
    checks = [check for check in check_fabric(planned, facts, Expect(ipu=False)) if check.check in ("ping", "unique")]
    assert {(check.check, check.status) for check in checks} == {("ping", status), ("unique", "passed")}
    said = "rdma-net: two pods on n0 stand in for two nodes. They prove the NIC and the pods, not a path."
    assert report.notes(checks) == ([said] if status == "passed" else [])


def test_pod_security_that_refuses_pods_is_no_fault_of_a_node() -> None:
    class Api(FakeApi):
        def do_post(self, path: str, body: Facts, query: Facts) -> Facts:
            if path.endswith("/pods"):
                error = probe.ApiError(status=403)
                error.body = json.dumps({"message": 'pods "probe-n0" is forbidden: violates PodSecurity "baseline"'})
                raise error
            return super().do_post(path, body, query)

    with pytest.raises(FabricError, match=r"kubectl label namespace jobs .*enforce=privileged --overwrite"):
        probe.probe(Api(["n0", "n1"]), plan(), options(namespace="jobs", own_namespace=False))


def test_a_node_that_was_lost_meanwhile_is_not_ready() -> None:
    nodes: t.Any = {name: {"ready": True, "reason": ""} for name in ("n0", "n1", "n2")}
    reasons = {"n0": "", "n1": "the node is not Ready: Kubelet stopped: x", "n2 (second pod)": "not running after 9 s"}
    pods: t.Any = {key: {"reason": reason} for key, reason in reasons.items()}
    lost = {"ready": False, "reason": "Kubelet stopped: x"}
    assert probe.with_lost_nodes(nodes, pods) == {**nodes, "n1": lost}


def test_a_second_pod_is_on_the_networks_that_have_no_second_node() -> None:
    planned = plan(2)
    planned["networks"].append({**planned["networks"][0], "name": "lone"})
    link = planned["hosts"]["h0"]["links"]["rdma-net"]
    planned["hosts"]["h1"]["links"] = {"rdma-net": link, "lone": link}
    (second,) = pod_data.second_targets(planned)
    assert (second.key, second.pod, second.networks) == ("n1 (second pod)", "second-n1", ("lone",))
    assert pod_data.node_of(second.key) == pod_data.node_of("n1") == "n1"


def test_two_hundred_nodes_in_one_call() -> None:
    names = [f"n{i}" for i in range(200)]
    facts = probe.probe(FakeApi(names), plan(200), options(forks=32))
    assert len(facts["pods"]) == 200
    assert len(facts["pairs"]) == 300  # a ring and its diameters
    checks = check_fabric(plan(200), facts, Expect(ipu=False))
    assert not [check for check in checks if check.check in (*PER_POD, "ping", "unique") and check.status != "passed"]


def test_an_interrupted_run_is_cleaned_up_by_the_next_and_others_are_left_alone() -> None:
    api = FakeApi(["n0", "n1"])
    api.namespaces = {
        "verify-old": {"metadata": {"name": "verify-old", "labels": {pod_data.LABEL: "verify"}}},
        "verify-going": {"metadata": {"name": "verify-going", "deletionTimestamp": "now"}},
    }
    probe.probe(api, plan(), options())
    assert [path for path in api.deleted if "old" in path] == [
        "/api/v1/namespaces/verify-old/pods",
        "/api/v1/namespaces/verify-old",
    ]
    assert not [path for path in api.deleted if "going" in path]


def test_two_runs_at_once_leave_each_other_alone() -> None:
    """Of the other run there is a namespace with its label, and a sign of life that is renewed."""
    api = FakeApi(["n0", "n1"])

    def namespace(name: str, seconds: float) -> Facts:
        sign = {probe.ALIVE: f"{time.time() - seconds:.0f}"}
        return {"metadata": {"name": name, "labels": {pod_data.LABEL: "verify"}, "annotations": sign}}

    others = (("other", 45), ("slow", probe.DEAD_SECONDS - 30), ("ahead", -120))
    api.namespaces = {f"verify-{name}": namespace(f"verify-{name}", age) for name, age in others}
    api.namespaces["verify-dead"] = namespace("verify-dead", probe.DEAD_SECONDS + 30)
    probe.probe(api, plan(), options())
    assert sorted(api.namespaces) == ["verify-ahead", "verify-other", "verify-slow"]
    assert {path.split("/")[4] for path in api.deleted} == {"verify-dead", "verify-x1"}


def test_a_run_says_that_it_is_alive_from_its_first_moment_to_its_last(monkeypatch: pytest.MonkeyPatch) -> None:
    api, beats = FakeApi(["n0", "n1"]), []

    def patch(path: str, body: Facts, query: Facts) -> Facts:
        beats.append((path, body["metadata"]["annotations"][probe.ALIVE]))
        if len(beats) == 2:
            raise probe.ApiError(status=409, reason="the API server is busy")
        return {}

    def ask(run: probe.Run, pods: pod_data.Pods) -> None:
        assert api.namespaces["verify-x1"]["metadata"]["annotations"][probe.ALIVE].isdigit()
        deadline = time.monotonic() + 10
        while len(beats) < 4:
            assert time.monotonic() < deadline, "no sign of life"
            time.sleep(0.01)

    monkeypatch.setattr(api, "do_patch", patch, raising=False)
    monkeypatch.setattr(probe, "BEAT_SECONDS", 0.02)
    monkeypatch.setattr(probe, "ask_pods", ask)
    probe.probe(api, plan(), options())
    assert {path for path, _time in beats} == {"/api/v1/namespaces/verify-x1"}
    count = len(beats)
    time.sleep(0.2)
    assert len(beats) <= count + 1


def test_in_a_namespace_of_others_only_pods_come_and_go() -> None:
    """What a scheduled proof may do: no namespaces, no Secrets, and nothing of the IPU operator, which has one."""
    writes: t.List[t.Tuple[str, str]] = []

    class Api(FakeApi):
        def request(self, verb: str, path: str, body: t.Any = None, content_type: str = "", **query: t.Any) -> Facts:
            assert not path.startswith("/api/v1/secrets")
            assert "ipujobs" not in path
            if verb != "get":
                writes.append((verb, path))
            return super().request(verb, path, body, content_type, **query)

    api = Api(["n0", "n1"])
    api.pods["probe-n9"] = {"metadata": {"name": "probe-n9"}}  # of a run that was killed
    facts = probe.probe(api, plan(2), options(own_namespace=False, ipu=True))
    assert {verb for verb, path in writes if path == "/api/v1/namespaces/verify/pods"} == {"post", "delete"}
    assert {path for _verb, path in writes} == {"/api/v1/namespaces/verify/pods"}
    assert not api.pods
    assert not api.namespaces
    assert sorted(facts["pods"]) == ["n0", "n1"]
    checks = check_fabric(plan(2), facts, Expect())
    skipped = {check.check for check in checks if check.status == "skipped"}
    assert {"ipu_operator", "webhook", "vipu_proxy", "ipu_certificate"} <= skipped


def test_a_kill_removes_the_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    api = FakeApi(["n0", "n1"])
    before = signal.getsignal(signal.SIGTERM)
    api.pod_status = {"phase": "Pending"}
    threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGTERM)).start()
    with pytest.raises(KeyboardInterrupt):
        probe.probe(api, plan(), options())
    assert (api.namespaces, api.pods) == ({}, {})
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_error_inside_removes_the_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    api = FakeApi(["n0", "n1"])

    def fail(*args: t.Any) -> t.Any:
        raise RuntimeError("inside")

    monkeypatch.setattr(probe, "ask_pods", fail)
    with pytest.raises(RuntimeError):
        probe.probe(api, plan(), options())
    assert (api.namespaces, api.pods) == ({}, {})


def test_an_image_out_of_reach_stops_early() -> None:
    api = FakeApi(["n0", "n1"])
    why = {"reason": "ImagePullBackOff", "message": "not found"}
    api.pod_status = {"phase": "Pending", "containerStatuses": [{"image": "tools", "state": {"waiting": why}}]}
    facts = probe.probe(api, plan(), options(timeout=60))
    assert api.looks < 20  # of about 300 that there is time for
    assert {pod["reason"] for pod in facts["pods"].values()} == {"ImagePullBackOff, tools: not found"}


def test_a_pod_that_never_runs_says_what_it_waited_for() -> None:
    api = FakeApi(["n0", "n1"])
    state = {"waiting": {"reason": "ContainerCreating"}}
    api.pod_status = {"phase": "Pending", "containerStatuses": [{"image": "tools", "state": state}]}
    facts = probe.probe(api, plan(), options(timeout=1))
    assert {pod["reason"] for pod in facts["pods"].values()} == {"not running after 1 s: ContainerCreating"}


def test_a_node_that_fails_while_its_pod_starts_stops_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when its container runtime was stopped just before the proof."""
    monkeypatch.setattr(probe, "NODES_SECONDS", 0)
    monkeypatch.setattr(
        probe.objects, "node_fault", lambda node: "" if api.looks < 3 else "the node is not Ready: gone"
    )
    api = FakeApi(["n0", "n1"])
    api.pod_status = {"phase": "Pending"}
    facts = probe.probe(api, plan(), options(timeout=60))
    assert api.looks < 20  # of about 300 that there is time for
    assert {pod["reason"] for pod in facts["pods"].values()} == {"the node is not Ready: gone"}


def test_a_network_that_the_kubelet_cannot_set_up_stops_early(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        {"involvedObject": {"name": "probe-n0"}, "message": "pool is full", "count": 3},
        {"involvedObject": {"name": "probe-n1"}, "message": "Link not found", "count": 1, "series": {"count": 4}},
    ]
    api = FakeApi(["n0", "n1"], **{"/api/v1/namespaces/verify-x1/events": {"items": events}})
    api.pod_status = {"phase": "Pending"}
    monkeypatch.setattr(probe, "EVENTS_SECONDS", 0)
    facts = probe.probe(api, plan(), options(timeout=30))
    assert {pod["reason"] for pod in facts["pods"].values()} == {
        "the pod's network could not be set up: pool is full",
        "the pod's network could not be set up: Link not found",
    }


def test_a_node_that_has_not_joined_gets_no_pod() -> None:
    api = FakeApi(["n0"])
    facts = probe.probe(api, plan(), options())
    assert facts["pods"]["n1"]["reason"] == "the cluster has no node of this name"
    assert facts["pods"]["n0"]["state"] == "running"
    assert facts["pairs"] == []


def test_rdma_is_measured_in_the_container_that_holds_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: t.List[t.Tuple[str, str]] = []

    def measured(run: probe.Run, pod: str, container: str, command: t.Sequence[str], timeout: int) -> probe.Output:
        if container != "rdma":
            return answer(run, pod, container, command, timeout)
        if command[0] == "rdma":
            return probe.Output("@@ tools\n/usr/bin/ib_write_bw\n/usr/bin/rping\n@@ rc 0\n", "")
        asked.append((pod, command[0]))
        text = (FIXTURES / "probe" / ("rping.txt" if command[1] == "rping" else "ib_write_bw.txt")).read_text(
            encoding="utf-8"
        )
        name = "client" if command[0] == "ask" else "server"
        return probe.Output(f"@@ {name}\n{text}\n@@ rc 0\n", "")

    monkeypatch.setattr(probe, "run_in", measured)
    monkeypatch.setattr(probe, "REGISTERING", 0)  # no node ever has the resource
    planned = plan()
    planned["networks"][0].update(rdma=True, resource="rdma/shared")
    facts = probe.probe(FakeApi(["n0", "n1"]), planned, options(rdma_image="perftest"))
    found = {test["check"]: (test["missing"], test.get("value")) for test in facts["traffic"]}
    assert found == {"rping": (False, 3.0), "write_bandwidth": (False, 97.79), "read_latency": (True, None)}
    assert {pod for pod, what in asked if what == "serve"} == {"probe-n0", "probe-n1"}
    assert facts["rdma_image"] == "perftest"


ADMITTED = {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}
IN_USE = "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: 8, used: 3, capacity: 8"


class GpuNodes(FakeApi):
    """Each offers eight GPUs and a NIC; a job holds some on n0, and a pod that asks for all is refused there."""

    def do_get(self, path: str, body: Facts, query: Facts) -> Facts:
        found = super().do_get(path, body, query)
        if path == "/api/v1/nodes":
            for each in found["items"]:
                each["metadata"]["labels"] = {"nvidia.com/gpu.present": "true"}
                each["status"]["allocatable"] = {"rdma/nics": "63", "nvidia.com/gpu": "8"}
        if path.endswith("/pods") and path != "/api/v1/pods":
            for each in found["items"]:
                held = each["spec"]["containers"][-1]["resources"]["limits"]
                refused = each["spec"]["nodeName"] == "n0" and "nvidia.com/gpu" in held
                status = {"phase": "Failed", "reason": "OutOfnvidia.com/gpu", "message": IN_USE}
                each["status"] = status if refused else ADMITTED
        return found


def test_gpus_that_are_in_use_cost_no_other_check(monkeypatch: pytest.MonkeyPatch) -> None:
    told: t.Set[t.Tuple[str, ...]] = set()

    def measured(run: probe.Run, pod: str, container: str, command: t.Sequence[str], timeout: int) -> probe.Output:
        if container != "rdma":
            return answer(run, pod, container, command, timeout)
        if command[0] == "rdma":
            return probe.Output("@@ tools\n/usr/bin/ib_write_bw\n/usr/bin/rping\n@@ rc 0\n", "")
        if command[1] == "gpu_bandwidth":
            told.add((command[0], pod, *command[7:]))
        text = (FIXTURES / "probe" / ("rping.txt" if command[1] == "rping" else "ib_write_bw.txt")).read_text("utf-8")
        return probe.Output(f"@@ {'client' if command[0] == 'ask' else 'server'}\n{text}\n@@ rc 0\n", "")

    monkeypatch.setattr(probe, "run_in", measured)
    api, planned = GpuNodes(["n0", "n1", "n2"]), rdma_plan()
    planned["hosts"]["h2"] = {**planned["hosts"]["h1"], "node": "n2", "address": "10.88.0.2"}
    for number, host in enumerate(planned["hosts"].values()):
        host["gpus"] = [{"pci": f"0000:8{number}:00.0", "model": "", "networks": ["rdma-net"]}]
        host["links"]["rdma-net"]["driver"] = "mlx5_core"
    facts = probe.probe(api, planned, options(rdma_image="perftest", gpu=True))
    assert [(pod["state"], pod["gpus"]) for pod in facts["pods"].values()] == [("running", n) for n in (0, 8, 8)]
    assert [pod["pod"] for pod in facts["pods"].values()] == ["again-n0", "probe-n1", "probe-n2"]
    assert api.deleted == ["/api/v1/namespaces/verify-x1/pods", "/api/v1/namespaces/verify-x1"]  # needs no other right
    assert not api.pods
    figures = {
        (test["from"], test["to"]): test["value"] for test in facts["traffic"] if test["check"] == "gpu_bandwidth"
    }
    assert figures == {("n1", "n2"): 97.79, ("n2", "n1"): 97.79}
    assert told == {
        (end, f"probe-n{n}", f"--use_cuda_bus_id=0000:8{n}:00.0", "--use_cuda_dmabuf")
        for end in ("serve", "ask")
        for n in (1, 2)
    }
    checks = check_gpu_bandwidth(planned, facts, Expect(ipu=False, gpu=True, gpu_bandwidth="90"))
    found = {check.node or check.pair: (check.status, check.seen) for check in checks}
    assert found == {
        "n0": ("unproven", f"the probe pod did not get the node's GPUs: OutOfnvidia.com/gpu: {IN_USE}"),
        ("n1", "n2"): ("passed", "97.79 Gb/s"),
        ("n2", "n1"): ("passed", "97.79 Gb/s"),
    }


def rails(shared: bool, nodes: int = 2) -> t.Tuple[Facts, Facts]:
    """A plan of hosts with three networks, on a NIC each or as VLANs on one; and pods with an address on all."""
    names = ["rail-0", "rail-1", "rail-2"]
    links = {name: {"netdev": name, "rdma_netdevs": ["nic" if shared else name]} for name in names}
    planned = {
        "hosts": {f"h{i}": {"node": f"n{i}", "links": links} for i in range(nodes)},
        "networks": [{"name": name, "rdma": True, "resource": "rdma/shared"} for name in names],
    }
    pods = {}
    for i in range(nodes):
        seen = {f"net{n}": {"addresses": [{"address": f"10.{n}.0.{i}", "prefix": 24}]} for n in (1, 2, 3)}
        rdma = {"tools": list(probe.RDMA_TOOLS), "gids": [], "error": ""}
        pod = {"host": f"h{i}", "pod": f"probe-n{i}", "networks": names, "state": "running"}
        pods[f"n{i}"] = {**pod, "root": {"links": seen}, "rdma": rdma}
    return planned, pods


@pytest.mark.parametrize(("shared", "most"), [(True, 1), (False, 3)])
def test_no_nic_has_two_measurements_at_a_time(shared: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, busy, seen, ports = threading.Lock(), [0], [0], []  # type: t.Any, t.List[int], t.List[int], t.List[str]

    def client(run: probe.Run, pod: str, container: str, command: t.Sequence[str], timeout: int) -> probe.Output:
        if command[0] != "ask":
            return probe.Output("@@ server\n@@ rc 0\n", "")
        ports.append(command[4])
        with lock:
            busy[0] += 1
            seen[0] = max(seen[0], busy[0])
        time.sleep(0.05)
        with lock:
            busy[0] -= 1
        return probe.Output("@@ client\nping data: rdma-ping-0: A\n@@ rc 0\n", "")

    monkeypatch.setattr(probe, "run_in", client)
    planned, pods = rails(shared)
    with ThreadPoolExecutor(16) as pool:
        traffic = probe.measure_pairs(probe.Run(FakeApi([]), planned, options(), pool), pods)
    assert seen[0] == most
    assert len(traffic) == 3 * 2 * 3  # networks, directions, tests
    assert len(set(ports)) == 3 * 2


@pytest.mark.parametrize(("seconds", "tried"), [(300, 7 * 6), (0, 2 * 7)])
def test_other_pairs_are_tested_while_there_is_time(seconds: int, tried: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def pass_all(run: probe.Run, pod: str, container: str, command: t.Sequence[str], timeout: int) -> probe.Output:
        return probe.Output(f"@@ {'client' if command[0] == 'ask' else 'server'}\n@@ rc 0\n", "")

    monkeypatch.setattr(probe, "run_in", pass_all)
    planned, pods = rails(shared=False, nodes=7)
    planned["networks"] = planned["networks"][:1]
    with ThreadPoolExecutor(8) as pool:
        tests = probe.measure_pairs(probe.Run(FakeApi([]), planned, options(rdma_seconds=seconds), pool), pods)
    assert len({(test["from"], test["to"]) for test in tests}) == tried


def test_perftest_is_told_the_device_of_its_own_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself it looks at the node's first device, which may be down, or of another kind."""
    told: t.Set[t.Tuple[str, str, str]] = set()

    def measured(run: probe.Run, pod: str, container: str, command: t.Sequence[str], timeout: int) -> probe.Output:
        if command[0] in ("serve", "ask"):
            told.add((command[0], pod, command[6]))
        return probe.Output(f"@@ {'client' if command[0] == 'ask' else 'server'}\n@@ rc 0\n", "")

    monkeypatch.setattr(probe, "run_in", measured)
    planned, pods = rails(shared=False)
    planned["networks"] = planned["networks"][:1]
    pods["n0"]["rdma"]["gids"] = [{"device": "mlx5_3", "gid": parsers.gid_of("10.1.0.0")}]
    pods["n0"]["rdma"]["classes"] = []
    with ThreadPoolExecutor(4) as pool:
        probe.measure_pairs(probe.Run(FakeApi([]), planned, options(), pool), pods)
    ends = (("serve", "ask"), (("probe-n0", "mlx5_3"), ("probe-n1", "")))
    assert told == {(what, *end) for what in ends[0] for end in ends[1]}


@pytest.mark.parametrize(
    ("rc", "text", "seen"),
    [
        (124, "Device not recognized to implement inline feature. Disabling it", "timed out after 7 s"),
        (1, "Unable to open device\nDevice not recognized to implement inline feature", "Unable to open device"),
        (1, "Device not recognized to implement inline feature", "Device not recognized to implement inline feature"),
        (1, "", "no output"),
    ],
)
def test_a_test_that_fails_says_why(rc: int, text: str, seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(run: probe.Run, pod: str, container: str, command: t.Sequence[str], timeout: int) -> probe.Output:
        assert command[0] not in ("serve", "ask") or (command[5], timeout) == ("7", 17)
        return probe.Output(f"@@ {'client' if command[0] == 'ask' else 'server'}\n{text}\n@@ rc {rc}\n", "")

    monkeypatch.setattr(probe, "run_in", measured)
    planned, pods = rails(shared=False)
    with ThreadPoolExecutor(4) as pool:
        tests = probe.measure_pairs(probe.Run(FakeApi([]), planned, options(command_timeout=7), pool), pods)
    assert {test["seen"] for test in tests if test["check"] == "rping"} == {
        f"client: {seen}; server: {seen}; tried 5 times"
    }


@pytest.mark.parametrize(("failures", "rc"), [(0, 0), (3, 0), (9, 139)])
def test_both_ends_start_again_when_the_client_fails(failures: int, rc: int, monkeypatch: pytest.MonkeyPatch) -> None:
    said: t.List[str] = []

    def answer(run: probe.Run, pod: str, container: str, command: t.Sequence[str], timeout: int) -> probe.Output:
        said.append(command[0])
        if command[0] == "ask":
            rc = 139 if said.count("ask") <= failures else 0
            return probe.Output(f"@@ client\nSegmentation fault\n@@ rc {rc}\n", "")
        return probe.Output("@@ server\n@@ rc 143\n", "")

    monkeypatch.setattr(probe, "run_in", answer)
    ends = [pod_data.End(f"n{n}", f"probe-n{n}", "net1", f"10.5.0.{n}") for n in (1, 2)]
    job = probe.PairTest("rdma-net", ends[0], ends[1], 18515, "", "")
    test = t.cast(Traffic, {"check": "write_bandwidth"})
    with ThreadPoolExecutor(1) as pool:
        probe.measure(probe.Run(FakeApi([]), rails(False)[0], options(), pool), test, job)
    assert test["rc"] == rc
    asked = min(failures + 1, probe.ATTEMPTS)
    assert said.count("ask") == said.count("serve") == said.count("listening") == asked
    assert said.count("stop") == asked - (rc == 0)
    tried = f"; tried {asked} times" if rc else ""
    assert test["seen"].endswith(f"server: waited for the client{tried}")


def test_a_client_that_took_long_to_fail_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    said: t.List[str] = []

    def hang(run: probe.Run, pod: str, container: str, command: t.Sequence[str], timeout: int) -> probe.Output:
        said.append(command[0])
        time.sleep(1.1 if command[0] == "ask" else 0)
        return probe.Output("@@ client\n@@ rc 124\n", "")

    monkeypatch.setattr(probe, "run_in", hang)
    ends = [pod_data.End(f"n{n}", f"probe-n{n}", "net1", f"10.5.0.{n}") for n in (1, 2)]
    job = probe.PairTest("rdma-net", ends[0], ends[1], 18515, "", "")
    with ThreadPoolExecutor(1) as pool:
        run = probe.Run(FakeApi([]), rails(False)[0], options(command_timeout=1), pool)
        probe.measure(run, t.cast(Traffic, {"check": "write_bandwidth"}), job)
    assert said.count("ask") == 1


def test_tools_that_nobody_could_list_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exec that failed says nothing about the image."""

    def refuse(run: probe.Run, pod: str, container: str, command: t.Sequence[str], timeout: int) -> probe.Output:
        return probe.Output("", "exec failed: 500")

    monkeypatch.setattr(probe, "run_in", refuse)
    planned, pods = rails(shared=False)
    pods["n0"]["rdma"].update(tools=[], error="exec failed: timed out")
    with ThreadPoolExecutor(4) as pool:
        tests = probe.measure_pairs(probe.Run(FakeApi([]), planned, options(), pool), pods)
    assert {test["missing"] for test in tests} == {False}
    assert {test["seen"] for test in tests if test["check"] == "rping"} == {
        "client: exec failed: 500; server: exec failed: 500; tried 5 times"
    }


def test_where_rping_finds_no_way_nothing_else_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(run: probe.Run, pod: str, container: str, command: t.Sequence[str], timeout: int) -> probe.Output:
        assert command[0] in ("listening", "stop") or command[1] == "rping"
        return probe.Output("@@ client\ncma event RDMA_CM_EVENT_UNREACHABLE, error -110\n@@ rc 255\n", "")

    monkeypatch.setattr(probe, "run_in", lost)
    planned, pods = rails(True)
    with ThreadPoolExecutor(16) as pool:
        traffic = probe.measure_pairs(probe.Run(FakeApi([]), planned, options(), pool), pods)
    facts = t.cast(Probe, {"traffic": traffic, "host_traffic": [], "pods": pods, "rdma_image": "tools"})
    checks = list(check_traffic(planned, facts, Expect(ipu=False)))
    assert {(check.check, check.status) for check in checks} == {
        ("rping", "failed"),
        ("write_bandwidth", "unproven"),
        ("read_latency", "unproven"),
        ("rdma_counters", "unproven"),
    }
    assert "RDMA_CM_EVENT_UNREACHABLE" in checks[0].seen
    assert checks[0].seen.endswith("(all)")


class FakeSocket:
    """What the library's websocket client shows of an exec."""

    def __init__(self, still_open: bool) -> None:
        self.still_open = still_open

    def run_forever(self, timeout: int) -> None:
        pass

    def read_channel(self, channel: int) -> str:
        return {1: "out\n", 2: "err\n"}[channel]

    def is_open(self) -> bool:
        return self.still_open

    def close(self) -> None:
        self.still_open = False


@pytest.mark.parametrize(("still_open", "error"), [(False, ""), (True, "timed out after 5 s")])
def test_run_in(monkeypatch: pytest.MonkeyPatch, still_open: bool, error: str) -> None:
    asked: t.Dict[str, t.Any] = {}

    def call(configuration: t.Any, method: str, url: str, **more: t.Any) -> FakeSocket:
        asked.update(url=url, **more)
        return FakeSocket(still_open)

    monkeypatch.undo()
    monkeypatch.setattr(pod_exec, "websocket_call", call)
    api = FakeApi([])
    api.configuration = types.SimpleNamespace(
        host="https://10.80.0.11:6443", auth_settings=lambda: {"BearerToken": {"value": "Bearer abc"}}
    )
    run = probe.Run(api, {}, options(script="the script"), t.cast(t.Any, None), "verify-x1")
    assert probe.run_in(run, "probe-n1", "root", ["reach", "a b"], 5) == probe.Output("out\nerr\n", error)
    assert asked["url"] == "https://10.80.0.11:6443/api/v1/namespaces/verify-x1/pods/probe-n1/exec"
    assert ("command", ["sh", "-c", "the script", "pod.sh", "reach", "a b"]) in asked["query_params"]
    assert asked["headers"] == {"authorization": "Bearer abc"}


def test_an_exec_that_is_refused_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: t.Any, **more: t.Any) -> t.Any:
        raise probe.ApiError(status=0, reason="Handshake status 403 Forbidden")

    monkeypatch.undo()
    monkeypatch.setattr(pod_exec, "websocket_call", refuse)
    api = FakeApi([])
    api.configuration = types.SimpleNamespace(host="https://x", auth_settings=dict)
    found = probe.run_in(probe.Run(api, {}, options(), t.cast(t.Any, None), "ns"), "p", "root", ["limits"], 5)
    assert found.text == ""
    assert "403 Forbidden" in found.error


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (
            '{"message": "Internal error: OCI runtime exec failed: exec failed: no \\"sh\\" in $PATH"}',
            'exec failed: no "sh" in $PATH',
        ),
        ('{"message": "command terminated with exit code 3"}', ""),
        ('{"status": "Success"}', ""),
        ("", ""),
    ],
)
def test_a_command_that_did_not_run(status: str, error: str) -> None:
    assert pod_exec.refused(status) == error


def test_a_connection_that_breaks_in_the_middle_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(timeout: int) -> None:
        raise websocket.WebSocketConnectionClosedException("Connection to remote host was lost.")

    socket = FakeSocket(still_open=True)
    socket.run_forever = lose  # type: ignore[method-assign]
    monkeypatch.undo()
    monkeypatch.setattr(pod_exec, "websocket_call", lambda *_args, **_more: socket)
    api = FakeApi([])
    api.configuration = types.SimpleNamespace(host="https://x", auth_settings=dict)
    found = probe.run_in(probe.Run(api, {}, options(), t.cast(t.Any, None), "ns"), "p", "root", ["limits"], 5)
    assert found == probe.Output("", "exec failed: Connection to remote host was lost.")


def test_an_empty_plan_is_refused_before_anything_is_made() -> None:
    api = FakeApi([])
    with pytest.raises(FabricError, match="no hosts in it"):
        probe.probe(api, {}, options())
    assert api.deleted == []


def release(name: str, revision: int, status: str, version: str, namespace: str = "ns") -> Facts:
    data = {"version": revision, "info": {"status": status}, "chart": {"metadata": {"name": name, "version": version}}}
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(data).encode()))).decode()
    metadata = {"name": f"sh.helm.release.v1.{name}.v{revision}", "namespace": namespace, "labels": {"name": name}}
    return {"metadata": metadata, "data": {"release": packed}}


def test_the_newest_revision_of_a_release_counts() -> None:
    secrets = [
        release("network-operator", 2, "failed", "26.4.1"),
        release("network-operator", 1, "superseded", "26.1.0"),
        release("network-operator", 10, "deployed", "26.4.1"),
    ]
    api = FakeApi([], **{"/api/v1/secrets": {"items": secrets}})
    found = cluster_facts.newest_releases(api, {"release": "ipu-operator", "namespace": "ipu-operator"})
    assert [(each["revision"], each["status"], each["version"]) for each in found] == [(10, "deployed", "26.4.1")]


def test_the_release_of_the_ipu_operator_is_that_of_the_plan() -> None:
    """Others may have called theirs so too, in a namespace of their own."""
    secrets = [release("gc", 1, "deployed", "1.1.0", "default"), release("gc", 7, "failed", "9.9.9", "theirs")]
    api = FakeApi([], **{"/api/v1/secrets": {"items": secrets}})
    planned = {**plan(), "ipu_operator": {"release": "gc", "namespace": "default"}}
    (found,) = cluster_facts.newest_releases(api, pod_data.ipu_release(planned))
    assert (found["namespace"], found["version"]) == ("default", "1.1.0")


@pytest.mark.parametrize(
    ("config", "expected"), [('{"type": "macvlan"}', {"type": "macvlan"}), ("{broken", "{broken"), (None, None)]
)
def test_an_attachment_is_data_or_text(config: t.Any, expected: t.Any) -> None:
    path = "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions/rdma-net"
    api = FakeApi(["n0", "n1"], **{path: {"spec": {"config": config}}})
    assert probe.probe(api, plan(), options())["networks"]["rdma-net"]["attachment"] == expected


def test_deployments_of_the_ipu_operator_are_found_wherever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def deployments(path: str, fieldSelector: str = "", **query: t.Any) -> t.List[Facts]:  # noqa: N803 the API's word
        name = fieldSelector.partition("=")[2]
        scale = {"spec": {"replicas": 2}, "status": {"readyReplicas": 1}} if "proxy" in name else {"spec": {}}
        return [{"metadata": {"name": name, "namespace": "elsewhere"}, **scale}]

    asked: t.List[t.Any] = []
    api = FakeApi([])
    monkeypatch.setattr(api, "items", deployments)
    monkeypatch.setattr(
        cluster_facts, "proxy_health", lambda cluster, proxy: {"healthy": proxy["ready"] == 1, "seen": ""}
    )
    monkeypatch.setattr(cluster_facts, "read_certificate", lambda cluster, namespace: asked.append(namespace))
    api.objects[VIPU_CONTROLLERS] = {"data": {"controllers.yaml": "10.5.0.20:8090:ipunode=a,[fd00::1]:8091:k=b\n"}}
    found = cluster_facts.ipu_facts(api)
    assert found["controllers"] == ["10.5.0.20:8090:ipunode=a", "[fd00::1]:8091:k=b"]
    assert [(each["ready"], each["wanted"]) for each in found["deployments"]] == [(0, 1), (1, 2)]
    assert found["proxy"]["healthy"]
    assert asked == ["elsewhere"]


@pytest.mark.parametrize("status", [403, 404])
def test_controllers_that_are_not_read(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    def refuse(*_request: t.Any, **_query: t.Any) -> Facts:
        raise probe.ApiError(status=status, reason="no")

    api = FakeApi([])
    monkeypatch.setattr(api, "request", refuse)
    assert cluster_facts.read_controllers(api, "ipu-operator") is None


@pytest.mark.parametrize(("refusals", "healthy"), [(0, True), (2, True), (3, False)])
def test_a_proxy_may_be_away_for_a_moment(monkeypatch: pytest.MonkeyPatch, refusals: int, healthy: bool) -> None:
    asked: t.List[str] = []

    class Client:
        def request(self, verb: str, path: str, **_options: t.Any) -> None:
            asked.append(path)
            if len(asked) <= refusals:
                raise probe.ApiError(status=503, reason="Service Unavailable")

    monkeypatch.setattr(cluster_facts.time, "sleep", lambda seconds: None)
    seen = cluster_facts.proxy_health(
        Cluster(Client()), {"namespace": "ipu-operator", "name": "ipu-operator-vipu-proxy"}
    )
    assert (seen["healthy"], len(asked)) == (healthy, min(refusals + 1, 3))


def test_rails_are_asked_for_from_each_other_only_where_the_site_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the address and the interface of the one network, for both addresses of the other."""
    asked: t.List[t.Sequence[str]] = []

    def across(run: probe.Run, pod: str, container: str, command: t.Sequence[str], timeout: int) -> probe.Output:
        if command[0] != "cross":
            return answer(run, pod, container, command, timeout)
        asked.append(command)
        return probe.Output(f"@@ far\n{PING}\n@@ rc 0\n@@ neighbour\n\n@@ rc 0\n", "")

    monkeypatch.setattr(probe, "run_in", across)
    planned = plan(2)
    planned["networks"].append({**planned["networks"][0], "name": "second"})
    for host in planned["hosts"].values():
        host["links"]["second"] = host["links"]["rdma-net"]
    assert "crossings" not in probe.probe(FakeApi(["n0", "n1"]), planned, options())
    found = probe.probe(FakeApi(["n0", "n1"]), planned, options(across_rails=True)).get("crossings", [])
    assert asked == []  # no pod has an address on the second one
    assert found == []
    ends = {name: {n: probe.End(n, f"probe-{n}", "net1", "10.0.0.1", "fe80::1") for n in ("n0", "n1")} for name in "ab"}
    monkeypatch.setattr(probe.pod_data, "ends", lambda pods, network: ends[network])
    with ThreadPoolExecutor(2) as pool:
        run = probe.Run(
            t.cast(t.Any, None), t.cast(t.Any, {"networks": [{"name": "a"}, {"name": "b"}]}), options(), pool
        )
        crossed = probe.cross_rails(run, {})
    assert asked == 2 * [["cross", "fe80::1", "10.0.0.1", "net1", "10.0.0.1"]]
    assert [(one["network"], one["other"], one["far"]["received"], one["mac"]) for one in crossed] == [
        ("a", "b", 2, ""),
        ("b", "a", 2, ""),
    ]
