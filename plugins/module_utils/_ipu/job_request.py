# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The request in the options of ipujob, and all errors in it. Does not access a cluster."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._common.result import FabricError
from .._kube.query import query, quoted
from .._model.stacks import NETWORKS

if t.TYPE_CHECKING:
    from .._kube.query import Object

# Names of pods, ConfigMaps and partitions are built from the job's name: a longer one fails long after it is accepted.
MAX_NAME = 36
MAX_NAMESPACE = 63
PARTITION_SIZES = (1, 2, 4, 8, 16, 32, 64)
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
NETWORK = re.compile(r"([-a-z0-9.]+/)?[-a-z0-9.]+(@[-a-z0-9.]+)?")
RESOURCE = re.compile(r"([-A-Za-z0-9.]+/)?[-A-Za-z0-9_.]+")
INTERFACE = re.compile(r"[^\s,]+")
# States that do not need the options that define a job.
ALL_JOBS = ("absent", "restored")
CODES = re.compile(r"(\d+)(?:-(\d+))?")
CONTAINERS, ANNOTATED_NETWORKS = "spec.containers", f"metadata.annotations.{quoted(NETWORKS)}"


class _Launcher(t.TypedDict):
    command: t.List[str]
    env: t.Optional[t.List[Object]]  # as in a container


class Launcher(_Launcher, total=False):
    mpi_interfaces: t.Optional[t.List[str]]  # names or subnets; None: those of the networks; empty: MPI's own choice


class Interactive(t.TypedDict):
    ttl: int  # seconds


class Workers(t.TypedDict):
    template: Object  # of a pod
    replicas: t.Optional[int]


class NfsShare(t.TypedDict):
    server: str
    path: str


class Volume(t.TypedDict):
    """Either nfs or claim."""

    nfs: t.Optional[NfsShare]
    claim: t.Optional[str]
    mount_path: str
    read_only: bool


class RestartPolicy(t.TypedDict):
    type: str  # Always, OnFailure, Never or ExitCode
    back_off_limit: t.Optional[int]  # restarts
    exit_codes: t.Optional[t.List[str]]  # codes and ranges such as 128-255


class LogOptions(t.TypedDict):
    path: t.Optional[str]  # a directory
    tail: int  # lines


@dataclasses.dataclass(frozen=True)
class JobRequest:
    """The options of ipujob, by name. None: not given."""

    name: str = ""  # empty: all jobs in the scope
    namespace: str = "default"  # empty: all namespaces
    state: str = "present"  # present, finished, scaled, absent or restored
    scope: str = "job"  # job, namespace or cluster
    delete_all: bool = False
    job_instances: t.Optional[int] = None
    ipus_per_job_instance: t.Optional[int] = None
    workers_per_job_instance: t.Optional[int] = None
    model_replicas_per_worker: t.Optional[int] = None
    launcher: t.Optional[Launcher] = None
    interactive: t.Optional[Interactive] = None
    workers: t.Optional[Workers] = None
    networks: t.Sequence[str] = ()
    rdma_resource: str = ""
    volumes: t.Sequence[Volume] = ()
    restart_policy: t.Optional[RestartPolicy] = None
    clean_pod_policy: t.Optional[str] = None
    labels: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    recreate: bool = False
    force: bool = False
    wait: bool = True
    record: bool = False
    wait_timeout: int = 600  # seconds
    logs: LogOptions = dataclasses.field(default_factory=lambda: LogOptions(path=None, tail=20))

    @classmethod
    def from_options(cls, options: t.Mapping[str, t.Any]) -> JobRequest:
        """The request in a module's options; omitted options get their defaults."""
        names = [field.name for field in dataclasses.fields(cls)]
        given = {name: options[name] for name in names if options[name] is not None}
        if options["scope"] != "job":
            given.setdefault("namespace", "")
        return cls(**given)

    @property
    def where(self) -> str:
        """The subject of the request, for messages."""
        if self.scope == "job":
            return f"IPUJob {self.namespace}/{self.name}"
        return f"IPUJobs of the namespace {self.namespace}" if self.scope == "namespace" else "IPUJobs of the cluster"


