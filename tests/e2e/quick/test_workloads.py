"""The examples of docs/workloads.md on a finished cluster. No RDMA here: MPI over it is in molecule's soft_roce."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed, Result
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

IMAGE = "docker.io/library/busybox:1.37"
ADDRESS = "ip -4 -o addr show net1"
PI = "docker.io/mpioperator/mpi-pi:openmpi"
# Rank 0 sends 8 MiB to rank 1, and says what its pod's net1 sent meanwhile.
SEND = """
from mpi4py import MPI
ranks, block = MPI.COMM_WORLD, bytearray(8 << 20)
sent = lambda: int(open("/sys/class/net/net1/statistics/tx_bytes").read())
before = sent()
ranks.Send(block, dest=1) if ranks.Get_rank() == 0 else ranks.Recv(block, source=0)
ranks.Barrier()
if ranks.Get_rank() == 0:
    print("net1 sent", sent() - before)
"""
# 32 MiB in eight seconds: long enough to be looked at.
SEND_ON = """
import time
from mpi4py import MPI
ranks, block = MPI.COMM_WORLD, bytearray(4 << 20)
for _turn in range(8):
    ranks.Send(block, dest=1) if ranks.Get_rank() == 0 else ranks.Recv(block, source=0)
    time.sleep(1)
