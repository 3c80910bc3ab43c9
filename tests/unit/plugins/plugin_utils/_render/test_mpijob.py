# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.plugin_utils._render import mpijob

JOB = {
    "name": "allreduce",
    "image": "osu:7",
    "transport": "roce",
    "command": ["osu_allreduce", "-i", "10"],
    "network": "rdma-net",
    "rdma_resource": "rdma/a",
}


def job(**settings):
    return mpijob.mpi_job({**JOB, **settings})


def pods(**settings):
    replicas = job(**settings)["spec"]["mpiReplicaSpecs"]
    return [replicas[part]["template"]["spec"] for part in ("Launcher", "Worker")]


def start(**settings):
    return pods(**settings)[0]["containers"][0]["command"]


def test_shape():
    found = job(workers=4, slots_per_worker=2, ttl=60, clean_pod_policy="All", namespace="hpc")
    assert found["apiVersion"] == "kubeflow.org/v2beta1"
    assert found["metadata"] == {"name": "allreduce", "namespace": "hpc"}
    spec = found["spec"]
    assert (spec["slotsPerWorker"], spec["mpiReplicaSpecs"]["Worker"]["replicas"]) == (2, 4)
    assert spec["runPolicy"] == {
        "cleanPodPolicy": "All",
        "backoffLimit": 0,
        "suspend": False,
        "ttlSecondsAfterFinished": 60,
    }
    # The operator warns of a policy in the pod's template.
    for replica in spec["mpiReplicaSpecs"].values():
        assert replica["restartPolicy"] == "Never"
        assert "restartPolicy" not in replica["template"]["spec"]


def test_roce():
    launcher, worker = pods(workers=2, slots_per_worker=3)
    command = launcher["containers"][0]["command"]
    assert command[:4] == ["mpirun", "--allow-run-as-root", "-n", "6"]
    assert command[-7:-4] == ["sh", "-c", mpijob.ROCE_SCRIPT]
    assert command[-4:] == ["rank", *JOB["command"]]
    assert worker["containers"][0]["resources"]["limits"] == {"rdma/a": "1"}
    assert worker["containers"][0]["securityContext"]["capabilities"] == {"add": ["IPC_LOCK"]}
    assert worker["initContainers"][0]["name"] == "memlock"
    assert "resources" not in launcher["containers"][0]
    assert "initContainers" not in launcher


def test_two_workers_with_a_rank_each_are_the_default():
    replicas = job()["spec"]["mpiReplicaSpecs"]
    assert {name: part["replicas"] for name, part in replicas.items()} == {"Launcher": 1, "Worker": 2}
    assert job()["spec"]["slotsPerWorker"] == 1
    assert start()[start().index("-n") + 1] == "2"


