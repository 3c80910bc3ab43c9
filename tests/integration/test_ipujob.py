"""IPUJobs against a real API server with the real definition. Threads stand for the IPU operator and the kubelet."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import socket
import subprocess
import threading
import time
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import job_removal, job_wait
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, ModuleFailedError, Modules, crds
from ansible_collections.ipu.fabric.tests.integration.ipu_players import (
    JOBS,
    NAMESPACE,
    OPERATOR,
    PODS,
    Kubelet,
    Object,
    Operator,
    ends,
    idle,
    pending,
    restart,
    runs,
    shrinks,
    writes,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client

WORKERS = {"template": {"spec": {"containers": [{"name": "main", "image": "busybox", "command": ["sh"]}]}}}
JOB = {"namespace": NAMESPACE, "ipus_per_job_instance": 2, "workers": WORKERS, "wait_timeout": 60}


@pytest.fixture(scope="module")
def cluster(api: ApiServer) -> Cluster:
    return Cluster(get_api_client(kubeconfig=str(api.kubeconfig)).client)


@pytest.fixture(scope="module")
def operator(api: ApiServer, cluster: Cluster, schemas: Path) -> t.Iterator[Operator]:
    definition = schemas / "ipu-operator" / "1.2.0" / "graphcore.ai_ipujobs.yaml"
    Modules(api.kubeconfig)("kube_apply", objects=crds(definition), validation="Warn")
    api.kubectl("wait", "--for=condition=Established", "crd/ipujobs.graphcore.ai")
    kubelet = Kubelet(api.state)
    node = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.server.server_address[1]}},
    }
    metadata = {"name": "loopback"}
    cluster.request("post", "/api/v1/nodes", body={"metadata": metadata, "status": node})
    for namespace in (NAMESPACE, "ipu-operator"):
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    there(cluster)
    thread = Operator(cluster, kubelet)
    thread.start()
    yield thread
    thread.over.set()
    thread.join()
    cluster.delete("/api/v1/nodes/loopback")


def there(cluster: Cluster) -> None:
    """The operator's own pod, ready."""
    labels = {"app.kubernetes.io/name": "ipu-operator", "app.kubernetes.io/component": "controller-manager"}
    name = OPERATOR.rpartition("/")[2]
    spec = {"nodeName": "loopback", "containers": [{"name": "manager", "image": "i"}]}
    cluster.request(
        "post", OPERATOR.rpartition("/")[0], body={"metadata": {"name": name, "labels": labels}, "spec": spec}
    )
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    kind = "application/merge-patch+json"
    cluster.request("patch", f"{OPERATOR}/status", body={"status": status}, content_type=kind)


@contextlib.contextmanager
def gone(operator: Operator) -> t.Iterator[None]:
    """The operator does nothing, and its pod is not there."""
    scripts, work = operator.scripts, operator.reconcile
    operator.reconcile = lambda job: None  # type: ignore[method-assign] # for as long as it is gone
    operator.cluster.request("delete", OPERATOR, body={"gracePeriodSeconds": 0})
    try:
        yield
    finally:
        operator.reconcile, operator.scripts = work, scripts  # type: ignore[method-assign] # the real one
        there(operator.cluster)


@pytest.fixture
def jobs(run: Modules, operator: Operator, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Modules]:
    """Faults count soon, and nothing stays behind."""
    monkeypatch.setattr(job_wait, "PATIENCE", 2)
    monkeypatch.setattr(job_removal, "PATIENCE", 2)
    monkeypatch.setattr(job_wait, "ASK_OPERATOR", 1)
    yield run
    operator.cluster.delete(JOBS)
    deadline = time.monotonic() + 20
    while operator.cluster.items(JOBS) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert operator.cluster.items(JOBS) == []
    operator.kubelet.ended.clear()
    operator.kubelet.lines.clear()
    operator.scripts.clear()


