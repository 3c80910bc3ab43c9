# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs with RDMA: a training job, and one MPI program over RoCE and over TCP on the same network.

The ratio of both is that of software RDMA under emulation, and says nothing about speed; the counters say which way
the data took.
"""

from __future__ import annotations

import json
import re

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed, Result
from ansible_collections.ipu.fabric.tests.e2e.rdma.conftest import Fabric
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

RDMA_IMAGE = "nvcr.io/nvidia/doca/doca:3.3.0-full-rt-host"
MPI_IMAGE = "docker.io/mpioperator/mpi-pi:openmpi"
BYTES = 4 << 20
# Rank 0 sends to rank 1 and waits for its answer; then it says how fast, and what left its pod by which device.
PROGRAM = f"""
import json, os, subprocess, time
from mpi4py import MPI
world, data = MPI.COMM_WORLD, bytearray({BYTES})
def read(name):
    return int(open(name).read())
def sent():
    # Of all devices of the node; sysfs shows them to the host alone.
    found = json.loads(subprocess.run(["rdma", "-j", "statistic"], capture_output=True, check=True).stdout)
    netdev = {{name: read("/sys/class/net/" + name + "/statistics/tx_bytes") for name in ("net1", "eth0")}}
    return {{"rdma": sum(device["sent_pkts"] for device in found), **netdev}}
world.Barrier()
before, start = sent(), time.time()
world.Send(data, dest=1) if world.rank == 0 else world.Recv(data, source=0)
world.Barrier()
seconds = time.time() - start
if world.rank == 0:
    after = sent()
    used = os.environ.get("UCX_NET_DEVICES", "")
    said = {{"mbit": round({BYTES} * 8 / seconds / 1e6, 1), "device": used, "hosts": world.size}}
    print("RESULT", json.dumps({{**said, **{{name: after[name] - before[name] for name in after}}}}), flush=True)
"""


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


@pytest.fixture(scope="module")
def compared(fabric: Fabric, site: Result) -> dict[str, dict[str, float]]:
    """What the program said of itself over each transport."""
    assert site.code == 0
    assert fabric.bed.play("workloads", fabric_metrics=False).code == 0
    fabric.bed.on("cp1", f"{KUBECTL} delete mpijobs --all")
    result = example(
        fabric.bed,
        "mpi",
        example_image=MPI_IMAGE,
        example_program=["python3", "-c", PROGRAM],
        # rdma_rxe does not say of a datagram whether it came by IPv4, so UCX looks for its GID in the wrong place.
        example_env={"UCX_UD_VERBS_ETH_DGID_CHECK": "n", "UCX_WARN_UNUSED_ENV_VARS": "n"},
    )
    assert result.code == 0
    texts = re.findall(r"RESULT (\{.*?\})", result.text.replace('\\"', '"'))
    assert len(texts) == 2
    return dict(zip(("roce", "tcp"), map(json.loads, texts), strict=True))


def test_each_transport_takes_its_way(compared: dict[str, dict[str, float]]) -> None:
    roce, tcp = compared["roce"], compared["tcp"]
    print(f"RoCE {roce['mbit']} Mbit/s, TCP {tcp['mbit']} Mbit/s, ratio {roce['mbit'] / tcp['mbit']:.2f}:", end=" ")
    print("software RDMA under emulation, so they say nothing about speed")
    # Packets of 1 KiB by the pod's RDMA device, or all bytes by its netdev.
    assert roce["rdma"] > BYTES / 1024
    assert tcp["rdma"] == 0
    assert tcp["net1"] > BYTES
    for one in (roce, tcp):
        assert one["eth0"] < BYTES / 10
