"""What IPUJobs live through on a finished cluster: every policy, many at once, parts of the cluster that go away."""

from __future__ import annotations

import itertools
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import HOSTS, KUBECTL, Bed
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

IMAGE = "docker.io/library/busybox:1.37"
IPUS = 32  # of each V-IPU controller
AT_ONCE = 4  # modules that run at the same time


def ipujob(bed: Bed, name: str, command: str, **options: Any) -> dict[str, Any]:
    container = {"name": "main", "image": IMAGE, "command": ["sh", "-c", command]}
    template = {"spec": {"containers": [container], "terminationGracePeriodSeconds": 0}}
    return bed.module("ipujob", name=name, ipus_per_job_instance=1, workers={"template": template}, **options)


def absent(bed: Bed, *names: str, **options: Any) -> list[dict[str, Any]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda name: bed.module("ipujob", name=name, state="absent", **options), names))


def pods(bed: Bed, job: str) -> list[str]:
    """Those that exist and are not about to end."""
    found = [pod["metadata"] for pod in bed.kubectl("get pods")["items"]]
    return [pod["name"] for pod in found if pod["name"].startswith(f"{job}-") and "deletionTimestamp" not in pod]


def free(bed: Bed) -> int:
    return int(bed.module("ipujob_info", usage=True)["usage"]["total"]["available"])


POLICIES = list(itertools.product(("Never", "OnFailure", "ExitCode", "Always"), ("None", "Workers", "All"), (0, 3)))


def test_every_policy(finished: Bed) -> None:
    """Through success and failure. One restart at most; what cleans all pods up does not restart."""

    def run(policy: tuple[str, str, int]) -> tuple[str, dict[str, Any]]:
        restart, clean, code = policy
        name = f"{restart}-{clean}-{code}".lower()
        policy_of = {"type": restart, "back_off_limit": 1, **({"exit_codes": ["3"]} if restart == "ExitCode" else {})}
        options = {"restart_policy": policy_of, "clean_pod_policy": clean, "state": "finished", "wait_timeout": 300}
        return name, ipujob(finished, name, f"sleep 2; exit {code}", **options)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(run, POLICIES))
    for (restart, clean, code), (name, result) in zip(POLICIES, results, strict=True):
        again = clean != "All" and (restart == "Always" or (restart != "Never" and code != 0))
        job = result.get("job") or {}
        assert job.get("state") == ("Failed" if code else "Completed"), (name, result)
        assert bool(result.get("failed")) == bool(code), (name, result)
        assert job["restarts"] == int(again), (name, result)
        assert bool(pods(finished, name)) == (clean == "None"), name
    assert all(not result.get("failed") for result in absent(finished, *(name for name, _result in results)))


def test_fifty_jobs_at_once(finished: Bed) -> None:
    """More than there are IPUs: the others wait for theirs, and nothing is left when all have ended."""
    before = free(finished)
    assert before < 50
    spec = {
        "jobInstances": 1,
        "ipusPerJobInstance": "1",
        "cleanPodPolicy": "All",
        "workers": {"template": {"spec": {"containers": [{"name": "m", "image": IMAGE, "command": ["sleep", "3"]}]}}},
    }
    kind = {"apiVersion": "graphcore.ai/v1alpha1", "kind": "IPUJob", "spec": spec}
    names = [f"many-{number}" for number in range(50)]
    items = [{**kind, "metadata": {"name": name, "namespace": "default", "labels": {"app": "many"}}} for name in names]
    objects = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    finished.on("cp1", f"{KUBECTL} apply -f - <<'END'\n{objects}\nEND")
    deadline = time.monotonic() + 600
    states = [""]
    while set(states) != {"Completed"} and time.monotonic() < deadline:
        time.sleep(3)
        states = [job["state"] for job in finished.module("ipujob_info", label_selectors=["app=many"])["jobs"]]
    assert states == ["Completed"] * 50
    assert free(finished) == before
    finished.on("cp1", f"{KUBECTL} delete ipujobs -l app=many --timeout=2m")