def test_check_create_again_scale_remove(jobs: Modules, operator: Operator, cluster: Cluster) -> None:
    operator.scripts["infer"] = [pending("partition not ready yet!"), idle, runs()]
    checked = jobs("ipujob", check=True, name="infer", **JOB)
    assert checked["changed"]
    assert checked["diff"]["after"]["spec"]["ipusPerJobInstance"] == "2"
    assert cluster.items(JOBS) == []
    made = jobs("ipujob", name="infer", labels={"team": "vision"}, **JOB)
    assert made["changed"]
    assert made["job"]["state"] == "Running"
    assert [step["state"] for step in made["progress"]][-1] == "Running"
    assert "partition not ready yet!" in str(made["progress"])
    assert not jobs("ipujob", name="infer", labels={"team": "vision"}, **JOB)["changed"]
    assert not jobs("ipujob", check=True, name="infer", labels={"team": "vision"}, **JOB)["changed"]

    operator.next_script("infer", pending("partition not ready yet!"), runs())
    scale = {**JOB, "labels": {"team": "vision"}, "job_instances": 3}
    assert jobs("ipujob", check=True, name="infer", **scale)["diff"]["after"]["spec"]["jobInstances"] == 3
    uid = cluster.request("get", f"{JOBS}/infer")["metadata"]["uid"]
    scaled = jobs("ipujob", name="infer", **scale)
    assert (scaled["changed"], scaled["job"]["instances"], scaled["job"]["uid"]) == (True, 3, uid)
    assert scaled["diff"]["before"]["spec"]["jobInstances"] == 1
    assert len(scaled["job"]["pods"]) == 3
    managers = cluster.request("get", f"{JOBS}/infer")["metadata"]["managedFields"]
    assert any(each.get("subresource") == "scale" for each in managers)
    # Without job_instances it stays as it was scaled.
    assert not jobs("ipujob", name="infer", labels={"team": "vision"}, **JOB)["changed"]

    assert jobs("ipujob", check=True, name="infer", namespace=NAMESPACE, state="absent")["changed"]
    assert cluster.items(JOBS)
    assert jobs("ipujob", name="infer", namespace=NAMESPACE, state="absent")["changed"]
    assert cluster.items(JOBS) == []
    assert not jobs("ipujob", name="infer", namespace=NAMESPACE, state="absent")["changed"]


def test_scale_down_and_by_the_number_alone(jobs: Modules, operator: Operator, cluster: Cluster) -> None:
    absent = {"name": "wide", "namespace": NAMESPACE}
    with pytest.raises(ModuleFailedError, match="no such job"):
        jobs("ipujob", state="scaled", job_instances=2, **absent)
    assert jobs("ipujob", check=True, state="scaled", job_instances=2, **absent)["changed"]
    operator.scripts["wide"] = [runs()]
    first = jobs("ipujob", name="wide", **{**JOB, "job_instances": 3})
    assert len(first["job"]["pods"]) == 3

    # The status is that of the new number before the pods are gone.
    operator.next_script("wide", runs(), idle, idle, shrinks)
    down = {**absent, "state": "scaled", "job_instances": 1}
    checked = jobs("ipujob", check=True, **down)
    assert (checked["diff"]["before"]["spec"]["jobInstances"], checked["diff"]["after"]["spec"]["jobInstances"]) == (
        3,
        1,
    )
    result = jobs("ipujob", **down)
    assert (result["changed"], result["job"]["instances"], result["job"]["uid"]) == (True, 1, first["job"]["uid"])
    assert result["job"]["partitions"] == ["p-wide-jobs-0"]
    assert [pod["name"] for pod in result["job"]["pods"]] == ["wide-worker-0"]
    assert "has not removed wide-worker-1, wide-worker-2 yet" in str(result["progress"])
    assert not jobs("ipujob", **down)["changed"]
    # The template is as it was, and stays with who made it.
    assert not jobs("ipujob", name="wide", **JOB)["changed"]

    operator.next_script("wide", runs())
    assert jobs("ipujob", **{**down, "job_instances": 2})["job"]["instances"] == 2
    operator.scripts["wide"] = [ends()]
    jobs("ipujob", name="wide", state="finished", **JOB)
    with pytest.raises(ModuleFailedError, match="it is Completed"):
        jobs("ipujob", **down)
    assert not jobs("ipujob", **{**down, "job_instances": 2})["changed"]