"""
STATUS = "k8s.v1.cni.cncf.io/network-status"


def example(bed: Bed, name: str, **variables: Any) -> Result:
    """Run an example. There is no RDMA here, and a pod's limit of locked memory can't be raised."""
    given = {
        "native_workload_kubeconfig": str(bed.artifacts / "admin.conf"),
        "plan_file": str(bed.artifacts / "plan.json"),
        "native_workload_rdma_resource": "",
        "native_workload_check_memlock": False,
        "native_workload_timeout": 180,
        "example_image": IMAGE,
        "example_folder": "",
    }
    return bed.play(f"{ROOT}/docs/examples/{name}.yml", **{**given, **variables})


@pytest.mark.parametrize("user", ["0", "1000"])
def test_training(finished: Bed, user: str) -> None:
    command = f"echo uid $(id -u); echo V-IPU $IPUOF_VIPU_API_HOST port $IPUOF_VIPU_API_PORT; {ADDRESS}"
    result = example(finished, "native-training", example_training=command, native_workload_user=user)
    assert result.code == 0
    assert f"uid {user}\n" in result.shown
    planned = finished.plan()["vipu"]["controllers"][0]
    assert f"V-IPU {planned['address']} port {planned['port']}\n" in result.shown
    assert "net1" in result.text.partition("mnist-training-")[2]
    again = example(finished, "native-training", example_training=command, native_workload_user=user)
    assert (again.code, again.changed()) == (0, {})
    assert example(finished, "native-training", native_workload_state="absent").code == 0


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"example_training": "echo out of ideas; exit 3"}, "out of ideas"),
        ({"example_training": "echo out of ideas; exit 3", "native_workload_restart_policy": "Never"}, "out of ideas"),
        ({"native_workload_check_memlock": True}, "run the role ipu.fabric.memlock"),
    ],
)
def test_training_that_fails_shows_why(finished: Bed, given: dict[str, Any], seen: str) -> None:
    result = example(finished, "native-training", native_workload_backoff_limit=0, **given)
    assert result.code != 0
    assert "A job did not succeed." in result.text
    assert seen in result.text
    assert example(finished, "native-training", native_workload_state="absent").code == 0


def test_an_image_that_is_not_there_ends_the_wait(finished: Bed) -> None:
    result = example(finished, "native-training", example_image="docker.io/library/none:1")
    assert result.code != 0
    assert "waiting longer can't help" in result.text
    assert example(finished, "native-training", native_workload_state="absent").code == 0


def test_inference_scaled(finished: Bed) -> None:
    for replicas in (1, 3):
        assert (
            example(finished, "native-inference", example_inference="sleep 3600", example_replicas=replicas).code == 0
        )
        pods = finished.kubectl("get pods -l app.kubernetes.io/name=mnist-inference")["items"]
        running = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        addresses = {
            net["ips"][0]
            for pod in running
            for net in json.loads(pod["metadata"]["annotations"][STATUS])
            if net.get("interface") == "net1"
        }
        assert (len(running), len(addresses)) == (replicas, replicas)
    again = example(finished, "native-inference", example_inference="sleep 3600", example_replicas=3)
    assert (again.code, again.changed()) == (0, {})
    assert example(finished, "native-inference", native_workload_state="absent").code == 0
    # It starts, and ends at once: not ready, although each of its pods is for a moment.
    ended = example(finished, "native-inference", example_inference="sleep 1; exit 3")
    assert ended.code != 0
    assert "exit code 3" in ended.text
    assert example(finished, "native-inference", native_workload_state="absent").code == 0
    assert finished.kubectl("get deployments,services -l app.kubernetes.io/name=mnist-inference")["items"] == []


def mpi(bed: Bed, **variables: Any) -> Result:
    bed.on("cp1", f"{KUBECTL} delete mpijobs --all")
    return example(bed, "mpi", **{"example_image": PI, "example_transports": ["tcp"], **variables})


@pytest.fixture(scope="module")
def mpi_operator(bed: Bed, unbroken: dict[str, Any]) -> Bed:
    bed.finish()
    assert bed.play("workloads", fabric_metrics=False).code == 0
    again = bed.play("workloads", fabric_metrics=False)
    assert (again.code, again.changed()) == (0, {})
    return bed


@pytest.mark.parametrize("user", ["0", "1000"])
def test_mpi_over_tcp(mpi_operator: Bed, user: str) -> None:
    result = mpi(mpi_operator, native_workload_user=user)
    assert result.code == 0
    assert "pi is 3.1415926536, by 2 ranks on compare-tcp-worker-0 compare-tcp-worker-1" in result.text
    workers = mpi_operator.kubectl("get pods -l training.kubeflow.org/job-role=worker")["items"]
    assert all("deletionTimestamp" in pod["metadata"] for pod in workers)


def test_mpi_takes_the_network(mpi_operator: Bed) -> None:
    result = mpi(mpi_operator, example_program=["python3", "-c", SEND])
    sent = re.search(r"net1 sent (\d+)", result.text)
    assert sent
    assert int(sent[1]) > 8 << 20


def test_mpi_over_tcp_is_recorded(mpi_operator: Bed) -> None:
    result = mpi(mpi_operator, example_program=["python3", "-c", SEND_ON], example_record=True)
    assert result.code == 0
    moved = mpi_operator.kubectl("get mpijob compare-tcp")["metadata"]["annotations"]["fabric.ipu/moved"]
    assert re.fullmatch(r"moved [\d.]+ MB over TCP on net1: NCCL_IB_DISABLE is 1; UCX_TLS is tcp,sm,self", moved)
    assert moved in result.shown


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"example_program": ["sh", "-c", "echo out of ideas; exit 3"]}, "out of ideas"),
        ({"example_transports": ["roce"]}, "no RoCE v2 GID holds an address of this pod"),
        ({"example_transports": ["roce"], "native_workload_check_memlock": True}, "the launcher does not start"),
        ({"example_image": "docker.io/library/none:1"}, "waiting longer can't help"),
    ],
)
def test_mpi_that_fails_shows_why(mpi_operator: Bed, given: dict[str, Any], seen: str) -> None:
    result = mpi(mpi_operator, **given)
    assert result.code != 0
    assert seen in result.text
    mpi_operator.on("cp1", f"{KUBECTL} delete mpijobs --all")


def test_teams(finished: Bed) -> None:
    assert example(finished, "teams").code == 0
    ask = f"{KUBECTL} auth can-i create ipujobs.graphcore.ai --as x --as-group vision-team -n "
    assert finished.on("cp1", ask + "vision", check=False).strip() == "yes"
    assert finished.on("cp1", ask + "speech", check=False).strip() == "no"
    assert finished.kubectl("get resourcequota fabric -n vision")["spec"]["hard"]["count/ipujobs.graphcore.ai"] == "8"
    finished.on("cp1", f"{KUBECTL} delete namespace vision speech")


def test_metrics(finished: Bed) -> None:
    for command in ("create namespace monitoring", "-n monitoring create serviceaccount prometheus"):
        finished.on("cp1", f"{KUBECTL} {command} --dry-run=client -o yaml | {KUBECTL} apply -f -")
    assert finished.play("workloads").code == 0
    again = finished.play("workloads")
    assert (again.code, again.changed()) == (0, {})
    # The token of the metrics' own account is good for metrics, and for nothing else; Prometheus's own is not.
    secret = f"{KUBECTL} -n monitoring get secret ipu-operator-metrics-token -o jsonpath='{{.data.token}}'"
    ask = "curl -sk -o /dev/null -w '%{http_code}' -H @- https://localhost:6443"
    answers = [
        finished.on("cp1", f"{{ printf 'Authorization: Bearer '; {secret} | base64 -d; }} | {ask}{path}")
        for path in ("/metrics", "/api/v1/nodes")
    ]
    assert answers == ["200", "403"]
    own = f"{KUBECTL} auth can-i get /metrics --as system:serviceaccount:monitoring:prometheus"
    assert finished.on("cp1", own, check=False).strip() == "no"
    assert (finished.artifacts / "metrics" / "scrape.yml").exists()
