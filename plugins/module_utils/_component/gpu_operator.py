# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVIDIA GPU operator, from its release 25.10 on."""

from __future__ import annotations

import base64
import dataclasses
import typing as t

from .._common.admission import ENFORCE, nfd_tolerations, with_unproved
from .._common.pod_security import POD_SECURITY, PRIVILEGED
from .._common.result import FabricError
from .._kube.merge_values import merge_values
from .._kube.query import Object
from .._model.operators import GpuFacts
from .._model.wish import Wish
from .objects import definitions, home, named
from .settings import ChartSettings

Values = t.Dict[str, t.Any]  # values of a chart: any YAML
NAME = "gpu-operator"
# Without those of Node Feature Discovery, which the chart also brings: they may belong to others.
CRDS = ("clusterpolicies.nvidia.com", "nvidiadrivers.nvidia.com", "gpuclusters.nvidia.com")
# The repository of each component's image below the registry, as in the chart's values from 25.10 to 26.7.
REPOSITORIES = {
    "validator": "nvidia",
    "operator": "nvidia",
    "driver": "nvidia",
    "driver.manager": "nvidia/cloud-native",
    "toolkit": "nvidia/k8s",
    "devicePlugin": "nvidia",
    "dcgm": "nvidia/cloud-native",
    "dcgmExporter": "nvidia/k8s",
    "gfd": "nvidia",
    "migManager": "nvidia/cloud-native",
    "nodeStatusExporter": "nvidia",
    "gds": "nvidia/cloud-native",
    "gdrcopy": "nvidia/cloud-native",
    "ccManager": "nvidia/cloud-native",
}
GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}  # the chart's own
# The driver manager runs in the driver's pods.
WITHOUT_SECRETS = ("driver.manager",)


@dataclasses.dataclass(frozen=True)
class Settings(ChartSettings):
    """Variables of the role, without its name as a prefix. Empty: the chart's default."""

    force: bool
    driver: bool
    driver_repository: str
    driver_image: str
    driver_version: str
    rdma: bool
    host_mofed: bool
    gdrcopy: bool
    toolkit: bool
    containerd_config: str  # a path, like the next one
    containerd_socket: str
    toolkit_env: t.Mapping[str, t.Any]  # values become text
    license_secret: str
    license_token: str
    license_token_file: str
    license_gridd_conf: str
    license_nls: bool
    nfd: bool
    admission: str
    registry: str
    image_pull_secrets: t.Sequence[str]
    require_gpus: bool

    @property
    def makes_license(self) -> bool:
        """Whether this role creates the licence's Secret; without a token or a gridd.conf, somebody else does."""
        return bool(self.license_token or self.license_token_file or self.license_gridd_conf)

    @property
    def license_name(self) -> str:
        return self.license_secret or ("licensing-config" if self.makes_license else "")


@dataclasses.dataclass(frozen=True)
class Seen:
    """What ipu.fabric.cluster_info found, and the token file; empty for a bundle."""

    nfd: t.Sequence[str] = ()  # NAMESPACE/NAME
    gpu: GpuFacts = dataclasses.field(default_factory=lambda: GpuFacts(operators=[], pods=[], drivers=[], labelled=[]))
    license_token: t.Optional[str] = None
    removed: bool = False  # the state after the removal


def decide(settings: Settings, seen: Seen) -> Wish:
    """Raise FabricError for what the operator would accept but never do, and for a removal that would harm others."""
    secret = named("v1", "Secret", settings.license_name or "licensing-config", settings.namespace)
    if settings.state == "absent":
        check_removal(settings, seen)
    else:
        check_settings(settings)
    # Node Feature Discovery from another installation; the operator's own does not count.
    others = [place for place in seen.nfd if not place.startswith(f"{settings.namespace}/")]
    release = settings.release(NAME, settings.namespace, chart_values(settings, settings.nfd and not others))
    return Wish(
        release=dataclasses.replace(release, version=f"v{settings.version.lstrip('v')}"),
        objects=license_objects(settings, seen, secret),
        ready=[
            {"kind": "Deployment", "name": NAME, "namespace": settings.namespace},
            {
                "kind": "ClusterPolicy",
                "api_version": "nvidia.com/v1",
                "name": "cluster-policy",
                "value": "ready",
                "reason": "Reconciled" if settings.require_gpus else "",
            },
        ],
        crds=CRDS[:1],
        remnants=[*definitions(CRDS), secret, *home(settings.namespace)],
        nodes=seen.gpu["labelled"] if seen.gpu["operators"] else [],
    )


def check_settings(settings: Settings) -> None:
    beside = [name for name, wanted in (("rdma", settings.rdma), ("gdrcopy", settings.gdrcopy)) if wanted]
    if beside and not settings.driver:
        raise FabricError(
            "nvidia-peermem and gdrcopy run beside the operator's driver container.",
            "gpu_operator_driver",
            f"false, with gpu_operator_{' and gpu_operator_'.join(beside)}",
            "Set gpu_operator_driver to true, or load nvidia_peermem and gdrdrv on the hosts yourself.",
            code="invalid-input",
        )
    if settings.host_mofed and not settings.rdma:
        raise FabricError(
            "The hosts' network driver matters for GPUDirect RDMA only.",
            "gpu_operator_host_mofed",
            "true, and gpu_operator_rdma is false",
            "Set gpu_operator_rdma to true, or leave both false.",
            code="invalid-input",
        )
    if settings.license_name and not (settings.driver and settings.driver_repository):
        raise FabricError(
            "A vGPU licence needs a vGPU guest driver, whose image is in no public registry.",
            "gpu_operator_license_secret",
            "no gpu_operator_driver_repository" if settings.driver else "gpu_operator_driver is false",
            "Set gpu_operator_driver_repository, gpu_operator_driver_image and gpu_operator_driver_version to those of "
            "the guest driver. A driver on the host reads its licence from /etc/nvidia/gridd.conf.",
            code="invalid-input",
        )