def test_logs_are_whole_though_the_pods_are_cleaned_up_at_once(
    jobs: Modules, operator: Operator, tmp_path: Path
) -> None:
    operator.scripts["train"] = [idle, runs("one", "two"), idle, idle, writes("three"), idle, ends(clean=True)]
    options = {**JOB, "name": "train", "clean_pod_policy": "All", "state": "finished"}
    result = jobs("ipujob", logs={"path": str(tmp_path / "logs")}, **options)
    assert result["job"]["state"] == "Completed"
    assert result["job"]["pods"] == []
    assert (tmp_path / "logs/train-worker-0.main.log").read_text() == "one\ntwo\nthree\nlast words, 0\n"
    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["train-worker-0.main.log"]
    assert result["logs"][0]["tail"] == ["one", "two", "three", "last words, 0"]
    again = jobs("ipujob", logs={"path": str(tmp_path / "logs")}, **options)
    assert not again["changed"]
    assert (tmp_path / "logs/train-worker-0.main.log").exists()


def test_a_failure_says_why_now_and_at_the_next_run_until_it_is_recreated(jobs: Modules, operator: Operator) -> None:
    operator.scripts["fails"] = [runs("Traceback", "ValueError: no IPU"), idle, idle, ends(3)]
    options = {**JOB, "name": "fails", "state": "finished"}
    for _time in range(2):
        with pytest.raises(ModuleFailedError) as error:
            jobs("ipujob", **options)
        result = error.value.result
        seen = result["error"]["seen"]
        assert "fails-worker-0, container main: exit code 3 Error" in seen
        assert "ValueError: no IPU | last words, 3" in seen
        assert result["job"]["state"] == "Failed"
        assert result["logs"][0]["tail"][0] == "Traceback"
        assert result["progress"]
    operator.kubelet.ended.clear()
    operator.next_script("fails", runs(), ends())
    assert jobs("ipujob", recreate=True, check=True, **options)["changed"]
    result = jobs("ipujob", recreate=True, **options)
    assert (result["changed"], result["job"]["state"]) == (True, "Completed")
    assert not jobs("ipujob", recreate=True, **options)["changed"]


def test_a_restart_is_no_failure(jobs: Modules, operator: Operator, tmp_path: Path) -> None:
    operator.scripts["retry"] = [runs("first"), idle, ends(1, over=False), idle, restart, idle, runs("second"), ends()]
    policy = {"type": "OnFailure", "back_off_limit": 2}
    result = jobs("ipujob", name="retry", restart_policy=policy, state="finished", logs={"path": str(tmp_path)}, **JOB)
    assert result["job"]["state"] == "Completed"
    assert "Restarting" in [step["state"] for step in result["progress"]]
    assert (tmp_path / "retry-worker-0.main.log").read_text() == "first\nlast words, 1\n"
    assert (tmp_path / "retry-worker-0.main.2.log").read_text().startswith("second\n")


def test_a_failure_without_the_restart_that_might_come_counts_after_a_while(jobs: Modules, operator: Operator) -> None:
    operator.scripts["codes"] = [runs(), ends(5, over=False)]
    policy = {"type": "ExitCode", "exit_codes": "128-255"}
    with pytest.raises(ModuleFailedError, match="exit code 5"):
        jobs("ipujob", name="codes", restart_policy=policy, state="finished", **JOB)


def test_an_image_that_cannot_be_pulled_stops_the_wait(jobs: Modules, operator: Operator) -> None:
    no_image = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
    operator.scripts["image"] = [lambda o, job: o.pod(job, "worker-0", "Pending", **no_image)]
    start = time.monotonic()
    with pytest.raises(ModuleFailedError, match="ImagePullBackOff Back-off pulling image") as error:
        jobs("ipujob", name="image", **JOB)
    assert time.monotonic() - start < 30
    assert "was stopped early" in error.value.result["error"]["what"]


