"""Jobs with RDMA: a training job, and one MPI program over RoCE and over TCP on the same network.

The ratio of both is that of software RDMA under emulation, and says nothing about speed; the counters say which way
the data took.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.transports import Comparison, transport_comparison
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed, Result
from ansible_collections.ipu.fabric.tests.e2e.rdma.conftest import Fabric
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

RDMA_IMAGE = "nvcr.io/nvidia/doca/doca:3.3.0-full-rt-host"
MPI_IMAGE = "docker.io/mpioperator/mpi-pi:openmpi"
# Sizes to 256 KiB, each eight times the one before, and 20 messages of each: some 30 MB under emulation.
PINGPONG = ["python3", "-c", (ROOT / "docs/examples/files/pingpong.py").read_text(), "262144", "8", "20"]
SIZES = [1, 8, 64, 512, 4096, 32768, 262144]


def example(bed: Bed, name: str, **variables: object) -> Result:
    given = {
        "native_workload_kubeconfig": str(bed.artifacts / "admin.conf"),
        "native_workload_timeout": 900,
        "plan_file": str(bed.artifacts / "plan.json"),
    }
    return bed.play(f"{ROOT}/docs/examples/{name}.yml", **{**given, **variables})


def test_a_training_job_holds_the_device(proved: Fabric) -> None:
    command = "echo uid $(id -u), memlock $(ulimit -l), files $(ls /dev/infiniband); ibv_devices"
    result = example(
        proved.bed, "native-training", example_image=RDMA_IMAGE, example_folder="", example_training=command
    )
    assert result.code == 0
    assert re.search(r"uid 1000, memlock unlimited, files .*rdma_cm.* uverbs\d", result.shown)
    again = example(proved.bed, "native-training", example_image=RDMA_IMAGE, native_workload_state="absent")
    assert again.code == 0


class Compared(NamedTuple):
    """What the example has left."""

    logs: dict[str, str]  # by transport
    report: str
    result: Comparison


@pytest.fixture(scope="module")
def compared(fabric: Fabric, site: Result) -> Compared:
    """The example that compares both transports, with its program."""
    assert site.code == 0
    assert fabric.bed.play("workloads", fabric_metrics=False).code == 0
    fabric.bed.on("cp1", f"{KUBECTL} delete mpijobs --all")
    artifacts = fabric.bed.artifacts
    done = example(
        fabric.bed,
        "mpi-compare",
        example_artifacts=str(artifacts),
        example_image=MPI_IMAGE,
        example_programs={"pingpong": PINGPONG},
        # rdma_rxe does not say of a datagram whether it came by IPv4, so UCX looks for its GID in the wrong place.
        example_env={"UCX_UD_VERBS_ETH_DGID_CHECK": "n", "UCX_WARN_UNUSED_ENV_VARS": "n"},
    )
    assert done.code == 0
    logs = {name: (artifacts / f"transports-{name}.log").read_text() for name in ("roce", "tcp")}
    report = (artifacts / "transports.md").read_text()
    print(report)
    return Compared(logs, report, transport_comparison({"logs": logs, "interfaces": ["net1"]}))


def environments(log: str) -> dict[str, dict[str, str]]:
    """The variables that each rank says it was given."""
    found: dict[str, dict[str, str]] = {}
    for rank, name, value in re.findall(r"^@@ rank (\d+) on \S+: ([A-Z]\w+)=(.*)$", log, re.MULTILINE):
        found.setdefault(rank, {})[name] = value
    return found


def test_each_rank_has_the_variables_of_its_pod(compared: Compared) -> None:
    roce, tcp = environments(compared.logs["roce"]), environments(compared.logs["tcp"])
    assert set(roce) == set(tcp) == {"0", "1"}
    for given in roce.values():
        device = given["UCX_NET_DEVICES"]
        assert re.fullmatch(r"soft\d+:1", device)
        assert given["NCCL_IB_HCA"] == f"={device}"
        assert re.fullmatch(r"\d+", given["NCCL_IB_GID_INDEX"])
        assert given["UCX_IB_GID_INDEX"] == given["NCCL_IB_GID_INDEX"]
        assert (given["NCCL_IB_DISABLE"], given["HOROVOD_MPI_THREADS_DISABLE"]) == ("0", "1")
    for given in tcp.values():
        assert given["UCX_NET_DEVICES"] == "net1"
        assert (given["NCCL_IB_DISABLE"], given["HOROVOD_MPI_THREADS_DISABLE"]) == ("1", "0")
        assert not {"NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "UCX_IB_GID_INDEX"} & set(given)
    for given in (*roce.values(), *tcp.values()):
        assert given["NCCL_SOCKET_IFNAME"] == "=net1"
        # What the job itself sets reaches the ranks too.
        assert given["UCX_UD_VERBS_ETH_DGID_CHECK"] == "n"


def test_two_tables_compare_the_transports(compared: Compared) -> None:
    tables = {table["title"]: table for table in compared.result["tables"]}
    assert list(tables) == ["MPI Latency", "MPI Bandwidth"]
    for title, table in tables.items():
        assert [row["size"] for row in table["rows"]] == SIZES
        assert all(row["ratio"] > 0 for row in table["rows"])
        assert f"## {title}" in compared.report
    assert "Figures of software RDMA say nothing about speed." in compared.report


def test_each_transport_takes_its_way(compared: Compared) -> None:
    assert [(way["transport"], way["state"]) for way in compared.result["ways"]] == [
        ("roce", "passed"),
        ("tcp", "passed"),
    ]
    moved: dict[tuple[str, str], int] = {}
    for each in compared.result["moved"]:
        kind = "rdma" if each["kind"] == "packets" else each["device"]
        moved[each["transport"], kind] = max(moved.get((each["transport"], kind), 0), each["amount"])
    # At least one window of the largest messages: packets of 1 KiB by the RDMA device, or bytes by the pod's interface.
    data = 16 * SIZES[-1]
    assert moved["roce", "rdma"] > data / 1024
    assert moved.get(("tcp", "rdma"), 0) == 0
    assert moved["tcp", "net1"] > data
    # mpirun's own connections may take eth0; the data does not.
    assert moved.get(("roce", "eth0"), 0) < data / 10
    assert moved.get(("tcp", "eth0"), 0) < data / 10