def through(bed: Bed, name: str, fault: str) -> dict[str, Any]:
    """A job that is waited for while something goes wrong on the control plane."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ipujob, bed, name, "sleep 25", state="finished", wait_timeout=300)
        deadline = time.monotonic() + 60
        while not pods(bed, name) and time.monotonic() < deadline:
            time.sleep(1)
        bed.on("cp1", fault)
        return waiting.result()


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("operator", f"{KUBECTL} -n ipu-operator delete pod -l app.kubernetes.io/component=controller-manager --now"),
        ("apiserver", "pkill -KILL kube-apiserver"),
    ],
    ids=["operator killed", "API server killed"],
)
def test_a_wait_outlasts_it(finished: Bed, name: str, fault: str) -> None:
    result = through(finished, name, fault)
    assert not result.get("failed"), result
    assert result["job"]["state"] == "Completed"
    absent(finished, name)


def test_without_the_operator(finished: Bed) -> None:
    scale = f"{KUBECTL} -n ipu-operator scale deployment ipu-operator-controller-manager --replicas"
    ipujob(finished, "orphan", "sleep 600")
    finished.on("cp1", f"{scale}=0")
    finished.on(
        "cp1", f"{KUBECTL} -n ipu-operator wait --for=delete pod -l app.kubernetes.io/component=controller-manager"
    )
    try:
        refused = absent(finished, "orphan", wait_timeout=30)[0]
        assert refused["failed"]
        assert "force" in refused["error"]["next_step"]
        forced = absent(finished, "orphan", force=True, wait_timeout=60)[0]
        assert not forced.get("failed"), forced
        assert forced["partitions_left"] == ["p-orphan-default-0"]
    finally:
        finished.on("cp1", f"{scale}=1")
    assert finished.play("plan fabric").code == 0  # it waits until the webhook takes jobs again


def test_two_controllers(finished: Bed) -> None:
    """Each serves one host; one that is named later, and one that goes, need no new operator."""
    before = free(finished)
    both = [{"host": "10.5.0.20", "port": 8090 + number, "serves": [host]} for number, host in enumerate(HOSTS)]
    # Nobody listens on the second one's port.
    assert finished.play("plan fabric", fabric_vipu_hosts=both, fabric_probe_ports=False).code == 0
    planned = finished.plan()["vipu"]["node_labels"]
    assert planned["cp1"] != planned["w1"]
    for node in finished.kubectl("get nodes")["items"]:
        assert planned[node["metadata"]["name"]].items() <= node["metadata"]["labels"].items()
    deadline = time.monotonic() + 90  # the proxy reads its ConfigMap again within a minute
    while free(finished) != before + IPUS and time.monotonic() < deadline:
        time.sleep(5)
    assert free(finished) == before + IPUS
    assert finished.play("plan fabric").code == 0


def test_an_upgrade_with_a_job_running(finished: Bed) -> None:
    """From 1.1.0, whose chart lacks the definition, to 1.2.0: the job goes on, and the webhook takes new ones."""
    assert finished.play("reset", fabric_reset="fabric").code == 0
    crd = str(ROOT / "testbed/standins/crds/graphcore_ai_ipujobs_1.1.0.yaml")
    old = finished.play("plan fabric", fabric_ipu_operator_version="1.1.0", ipu_operator_crd_url=crd)
    assert old.code == 0
    assert not ipujob(finished, "lasting", "sleep 150")["failed"]
    before = finished.kubectl("get pod lasting-worker-0")["metadata"]["uid"]
    assert finished.play("plan fabric").code == 0
    assert finished.kubectl("get pod lasting-worker-0")["metadata"]["uid"] == before
    ended = ipujob(finished, "lasting", "sleep 150", state="finished", wait_timeout=300)
    assert ended["job"]["state"] == "Completed"
    again = finished.play("plan fabric")
    assert again.code == 0
    assert again.changed() == {}
    absent(finished, "lasting")
