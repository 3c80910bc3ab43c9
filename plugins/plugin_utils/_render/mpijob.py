# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MPIJobs over a fabric network: the same program over RoCE or over TCP. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.workload import (
    Object,
    Workload,
    checked_name,
    environment,
    pod_template,
    read_script,
)

API = "kubeflow.org/v2beta1"
# The workers' host names are made of the job's name.
LONGEST_NAME = 50
# Where the images of the MPI operator have the settings of an sshd that needs no root.
USER_SSHD = ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]
INTERFACE = "net1"
POLICIES = ("Running", "All", "None")
# The operator sets these for Open MPI 4 only. Version 5 would start all ranks in the launcher, and succeed.
OPEN_MPI_5 = {
    "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
    "PRTE_MCA_plm_ssh_args": "-o ConnectionAttempts=10",
}
# By default Open MPI uses UCX for InfiniBand's transports only: with TCP every rank would end at its start.
UCX = {"pml": "ucx", "osc": "ucx", "opal_common_ucx_tls": "any", "opal_common_ucx_devices": "any"}

ROCE_SCRIPT = read_script("roce_rank.sh")


class MpiJob(Workload, total=False):
    """Settings of an MPIJob: those of its pods, and how it is started. transport and command are needed."""

    transport: str  # roce or tcp
    workers: int  # pods
    slots_per_worker: int  # ranks
    mpirun_options: t.Sequence[str]
    launcher_resources: t.Mapping[str, t.Mapping[str, t.Any]]  # requests and limits
    clean_pod_policy: str  # Running, All or None
    ttl: int  # seconds that the job is kept
    suspend: bool


def rank_command(transport: str, command: t.Sequence[str]) -> t.List[str]:
    """What mpirun starts: the program, with the transport and the device that UCX uses."""
    if transport == "roce":
        return ["sh", "-c", ROCE_SCRIPT, "rank", *command]
    return ["env", "UCX_TLS=tcp,sm,self", f"UCX_NET_DEVICES={INTERFACE}", *command]


def mpirun(settings: MpiJob, ranks: int) -> t.List[str]:
    root = [] if settings.get("user") else ["--allow-run-as-root"]
    # A rank is started by sshd, which passes on nothing of its container's environment.
    names = [word for variable in environment(settings) for word in ("-x", variable["name"])]
    ucx = [word for option, value in UCX.items() for word in ("--mca", option, value)]
    own = [str(option) for option in settings.get("mpirun_options") or []]
    command = rank_command(settings["transport"], settings["command"])
    return ["mpirun", *root, "-n", str(ranks), "--bind-to", "none", *ucx, *names, *own, *command]


def replica(count: int, template: Object) -> Object:
    """The operator sets the restart policy of the pods from here."""
    return {"replicas": count, "restartPolicy": "Never", "template": template}


def mpi_job(settings: MpiJob) -> Object:
    """An MPIJob."""
    name = checked_name(settings["name"], LONGEST_NAME)
    where, transport, policy = f"MPIJob {name}", settings["transport"], settings.get("clean_pod_policy", "Running")
    if transport not in ("roce", "tcp"):
        step = "Use roce, or tcp to compare with."
        raise FabricError("An MPIJob has a transport.", f"{where}, transport", str(transport), step)
    # The definition allows any text here, and the operator then deletes nothing.
    if policy not in POLICIES:
        step = f"Use one of {', '.join(POLICIES)}."
        raise FabricError("An MPIJob has a policy for its pods.", f"{where}, clean_pod_policy", str(policy), step)
    if not settings.get("command"):
        step = "Give the program as a list."
        raise FabricError("An MPIJob runs a program.", f"{where}, command", "nothing", step)
    workers, slots = settings.get("workers", 2), settings.get("slots_per_worker", 1)
    roce = transport == "roce"
    # TCP needs no RDMA device, so it also runs on nodes without one.
    worker: MpiJob = {**settings, "command": [], "args": []}
    worker["rdma_resource"] = settings.get("rdma_resource", "") if roce else ""
    worker["check_memlock"] = roce and settings.get("check_memlock", True)
    if settings.get("user"):
        # The file of that sshd has this capability: without it in the bounding set the program can't even start.
        worker["command"], worker["capabilities"] = USER_SSHD, ["NET_BIND_SERVICE"]
    # The launcher is on the network too: mpirun's own connections may then take any interface.
    launcher: MpiJob = {**worker, "rdma_resource": "", "check_memlock": False}
    launcher["command"] = mpirun(settings, workers * slots)
    launcher["resources"] = settings.get("launcher_resources") or {}
    launcher["env"] = {**OPEN_MPI_5, **(settings.get("env") or {})}
    run_policy: Object = {"cleanPodPolicy": policy, "backoffLimit": settings.get("backoff_limit", 0)}
    run_policy["suspend"] = bool(settings.get("suspend"))
    optional = {"ttlSecondsAfterFinished": settings.get("ttl"), "activeDeadlineSeconds": settings.get("deadline")}
    run_policy.update({key: value for key, value in optional.items() if value})
    return {
        "apiVersion": API,
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": settings.get("namespace") or "default"},
        "spec": {
            "mpiImplementation": "OpenMPI",
            "slotsPerWorker": slots,
            "launcherCreationPolicy": "WaitForWorkersReady",
            "sshAuthMountPath": "/home/mpiuser/.ssh" if settings.get("user") else "/root/.ssh",
            "runPolicy": run_policy,
            "mpiReplicaSpecs": {
                "Launcher": replica(1, pod_template(launcher, {}, "launcher", "")),
                "Worker": replica(workers, pod_template(worker, {}, "worker", "")),
            },
        },
    }
