# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MPIJobs over a fabric network: the same program over RoCE or over TCP."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._render.workload import (
    Object,
    Settings,
    checked_name,
    environment,
    pod_template,
    wrong,
)

API = "kubeflow.org/v2beta1"
# The workers' host names are made of the job's name.
LONGEST_NAME = 50
# Where the images of the MPI operator have the settings of an sshd that needs no root.
USER_SSHD = ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]
INTERFACE = "net1"
POLICIES = ("Running", "All", "None")
# The operator tells this to Open MPI 4 only. Version 5 would start all ranks in the launcher, and call that a success.
OPEN_MPI_5 = {
    "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
    "PRTE_MCA_plm_ssh_args": "-o ConnectionAttempts=10",
}
# By itself Open MPI takes UCX for InfiniBand's transports only: with TCP every rank would end at its start.
UCX = {"pml": "ucx", "osc": "ucx", "opal_common_ucx_tls": "any", "opal_common_ucx_devices": "any"}

# Before each rank. The index of a GID differs from pod to pod, and all pods of a node see all GIDs: the right one is
# RoCE v2 and holds an address of this pod's own network namespace.
ROCE_SCRIPT = """\
prefix=0000:0000:0000:0000:0000:ffff:
for gid in /sys/class/infiniband/*/ports/*/gids/*; do
  read -r value 2>/dev/null < "$gid" || continue
  case $value in $prefix*) ;; *) continue ;; esac
  port=${gid%/gids/*} index=${gid##*/}
  read -r type 2>/dev/null < "$port/gid_attrs/types/$index" || continue
  [ "$type" = "RoCE v2" ] || continue
  hex=${value#$prefix} low=${value##*:}
  high=${hex%:*}
  address=$((0x$high >> 8)).$((0x$high & 255)).$((0x$low >> 8)).$((0x$low & 255))
  grep -qwF -e "-- $address" /proc/net/fib_trie || continue
  device=${port#/sys/class/infiniband/}
  export UCX_TLS=rc,sm,self UCX_NET_DEVICES="${device%%/*}:${port##*/}" UCX_IB_GID_INDEX="$index"
  exec "$@"
done
echo "no RoCE v2 GID holds an address of this pod. Next: look at net1 and at the RDMA resource of the pod." >&2
exit 1
"""


def rank_command(transport: str, command: t.Sequence[str]) -> t.List[str]:
    """What mpirun starts: the program, with UCX told which transport and which device to use."""
    if transport == "roce":
        return ["sh", "-c", ROCE_SCRIPT, "rank", *command]
    return ["env", "UCX_TLS=tcp,sm,self", f"UCX_NET_DEVICES={INTERFACE}", *command]


def mpirun(settings: Settings, ranks: int) -> t.List[str]:
    root = [] if settings.get("user") else ["--allow-run-as-root"]
    # A rank is started by sshd, which hands on nothing of its container's environment.
    names = [word for variable in environment(settings) for word in ("-x", variable["name"])]
    ucx = [word for option, value in UCX.items() for word in ("--mca", option, value)]
    own = [str(option) for option in settings.get("mpirun_options") or []]
    command = rank_command(settings["transport"], settings["command"])
    return ["mpirun", *root, "-n", str(ranks), "--bind-to", "none", *ucx, *names, *own, *command]


def replica(count: int, template: Object) -> Object:
    """The operator sets the restart policy of the pods from here."""
    return {"replicas": count, "restartPolicy": "Never", "template": template}


def mpi_job(settings: Settings) -> Object:
    """An MPIJob; the filter's documentation lists the settings."""
    name = checked_name(settings["name"], LONGEST_NAME)
    if settings["transport"] not in ("roce", "tcp"):
        step = "Use roce, or tcp to compare with."
        raise wrong("An MPIJob has a transport.", f"MPIJob {name}, transport", settings["transport"], step)
    # The definition takes any text here, and the operator then cleans up nothing.
    if settings.get("clean_pod_policy", "Running") not in POLICIES:
        step = f"Use one of {', '.join(POLICIES)}."
        raise wrong("An MPIJob cleans up.", f"MPIJob {name}, clean_pod_policy", settings["clean_pod_policy"], step)
    if not settings.get("command"):
        raise wrong("An MPIJob runs a program.", f"MPIJob {name}, command", "nothing", "Give the program as a list.")
    workers, slots = settings.get("workers", 2), settings.get("slots_per_worker", 1)
    roce = settings["transport"] == "roce"
    # TCP needs no RDMA device, so the comparison runs on nodes without one too.
    worker = {**settings, "rdma_resource": settings.get("rdma_resource") if roce else "", "command": [], "args": []}
    worker["check_memlock"] = roce and settings.get("check_memlock", True)
    if settings.get("user"):
        # The file of that sshd has this capability: without it in the bounding set the program can't even start.
        worker.update(command=USER_SSHD, capabilities=["NET_BIND_SERVICE"])
    # The launcher is on the network too: mpirun's own connections may then take any interface.
    launcher = {**worker, "rdma_resource": "", "check_memlock": False, "command": mpirun(settings, workers * slots)}
    launcher["resources"] = settings.get("launcher_resources") or {}
    launcher["env"] = {**OPEN_MPI_5, **(settings.get("env") or {})}
    policy: Object = {"cleanPodPolicy": settings.get("clean_pod_policy", "Running")}
    policy["backoffLimit"] = settings.get("backoff_limit", 0)
    policy["suspend"] = bool(settings.get("suspend"))
    optional = {"ttlSecondsAfterFinished": settings.get("ttl"), "activeDeadlineSeconds": settings.get("deadline")}
    policy.update({key: value for key, value in optional.items() if value})
    return {
        "apiVersion": API,
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": settings.get("namespace") or "default"},
        "spec": {
            "mpiImplementation": "OpenMPI",
            "slotsPerWorker": slots,
            "launcherCreationPolicy": "WaitForWorkersReady",
            "sshAuthMountPath": "/home/mpiuser/.ssh" if settings.get("user") else "/root/.ssh",
            "runPolicy": policy,
            "mpiReplicaSpecs": {
                "Launcher": replica(1, pod_template(launcher, {}, "launcher", "")),
                "Worker": replica(workers, pod_template(worker, {}, "worker", "")),
            },
        },
    }