def check_removal(settings: Settings, seen: Seen) -> None:
    operators = seen.gpu["operators"]
    strangers = [f"{each['namespace']}/{each['name']}" for each in operators if not each["ours"]]
    if seen.removed and operators:
        raise FabricError(
            "The GPU operator was removed, and the cluster still has one.",
            "Deployments of the cluster",
            ", ".join(f"{each['namespace']}/{each['name']}" for each in operators),
            "Something else installs it: find its owner with kubectl get -o yaml.",
            code="not-ours",
        )
    if strangers:
        raise FabricError(
            "Only a GPU operator that this collection has installed is removed, with its definitions, and only when "
            "there is no other.",
            "Deployments of the cluster",
            f"{', '.join(strangers)} in the cluster, installed by somebody else",
            "Leave it, or have those who installed it remove it first.",
            code="not-ours",
        )
    if operators and seen.gpu["pods"] and not settings.force:
        raise FabricError(
            "Without the operator there is no driver, and running pods lose their GPUs.",
            "pods of the cluster",
            f"{len(seen.gpu['pods'])} pods with GPUs, {', '.join(seen.gpu['pods'][:20])}",
            "Stop what created them (a Deployment, a job), or set gpu_operator_force to true.",
            code="unsafe",
        )


def license_objects(settings: Settings, seen: Seen, secret: Object) -> t.List[Object]:
    """The vGPU licence's Secret with its namespace, if this role creates it."""
    token = settings.license_token or seen.license_token
    if not settings.makes_license or settings.state == "absent":
        return []
    if settings.license_nls and token == "":
        raise FabricError(
            "A licence of the NVIDIA License System is a client configuration token, and none is set.",
            "gpu_operator_license_token and gpu_operator_license_token_file",
            "both are empty",
            "Set one of them; for a server of gridd.conf set gpu_operator_license_nls to false.",
            code="invalid-input",
        )
    files = {"gridd.conf": settings.license_gridd_conf}
    if settings.license_nls:
        files["client_configuration_token.tok"] = token or ""
    data = {name: base64.b64encode(text.encode()).decode() for name, text in files.items()}
    namespace = named("v1", "Namespace", settings.namespace)
    namespace["metadata"]["labels"] = {POD_SECURITY: PRIVILEGED}
    return [namespace, {**secret, "type": "Opaque", "data": data}]


def nested(path: str, value: Values) -> Values:
    """Nested dictionaries with the value at a path such as a.b."""
    for part in reversed(path.split(".")):
        value = {part: value}
    return value


def component_values(registry: str, pull_secrets: t.Sequence[str]) -> Values:
    """Registry and pull secrets of every component; without those that are not set."""
    values: Values = {}
    for path, repository in REPOSITORIES.items():
        own: Values = {"repository": f"{registry}/{repository}"} if registry else {}
        if pull_secrets and path not in WITHOUT_SECRETS:
            own["imagePullSecrets"] = list(pull_secrets)
        if own:
            values = merge_values(values, nested(path, own))
    return values


def chart_values(settings: Settings, nfd: bool) -> Values:
    chosen = {
        "repository": settings.driver_repository,
        "image": settings.driver_image,
        "version": settings.driver_version,
    }
    driver: Values = {
        "enabled": settings.driver,
        "rdma": {"enabled": settings.rdma, "useHostMofed": settings.host_mofed},
        **{name: value for name, value in chosen.items() if value},
    }
    if settings.license_name:
        driver["licensingConfig"] = {"secretName": settings.license_name, "nlsEnabled": settings.license_nls}
    places = {"CONTAINERD_CONFIG": settings.containerd_config, "CONTAINERD_SOCKET": settings.containerd_socket}
    env = {**{name: path for name, path in places.items() if path}, **settings.toolkit_env}
    tolerated = {"daemonsets": {"tolerations": with_unproved(settings.admission, [GPU_TOLERATION])}}
    own: Values = {
        "nfd": {"enabled": nfd},
        **(nfd_tolerations(settings.admission) if nfd else {}),
        **(tolerated if settings.admission == ENFORCE else {}),
        "operator": {"upgradeCRD": False},  # helm_release applies the definitions, so no hook is needed
        "driver": driver,
        "gdrcopy": {"enabled": settings.gdrcopy},
        "toolkit": {
            "enabled": settings.toolkit,
            **({"env": [{"name": name, "value": str(value)} for name, value in sorted(env.items())]} if env else {}),
        },
    }
    return merge_values(
        merge_values(component_values(settings.registry, settings.image_pull_secrets), own), settings.values
    )
