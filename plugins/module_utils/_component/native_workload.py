# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods on a fabric network, and the Job or Deployment for them."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import typing as t

from .._common.result import FabricError
from .._common.text import join_endpoint
from .._model.jobs import ASKED
from .._model.plan import Controller
from .._model.stacks import NETWORKS
from .._model.wish import Objects

Object = t.Dict[str, t.Any]

NAME_LABEL = "app.kubernetes.io/name"
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
# The name becomes a label value, which must not be longer.
LONGEST_NAME = 63
DEVICES = "/dev/infiniband"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
VIPU_PORT = 8090
# A restarted container loses its log: its last lines stay in the pod's status.
LAST_WORDS = {"terminationMessagePolicy": "FallbackToLogsOnError"}
SETTLED = 10  # seconds: a program that can't start has ended by then, but would have counted as ready before
HOSTNAME_LABEL = "kubernetes.io/hostname"

SCRIPTS = pathlib.Path(__file__).parents[2] / "plugin_utils/_render/scripts"


def read_script(name: str) -> str:
    """A script for a pod, with its comments removed."""
    lines = (SCRIPTS / name).read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))


MEMLOCK_SCRIPT = read_script("memlock_check.sh")


class _VolumeMount(t.TypedDict):
    name: str
    path: str  # in the container


class Volume(_VolumeMount, total=False):
    """A volume; exactly one of nfs, claim and size gives its source."""

    nfs: t.Mapping[str, str]  # server and path
    claim: str  # name of a PersistentVolumeClaim
    size: str  # of an emptyDir, such as 1Gi
    read_only: bool


@dataclasses.dataclass(frozen=True)
class Settings:
    """A pod on a fabric network: variables of the role, without its name as a prefix. Empty and 0 mean not set."""

    name: str
    image: str
    kind: str = "Job"  # or Deployment
    state: str = "present"  # finished or absent
    namespace: str = "default"
    replicas: int = 1
    command: t.Sequence[str] = ()
    args: t.Sequence[str] = ()
    working_dir: str = ""
    env: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)  # values are converted to text
    pull_secrets: t.Sequence[str] = ()
    port: int = 0
    network: str = ""  # in the form of the multus annotation
    rdma_resource: str = ""  # PREFIX/NAME; several separated by commas, one for each rail
    # The fabric's plan; only its V-IPU controllers, hosts and networks are read.
    plan: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    vipu_controller: str = ""  # one of the plan, by label, host, address or address:port, or by a host that it serves
    vipu_host: str = ""  # as pods reach it; empty: the plan's
    vipu_port: int = 0  # 0: the plan's, or else 8090
    partition: str = ""
    user: int = 0
    group: int = 0
    capabilities: t.Sequence[str] = ()  # besides IPC_LOCK
    privileged: bool = False  # with the node's device files, if there is no device plugin
    check_memlock: bool = False
    node_selector: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    tolerations: t.Sequence[Object] = ()
    resources: t.Mapping[str, t.Mapping[str, t.Any]] = dataclasses.field(default_factory=dict)  # requests and limits
    volumes: t.Sequence[Volume] = ()
    shm: str = ""  # size of /dev/shm, such as 8Gi
    restart_policy: str = "OnFailure"  # of a Job's pods; Never: a new pod replaces a failed one, which keeps its log
    backoff_limit: int = 1  # how often a Job retries a container or a pod
    deadline: int = 0  # seconds
    record: bool = False  # whether to record which path the data takes


@dataclasses.dataclass(frozen=True)
class Seen:
    """Nothing: the settings alone decide."""


def decide(settings: Settings, _seen: Seen) -> Objects:
    check_rdma(settings)
    return Objects(native_workload(settings))


def networks_without_rdma(settings: Settings) -> str:
    """Names of the planned networks if none has RDMA, so that no node has the resource; otherwise empty."""
    networks = settings.plan.get("networks") or []
    return "" if any(network["rdma"] for network in networks) else ", ".join(each["name"] for each in networks)