def test_what_is_awaited_at_the_end_of_the_time(jobs: Modules, operator: Operator, cluster: Cluster) -> None:
    def unschedulable(o: Operator, job: Object) -> None:
        o.pod(job, "worker-0", "Pending")
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "Insufficient x."}
        body = {"status": {"conditions": [condition]}}
        kind = "application/merge-patch+json"
        o.cluster.request("patch", f"{PODS}/waits-worker-0/status", body=body, content_type=kind)
        event = {
            "metadata": {"generateName": "e-", "namespace": NAMESPACE},
            "involvedObject": {"kind": "Pod", "name": "waits-worker-0", "namespace": NAMESPACE},
            "type": "Warning",
            "reason": "FailedCreatePodSandBox",
            "message": "no such network",
        }
        cluster.request("post", f"/api/v1/namespaces/{NAMESPACE}/events", body=event)

    operator.scripts["waits"] = [pending("partition not ready yet!"), unschedulable]
    with pytest.raises(ModuleFailedError) as error:
        jobs("ipujob", name="waits", **{**JOB, "wait_timeout": 5})
    seen = error.value.result["error"]["seen"]
    for words in ("partition not ready yet!", "Insufficient x.", "FailedCreatePodSandBox: no such network"):
        assert words in seen
    assert "The job was left as it is" in error.value.result["error"]["next_step"]


def test_what_cannot_be_changed(jobs: Modules, operator: Operator) -> None:
    operator.scripts["fixed"] = [runs()]
    first = jobs("ipujob", name="fixed", **JOB)
    more = {**JOB, "ipus_per_job_instance": 4}
    for check in (True, False):
        with pytest.raises(ModuleFailedError, match=r"is Running and differs in spec.ipusPerJobInstance"):
            jobs("ipujob", check=check, name="fixed", **more)
    assert jobs("ipujob", name="fixed", labels={"a": "b"}, **JOB)["job"]["labels"] == {"a": "b"}
    operator.next_script("fixed", runs())
    result = jobs("ipujob", name="fixed", recreate=True, **more)
    assert result["job"]["uid"] != first["job"]["uid"]
    assert result["job"]["spec"]["ipusPerJobInstance"] == "4"


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "x" * 37, "ipus_per_job_instance": 3}, "37 characters.*ipus_per_job_instance is 3"),
        ({"namespace": "nowhere"}, "no such namespace"),
        ({"clean_pod_policy": "Some"}, "clean_pod_policy must be one of"),
        (
            {"workers": {"template": {"spec": {"containers": [{"name": "c", "image": "i", "comand": []}]}}}},
            "comand: field not declared",
        ),
    ],
)
def test_refusals(jobs: Modules, cluster: Cluster, options: Object, message: str) -> None:
    with pytest.raises(ModuleFailedError, match=message):
        jobs("ipujob", **{"name": "refused", **JOB, **options})
    assert cluster.items(JOBS) == []


def test_removal_without_the_operator(jobs: Modules, operator: Operator, cluster: Cluster) -> None:
    operator.scripts["stuck"] = [runs()]
    jobs("ipujob", name="stuck", **JOB)
    absent = {"name": "stuck", "namespace": NAMESPACE, "state": "absent"}
    with gone(operator):
        with pytest.raises(ModuleFailedError, match="the IPU operator does not run") as error:
            jobs("ipujob", **absent)
        assert "force: true" in error.value.result["error"]["next_step"]
        assert cluster.items(JOBS)
        result = jobs("ipujob", force=True, **absent)
        assert result["partitions_left"] == ["p-stuck-jobs-0"]
        assert "p-stuck-jobs-0" in str(result["warnings"])
        assert cluster.items(JOBS) == []


