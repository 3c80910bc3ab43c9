# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A CronJob that proves some nodes at a time from inside the cluster, and its rights."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import re
import typing as t

from .._common.admission import PROVER, count_of
from .._common.pod_security import POD_SECURITY, PRIVILEGED
from .._common.result import FabricError
from .._kube.query import Object
from .._model.plan import Plan
from .._model.stacks import SPIDERNET, has_rdma
from .._model.wish import Objects
from .objects import home, named

NAME = PROVER
CONFIG = "/etc/ipu-fabric"
WORK = "/prover"
# Five fields as in cron(8), or a name such as @daily; the API server validates the rest.
CRON = re.compile(r"@[a-z]+|\S+( \S+){4}")
ENVIRONMENT = {
    "HOME": WORK,  # the rest of the file system is read-only
    "ANSIBLE_STDOUT_CALLBACK": "ipu.fabric.steps",
    # There is no inventory, by design.
    "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
    "ANSIBLE_LOCALHOST_WARNING": "false",
}
HOURS = 6
# The plan of hundreds of nodes exceeds the size limit of a ConfigMap unless compressed.
COMMAND = (
    f"gunzip -c {CONFIG}/plan.json.gz > {WORK}/plan.json && exec ansible-playbook ipu.fabric.prove_slice"
    f" -e @{CONFIG}/settings.json -e fabric_slice_plan={WORK}/plan.json -e verify_artifacts_dir={WORK}/artifacts"
)
# What the probe reads besides pods and nodes, by API group.
READ = {
    "": ["nodes", "pods", "events"],
    "apps": ["daemonsets", "deployments"],
    "certificates.k8s.io": ["certificatesigningrequests"],
    "k8s.cni.cncf.io": ["network-attachment-definitions"],
    "whereabouts.cni.cncf.io": ["ippools", "overlappingrangeipreservations"],
    "nv-ipam.nvidia.com": ["ippools", "cidrpools"],
    "mellanox.com": ["nicclusterpolicies", "macvlannetworks", "hostdevicenetworks", "ipoibnetworks"],
    "sriovnetwork.openshift.io": ["sriovnetworks", "sriovibnetworks"],
    SPIDERNET: ["spiderippools", "spiderendpoints", "spidermultusconfigs"],
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role verify, without its name as a prefix."""

    schedule: str
    schedule_image: str
    schedule_namespace: str
    schedule_claim: str
    schedule_slice: str
    plan: Plan
    image: str
    rdma_image: str
    timeout: int
    command_timeout: int
    max_pairs: int
    rdma_seconds: int
    memlock: str
    rdma_bandwidth: str
    rdma_latency: str
    ipu: bool
    host_traffic: float
    gpu: bool
    gpu_rdma: str
    gpu_bandwidth: str
    gpu_gdrcopy: bool
    allow_unproven: t.Sequence[str]
    admission: str
    max_unproved: t.Any


# The other settings are for the proof itself.
OWN = ("schedule", "schedule_image", "schedule_namespace", "schedule_claim", "schedule_slice", "plan")


@dataclasses.dataclass(frozen=True)
class Seen:
    """Nothing: each object is applied, or removed if this collection made it."""


def decide(settings: Settings, seen: Seen) -> Objects:
    """The objects in order, also for a removal. FabricError for a schedule that can't work."""
    del seen
    if settings.schedule != "none":
        check(settings)
    namespace = settings.schedule_namespace
    return Objects([*space(namespace, settings.plan), *rights(settings), config(settings), cron_job(settings)])


def check(settings: Settings) -> None:
    """Refuse what the API server would refuse later, and proofs whose result nobody would see."""
    for wrong, what, where, seen, step in (
        (
            not CRON.fullmatch(settings.schedule),
            "A schedule has five fields.",
            "verify_schedule",
            f"'{settings.schedule}'",
            "Write it as cron does, such as '17 * * * *' for each hour.",
        ),
        (
            not settings.schedule_image,
            "A scheduled proof needs an image with ansible-core and this collection.",
            "verify_schedule_image",
            "it is empty",
            "Build prover.Containerfile (docs/images in the sources), push the image to a registry, and name it here.",
        ),
        (
            settings.admission == "off",
            "A scheduled proof leaves its result on the nodes, as the condition FabricProved.",
            "fabric_admission",
            "it is off",
            "Set fabric_admission to warn or enforce.",
        ),
    ):
        if wrong:
            raise FabricError(what, where, seen, step, code="invalid-input")
    count_of(settings.schedule_slice, 1, "A slice of the nodes is", "verify_schedule_slice")


def space(namespace: str, plan: Plan) -> t.List[Object]:
    """A namespace that allows only what the pods need, with the service accounts of the prover and of its pods."""
    level = PRIVILEGED if plan and has_rdma(plan) else "baseline"
    spaces = [{**each, "metadata": {**each["metadata"], "labels": {POD_SECURITY: level}}} for each in home(namespace)]
    accounts = [named("v1", "ServiceAccount", name, namespace) for name in (NAME, "probe")]
    return [*spaces, *(({**each, "automountServiceAccountToken": False}) for each in accounts)]


def rights(settings: Settings) -> t.List[Object]:
    """All rights of the prover: read what a proof compares, run pods in its own namespace, and mark nodes."""
    rbac, namespace = "rbac.authorization.k8s.io/v1", settings.schedule_namespace
    cluster_name = f"ipu-fabric-{NAME}"
    look = [{"apiGroups": [group], "resources": kinds, "verbs": ["get", "list"]} for group, kinds in READ.items()]
    mark: t.List[t.Dict[str, t.Any]] = [
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
        # The time of a node's proof is an annotation, and its taint is in the spec.
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
    ]
    if settings.ipu:
        look.append({"apiGroups": ["graphcore.ai"], "resources": ["ipujobs"], "verbs": ["get", "list"]})
    pods = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete", "deletecollection"]},
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get", "create"]},
    ]
    subjects = [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}]

    def binding(kind: str, role: str, name: str, place: str = "") -> Object:
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name}
        return {**named(rbac, kind, name, place), "subjects": subjects, "roleRef": reference}

    return [
        {**named(rbac, "ClusterRole", cluster_name), "rules": [*look, *mark]},
        binding("ClusterRoleBinding", "ClusterRole", cluster_name),
        {**named(rbac, "Role", NAME, namespace), "rules": pods},
        binding("RoleBinding", "Role", NAME, namespace),
    ]