def check_rdma(settings: Settings) -> None:
    """Refuse pods that would wait for a resource that no node has."""
    networks = networks_without_rdma(settings)
    if settings.state != "absent" and settings.rdma_resource and networks:
        raise FabricError(
            "A workload asks for RDMA devices, and the plan has none.",
            f"{settings.name}: native_workload_rdma_resource is {settings.rdma_resource}",
            f"planned without RDMA: {networks}",
            "Set native_workload_rdma_resource to nothing (-e native_workload_rdma_resource=). Memory can't be locked"
            " without it: set native_workload_check_memlock: false too.",
            code="invalid-input",
        )


def checked_name(name: str, longest: int = LONGEST_NAME) -> str:
    if len(name) > longest or not NAME.fullmatch(name):
        step = f"Use at most {longest} lower case letters, digits and hyphens, with no hyphen at either end."
        raise FabricError("A workload needs a name that Kubernetes accepts.", "name", name, step, code="invalid-input")
    return name


def node_names(controller: Controller, plan: t.Mapping[str, t.Any]) -> t.Set[str]:
    """The hosts that a controller serves, by their inventory names and node names."""
    hosts = plan.get("hosts") or {}
    return {name for served in controller["serves"] for name in (served, (hosts.get(served) or {}).get("node", served))}


def controller_names(controller: Controller) -> t.Set[str]:
    """The names by which a controller may be chosen."""
    host, address, port = controller["host"], controller["address"], controller["port"]
    return {controller["label"], host, address, join_endpoint(host, port), join_endpoint(address, port)}


def controllers(settings: Settings) -> t.List[Controller]:
    """The V-IPU controllers of the plan."""
    return (settings.plan.get("vipu") or {}).get("controllers") or []


def planned_controller(settings: Settings) -> t.Optional[Controller]:
    """The plan's V-IPU controller for the pods; None if their V-IPU is given, or the plan has none."""
    plan, selector, known = settings.plan, settings.node_selector, controllers(settings)
    if settings.vipu_host or not known:
        return None
    asked, node = settings.vipu_controller, selector.get(HOSTNAME_LABEL)
    found = []
    for one in known:
        key, _equals, value = one["label"].partition("=")
        names = node_names(one, plan)
        if (
            (not asked or asked in controller_names(one) | names)
            and (not node or node in names)
            and selector.get(key, value) == value
        ):
            found.append(one)
    if len(found) != 1:
        raise FabricError(
            "The plan must have exactly one V-IPU controller for a workload.",
            f"{settings.name}, controller {asked or 'not named'}, node selector {dict(selector) or 'empty'}",
            f"{len(found)} of the controllers fit: " + "; ".join(map(describe_controller, known)),
            "Name one by its label, its address or a host that it serves (native_workload_vipu_controller, or "
            "vipu.controller of the filter mpi_job), or set its host.",
            code="invalid-input",
        )
    return found[0]


def describe_controller(controller: Controller) -> str:
    endpoint = join_endpoint(controller["address"] or controller["host"], controller["port"])
    return f"{endpoint} ({controller['label']}) for {', '.join(controller['serves']) or 'no host'}"


def endpoint_of(settings: Settings) -> t.Tuple[str, int]:
    """Host and port of V-IPU as pods reach it; the host is empty if not known."""
    host, port, controller = settings.vipu_host, settings.vipu_port, planned_controller(settings)
    if controller:
        # A host name from the hosts' own files is unknown in a pod.
        host, port = controller["address"] or controller["host"], port or controller["port"]
    if host in LOOPBACK:
        step = "Give the address of V-IPU on the fabric network: a pod has its own localhost."
        raise FabricError("A pod can't reach V-IPU on localhost.", "vipu.host", host, step, code="invalid-input")
    return host, port or VIPU_PORT