def name_problems(what: str, name: str, longest: int) -> t.List[str]:
    found = []
    if len(name) > longest:
        found.append(f"{what} {name} has {len(name)} characters, at most {longest} are allowed")
    if not LABEL.fullmatch(name):
        found.append(
            f"{what} {name!r} is not a DNS-1123 label: lower case letters, digits and '-', with no '-' at either end"
        )
    return found


def minimum_problems(what: str, number: t.Optional[int], smallest: int, unit: str = "") -> t.List[str]:
    return [] if number is None or number >= smallest else [f"{what} is {number}, the minimum is {smallest}{unit}"]


def count_problems(request: JobRequest) -> t.List[str]:
    """Numbers that the operator would refuse, or wait for forever."""
    found = []
    ipus = request.ipus_per_job_instance
    if ipus is None:
        found.append("ipus_per_job_instance is needed")
    elif ipus not in PARTITION_SIZES:
        found.append(f"ipus_per_job_instance is {ipus}, a partition has {', '.join(map(str, PARTITION_SIZES))} IPUs")
    found += minimum_problems("job_instances", request.job_instances, 1)
    found += minimum_problems("workers_per_job_instance", request.workers_per_job_instance, 1)
    return found + minimum_problems("model_replicas_per_worker", request.model_replicas_per_worker, 1)


def exit_code_problems(policy: RestartPolicy) -> t.List[str]:
    codes, kind = policy.get("exit_codes") or [], policy["type"]
    if kind != "ExitCode":
        return [f"restart_policy.exit_codes is only for the type ExitCode, the type is {kind}"] if codes else []
    if not codes:
        return ["restart_policy.exit_codes is needed with the type ExitCode"]
    found = []
    for text in codes:
        match = CODES.fullmatch(text)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= 255:
            found.append(
                f"restart_policy.exit_codes: {text!r} is neither a code from 1 to 255 nor a range like 128-255"
            )
    return found


def policy_problems(request: JobRequest) -> t.List[str]:
    found = []
    policy, interactive = request.restart_policy, request.interactive
    if policy:
        found += exit_code_problems(policy)
        found += minimum_problems("restart_policy.back_off_limit", policy.get("back_off_limit"), 0)
    if interactive:
        found += minimum_problems("interactive.ttl", interactive["ttl"], 1, " second")
    if interactive and request.launcher:
        found.append("launcher and interactive exclude each other: an interactive job runs no command")
    if request.launcher and not request.launcher["command"]:
        found.append("launcher.command is empty")
    found += [
        f"launcher.mpi_interfaces: {name!r} is neither the name of an interface nor a subnet"
        for name in (request.launcher.get("mpi_interfaces") or [] if request.launcher else [])
        if not INTERFACE.fullmatch(name)
    ]
    if request.state == "finished":
        if not request.wait:
            found.append("wait is false, but the state finished means to wait: use the state present")
        if interactive and interactive["ttl"] > request.wait_timeout:
            found.append(
                f"wait_timeout is {request.wait_timeout} s, shorter than interactive.ttl ({interactive['ttl']} s)"
            )
    return found


def volume_problems(volumes: t.Sequence[Volume]) -> t.List[str]:
    found, paths = [], set()
    for number, volume in enumerate(volumes):
        what, nfs = f"volumes[{number}]", volume.get("nfs")
        if bool(nfs) == bool(volume.get("claim")):
            found.append(f"{what} needs either nfs or claim")
        if not volume["mount_path"].startswith("/"):
            found.append(f"{what}.mount_path {volume['mount_path']!r} is not absolute")
        if nfs and not nfs["path"].startswith("/"):
            found.append(f"{what}.nfs.path {nfs['path']!r} is not absolute")
        if volume["mount_path"] in paths:
            found.append(f"{what}.mount_path {volume['mount_path']} is taken already")
        paths.add(volume["mount_path"])
    return found


