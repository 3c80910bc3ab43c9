# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of docs/workloads.md on a finished cluster. MPI is not among them: no image of it is to be had here."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bed import KUBECTL, ROOT, Bed, Result

IMAGE = "docker.io/library/busybox:1.37"
ADDRESS = "ip -4 -o addr show net1"
STATUS = "k8s.v1.cni.cncf.io/network-status"


def example(bed: Bed, name: str, **variables: Any) -> Result:
    """Run an example. There is no RDMA here, and a pod's limit of locked memory can't be raised."""
    given = {
        "native_workload_kubeconfig": str(bed.artifacts / "admin.conf"),
        "native_workload_rdma_resource": "",
        "native_workload_check_memlock": False,
        "native_workload_timeout": 180,
        "example_image": IMAGE,
        "example_folder": "",
    }
    return bed.play(f"{ROOT}/docs/examples/{name}.yml", **{**given, **variables})


@pytest.mark.parametrize("user", ["0", "1000"])
def test_training(finished: Bed, user: str) -> None:
    command = f"echo uid $(id -u); {ADDRESS}"
    result = example(finished, "native-training", example_training=command, native_workload_user=user)
    assert result.code == 0
    assert f"uid {user}\n" in result.text
    assert "net1" in result.text.partition("mnist-training-")[2]
    again = example(finished, "native-training", example_training=command, native_workload_user=user)
    assert (again.code, again.changed()) == (0, {})
    assert example(finished, "native-training", native_workload_state="absent").code == 0


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"example_training": "echo out of ideas; exit 3"}, "out of ideas"),
        ({"native_workload_check_memlock": True}, "run the role ipu.fabric.memlock"),
    ],
)
def test_training_that_fails_shows_why(finished: Bed, given: dict[str, Any], seen: str) -> None:
    result = example(finished, "native-training", native_workload_backoff_limit=0, **given)
    assert result.code != 0
    assert "A job was expected to succeed." in result.text
    assert seen in result.text
    assert example(finished, "native-training", native_workload_state="absent").code == 0


def test_an_image_that_is_not_there_ends_the_wait(finished: Bed) -> None:
    result = example(finished, "native-training", example_image="docker.io/library/none:1")
    assert result.code != 0
    assert "this can't become ready by waiting" in result.text
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
    assert finished.kubectl("get deployments,services -l app.kubernetes.io/name=mnist-inference")["items"] == []


def test_teams(finished: Bed) -> None:
    assert example(finished, "teams").code == 0
    ask = f"{KUBECTL} auth can-i create ipujobs.graphcore.ai --as x --as-group vision-team -n "
    assert finished.on("cp1", ask + "vision", check=False).strip() == "yes"
    assert finished.on("cp1", ask + "speech", check=False).strip() == "no"
    assert finished.kubectl("get resourcequota fabric -n vision")["spec"]["hard"]["count/ipujobs.graphcore.ai"] == "8"
    finished.on("cp1", f"{KUBECTL} delete namespace vision speech")


def test_metrics(finished: Bed) -> None:
    finished.on(
        "cp1", f"{KUBECTL} create namespace monitoring; {KUBECTL} -n monitoring create serviceaccount prometheus"
    )
    assert finished.play("workloads", fabric_mpi_operator=False).code == 0
    again = finished.play("workloads", fabric_mpi_operator=False)
    assert (again.code, again.changed()) == (0, {})
    ask = f"{KUBECTL} auth can-i get /metrics --as system:serviceaccount:monitoring:prometheus"
    assert finished.on("cp1", ask, check=False).strip() == "yes"
    assert (finished.artifacts / "metrics" / "scrape.yml").exists()
