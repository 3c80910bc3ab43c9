# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""MPIJobs over fabric networks: the same program over RoCE or over TCP. Pure."""

from __future__ import annotations

import dataclasses
import json
import typing as t

from ...module_utils._common.result import FabricError
from ...module_utils._component.native_workload import (
    Object,
    Settings,
    checked_name,
    environment,
    networks_without_rdma,
    pod_template,
    read_script,
    record_annotation,
)
from ...module_utils._component.settings import pick

API = "kubeflow.org/v2beta1"
# The workers' host names are derived from the job's name.
LONGEST_NAME = 50
# An sshd that needs no root, with the settings that the images of the MPI operator have.
USER_SSHD = ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]
POLICIES = ("Running", "All", "None")
# How multus names the interfaces of a pod, in the order of the annotation, unless that names them.
INTERFACE = "net{}"
POD_NETWORK = "eth0"
# The operator sets these for Open MPI 4 only. Version 5 would start all ranks in the launcher, and succeed.
OPEN_MPI_5 = {
    "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
    "PRTE_MCA_plm_ssh_args": "-o ConnectionAttempts=10",
}
# By default Open MPI uses UCX for InfiniBand's transports only: with TCP every rank would end at its start.
UCX = {"pml": "ucx", "osc": "ucx", "opal_common_ucx_tls": "any", "opal_common_ucx_devices": "any"}
# MPI's own messages over TCP, whatever NCCL uses. Open MPI 4 may still have openib, 5 does not.
OB1 = {"pml": "ob1", "osc": "^ucx", "btl": "^openib"}

RANK_SCRIPT = read_script("rank_env.sh")


@dataclasses.dataclass(frozen=True)
class MpiJob(Settings):
    """Settings of an MPIJob: those of its pods, and how it is started. transport and command are needed."""

    transport: str = ""  # roce or tcp
    pml: str = "ucx"  # or ob1: how MPI itself sends
    interfaces: t.Sequence[str] = ()  # of the rails; empty: those of the networks
    show_environment: bool = False  # each rank prints what it was given
    count: bool = False  # each rank prints by how much counters grew
    one_per_node: bool = False  # no two workers on one node
    workers: int = 2  # pods
    slots_per_worker: int = 1  # ranks
    mpirun_options: t.Sequence[str] = ()
    launcher_resources: t.Mapping[str, t.Mapping[str, t.Any]] = dataclasses.field(default_factory=dict)
    clean_pod_policy: str = "Running"  # All or None
    ttl: int = 0  # seconds that the job is kept
    suspend: bool = False
    check_memlock: bool = True
    backoff_limit: int = 0


# Before ansible-core 2.19 a template in a variable gives text.
NUMBERS = {field.name for field in dataclasses.fields(MpiJob) if field.type == "int"}


def read_job(given: t.Mapping[str, t.Any]) -> MpiJob:
    """A job as it is written for the filter: null or an empty text counts as not set, and V-IPU is a dictionary."""
    vipu = given.get("vipu") or {}
    own = {("" if key == "partition" else "vipu_") + key: value for key, value in vipu.items()}
    options = {key: value for key, value in {**given, **own}.items() if value not in (None, "")}
    numbers = {key: int(options[key]) for key in NUMBERS & set(options) if str(options[key]).isdigit()}
    return pick(MpiJob, {**options, **numbers})


class Rails(t.NamedTuple):
    """Interfaces that carry the data, and those for other sockets."""

    rdma: t.Sequence[str]
    sockets: t.Sequence[str]
    whose: str  # interfaces: the pod's, or the node's


def network_interfaces(network: str) -> t.List[str]:
    """The interfaces of a pod on the networks of an annotation, `a, jobs/b@rail2` or a JSON list."""
    if network.lstrip().startswith("["):
        try:
            named = [str(each.get("interface") or "") for each in json.loads(network)]
        except (ValueError, AttributeError) as error:
            step = "Give names separated by commas, or a JSON list of objects."
            raise FabricError("Networks are read as multus reads them.", "network", network, step) from error
    else:
        named = [part.strip().partition("@")[2] for part in network.split(",") if part.strip()]
    return [name or INTERFACE.format(at) for at, name in enumerate(named, 1)]


