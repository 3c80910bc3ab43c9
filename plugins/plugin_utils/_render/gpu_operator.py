# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The chart values of the NVIDIA GPU operator. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube.merge_values import merge_values

Values = t.Dict[str, t.Any]  # of a chart: any YAML


class GpuOperatorSettings(t.TypedDict, total=False):
    """Settings of the filter gpu_operator_values. Empty: the chart's own."""

    driver: bool
    driver_repository: str
    driver_image: str
    driver_version: str
    rdma: bool
    host_mofed: bool
    gdrcopy: bool
    toolkit: bool
    containerd_config: str  # path, likewise the next
    containerd_socket: str
    toolkit_env: t.Mapping[str, t.Any]  # values become text
    license_secret: str
    license_nls: bool
    nfd: bool
    registry: str
    pull_secrets: t.Sequence[str]
    values: t.Mapping[str, t.Any]  # of the chart; they win


# The repositories of each component's images below the registry, in the chart's values from 25.10 to 26.7.
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
# The driver's manager runs in the driver's pods.
WITHOUT_SECRETS = ("driver.manager",)


def nested(path: str, value: Values) -> Values:
    """A value at a.b, as dictionaries."""
    for part in reversed(path.split(".")):
        value = {part: value}
    return value


def check_settings(settings: GpuOperatorSettings) -> None:
    """Refuse what the operator would accept and never do."""
    driver, where = settings["driver"], "gpu_operator_driver"
    modules = {"rdma": settings.get("rdma"), "gdrcopy": settings.get("gdrcopy")}
    beside = [name for name, wanted in modules.items() if wanted]
    if beside and not driver:
        raise FabricError(
            "nvidia-peermem and gdrcopy run beside the operator's driver container.",
            where,
            f"false, with gpu_operator_{' and gpu_operator_'.join(beside)}",
            "Let the operator install the driver, or load nvidia_peermem and gdrdrv on the hosts yourself.",
        )
    if settings.get("host_mofed") and not settings.get("rdma"):
        raise FabricError(
            "The hosts' network driver matters for GPUDirect RDMA only.",
            "gpu_operator_host_mofed",
            "true, and gpu_operator_rdma is false",
            "Set gpu_operator_rdma to true, or leave both false.",
        )
    if settings.get("license_secret") and not (driver and settings.get("driver_repository")):
        raise FabricError(
            "A vGPU licence goes with a vGPU guest driver, whose image is in no public registry.",
            "gpu_operator_license_secret",
            "no gpu_operator_driver_repository" if driver else f"{where} is false",
            "Set repository, image and version of the guest driver. A driver on the host reads its licence from "
            "/etc/nvidia/gridd.conf.",
        )


def component_values(registry: str, pull_secrets: t.Sequence[str]) -> Values:
    """Registry and pull secrets of every component; nothing that is not set."""
    values: Values = {}
    for path, repository in REPOSITORIES.items():
        own: Values = {"repository": f"{registry}/{repository}"} if registry else {}
        if pull_secrets and path not in WITHOUT_SECRETS:
            own["imagePullSecrets"] = list(pull_secrets)
        if own:
            values = merge_values(values, nested(path, own))
    return values


def gpu_operator_values(settings: GpuOperatorSettings) -> Values:
    """The chart's values."""
    check_settings(settings)
    given: Values = {**settings}
    driver: Values = {
        "enabled": bool(settings["driver"]),
        "rdma": {"enabled": bool(settings.get("rdma")), "useHostMofed": bool(settings.get("host_mofed"))},
    }
    chosen = {"repository": "driver_repository", "image": "driver_image", "version": "driver_version"}
    driver.update({key: given[name] for key, name in chosen.items() if given.get(name)})
    if settings.get("license_secret"):
        nls = bool(settings.get("license_nls", True))
        driver["licensingConfig"] = {"secretName": settings["license_secret"], "nlsEnabled": nls}
    places = {"CONTAINERD_CONFIG": "containerd_config", "CONTAINERD_SOCKET": "containerd_socket"}
    env = {key: given[name] for key, name in places.items() if given.get(name)}
    env.update(settings.get("toolkit_env") or {})
    own: Values = {
        "nfd": {"enabled": bool(settings.get("nfd"))},
        "operator": {"upgradeCRD": False},  # helm_release applies the definitions: no hook has to run for them
        "driver": driver,
        "gdrcopy": {"enabled": bool(settings.get("gdrcopy"))},
        "toolkit": {
            "enabled": bool(settings["toolkit"]),
            **({"env": [{"name": name, "value": str(value)} for name, value in sorted(env.items())]} if env else {}),
        },
    }
    base = component_values(settings.get("registry") or "", settings.get("pull_secrets") or [])
    return merge_values(merge_values(base, own), settings.get("values") or {})