def config(settings: Settings) -> Object:
    """The plan and the settings of the proof; the same input gives the same bytes."""
    plan = gzip.compress(json.dumps(settings.plan, sort_keys=True).encode(), mtime=0)
    kept = {name: value for name, value in dataclasses.asdict(settings).items() if name not in OWN}
    here = {
        "kubeconfig": "",  # the pod's service account is used
        "namespace": settings.schedule_namespace,
        "own_namespace": False,
        "slice": settings.schedule_slice,
    }
    told = {f"verify_{name}": value for name, value in {**kept, **here}.items()}
    return {
        **named("v1", "ConfigMap", NAME, settings.schedule_namespace),
        "data": {"settings.json": json.dumps(told, indent=2)},
        "binaryData": {"plan.json.gz": base64.b64encode(plan).decode()},
    }


def cron_job(settings: Settings) -> Object:
    work = {"persistentVolumeClaim": {"claimName": settings.schedule_claim}} if settings.schedule_claim else None
    container = {
        "name": NAME,
        "image": settings.schedule_image,
        "command": ["sh", "-c", COMMAND],
        "env": [{"name": name, "value": value} for name, value in ENVIRONMENT.items()],
        "workingDir": WORK,
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG, "readOnly": True},
            {"name": "work", "mountPath": WORK},
            *([{"name": "reports", "mountPath": f"{WORK}/artifacts"}] if work else []),
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    pod = {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [
            {"name": "config", "configMap": {"name": NAME}},
            {"name": "work", "emptyDir": {}},
            *([{"name": "reports", **work}] if work else []),
        ],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "fsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    job = {"backoffLimit": 0, "activeDeadlineSeconds": HOURS * 3600, "template": {"spec": pod}}
    return {
        **named("batch/v1", "CronJob", NAME, settings.schedule_namespace),
        "spec": {
            "schedule": settings.schedule,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 600,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {"spec": job},
        },
    }