def environment(settings: Settings) -> t.List[Object]:
    """Environment of the container: where V-IPU is, and the given variables, which take precedence."""
    host, port = endpoint_of(settings)
    values: t.Dict[str, t.Any] = {"IPUOF_VIPU_API_HOST": host, "IPUOF_VIPU_API_PORT": port} if host else {}
    if settings.partition:
        values["IPUOF_VIPU_API_PARTITION_ID"] = settings.partition
    return [{"name": name, "value": as_text(value)} for name, value in {**values, **settings.env}.items()]


def node_selector(settings: Settings) -> t.Dict[str, str]:
    """Labels of the nodes. With several V-IPU controllers, only the nodes of one controller reach its IPUs."""
    given, controller = dict(settings.node_selector), planned_controller(settings)
    if controller and len(controllers(settings)) > 1 and HOSTNAME_LABEL not in given:
        key, _equals, value = controller["label"].partition("=")
        given.setdefault(key, value)
    return given


def as_text(value: t.Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def volume_source(wanted: Volume) -> Object:
    """A volume of a pod. Exactly one of nfs, claim and size gives its source."""
    nfs, claim, size = wanted.get("nfs"), wanted.get("claim"), wanted.get("size")
    kinds = [kind for kind, value in (("nfs", nfs), ("claim", claim), ("size", size)) if value]
    if len(kinds) != 1:
        step = "Give each volume one of nfs (server and path), claim (a name) and size (of an emptyDir)."
        raise FabricError(
            "A volume needs exactly one source.",
            f"volume {wanted['name']}",
            ", ".join(kinds) or "none",
            step,
            code="invalid-input",
        )
    read_only = {"readOnly": True} if wanted.get("read_only") else {}
    source: Object = {"emptyDir": {"sizeLimit": size}}
    if nfs:
        source = {"nfs": {"server": nfs["server"], "path": nfs["path"], **read_only}}
    elif claim:
        source = {"persistentVolumeClaim": {"claimName": claim, **read_only}}
    return {"name": wanted["name"], **source}


def volumes(settings: Settings) -> t.Tuple[t.List[Object], t.List[Object]]:
    """The pod's volumes, and their mounts in the container."""
    sources = [volume_source(wanted) for wanted in settings.volumes]
    mounts: t.List[Object] = [
        {"name": v["name"], "mountPath": v["path"], **({"readOnly": True} if v.get("read_only") else {})}
        for v in settings.volumes
    ]
    if settings.privileged:
        # Otherwise the kubelet would create an empty directory on a node without RDMA.
        sources.append({"name": "infiniband", "hostPath": {"path": DEVICES, "type": "Directory"}})
        mounts.append({"name": "infiniband", "mountPath": DEVICES})
    if settings.shm:
        sources.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": settings.shm}})
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    return sources, mounts


def security(settings: Settings) -> Object:
    """The container's security context: only what RDMA needs, for root and other users, unless it is privileged."""
    user, group = settings.user, settings.group
    added = (["IPC_LOCK"] if settings.rdma_resource else []) + list(settings.capabilities)
    rights: Object = {"privileged": True} if settings.privileged else {"allowPrivilegeEscalation": False}
    context: Object = {"runAsUser": user, **rights}
    if user:
        context.update(runAsGroup=group or user, runAsNonRoot=True)
    elif group:
        context["runAsGroup"] = group
    if settings.privileged:  # includes all capabilities
        return context
    capabilities = {**({"drop": ["ALL"]} if user else {}), **({"add": added} if added else {})}
    return {**context, **({"capabilities": capabilities} if capabilities else {})}


def resources(settings: Settings) -> Object:
    """Requests and limits, both with one device of each RDMA resource."""
    given = settings.resources
    names = (name.strip() for name in settings.rdma_resource.split(","))
    device = {name: "1" for name in names if name}
    both = {part: {**(given.get(part) or {}), **device} for part in ("requests", "limits")}
    return {
        part: {name: as_text(amount) for name, amount in amounts.items()} for part, amounts in both.items() if amounts
    }


def container(settings: Settings, name: str) -> Object:
    _volumes, mounts = volumes(settings)
    required: Object = {"name": name, "image": settings.image, "securityContext": security(settings)}
    optional = {
        "command": list(settings.command),
        "args": list(settings.args),
        "workingDir": settings.working_dir,
        "env": environment(settings),
        "ports": [{"containerPort": settings.port}] if settings.port else [],
        "resources": resources(settings),
        "volumeMounts": mounts,
    }
    return {**required, **{key: value for key, value in optional.items() if value}}


def memlock_check(settings: Settings) -> Object:
    """The init container that checks the limit, with the same user and rights as the workload."""
    check: Object = {
        "name": "memlock",
        "image": settings.image,
        "command": ["sh", "-c", MEMLOCK_SCRIPT],
        "securityContext": security(settings),
    }
    needed = resources(settings)
    return {**check, **({"resources": needed} if needed else {})}


def pod_template(settings: Settings, labels: t.Mapping[str, str], name: str, restart: str) -> Object:
    """The template of a pod on the network; `name` is that of its container."""
    sources, _mounts = volumes(settings)
    words = LAST_WORDS if restart in ("Always", "OnFailure") else {}
    spec: Object = {"containers": [{**container(settings, name), **words}]}
    optional = {
        "restartPolicy": restart,
        "initContainers": [{**memlock_check(settings), **words}] if settings.check_memlock else [],
        "securityContext": {"fsGroup": settings.group} if settings.group else {},
        "volumes": sources,
        "nodeSelector": node_selector(settings),
        "tolerations": list(settings.tolerations),
        "imagePullSecrets": [{"name": secret} for secret in settings.pull_secrets],
    }
    spec.update({key: value for key, value in optional.items() if value})
    metadata: Object = {"labels": dict(labels)} if labels else {}
    if settings.network:
        metadata["annotations"] = {NETWORKS: settings.network}
    return {**({"metadata": metadata} if metadata else {}), "spec": spec}


def job(settings: Settings, metadata: Object) -> Object:
    """A Job of `replicas` pods."""
    count = settings.replicas
    spec: Object = {"backoffLimit": settings.backoff_limit, "parallelism": count, "completions": count}
    if settings.deadline:
        spec["activeDeadlineSeconds"] = settings.deadline
    spec["template"] = pod_template(settings, metadata["labels"], "main", settings.restart_policy)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def deployment(settings: Settings, metadata: Object) -> Object:
    """A Deployment that is updated pod by pod: an extra pod would need IPUs and an address that may not be free."""
    labels = metadata["labels"]
    spec = {
        "replicas": settings.replicas,
        "minReadySeconds": SETTLED,
        "selector": {"matchLabels": labels},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "template": pod_template(settings, labels, "main", "Always"),
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def service(settings: Settings, metadata: Object) -> Object:
    port = settings.port
    spec = {"selector": metadata["labels"], "ports": [{"port": port, "targetPort": port, "protocol": "TCP"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def record_annotation(settings: Settings) -> Object:
    """The annotation that makes a wait for the job record its path."""
    return {"annotations": {ASKED: "true"}} if settings.record else {}


def native_workload(settings: Settings) -> t.List[Object]:
    """The objects of a workload without an operator."""
    name = checked_name(settings.name)
    metadata = {"name": name, "namespace": settings.namespace or "default", "labels": {NAME_LABEL: name}}
    if settings.kind == "Job":
        return [job(settings, {**metadata, **record_annotation(settings)})]
    if settings.record:
        raise FabricError(
            "Only a Job can be recorded, since a record ends when the Job ends.",
            f"Deployment {name}, record",
            "true",
            "Leave native_workload_record out, and look at a pod with ipu.fabric.explain.",
            code="invalid-input",
        )
    return [deployment(settings, metadata)] + ([service(settings, metadata)] if settings.port else [])