def test_the_launcher_has_its_own_resources():
    launcher, worker = pods(launcher_resources={"limits": {"cpu": 1}}, resources={"limits": {"cpu": 8}})
    assert launcher["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    assert worker["containers"][0]["resources"]["limits"] == {"cpu": "8", "rdma/a": "1"}


def test_tcp_needs_no_device():
    launcher, worker = pods(transport="tcp")
    program = ["env", "UCX_TLS=tcp,sm,self", "UCX_NET_DEVICES=net1", *JOB["command"]]
    assert launcher["containers"][0]["command"][-len(program) :] == program
    assert "resources" not in worker["containers"][0]
    assert "capabilities" not in worker["containers"][0]["securityContext"]
    assert "initContainers" not in worker


@pytest.mark.parametrize("transport", ["roce", "tcp"])
def test_both_are_on_the_network(transport):
    replicas = job(transport=transport)["spec"]["mpiReplicaSpecs"]
    for part in replicas.values():
        assert part["template"]["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": "rdma-net"}


def test_only_the_transport_differs():
    roce, tcp = start(), start(transport="tcp")
    at = roce.index("sh")
    assert roce[:at] == tcp[:at]


def test_as_a_normal_user():
    spec = job(user=1000)["spec"]
    assert spec["sshAuthMountPath"] == "/home/mpiuser/.ssh"
    launcher, worker = pods(user=1000)
    assert worker["containers"][0]["command"] == mpijob.USER_SSHD
    assert worker["containers"][0]["securityContext"]["capabilities"] == {
        "drop": ["ALL"],
        "add": ["IPC_LOCK", "NET_BIND_SERVICE"],
    }
    assert "--allow-run-as-root" not in launcher["containers"][0]["command"]


def test_every_open_mpi_finds_the_workers():
    launcher, worker = pods(env={"EPOCHS": 3})
    found = {one["name"]: one["value"] for one in launcher["containers"][0]["env"]}
    assert found == {**mpijob.OPEN_MPI_5, "EPOCHS": "3"}
    assert worker["containers"][0]["env"] == [{"name": "EPOCHS", "value": "3"}]
    own = pods(env={"PRTE_MCA_prte_default_hostfile": "/own"})[0]["containers"][0]["env"]
    assert {"name": "PRTE_MCA_prte_default_hostfile", "value": "/own"} in own


@pytest.mark.parametrize("transport", ["roce", "tcp"])
def test_open_mpi_takes_ucx_for_any_transport(transport):
    command = start(transport=transport)
    for option, value in (("pml", "ucx"), ("opal_common_ucx_tls", "any"), ("opal_common_ucx_devices", "any")):
        at = command.index(option)
        assert command[at - 1 : at + 2] == ["--mca", option, value]


def test_ranks_have_the_variables_of_the_job():
    vipu = {"host": "10.5.0.2", "partition": "training"}
    command = start(env={"EPOCHS": 3}, vipu=vipu)
    names = [command[at + 1] for at, word in enumerate(command) if word == "-x"]
    assert names == ["IPUOF_VIPU_API_HOST", "IPUOF_VIPU_API_PORT", "IPUOF_VIPU_API_PARTITION_ID", "EPOCHS"]
    launcher = {one["name"] for one in pods(env={"EPOCHS": 3}, vipu=vipu)[0]["containers"][0]["env"]}
    assert set(names) <= launcher
    assert "-x" not in start()


def test_own_options_of_mpirun_come_before_the_program():
    command = start(mpirun_options=["--map-by", "slot", "-x", "LD_LIBRARY_PATH"])
    assert command.index("--map-by") < command.index("sh")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"transport": "ib"}, "Use roce, or tcp"),
        ({"command": []}, "Give the program"),
        ({"clean_pod_policy": "Workers"}, "Use one of Running, All, None"),
        ({"name": "a" * 51}, "at most 50"),
    ],
)
def test_what_is_refused(settings, message):
    with pytest.raises(FabricError, match=message):
        job(**settings)


# A pod with the address 10.5.0.130 (0a05:0082). Another pod of the node has 10.5.0.13, and its GIDs are seen here too.
TRIE = """\
Local:
  +-- 0.0.0.0/0 3 0 5
           |-- 10.5.0.128
              /25 link UNICAST
           |-- 10.5.0.130
              /32 host LOCAL
"""
MAPPED = "0000:0000:0000:0000:0000:ffff:"


def sysfs(root, entries):
    for device, port, index, gid, kind in entries:
        ports = root / "class" / device / "ports" / port
        for folder in ("gids", "gid_attrs/types"):
            (ports / folder).mkdir(parents=True, exist_ok=True)
        (ports / "gids" / index).write_text(f"{gid}\n")
        (ports / "gid_attrs/types" / index).write_text(f"{kind}\n")
    (root / "fib_trie").write_text(TRIE)


OWN = f"{MAPPED}0a05:0082"


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([("mlx5_0", "1", "3", OWN, "RoCE v2")], "rc,sm,self mlx5_0:1 3 osu 7"),
        (
            [
                ("mlx5_0", "1", "0", "fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2"),
                ("mlx5_0", "1", "1", f"{MAPPED}0a05:000d", "RoCE v2"),
                ("mlx5_1", "2", "10", OWN, "IB/RoCE v1"),
                ("mlx5_1", "2", "11", OWN, "RoCE v2"),
            ],
            "rc,sm,self mlx5_1:2 11 osu 7",
        ),
        ([("mlx5_0", "1", "1", OWN, "IB/RoCE v1")], ""),
        ([("mlx5_0", "1", "1", f"{MAPPED}0a05:000d", "RoCE v2")], ""),
        ([], ""),
    ],
)
def test_roce_script_finds_the_pods_own_gid(tmp_path, shell, entries, said):
    sysfs(tmp_path, entries)
    script = mpijob.ROCE_SCRIPT.replace("/sys/class/infiniband", f"{tmp_path}/class")
    script = script.replace("/proc/net/fib_trie", f"{tmp_path}/fib_trie")
    show = 'echo "$UCX_TLS $UCX_NET_DEVICES $UCX_IB_GID_INDEX $*"'
    done = subprocess.run(
        [shell, "-c", script, "rank", "sh", "-c", show, "x", "osu", "7"], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == said
    assert done.returncode == (0 if said else 1)
    assert said or "no RoCE v2 GID holds an address of this pod" in done.stderr
