"""What a job and its pods say of themselves: over verbs, forced to TCP, and a pod that has all that RDMA needs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed
from ansible_collections.ipu.fabric.tests.e2e.rdma.conftest import Fabric
from ansible_collections.ipu.fabric.tests.e2e.rdma.test_jobs import MPI_IMAGE, RDMA_IMAGE

# Ranks that send for minutes, so that both are looked at again and again, and sleep in between: two ranks that poll
# keep an emulated processor from everything else, the looks included.
PROGRAM = """
import time
from mpi4py import MPI
ranks, block, end = MPI.COMM_WORLD, bytearray(1 << 18), time.monotonic() + 150
if ranks.Get_rank() == 0:
    while not block[0]:
        block[0] = time.monotonic() > end
        ranks.Send(block, dest=1)
        time.sleep(0.2)
while not block[0]:
    if ranks.Iprobe(source=0):
        ranks.Recv(block, source=0)
    time.sleep(0.1)
"""
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - ipu.fabric.kube_apply:
        kubeconfig: "{{ kubeconfig }}"
        objects: ["{{ job | ipu.fabric.mpi_job }}"]
    - ipu.fabric.kube_wait:
        kubeconfig: "{{ kubeconfig }}"
        job: {kind: MPIJob, name: "{{ job.name }}"}
        patience: 60
        timeout: 1800
      register: run
    - ansible.builtin.copy:
        content: "{{ run.record | to_json }}"
        dest: "{{ record }}"
        mode: "0644"
"""


@pytest.fixture(scope="module")
def operator(proved_once: Fabric) -> Fabric:
    assert proved_once.bed.play("workloads", fabric_metrics=False).code == 0
    return proved_once


@pytest.fixture(scope="module")
def proved_once(fabric: Fabric, site: Any) -> Fabric:
    assert site.code == 0
    return fabric


def record(bed: Bed, folder: Path, transport: str, **settings: Any) -> dict[str, Any]:
    """The record of a job, which its annotation has too."""
    job = {
        "name": f"record-{transport}",
        "image": MPI_IMAGE,
        "command": ["python3", "-c", PROGRAM],
        "transport": transport,
        "network": "rdma-net",
        "rdma_resource": "rdma/rdma_shared_device_a",
        "user": 1000,
        "one_per_node": True,
        "record": True,
        "env": {"UCX_UD_VERBS_ETH_DGID_CHECK": "n"},
        **settings,
    }
    playbook, found = folder / "record.yml", folder / "record.json"
    playbook.write_text(PLAY)
    bed.on("cp1", f"{KUBECTL} delete mpijobs --all")
    result = bed.play(str(playbook), job=job, kubeconfig=str(bed.artifacts / "admin.conf"), record=str(found))
    if result.code:
        logs = f"{KUBECTL} logs -l training.kubeflow.org/job-name={job['name']}"
        print(bed.on("cp1", f"{KUBECTL} get pods -o wide; {logs}"))
    assert result.code == 0
    seen: dict[str, Any] = json.loads(found.read_text())
    print(json.dumps(seen, indent=1))
    annotations = bed.kubectl(f"get mpijob {job['name']}")["metadata"]["annotations"]
    assert annotations["fabric.ipu/moved"] == seen["text"]
    assert {rank["pod"] for rank in seen["ranks"]} == {f"{job['name']}-worker-{number}" for number in (0, 1)}
    return seen


def ranks_seen(record: dict[str, Any]) -> list[dict[str, Any]]:
    """An emulated processor that a rank keeps busy may end no look in time: the record's note says so then."""
    found = [rank for rank in record["ranks"] if rank["looks"] > 1]
    assert len(found) == 2 or (found and record["note"] == "1 of 2 pods were not seen twice")
    return found


def test_a_job_over_verbs(operator: Fabric, tmp_path: Path) -> None:
    seen = record(operator.bed, tmp_path, "roce")
    assert seen["verdict"] == "rdma"
    assert re.fullmatch(r"moved [\d,]+ packets over RDMA on soft\d+(, soft\d+)?", seen["text"])
    assert (seen["why"], seen["next"]) == ("", "")
    for rank in ranks_seen(seen):
        assert re.fullmatch(r"soft\d+:1", rank["environment"]["UCX_NET_DEVICES"])
        assert rank["gids"]


def test_the_same_job_forced_to_tcp(operator: Fabric, tmp_path: Path) -> None:
    seen = record(operator.bed, tmp_path, "tcp")
    assert seen["verdict"] == "tcp"
    assert re.match(r"moved [\d.,]+ [MG]B over TCP on net1: NCCL_IB_DISABLE is 1; UCX_TLS is tcp", seen["text"])
    assert seen["next"]


def test_a_job_that_has_the_device_and_does_not_take_it(operator: Fabric, tmp_path: Path) -> None:
    env = {"UCX_TLS": "tcp,sm,self", "UCX_NET_DEVICES": "net1"}
    seen = record(operator.bed, tmp_path, "roce", env=env)
    assert seen["verdict"] == "tcp"
    assert "UCX_TLS is tcp,sm,self" in seen["why"]
    assert "no RDMA device" not in seen["why"]
    assert all(rank["gids"] for rank in ranks_seen(seen))


POD = """
apiVersion: v1
kind: Pod
metadata: {name: explained, annotations: {k8s.v1.cni.cncf.io/networks: rdma-net}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: %s
      command: [sleep, "3600"]
      securityContext: {capabilities: {add: [IPC_LOCK]}}
      resources: {limits: {rdma/rdma_shared_device_a: 1}}
"""


@pytest.fixture
def pod(proved_once: Fabric) -> Iterator[Bed]:
    bed = proved_once.bed
    bed.on("cp1", f"{KUBECTL} apply -f - <<'END'\n{POD % RDMA_IMAGE}\nEND")
    try:
        bed.on("cp1", f"{KUBECTL} wait --for=condition=Ready pod/explained --timeout=300s")
        yield bed
    finally:
        bed.on("cp1", f"{KUBECTL} delete pod explained")


def test_a_pod_that_has_all(pod: Bed) -> None:
    result = pod.play("explain", pod="default/explained")
    assert (result.code, result.changed()) == (0, {})
    assert "Pod default/explained has all that RDMA needs" in result.shown
    assert re.search(r"GID of 10\.5\.0\.\d+: soft\d+ port 1 index \d+, RoCE v2", result.shown)