def template_problems(request: JobRequest) -> t.List[str]:
    workers = request.workers
    if workers is None:
        return ["workers is needed"]
    found = minimum_problems("workers.replicas", workers.get("replicas"), 1)
    containers = query(CONTAINERS, workers["template"])
    if not isinstance(containers, list) or not containers:
        return [*found, "workers.template.spec.containers is empty: a pod template has at least one container"]
    for number, container in enumerate(containers):
        missing = [key for key in ("name", "image") if not query(key, container)]
        found += [f"workers.template.spec.containers[{number}] has no {key}" for key in missing]
    if request.networks and query(ANNOTATED_NETWORKS, workers["template"]) is not None:
        found.append(f"networks and the annotation {NETWORKS} of workers.template exclude each other")
    return found


def scope_problems(request: JobRequest) -> t.List[str]:
    """Problems of the scope: removing many jobs needs an explicit request."""
    if request.state == "restored" and request.scope != "cluster":
        return ["the state restored is only for the scope cluster"]
    if request.scope == "job":
        found = name_problems("name", request.name, MAX_NAME)
        return [*found, "delete_all is only for the scopes namespace and cluster"] if request.delete_all else found
    found = [] if request.state in ALL_JOBS else [f"the scope {request.scope} is only for the state absent"]
    if request.name:
        found.append(f"name is {request.name}, and the scope {request.scope} means all jobs: give one of the two")
    if request.scope == "cluster" and request.namespace:
        found.append(f"namespace is {request.namespace}, and the scope cluster means all namespaces: use namespace")
    return found


# Options that define a job, in the order of the module's options. Scaling changes none of them.
MAKING = (
    "ipus_per_job_instance",
    "workers_per_job_instance",
    "model_replicas_per_worker",
    "launcher",
    "interactive",
    "workers",
    "networks",
    "rdma_resource",
    "volumes",
    "restart_policy",
    "clean_pod_policy",
    "labels",
    "recreate",
)


def scaled_problems(request: JobRequest) -> t.List[str]:
    """Problems of a request that only changes the number of instances."""
    found = [] if request.job_instances is not None else ["job_instances is needed"]
    found += minimum_problems("job_instances", request.job_instances, 1)
    given = [name for name in MAKING if getattr(request, name)]
    return [*found, f"the state scaled changes job_instances alone, not {', '.join(given)}"] if given else found


def request_problems(request: JobRequest) -> t.List[str]:
    """All problems of the options."""
    found = scope_problems(request)
    if request.scope != "cluster":
        found += name_problems("namespace", request.namespace, MAX_NAMESPACE)
    found += minimum_problems("wait_timeout", request.wait_timeout, 1, " second")
    if request.record and request.state != "finished":
        found.append("record needs state: finished, since a job is observed until it ends")
    if request.state in ALL_JOBS:
        return found
    if request.state == "scaled":
        return found + scaled_problems(request)
    found += count_problems(request) + template_problems(request) + policy_problems(request)
    found += volume_problems(request.volumes)
    found += [
        f"networks: {name!r} is not NAME or NAMESPACE/NAME" for name in request.networks if not NETWORK.fullmatch(name)
    ]
    if request.rdma_resource and not RESOURCE.fullmatch(request.rdma_resource):
        found.append(f"rdma_resource {request.rdma_resource!r} is not NAME or PREFIX/NAME")
    return found


def check_request(request: JobRequest) -> None:
    """FabricError with all problems, if there are any."""
    found = request_problems(request)
    if found:
        raise FabricError(
            "The options are not valid, so nothing was asked of the cluster.",
            request.where,
            "; ".join(found),
            "Correct every option that is named and run again.",
            code="invalid-input",
        )


def request_warnings(request: JobRequest) -> t.List[str]:
    """Warnings about options that are allowed, but do not do what they seem to do."""
    policy = request.restart_policy
    if request.state != "absent" and policy and policy["type"] != "Never" and request.clean_pod_policy == "All":
        return [f"clean_pod_policy All wins over restart_policy {policy['type']}: the job will never be restarted."]
    return []
