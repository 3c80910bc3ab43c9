# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An IPUJob from short options: what is wrong with them, the object that they make, and differences."""

from __future__ import annotations

import copy
import re
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Object, field
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import NETWORKS

API = "graphcore.ai/v1alpha1"
FINALIZER = "ipu.finalizers.graphcore.ai"
# Names of pods, ConfigMaps and partitions are made from the job's: a longer one fails long after it was taken.
MAX_NAME = 36
MAX_NAMESPACE = 63
MAX_IPUS = 64
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
NETWORK = re.compile(r"([-a-z0-9.]+/)?[-a-z0-9.]+(@[-a-z0-9.]+)?")
RESOURCE = re.compile(r"([-A-Za-z0-9.]+/)?[-A-Za-z0-9_.]+")
CODES = re.compile(r"(\d+)(?:-(\d+))?")
# The CRD has numbers as text here, and what is sent has to be of the CRD's type.
TEXTS = ("ipus_per_job_instance", "workers_per_job_instance", "model_replicas_per_worker")
# The one field that a job which is there can change: its pods are made once, only their number follows the job.
SCALED = "spec.jobInstances"
NAMES = {
    "ipus_per_job_instance": "ipusPerJobInstance",
    "workers_per_job_instance": "workersPerJobInstance",
    "model_replicas_per_worker": "modelReplicasPerWorker",
    "clean_pod_policy": "cleanPodPolicy",
}


# What is wrong


def name_problems(what: str, name: str, longest: int) -> t.List[str]:
    found = []
    if len(name) > longest:
        found.append(f"{what} {name} has {len(name)} characters, {longest} are possible")
    if not LABEL.fullmatch(name):
        found.append(
            f"{what} {name!r} is no DNS-1123 label: small letters, digits and '-', a letter or digit at the ends"
        )
    return found


def least(what: str, number: t.Optional[int], smallest: int, unit: str = "") -> t.List[str]:
    return [] if number is None or number >= smallest else [f"{what} is {number}, the least is {smallest}{unit}"]


def count_problems(params: Object) -> t.List[str]:
    """Numbers that the operator would refuse, or wait for forever."""
    found = []
    ipus = params["ipus_per_job_instance"]
    if ipus is None:
        found.append("ipus_per_job_instance is needed")
    elif not 1 <= ipus <= MAX_IPUS or ipus & (ipus - 1):
        found.append(f"ipus_per_job_instance is {ipus}: a partition has 1, 2, 4, 8, 16, 32 or {MAX_IPUS} IPUs")
    for name in ("job_instances", "workers_per_job_instance", "model_replicas_per_worker"):
        found += least(name, params[name], 1)
    return found


def exit_code_problems(policy: Object) -> t.List[str]:
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


def policy_problems(params: Object) -> t.List[str]:
    found = []
    policy, interactive = params["restart_policy"], params["interactive"]
    if policy:
        found += exit_code_problems(policy)
        found += least("restart_policy.back_off_limit", policy.get("back_off_limit"), 0)
    if interactive:
        found += least("interactive.ttl", interactive["ttl"], 1, " second")
    if interactive and params["launcher"]:
        found.append("launcher and interactive exclude each other: an interactive job runs no command")
    if params["launcher"] and not params["launcher"]["command"]:
        found.append("launcher.command is empty")
    if params["state"] == "finished":
        if not params["wait"]:
            found.append("wait is false: state finished is nothing but a wait, use state present")
        if interactive and interactive["ttl"] > params["wait_timeout"]:
            found.append(
                f"wait_timeout is {params['wait_timeout']} s, shorter than interactive.ttl ({interactive['ttl']} s)"
            )
    return found


def volume_problems(params: Object) -> t.List[str]:
    found, paths = [], set()
    for number, volume in enumerate(params["volumes"]):
        what = f"volumes[{number}]"
        if bool(volume.get("nfs")) == bool(volume.get("claim")):
            found.append(f"{what} needs either nfs or claim")
        if not volume["mount_path"].startswith("/"):
            found.append(f"{what}.mount_path {volume['mount_path']!r} is not absolute")
        if volume.get("nfs") and not volume["nfs"]["path"].startswith("/"):
            found.append(f"{what}.nfs.path {volume['nfs']['path']!r} is not absolute")
        if volume["mount_path"] in paths:
            found.append(f"{what}.mount_path {volume['mount_path']} is taken already")
        paths.add(volume["mount_path"])
    return found


def template_problems(params: Object) -> t.List[str]:
    workers = params["workers"]
    if workers is None:
        return ["workers is needed"]
    found = least("workers.replicas", workers.get("replicas"), 1)
    template = workers["template"]
    containers = field(template, "spec.containers")
    if not isinstance(containers, list) or not containers:
        return [*found, "workers.template.spec.containers is empty: a pod template has at least one container"]
    for number, container in enumerate(containers):
        missing = [key for key in ("name", "image") if not (isinstance(container, dict) and container.get(key))]
        found += [f"workers.template.spec.containers[{number}] has no {key}" for key in missing]
    if params["networks"] and NETWORKS in (field(template, "metadata.annotations") or {}):
        found.append(f"networks and the annotation {NETWORKS} of workers.template exclude each other")
    return found


def problems(params: Object) -> t.List[str]:
    """Everything that is wrong with the options; nothing was asked of a cluster for it."""
    found = name_problems("name", params["name"], MAX_NAME)
    found += name_problems("namespace", params["namespace"], MAX_NAMESPACE)
    found += least("wait_timeout", params["wait_timeout"], 1, " second")
    if params["state"] == "absent":
        return found
    found += count_problems(params) + template_problems(params) + policy_problems(params) + volume_problems(params)
    found += [
        f"networks: {name!r} is not NAME or NAMESPACE/NAME"
        for name in params["networks"]
        if not NETWORK.fullmatch(name)
    ]
    if params["rdma_resource"] and not RESOURCE.fullmatch(params["rdma_resource"]):
        found.append(f"rdma_resource {params['rdma_resource']!r} is not NAME or PREFIX/NAME")
    return found


