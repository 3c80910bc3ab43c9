# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods on a fabric network, and the Job or Deployment around them."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import NETWORKS

Object = t.Dict[str, t.Any]
Settings = t.Mapping[str, t.Any]

NAME_LABEL = "app.kubernetes.io/name"
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
# The name becomes a label's value, and so may not be longer.
LONGEST_NAME = 63
LOOPBACK = ("localhost", "127.0.0.1", "::1")

# RDMA registers memory up to the limit, unless the process has CAP_IPC_LOCK (bit 14), which only root keeps.
MEMLOCK_SCRIPT = """\
limit=$(ulimit -l)
while read -r key value; do [ "$key" != CapEff: ] || caps=$value; done < /proc/self/status
if [ "$limit" = unlimited ]; then echo "locked memory: unlimited"; exit 0; fi
if [ $((0x${caps#????????} >> 14 & 1)) = 1 ]; then echo "locked memory: $limit KiB, lifted by IPC_LOCK"; exit 0; fi
echo "locked memory: $limit KiB for uid $(id -u), wanted is unlimited." >&2
echo "Next: run the role ipu.fabric.memlock on this node." >&2
exit 1
"""


def wrong(what: str, where: str, seen: t.Any, next_step: str) -> FabricError:
    return FabricError(what, where, str(seen), next_step)


def checked_name(name: str, longest: int = LONGEST_NAME) -> str:
    if len(name) > longest or not NAME.fullmatch(name):
        step = f"Use at most {longest} lower case letters, digits and hyphens, with no hyphen at either end."
        raise wrong("A workload needs a name that Kubernetes takes.", "name", name, step)
    return name


def environment(settings: Settings) -> t.List[Object]:
    """The variables of the container: where V-IPU is, then those that were given, which win."""
    vipu = settings.get("vipu") or {}
    if vipu.get("host") in LOOPBACK:
        step = "Give the address of V-IPU on the fabric network: a pod has its own localhost."
        raise wrong("A pod has to reach V-IPU.", "vipu.host", vipu["host"], step)
    values: t.Dict[str, t.Any] = {}
    if vipu.get("host"):
        values = {"IPUOF_VIPU_API_HOST": vipu["host"], "IPUOF_VIPU_API_PORT": vipu.get("port") or 8090}
    if vipu.get("partition"):
        values["IPUOF_VIPU_API_PARTITION_ID"] = vipu["partition"]
    return [{"name": name, "value": text(value)} for name, value in {**values, **(settings.get("env") or {})}.items()]


