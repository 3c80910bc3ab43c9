# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The IPUJob for a request, differences between two IPUJobs, and a job's finalizer and partitions."""

from __future__ import annotations

import copy
import typing as t

from .._kube.query import query
from .._model.stacks import NETWORKS

if t.TYPE_CHECKING:
    from .._kube.query import Object
    from .job_request import JobRequest, Launcher, RestartPolicy, Volume

API = "graphcore.ai/v1alpha1"
FINALIZER = "ipu.finalizers.graphcore.ai"
# The only field that can be changed in an existing job: pods are created once, and only their number follows the job.
SCALED = "spec.jobInstances"
# Open MPI treats it like --mca btl_tcp_if_include, and mpirun passes it to the ranks.
MPI_INTERFACES = "OMPI_MCA_btl_tcp_if_include"


def add_volumes(pod: Object, volumes: t.Sequence[Volume]) -> None:
    """Mount the volumes in every container. The operator mounts the same in the launcher."""
    for number, volume in enumerate(volumes):
        name, read_only = f"fabric-{number}", bool(volume.get("read_only"))
        source: Object = {"persistentVolumeClaim": {"claimName": volume["claim"], "readOnly": read_only}}
        nfs = volume.get("nfs")
        if nfs:
            source = {"nfs": {**nfs, "readOnly": read_only}}
        pod["volumes"] = [*(pod.get("volumes") or []), {"name": name, **source}]
        mount = {"name": name, "mountPath": volume["mount_path"], "readOnly": read_only}
        for container in pod["containers"]:
            container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]


def add_rdma(container: Object, resource: str) -> None:
    """What RDMA needs in a container: one unit of the resource, and the capability to lock memory."""
    full = resource if "/" in resource else f"rdma/{resource}"
    resources = container.setdefault("resources", {})
    for part in ("limits", "requests"):
        resources[part] = {**(resources.get(part) or {}), full: "1"}
    capabilities = container.setdefault("securityContext", {}).setdefault("capabilities", {})
    added = capabilities.get("add") or []
    capabilities["add"] = added if "IPC_LOCK" in added else [*added, "IPC_LOCK"]


def pod_template(request: JobRequest) -> Object:
    """The pod template with networks, volumes and RDMA added. The first container is the one that uses IPUs."""
    template = copy.deepcopy(request.workers["template"]) if request.workers else {}
    if request.networks:
        metadata = template.setdefault("metadata", {})
        metadata["annotations"] = {**(metadata.get("annotations") or {}), NETWORKS: ",".join(request.networks)}
    add_volumes(template["spec"], request.volumes)
    if request.rdma_resource:
        add_rdma(template["spec"]["containers"][0], request.rdma_resource)
    return template


def restart_policy_field(policy: RestartPolicy) -> Object:
    field: Object = {"type": policy["type"]}
    if policy.get("back_off_limit") is not None:
        field["backOffLimit"] = policy["back_off_limit"]
    if policy.get("exit_codes"):
        field["exitCodes"] = ",".join(policy["exit_codes"] or [])
    return field


def network_interfaces(networks: t.Sequence[str]) -> t.List[str]:
    """multus' names of the networks' interfaces in a pod: net1 and so on, unless a network has its own."""
    return [name.partition("@")[2] or f"net{number}" for number, name in enumerate(networks, 1)]


def mpi_interfaces(request: JobRequest, launcher: Launcher) -> t.List[str]:
    """The interfaces for MPI's TCP traffic. By default MPI tries all, and ranks may wait for each other forever."""
    given = launcher.get("mpi_interfaces")
    if given is not None:
        return given
    return network_interfaces(request.networks) if (request.workers_per_job_instance or 1) > 1 else []


def launcher_field(request: JobRequest, launcher: Launcher) -> Object:
    env, interfaces = list(launcher.get("env") or []), mpi_interfaces(request, launcher)
    if interfaces and MPI_INTERFACES not in [variable.get("name") for variable in env]:
        env.append({"name": MPI_INTERFACES, "value": ",".join(interfaces)})
    field: Object = {"command": launcher["command"], "env": env}
    return {name: value for name, value in field.items() if value}


def number_as_text(number: t.Optional[int]) -> t.Optional[str]:
    """The CRD types some numbers as strings, so they must be sent as strings."""
    return None if number is None else str(number)


def build_job(request: JobRequest, instances: int = 1) -> Object:
    """The IPUJob of a request. `instances` is used if the request does not set job_instances."""
    launcher, workers = request.launcher, request.workers
    optional: Object = {
        "ipusPerJobInstance": number_as_text(request.ipus_per_job_instance),
        "workersPerJobInstance": number_as_text(request.workers_per_job_instance),
        "modelReplicasPerWorker": number_as_text(request.model_replicas_per_worker),
        "cleanPodPolicy": request.clean_pod_policy,
        "launcher": launcher and launcher_field(request, launcher),
        "interactive": request.interactive and {"ttl": request.interactive["ttl"]},
        "restartPolicy": request.restart_policy and restart_policy_field(request.restart_policy),
    }
    spec: Object = {"jobInstances": request.job_instances or instances}
    spec.update({name: value for name, value in optional.items() if value is not None})
    replicas = workers.get("replicas") if workers else None
    spec["workers"] = {"template": pod_template(request), **({} if replicas is None else {"replicas": replicas})}
    metadata: Object = {"name": request.name, "namespace": request.namespace}
    if request.labels:
        metadata["labels"] = dict(request.labels)
    return {"apiVersion": API, "kind": "IPUJob", "metadata": metadata, "spec": spec}


def differing_fields(before: t.Any, after: t.Any, path: str = "spec") -> t.List[str]:
    """Paths of the fields in which two values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted(set(before) | set(after))
        return [d for key in keys for d in differing_fields(before.get(key), after.get(key), f"{path}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [d for n, pair in enumerate(zip(before, after)) for d in differing_fields(*pair, f"{path}[{n}]")]
    return [] if before == after else [path]


def job_name(job: Object) -> str:
    """Namespace and name."""
    return "/".join(query("metadata.[namespace, name]", job))


def finalizers(job: Object) -> t.List[str]:
    return query("metadata.finalizers", job) or []


def has_finalizer(job: Object) -> bool:
    """Whether the operator still holds the job's partitions."""
    return FINALIZER in finalizers(job)


def finalizer_patch(job: Object) -> Object:
    """A patch that removes only the operator's finalizer; a conflict if the job changed in between."""
    others = [each for each in finalizers(job) if each != FINALIZER]
    return {"metadata": {"finalizers": others, "resourceVersion": query("metadata.resourceVersion", job)}}


def partition_names(job: Object) -> t.List[str]:
    """Names of the partitions that the operator requests from V-IPU, one per instance; a job may be scaled to none."""
    name, namespace, instances = query("[metadata.name, metadata.namespace, spec.jobInstances]", job)
    return [f"p-{name}-{namespace}-{number}" for number in range(instances or 0)]
