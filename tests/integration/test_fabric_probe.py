"""The probe against a real API server; a thread plays the kubelet as far as the status of pods goes."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Expect
from ansible_collections.ipu.fabric.plugins.module_utils._verify.checks import check_fabric
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, ModuleFailedError, Modules
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

LABEL = "fabric.ipu/verify"
SCRIPT = (ROOT / "plugins/plugin_utils/_probe/pod.sh").read_text()
RUNNING = {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}
NO_IMAGE = {"reason": "ImagePullBackOff", "message": "not found"}
SUBNET = {
    "cidr": "10.5.0.0/24",
    "gateway": "",
    "range_start": "10.5.0.128",
    "range_end": "10.5.0.254",
    "exclude": [],
    "needed": 0,
}


def plan(rdma: bool = False) -> t.Dict[str, t.Any]:
    network = {"name": "rdma-net", "namespace": "default", "master": "eth1", "mode": "bridge", "mtu": 1500, "ipam": {}}
    link = {"netdev": "eth1", "rdma_netdevs": [], "device": "", "mtu": 1500, "addresses": []}
    hosts = {
        name: {"node": f"probe-{name}", "address": "10.88.0.1", "roles": ["worker"], "links": {"rdma-net": link}}
        for name in ("a", "b")
    }
    network.update(rdma=rdma, resource="rdma/shared", subnet=SUBNET, subnets=[SUBNET], pools=[])
    return {"releases": {}, "hosts": hosts, "networks": [network], "vipu": {"controllers": [], "node_labels": {}}}


@pytest.fixture(scope="module")
def nodes(api: ApiServer) -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"rdma/shared": "63"}}
    items = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"probe-{name}"}, "status": status}
        for name in ("a", "b")
    ]
    api.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


@contextlib.contextmanager
def kubelet(api: ApiServer, status: t.Dict[str, t.Any]) -> t.Iterator[t.List[t.Dict[str, t.Any]]]:
    """Gives every probe pod this status, and keeps what it saw: pods, and the labels of their namespace."""
    seen: t.Dict[str, t.Dict[str, t.Any]] = {}
    end = threading.Event()

    def work() -> None:
        while not end.wait(0.2):
            for pod in api.get("pods", "-A", "-l", f"{LABEL}=ipu-fabric-verify")["items"]:
                name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
                if name not in seen:
                    labels = api.get("namespace", namespace)["metadata"]["labels"]
                    seen[name] = {**pod, "psa": labels["pod-security.kubernetes.io/enforce"]}
                    entries = [{**entry, "name": "root", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
                               for entry in status["containerStatuses"]]  # fmt: skip
                    body = json.dumps({"status": {**status, "containerStatuses": entries}})
                    api.kubectl("patch", "pod", "-n", namespace, name, "--subresource=status", "-p", body, check=False)

    thread = threading.Thread(target=work)
    thread.start()
    result: t.List[t.Dict[str, t.Any]] = []
    try:
        yield result
    finally:
        end.set()
        thread.join()
        result += [seen[name] for name in sorted(seen)]


def left(api: ApiServer) -> t.List[str]:
    """Namespaces that nobody has asked to go; without controllers none goes by itself. Pods go at once."""
    assert api.get("pods", "-A", "-l", f"{LABEL}=ipu-fabric-verify")["items"] == []
    found = api.get("namespaces", "-l", f"{LABEL}=ipu-fabric-verify")["items"]
    return [each["metadata"]["name"] for each in found if "deletionTimestamp" not in each["metadata"]]


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize(("rdma", "psa", "containers"), [(False, "baseline", 2), (True, "privileged", 3)])
def test_pods_are_admitted_with_no_more_rights_than_they_need(
    run: Modules, api: ApiServer, rdma: bool, psa: str, containers: int
) -> None:
    with kubelet(api, RUNNING) as seen:
        result = run("fabric_probe", script=SCRIPT, plan=plan(rdma), ipu=False, timeout=20)
    assert not result["changed"]
    assert [pod["spec"]["nodeName"] for pod in seen] == ["probe-a", "probe-b"]
    assert {pod["psa"] for pod in seen} == {psa}
    assert {len(pod["spec"]["containers"]) for pod in seen} == {containers}
    assert {pod["state"] for pod in result["probe"]["pods"].values()} == {"running"}
    assert left(api) == []


@pytest.mark.usefixtures("nodes")
def test_a_command_that_cannot_run_is_a_failed_check_and_not_a_crash(run: Modules, api: ApiServer) -> None:
    with kubelet(api, RUNNING):
        probe = run("fabric_probe", script=SCRIPT, plan=plan(), ipu=False, timeout=20)["probe"]
    assert all(pod["root"]["error"].startswith("exec failed") for pod in probe["pods"].values())
    found = {(check.check, check.status) for check in check_fabric(plan(), probe, Expect(ipu=False))}
    assert {("memlock_root", "failed"), ("interface", "failed"), ("rping", "skipped")} <= found


@pytest.mark.usefixtures("nodes")
def test_an_image_out_of_reach_stops_early(run: Modules, api: ApiServer) -> None:
    start = time.monotonic()
    with kubelet(api, {"phase": "Pending", "containerStatuses": [{"state": {"waiting": NO_IMAGE}}]}):
        probe = run("fabric_probe", script=SCRIPT, plan=plan(), ipu=False, timeout=120)["probe"]
    assert time.monotonic() - start < 60
    assert all("ImagePullBackOff" in pod["reason"] for pod in probe["pods"].values())
    assert left(api) == []


@pytest.mark.usefixtures("nodes")
def test_what_an_interrupted_run_left_is_removed(run: Modules, api: ApiServer) -> None:
    api.kubectl("create", "namespace", "ipu-fabric-verify-old")
    api.kubectl("label", "namespace", "ipu-fabric-verify-old", f"{LABEL}=ipu-fabric-verify")
    assert left(api) == ["ipu-fabric-verify-old"]
    run("fabric_probe", script=SCRIPT, plan={**plan(), "networks": []}, ipu=False, timeout=0)
    assert left(api) == []


def test_check_mode_asks_nobody(run: Modules) -> None:
    result = run("fabric_probe", check=True, plan={}, host="https://127.0.0.1:1", api_key="none")
    assert (result["changed"], result["probe"]["probed"]) == (False, False)


def test_an_empty_plan_is_refused(run: Modules, api: ApiServer) -> None:
    with pytest.raises(ModuleFailedError, match="no hosts in it"):
        run("fabric_probe", script=SCRIPT, plan={})
    assert left(api) == []