def text(value: t.Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def volume(wanted: Settings) -> Object:
    """A volume of a pod. Exactly one of nfs, claim and size says what it is."""
    kinds = [kind for kind in ("nfs", "claim", "size") if wanted.get(kind)]
    if len(kinds) != 1:
        step = "Give each volume one of nfs (server and path), claim (a name) and size (of an emptyDir)."
        raise wrong("A volume has one source.", f"volume {wanted['name']}", ", ".join(kinds) or "none", step)
    read_only = {"readOnly": True} if wanted.get("read_only") else {}
    source: Object = {
        "nfs": lambda: {"nfs": {"server": wanted["nfs"]["server"], "path": wanted["nfs"]["path"], **read_only}},
        "claim": lambda: {"persistentVolumeClaim": {"claimName": wanted["claim"], **read_only}},
        "size": lambda: {"emptyDir": {"sizeLimit": wanted["size"]}},
    }[kinds[0]]()
    return {"name": wanted["name"], **source}


def volumes(settings: Settings) -> t.Tuple[t.List[Object], t.List[Object]]:
    """The pod's volumes, and where its container has them."""
    found = [volume(wanted) for wanted in settings.get("volumes") or []]
    mounts: t.List[Object] = [
        {"name": v["name"], "mountPath": v["path"], **({"readOnly": True} if v.get("read_only") else {})}
        for v in settings.get("volumes") or []
    ]
    if settings.get("shm"):
        found.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": settings["shm"]}})
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    return found, mounts


def security(settings: Settings) -> Object:
    """The container's security context: only what RDMA needs, as root and as a normal user."""
    user, group = settings.get("user") or 0, settings.get("group")
    added = (["IPC_LOCK"] if settings.get("rdma_resource") else []) + list(settings.get("capabilities") or [])
    context: Object = {"runAsUser": user, "allowPrivilegeEscalation": False}
    if user:
        context.update(runAsGroup=group or user, runAsNonRoot=True)
    elif group:
        context["runAsGroup"] = group
    capabilities = {**({"drop": ["ALL"]} if user else {}), **({"add": added} if added else {})}
    return {**context, **({"capabilities": capabilities} if capabilities else {})}


def resources(settings: Settings) -> Object:
    """Requests and limits; a device is asked for in both, once a pod."""
    given = settings.get("resources") or {}
    device = {settings["rdma_resource"]: "1"} if settings.get("rdma_resource") else {}
    both = {part: {**(given.get(part) or {}), **device} for part in ("requests", "limits")}
    return {part: {name: text(amount) for name, amount in held.items()} for part, held in both.items() if held}


def container(settings: Settings, name: str) -> Object:
    _volumes, mounts = volumes(settings)
    found: Object = {"name": name, "image": settings["image"], "securityContext": security(settings)}
    optional = {
        "command": list(settings.get("command") or []),
        "args": list(settings.get("args") or []),
        "workingDir": settings.get("working_dir"),
        "env": environment(settings),
        "ports": [{"containerPort": settings["port"]}] if settings.get("port") else [],
        "resources": resources(settings),
        "volumeMounts": mounts,
    }
    return {**found, **{key: value for key, value in optional.items() if value}}


def memlock_check(settings: Settings) -> Object:
    """The init container that proves the limit, as the same user and with the same rights as the workload."""
    check: Object = {
        "name": "memlock",
        "image": settings["image"],
        "command": ["sh", "-c", MEMLOCK_SCRIPT],
        "securityContext": security(settings),
    }
    held = resources(settings)
    return {**check, **({"resources": held} if held else {})}


def pod_template(settings: Settings, labels: t.Mapping[str, str], name: str, restart: str) -> Object:
    """A pod on the network; `name` is its container's."""
    held, _mounts = volumes(settings)
    spec: Object = {"containers": [container(settings, name)]}
    optional = {
        "restartPolicy": restart,
        "initContainers": [memlock_check(settings)] if settings.get("check_memlock") else [],
        "securityContext": {"fsGroup": settings["group"]} if settings.get("group") else {},
        "volumes": held,
        "nodeSelector": dict(settings.get("node_selector") or {}),
        "tolerations": list(settings.get("tolerations") or []),
        "imagePullSecrets": [{"name": secret} for secret in settings.get("pull_secrets") or []],
    }
    spec.update({key: value for key, value in optional.items() if value})
    metadata: Object = {"labels": dict(labels)} if labels else {}
    if settings.get("network"):
        metadata["annotations"] = {NETWORKS: settings["network"]}
    return {**({"metadata": metadata} if metadata else {}), "spec": spec}


def job(settings: Settings, metadata: Object) -> Object:
    """A Job of so many pods. A pod that failed stays, so that its log can be read."""
    count = settings.get("replicas", 1)
    spec: Object = {"backoffLimit": settings.get("backoff_limit", 1), "parallelism": count, "completions": count}
    if settings.get("deadline"):
        spec["activeDeadlineSeconds"] = settings["deadline"]
    spec["template"] = pod_template(settings, metadata["labels"], "main", "Never")
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def deployment(settings: Settings, metadata: Object) -> Object:
    """A Deployment that is updated in place: a pod more would want IPUs and an address that may not be there."""
    labels = metadata["labels"]
    spec = {
        "replicas": settings.get("replicas", 1),
        "selector": {"matchLabels": labels},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "template": pod_template(settings, labels, "main", "Always"),
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def service(settings: Settings, metadata: Object) -> Object:
    port = settings["port"]
    spec = {"selector": metadata["labels"], "ports": [{"port": port, "targetPort": port, "protocol": "TCP"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def native_workload(settings: Settings) -> t.List[Object]:
    """The objects of a workload without an operator; the filter's documentation lists the settings."""
    name = checked_name(settings["name"])
    metadata = {"name": name, "namespace": settings.get("namespace") or "default", "labels": {NAME_LABEL: name}}
    if settings.get("kind", "Job") == "Job":
        return [job(settings, metadata)]
    return [deployment(settings, metadata)] + ([service(settings, metadata)] if settings.get("port") else [])