def rails_of(settings: MpiJob) -> Rails:
    """A privileged pod needs no network: it has the node's devices, with the node's addresses."""
    given = list(settings.interfaces)
    network = settings.network
    if settings.privileged and not network:
        if not given and settings.transport == "roce":
            step = "Set interfaces to those of the nodes that have RDMA, or network."
            raise FabricError("A privileged job uses a network or the nodes' own NICs.", "interfaces", "nothing", step)
        return Rails(given, [POD_NETWORK], "node")
    interfaces = given or network_interfaces(network) or [INTERFACE.format(1)]
    return Rails(interfaces, interfaces, "pod")


def transport_environment(transport: str, rails: Rails) -> t.Dict[str, str]:
    """Variables that are the same in each rank. The script in the pod adds those that differ."""
    roce = transport == "roce"
    values = {
        "NCCL_IB_DISABLE": "0" if roce else "1",
        "NCCL_SOCKET_IFNAME": f"={','.join(rails.sockets)}",  # this name, not all that begin with it
        "HOROVOD_MPI_THREADS_DISABLE": "1" if roce else "0",
        "UCX_TLS": "rc,sm,self" if roce else "tcp,sm,self",
    }
    if not roce:
        values["UCX_NET_DEVICES"] = ",".join(rails.sockets)
    elif len(rails.rdma) > 1:
        # Rails are separate subnets, and UCX would by default connect any device with any other.
        values.update(UCX_IB_ROCE_LOCAL_SUBNET="y", UCX_MAX_RNDV_RAILS=str(len(rails.rdma)))
    return values


def rank_command(settings: MpiJob, rails: Rails) -> t.List[str]:
    """What mpirun starts: the program, with the transport and the devices that it uses."""
    whose = rails.whose if settings.transport == "roce" else "none"
    flags = [name for name, asked in (("show", settings.show_environment), ("count", settings.count)) if asked]
    words = [whose, ",".join(rails.rdma), f",{','.join(flags)},"]
    values = [f"{name}={value}" for name, value in transport_environment(settings.transport, rails).items()]
    return ["sh", "-c", RANK_SCRIPT, "rank", *words, *values, "--", *settings.command]


def mca(settings: MpiJob, rails: Rails) -> t.Dict[str, str]:
    """Options for how MPI itself sends."""
    if settings.pml == "ucx":
        return UCX
    return {**OB1, "btl_tcp_if_include": ",".join(rails.sockets)}


def mpirun(settings: MpiJob, ranks: int) -> t.List[str]:
    rails = rails_of(settings)
    root = [] if settings.user else ["--allow-run-as-root"]
    # A rank is started by sshd, which passes on nothing of its container's environment.
    names = [word for variable in environment(settings) for word in ("-x", variable["name"])]
    how = [word for option, value in mca(settings, rails).items() for word in ("--mca", option, value)]
    own = [str(option) for option in settings.mpirun_options]
    command = rank_command(settings, rails)
    return ["mpirun", *root, "-n", str(ranks), "--bind-to", "none", *how, *names, *own, *command]


def apart(name: str) -> Object:
    """The anti-affinity that keeps the workers of a job on different nodes, by the labels of the operator."""
    labels = {"training.kubeflow.org/job-name": name, "training.kubeflow.org/job-role": "worker"}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def replica(count: int, template: Object) -> Object:
    """The operator sets the restart policy of the pods from here."""
    return {"replicas": count, "restartPolicy": "Never", "template": template}


class _Choice(t.NamedTuple):
    """A setting with a fixed set of values."""

    key: str
    allowed: t.Sequence[str]
    what: str
    step: str


