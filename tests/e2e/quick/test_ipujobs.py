"""IPUJobs as docs/ipujobs.md shows them, on a finished cluster."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed

MPI_IMAGE = "docker.io/mpioperator/mpi-pi:openmpi"
# Rank 0 sends 8 MiB to rank 1, and says what its pod's interfaces sent meanwhile.
SEND = """
import json
from mpi4py import MPI
ranks, block = MPI.COMM_WORLD, bytearray(8 << 20)
def sent(name):
    return int(open(f"/sys/class/net/{name}/statistics/tx_bytes").read())
before = {name: sent(name) for name in ("net1", "eth0")}
ranks.Send(block, dest=1) if ranks.Get_rank() == 0 else ranks.Recv(block, source=0)
ranks.Barrier()
if ranks.Get_rank() == 0:
    print(json.dumps({name: sent(name) - count for name, count in before.items()}), flush=True)
"""


def ipujob(bed: Bed, name: str, **options: Any) -> dict[str, Any]:
    """A job of two workers on the network, run to its end and removed; there is no RDMA hardware here."""
    given = {
        "name": name,
        "ipus_per_job_instance": 1,
        "workers_per_job_instance": 2,
        "networks": ["rdma-net"],
        "workers": {"template": {"spec": {"containers": [{"name": "main", "image": MPI_IMAGE}]}}},
        "clean_pod_policy": "All",
        "state": "finished",
        "wait_timeout": 300,
        **options,
    }
    result = bed.module("ipujob", **given)
    assert not bed.module("ipujob", name=name, state="absent").get("failed")
    return result


def logs(bed: Bed) -> dict[str, str]:
    return {path.name: path.read_text() for path in (bed.artifacts / "logs").iterdir()}


def jobs(bed: Bed) -> list[str]:
    return [job["metadata"]["name"] for job in bed.kubectl("get ipujobs -A")["items"]]


def test_training(finished: Bed) -> None:
    result = finished.example("training")
    assert result.code == 0
    assert "Completed" in result.text
    assert logs(finished)["training-launcher.train.log"] == "".join(f"epoch {n} of 3\n" for n in (1, 2, 3))
    assert jobs(finished) == []


def test_training_by_mpirun_on_the_workers(finished: Bed) -> None:
    result = finished.example("training-mpi")
    assert result.code == 0
    said = logs(finished)["training-mpi-launcher.train.log"]
    assert "pi is 3.1415926536, by 2 ranks on training-mpi-worker-0 training-mpi-worker-1\n" in said
    assert jobs(finished) == []
    # What the launcher was allowed to do goes with the job.
    ask, deadline = "get roles,serviceaccounts -l graphcore.ai/ipujob=training-mpi", time.monotonic() + 60
    while finished.kubectl(ask)["items"] and time.monotonic() < deadline:
        time.sleep(2)
    assert finished.kubectl(ask)["items"] == []


@pytest.mark.parametrize("interfaces", [None, ["eth0"]], ids=["of the network", "of the pods"])
def test_mpi_takes_the_interface_that_it_is_told(finished: Bed, interfaces: list[str] | None) -> None:
    launcher = {"command": ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-np", "2", "python3", "-c", SEND]}
    result = ipujob(finished, "send", launcher=launcher | ({"mpi_interfaces": interfaces} if interfaces else {}))
    assert not result["failed"], result
    sent = json.loads(next(line for log in result["logs"] for line in log["tail"] if line.startswith("{")))
    taken, other = ("eth0", "net1") if interfaces else ("net1", "eth0")
    assert sent[taken] > 8 << 20
    assert sent[other] < 4 << 20


def test_a_job_that_fails_in_a_rank_fails(finished: Bed) -> None:
    command = ["mpirun", "--allow-run-as-root", "-np", "2", "sh", "-c", "echo out of ideas; exit 3"]
    result = ipujob(finished, "failing-rank", launcher={"command": command})
    assert result["failed"]
    assert "exit code 3" in result["error"]["seen"]
    assert any("out of ideas" in line for log in result["logs"] for line in log["tail"])


def test_inference(finished: Bed) -> None:
    result = finished.example("inference")
    assert result.code == 0
    assert "inference is Running" in result.text
    assert all(f"p-inference-default-{n}" in result.text for n in range(3))
    assert "['inference-worker-0'] with ['p-inference-default-0']" in result.text
    # One task made it, two scaled it, one found nothing to do, one removed it.
    assert result.changed() == {"localhost": 4}
    assert jobs(finished) == []


def free(bed: Bed) -> int:
    return int(bed.module("ipujob_info", usage=True)["usage"]["total"]["available"])


def test_scale_up_and_down(finished: Bed) -> None:
    """Each instance has its own partition, and a smaller scale gives the IPUs of the others back."""
    before = free(finished)
    container = {"name": "main", "image": "docker.io/library/busybox:1.37", "command": ["sleep", "3600"]}
    template = {"spec": {"containers": [container], "terminationGracePeriodSeconds": 0}}
    made = finished.module("ipujob", name="scaled", ipus_per_job_instance=2, workers={"template": template})
    assert not made["failed"], made
    for instances in (3, 1, 4, 2):
        result = finished.module("ipujob", name="scaled", state="scaled", job_instances=instances)
        assert not result["failed"], result
        assert (result["changed"], result["job"]["uid"]) == (True, made["job"]["uid"])
        pods = [pod["metadata"] for pod in finished.kubectl("get pods -l graphcore.ai/ipujob=scaled")["items"]]
        names = sorted(pod["name"] for pod in pods if "deletionTimestamp" not in pod)
        assert names == [f"scaled-worker-{number}" for number in range(instances)]
        deadline = time.monotonic() + 30  # the partitions go when the pods have been told to
        while free(finished) != before - 2 * instances and time.monotonic() < deadline:
            time.sleep(1)
        assert free(finished) == before - 2 * instances
    # kubectl scale does the same.
    finished.on("cp1", f"{KUBECTL} scale ipujob scaled --replicas 1")
    again = finished.module("ipujob", name="scaled", state="scaled", job_instances=1)
    assert (again["failed"], again["changed"]) == (False, False)
    assert not finished.module("ipujob", name="scaled", state="absent")["failed"]
    assert free(finished) == before


def test_failure(finished: Bed) -> None:
    result = finished.example("failure")
    assert result.code == 0
    assert result.recap["localhost"]["rescued"] == 1
    assert "exit code 3" in result.text
    assert "2 restarts" in result.text
    runs = ("failing-worker-0.train.log", "failing-worker-0.train.2.log", "failing-worker-0.train.3.log")
    assert {name: logs(finished)[name] for name in runs} == dict.fromkeys(runs, "no dataset in /data\n")
    evidence = json.loads(logs(finished)["failing.evidence.json"])
    assert evidence["conditions"][-1]["type"] == "Failed"
    assert any("Pod failing-worker-0: Started" in line for line in evidence["events"])
    told = {log["name"].rpartition(".")[2]: log for log in evidence["operator"]}
    assert set(told) == {"manager", "vipu-proxy"}
    assert any("default/failing: Failed" in line for line in told["manager"]["lines"])
    assert not any(log["error"] for log in told.values())
    assert jobs(finished) == []


def test_interactive(finished: Bed) -> None:
    result = finished.example("interactive", seconds=120)
    assert result.code == 0
    assert "kubectl exec -it --namespace default session-launcher -- bash" in result.text
    inside = "sh -c 'echo $IPUOF_VIPU_API_PARTITION_ID'"
    assert finished.on("cp1", f"{KUBECTL} exec session-launcher -- {inside}") == "p-session-default-0\n"
    assert finished.example("interactive", session_state="absent").code == 0
    assert finished.kubectl("get ipujobs")["items"] == []