def test_removal_against_the_webhooks_of_an_operator_that_is_gone(
    jobs: Modules, operator: Operator, cluster: Cluster
) -> None:
    operator.scripts["hooked"] = [runs()]
    jobs("ipujob", name="hooked", **JOB)
    rule = {"operations": ["CREATE", "UPDATE"], "apiGroups": ["graphcore.ai"], "apiVersions": ["v1alpha1"]}
    hook = {
        "name": "v.graphcore.ai",
        "rules": [{**rule, "resources": ["ipujobs"]}],
        "clientConfig": {"url": "https://127.0.0.1:9/validate"},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    with gone(operator):
        cluster.request("post", path, body={"metadata": {"name": "ipu-operator-admission"}, "webhooks": [hook]})
        try:
            time.sleep(1.5)  # the API server takes a moment to know it
            with pytest.raises(ModuleFailedError, match="the IPU operator does not run"):
                jobs("ipujob", name="new", **JOB)
            result = jobs("ipujob", name="hooked", namespace=NAMESPACE, state="absent", force=True)
            assert result["partitions_left"] == ["p-hooked-jobs-0"]
            left = cluster.request("get", f"{path}/ipu-operator-admission")
            assert left["webhooks"][0]["failurePolicy"] == "Fail"
        finally:
            cluster.delete(f"{path}/ipu-operator-admission")
            time.sleep(1.5)
    assert cluster.items(JOBS) == []


def test_an_operator_that_is_away_for_a_while_is_waited_for(jobs: Modules, operator: Operator) -> None:
    operator.scripts["patient"] = [idle, runs(), ends()]
    stack = contextlib.ExitStack()
    stack.enter_context(gone(operator))
    timer = threading.Timer(5, stack.close)
    timer.start()
    try:
        result = jobs("ipujob", name="patient", state="finished", **JOB)
    finally:
        timer.join()
    assert result["job"]["state"] == "Completed"
    assert "the IPU operator does not run" in str(result["progress"])


def test_a_restart_of_the_api_server_is_outlasted(
    jobs: Modules, operator: Operator, api: ApiServer, tmp_path: Path
) -> None:
    operator.scripts["lasting"] = [runs("before"), idle, idle]

    def restart() -> None:
        server = api.processes[-1]
        command = server.args
        server.kill()
        server.wait(20)
        operator.kubelet.write("lasting-worker-0", "meanwhile")
        time.sleep(2)
        with open(api.state / "kube-apiserver.log", "ab") as log:
            api.processes[-1] = type(server)(command, stdout=log, stderr=log)
        api.wait()
        operator.scripts["lasting"] = [idle, writes("after"), idle, ends()]

    timer = threading.Timer(4, restart)
    timer.start()
    try:
        options = {**JOB, "name": "lasting", "state": "finished", "wait_timeout": 120}
        result = jobs("ipujob", logs={"path": str(tmp_path)}, **options)
    finally:
        timer.join()
    assert result["job"]["state"] == "Completed"
    assert (tmp_path / "lasting-worker-0.main.log").read_text() == "before\nmeanwhile\nafter\nlast words, 0\n"


def test_info(jobs: Modules, operator: Operator) -> None:
    operator.scripts.update({"one": [runs()], "two": [pending("partition not ready yet!")]})
    jobs("ipujob", name="one", labels={"team": "a"}, **JOB)
    jobs("ipujob", name="two", labels={"team": "b"}, wait=False, **{**JOB, "job_instances": 2})
    found = jobs("ipujob_info")["jobs"]
    assert [job["name"] for job in found] == ["one", "two"]
    assert found[0]["pods"][0]["name"] == "one-worker-0"
    assert found[1]["partitions"] == ["p-two-jobs-0", "p-two-jobs-1"]
    assert [job["name"] for job in jobs("ipujob_info", label_selectors=["team=b"])["jobs"]] == ["two"]
    assert [job["name"] for job in jobs("ipujob_info", namespace=NAMESPACE, name="one")["jobs"]] == ["one"]
    assert jobs("ipujob_info", namespace="default")["jobs"] == []


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("example", sorted((ROOT / "docs" / "examples").glob("*.yml")), ids=lambda path: path.stem)
def test_examples_in_check_mode(api: ApiServer, example: Path, tmp_path: Path) -> None:
    command = [str(ROOT / ".cache/venv/bin/ansible-playbook"), "--check", "--diff", str(example), "-e"]
    plan = ROOT / "tests/integration/plan.json"
    variables = {"fabric_kubeconfig": str(api.kubeconfig), "logs": str(tmp_path), "plan_file": str(plan)}
    environment = os.environ | {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections")}
    done = subprocess.run(
        [*command, json.dumps(variables)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rescued=0" in done.stdout
    assert list(tmp_path.iterdir()) == []


def own_address() -> str:
    """An address of this host that a Service may lead to; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("no address but loopback: a Service can't lead there")
        return str(probe.getsockname()[0])


class Proxy(http.server.BaseHTTPRequestHandler):
    """Answers as the V-IPU proxy of the documentation does."""

    def answer(self, value: t.Any) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def do_GET(self) -> None:
        assert self.path == "/stats"
        self.answer({"default": {"used": 4, "available": 28}, "total": {"used": 4, "available": 28}})

    def do_POST(self) -> None:
        assert self.path == "/query"
        size = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["size"]
        self.answer({"available": True, "numOfPartitions": 28 // size, "message": ""})

    def log_message(self, *_args: t.Any) -> None:
        pass


@pytest.mark.usefixtures("operator")
def test_stats(run: Modules, cluster: Cluster) -> None:
    address, start = own_address(), time.monotonic()
    with pytest.raises(ModuleFailedError, match=r"services .* not found"):
        run("ipujob_info", usage=True)
    base, name = "/api/v1/namespaces/ipu-operator", {"name": "ipu-operator-vipu-proxy"}
    cluster.request("post", f"{base}/services", body={"metadata": name, "spec": {"ports": [{"port": 80}]}})
    cluster.request("post", f"{base}/endpoints", body={"metadata": name})
    with pytest.raises(ModuleFailedError, match="no endpoints available"):
        run("ipujob_info", usage=True)
    assert time.monotonic() - start < 30
    server = http.server.ThreadingHTTPServer((address, 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    spec = {"nodeName": "loopback", "containers": [{"name": "proxy", "image": "i"}]}
    cluster.request("post", f"{base}/pods", body={"metadata": name, "spec": spec})
    cluster.patch(f"{base}/pods/{name['name']}/status", {"status": {"podIP": address, "podIPs": [{"ip": address}]}})
    pod = {"kind": "Pod", "namespace": "ipu-operator", **name}
    subset = {"addresses": [{"ip": address, "targetRef": pod}], "ports": [{"port": server.server_address[1]}]}
    cluster.patch(f"{base}/endpoints/{name['name']}", {"subsets": [subset]})
    result = run("ipujob_info", partition_sizes=[2, 64])["usage"]
    server.shutdown()
    assert result["total"] == {"used": 4, "available": 28, "ipus": 32}
    assert result["namespaces"] == {"default": {"used": 4, "available": 28, "ipus": 32}}
    assert result["sizes"] == [
        {"size": 2, "partitions": 14, "fits": True, "message": ""},
        {"size": 64, "partitions": 0, "fits": False, "message": ""},
    ]
    with pytest.raises(ModuleFailedError, match="3 is not one of"):
        run("ipujob_info", partition_sizes=[3])


def test_without_the_kind(run: Modules, api: ApiServer, operator: Operator) -> None:
    operator.over.set()
    operator.join()
    api.kubectl("delete", "crd", "ipujobs.graphcore.ai")
    deadline = time.monotonic() + 20  # the server goes on with the kind for a moment
    while api.kubectl("get", "ipujobs", "-A", check=False).returncode == 0 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert run("ipujob", check=True, name="early", **JOB)["changed"]
    assert not run("ipujob", name="early", namespace=NAMESPACE, state="absent")["changed"]
    assert run("ipujob_info")["jobs"] == []
    with pytest.raises(ModuleFailedError, match="Install the operator that defines it"):
        run("ipujob", name="early", **JOB)
    missing = {"kubeconfig": "/nonexistent"}
    assert run("ipujob", check=True, name="early", **JOB, **missing)["changed"]
    assert run("ipujob_info", check=True, usage=True, **missing)["usage"]["total"]["ipus"] == 0