def refuse_problems(params: Object) -> None:
    """FabricError with everything that is wrong, if anything is."""
    found = problems(params)
    if found:
        raise FabricError(
            "The options were checked before anything was asked of the cluster.",
            f"IPUJob {params['namespace']}/{params['name']}",
            "; ".join(found),
            "Correct every option that is named and run again.",
        )


# The object


def add_volumes(pod: Object, volumes: t.Sequence[Object]) -> None:
    """Mount the volumes in every container. The operator gives the launcher the same."""
    for number, volume in enumerate(volumes):
        name, read_only = f"fabric-{number}", bool(volume.get("read_only"))
        if volume.get("nfs"):
            source = {"nfs": {**volume["nfs"], "readOnly": read_only}}
        else:
            source = {"persistentVolumeClaim": {"claimName": volume["claim"], "readOnly": read_only}}
        pod["volumes"] = [*(pod.get("volumes") or []), {"name": name, **source}]
        mount = {"name": name, "mountPath": volume["mount_path"], "readOnly": read_only}
        for container in pod["containers"]:
            container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]


def add_rdma(container: Object, resource: str) -> None:
    """What RDMA needs in a container: one of the resource, and the right to lock memory."""
    full = resource if "/" in resource else f"rdma/{resource}"
    resources = container.setdefault("resources", {})
    for part in ("limits", "requests"):
        resources[part] = {**(resources.get(part) or {}), full: "1"}
    capabilities = container.setdefault("securityContext", {}).setdefault("capabilities", {})
    added = capabilities.get("add") or []
    capabilities["add"] = added if "IPC_LOCK" in added else [*added, "IPC_LOCK"]


def pod_template(params: Object) -> Object:
    """The pod template with networks, volumes and RDMA written out. The first container is the one that uses IPUs."""
    template = copy.deepcopy(params["workers"]["template"])
    if params["networks"]:
        metadata = template.setdefault("metadata", {})
        metadata["annotations"] = {**(metadata.get("annotations") or {}), NETWORKS: ",".join(params["networks"])}
    add_volumes(template["spec"], params["volumes"])
    if params["rdma_resource"]:
        add_rdma(template["spec"]["containers"][0], params["rdma_resource"])
    return template


def restart_policy(policy: Object) -> Object:
    made: Object = {"type": policy["type"]}
    if policy.get("back_off_limit") is not None:
        made["backOffLimit"] = policy["back_off_limit"]
    if policy.get("exit_codes"):
        made["exitCodes"] = ",".join(policy["exit_codes"])
    return made


def build_job(params: Object, instances: int = 1) -> Object:
    """The IPUJob that the options describe. `instances` is taken where they leave job_instances open."""
    spec: Object = {"jobInstances": params["job_instances"] or instances}
    for option, name in NAMES.items():
        if params[option] is not None:
            spec[name] = str(params[option]) if option in TEXTS else params[option]
    launcher, workers = params["launcher"], params["workers"]
    if launcher:
        spec["launcher"] = {"command": launcher["command"], **({"env": launcher["env"]} if launcher.get("env") else {})}
    if params["interactive"]:
        spec["interactive"] = {"ttl": params["interactive"]["ttl"]}
    if params["restart_policy"]:
        spec["restartPolicy"] = restart_policy(params["restart_policy"])
    spec["workers"] = {"template": pod_template(params)}
    if workers.get("replicas") is not None:
        spec["workers"]["replicas"] = workers["replicas"]
    metadata = {"name": params["name"], "namespace": params["namespace"]}
    if params["labels"]:
        metadata["labels"] = params["labels"]
    return {"apiVersion": API, "kind": "IPUJob", "metadata": metadata, "spec": spec}


def advice(params: Object) -> t.List[str]:
    """What is allowed and does not do what it seems to say."""
    policy = params["restart_policy"]
    if params["state"] != "absent" and policy and policy["type"] != "Never" and params["clean_pod_policy"] == "All":
        return [f"clean_pod_policy All wins over restart_policy {policy['type']}: the job will never be restarted."]
    return []


# Differences


def differences(before: t.Any, after: t.Any, path: str = "spec") -> t.List[str]:
    """Paths of the fields in which two values differ, as a person would name them."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted(set(before) | set(after))
        return [d for key in keys for d in differences(before.get(key), after.get(key), f"{path}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [d for n, pair in enumerate(zip(before, after)) for d in differences(*pair, f"{path}[{n}]")]
    return [] if before == after else [path]


# A job of the cluster


def held(job: Object) -> bool:
    """Whether the operator still has to give the job's partitions back."""
    return FINALIZER in (field(job, "metadata.finalizers") or [])


def release_patch(job: Object) -> Object:
    """What takes the operator's finalizer off a job, and nobody else's; a conflict when they changed in between."""
    others = [each for each in field(job, "metadata.finalizers") or [] if each != FINALIZER]
    return {"metadata": {"finalizers": others, "resourceVersion": field(job, "metadata.resourceVersion")}}


def partitions(job: Object) -> t.List[str]:
    """Names of the partitions that the operator asks V-IPU for, one an instance; a job can be scaled to none."""
    metadata, instances = job["metadata"], field(job, "spec.jobInstances") or 0
    return [f"p-{metadata['name']}-{metadata['namespace']}-{n}" for n in range(instances)]
