"""The record of a Job on a real API server. The test plays the kubelet, and what an exec gives is made up."""

from __future__ import annotations

import itertools
import json
import threading
import time
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.pod_exec import Output
from ansible_collections.ipu.fabric.plugins.module_utils._verify import recorder
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, ModuleFailedError, Modules

Object = t.Dict[str, t.Any]
PLACE = "recorded"
ENTRY = {"name": "main", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
RUNS = {"phase": "Running", "containerStatuses": [{**ENTRY, "state": {"running": {}}}]}
NOW = "2026-01-01T00:00:00Z"
COMPLETE = {
    "startTime": NOW,
    "completionTime": NOW,
    "succeeded": 1,
    "conditions": [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")],
}
FAILED = {
    "startTime": NOW,
    "failed": 1,
    "conditions": [{"type": kind, "status": "True", "message": "out of ideas"} for kind in ("FailureTarget", "Failed")],
}


def part(name: str, text: str) -> str:
    return f"\n@@ {name}\n{text}\n@@ rc 0\n"


def looks(shared: bool) -> t.Callable[..., Output]:
    """What execs give: 100 MB more at each look. shared: only a pod on the host's network shows the NIC's counters."""
    counts = itertools.count(1)

    def answer(_cluster: t.Any, path: str, _container: str, _argv: t.Sequence[str], _seconds: float) -> Output:
        bytes_ = next(counts) * 100_000_000
        counter = f"infiniband/mlx5_0/ports/1/counters/port_xmit_data:{bytes_ // 4}"
        if path.endswith("multus"):
            return Output(part("counters", counter) if shared else "", "")
        mine = "net/eth0/statistics/tx_bytes:5" + ("" if shared else f"\n{counter}")
        facts = part("files", "rdma_cm\nuverbs0") + part("verbs", "/sys/class/infiniband_verbs/uverbs0/ibdev:mlx5_0")
        return Output(facts + part("counters", mine), "")

    return answer


@pytest.fixture(scope="module")
def place(api: ApiServer) -> ApiServer:
    api.kubectl("create", "namespace", PLACE)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": PLACE}}
    api.kubectl("apply", "-f", "-", stdin=json.dumps(account))
    pod(api, "multus", {}, {"hostNetwork": True})
    return api


def pod(api: ApiServer, name: str, labels: Object, spec: Object) -> None:
    containers = [{"name": "main", "image": "i"}]
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": PLACE, "labels": labels}}
    api.kubectl(
        "create", "-f", "-", stdin=json.dumps({**body, "spec": {"nodeName": "n1", "containers": containers, **spec}})
    )
    status(api, "pod", name, RUNS)


def status(api: ApiServer, kind: str, name: str, body: Object) -> None:
    api.kubectl("patch", kind, "-n", PLACE, name, "--subresource=status", "-p", json.dumps({"status": body}))


def start(api: ApiServer, name: str, asked: bool = True) -> None:
    annotations = {"fabric.ipu/record": "true"} if asked else {}
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}}
    metadata = {"name": name, "namespace": PLACE, "annotations": annotations}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    api.kubectl("create", "-f", "-", stdin=json.dumps(job))
    pod(api, f"{name}-0", {"job-name": name}, {})


def later(api: ApiServer, name: str, body: Object) -> threading.Thread:
    def work() -> None:
        time.sleep(6)
        status(api, "job", name, body)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def annotation(api: ApiServer, name: str) -> str:
    found: Object = api.get("job", "-n", PLACE, name)["metadata"]["annotations"]
    return str(found.get("fabric.ipu/moved", ""))


@pytest.mark.parametrize("shared", [False, True])
def test_a_job_that_succeeds(place: ApiServer, run: Modules, monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    monkeypatch.setattr(recorder, "run_in_pod", looks(shared))
    name = f"good-{shared}".lower()
    start(place, name)
    end = later(place, name, COMPLETE)
    found = run("kube_wait", job={"name": name, "namespace": PLACE}, timeout=60)["record"]
    end.join()
    assert found["verdict"] == "rdma", found
    assert found["text"].startswith("moved ")
    assert found["text"].endswith("MB over RDMA on mlx5_0")
    assert found["ranks"][0]["looks"] >= 3
    assert annotation(place, name) == found["text"]
    again = run("kube_wait", job={"name": name, "namespace": PLACE})["record"]
    assert (again["verdict"], again["text"]) == ("earlier", found["text"])


def test_a_job_that_fails(place: ApiServer, run: Modules, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "run_in_pod", looks(False))
    start(place, "bad")
    end = later(place, "bad", FAILED)
    with pytest.raises(ModuleFailedError, match="out of ideas") as failed:
        run("kube_wait", job={"name": "bad", "namespace": PLACE}, timeout=60)
    end.join()
    assert failed.value.result["record"]["verdict"] == "rdma"
    assert annotation(place, "bad")


def test_what_keeps_a_look_from_working_is_said(
    place: ApiServer, run: Modules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "run_in_pod", lambda *_given: Output("", "exec failed: 403 Forbidden"))
    start(place, "blind")
    end = later(place, "blind", COMPLETE)
    found = run("kube_wait", job={"name": "blind", "namespace": PLACE}, timeout=60)["record"]
    end.join()
    assert (found["verdict"], found["why"]) == ("unseen", "exec failed: 403 Forbidden")


def test_no_job_is_looked_into_that_does_not_ask(
    place: ApiServer, run: Modules, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: t.List[t.Any] = []
    monkeypatch.setattr(recorder, "run_in_pod", lambda *given: asked.append(given) or Output("", ""))
    start(place, "quiet", asked=False)
    end = later(place, "quiet", COMPLETE)
    assert run("kube_wait", job={"name": "quiet", "namespace": PLACE}, timeout=60)["record"] == {}
    end.join()
    assert asked == []