CHOICES = (
    _Choice("transport", ("roce", "tcp"), "An MPIJob needs a transport.", "Use roce, or tcp to compare with."),
    _Choice(
        "pml",
        ("ucx", "ob1"),
        "MPI needs a way to send its own messages.",
        "Use ucx, or ob1 to send them over TCP.",
    ),
    # The CRD allows any text here, and the operator then deletes nothing.
    _Choice(
        "clean_pod_policy",
        POLICIES,
        "An MPIJob needs a policy for its pods.",
        f"Use one of {', '.join(POLICIES)}.",
    ),
)


def check(settings: MpiJob, where: str) -> None:
    """Find what the CRD of MPIJobs accepts but no job could use."""
    for choice in CHOICES:
        given = getattr(settings, choice.key)
        if given not in choice.allowed:
            raise FabricError(choice.what, f"{where}, {choice.key}", str(given), choice.step)
    if not settings.command:
        step = "Give the program as a list."
        raise FabricError("An MPIJob needs a program.", f"{where}, command", "nothing", step)
    without = networks_without_rdma(settings)
    if settings.transport == "roce" and not settings.privileged and without:
        raise FabricError(
            "An MPIJob over RoCE asks for RDMA devices, and the plan has none.",
            f"{where}, transport",
            f"roce; planned without RDMA: {without}",
            'Use transport: tcp. With docs/examples/mpi.yml: -e \'{"example_transports": ["tcp"]}\'; with'
            " mpi-horovod.yml: -e example_transport=tcp.",
            code="invalid-input",
        )


def mpi_job(given: t.Mapping[str, t.Any]) -> Object:
    """An MPIJob."""
    settings = read_job(given)
    name = checked_name(settings.name, LONGEST_NAME)
    check(settings, f"MPIJob {name}")
    roce, workers, slots = settings.transport == "roce", settings.workers, settings.slots_per_worker
    # TCP needs no RDMA device, so it also runs on nodes without one.
    worker = dataclasses.replace(
        settings,
        command=[],
        args=[],
        rdma_resource=settings.rdma_resource if roce else "",
        check_memlock=roce and settings.check_memlock,
        privileged=roce and settings.privileged,
    )
    if settings.user:
        # The file of that sshd has this capability: without it in the bounding set, the program can't even start.
        worker = dataclasses.replace(worker, command=USER_SSHD, capabilities=["NET_BIND_SERVICE"])
    # The launcher is on the network too: mpirun's own connections may then take any interface.
    launcher = dataclasses.replace(
        worker,
        rdma_resource="",
        check_memlock=False,
        privileged=False,
        command=mpirun(settings, workers * slots),
        resources=settings.launcher_resources,
        env={**OPEN_MPI_5, **settings.env},
    )
    workers_template = pod_template(worker, {}, "worker", "")
    if settings.one_per_node:
        workers_template["spec"]["affinity"] = apart(name)
    run_policy: Object = {"cleanPodPolicy": settings.clean_pod_policy, "backoffLimit": settings.backoff_limit}
    run_policy["suspend"] = bool(settings.suspend)
    optional = {"ttlSecondsAfterFinished": settings.ttl, "activeDeadlineSeconds": settings.deadline}
    run_policy.update({key: value for key, value in optional.items() if value})
    return {
        "apiVersion": API,
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": settings.namespace or "default", **record_annotation(settings)},
        "spec": {
            "mpiImplementation": "OpenMPI",
            "slotsPerWorker": slots,
            "launcherCreationPolicy": "WaitForWorkersReady",
            "sshAuthMountPath": "/home/mpiuser/.ssh" if settings.user else "/root/.ssh",
            "runPolicy": run_policy,
            "mpiReplicaSpecs": {
                "Launcher": replica(1, pod_template(launcher, {}, "launcher", "")),
                "Worker": replica(workers, workers_template),
            },
        },
    }
