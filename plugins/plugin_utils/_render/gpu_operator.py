# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The chart values of the NVIDIA GPU operator. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube.chart_values import combined

Object = t.Dict[str, t.Any]

# Where the chart takes the images of each component from, by the chart's values from 25.10 to 26.7.
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


def nested(path: str, value: Object) -> Object:
    """A value at a.b, as dictionaries."""
    for part in reversed(path.split(".")):
        value = {part: value}
    return value


def check(settings: t.Mapping[str, t.Any]) -> None:
    """Refuse what the operator would take and never do."""
    driver, where = settings["driver"], "gpu_operator_driver"
    beside = [name for name in ("rdma", "gdrcopy") if settings.get(name)]
    if beside and not driver:
        raise FabricError(
            "nvidia-peermem and gdrcopy run beside the operator's driver container.",
            where,
            f"false, with gpu_operator_{' and gpu_operator_'.join(beside)}",
            "Let the operator install the driver, or load nvidia_peermem and gdrdrv on the hosts yourself.",
        )
    if settings.get("host_mofed") and not settings.get("rdma"):
        raise FabricError(
            "The hosts' network driver matters to GPUDirect RDMA only.",
            "gpu_operator_host_mofed",
            "true, and gpu_operator_rdma is false",
            "Set gpu_operator_rdma to true, or leave both false.",
        )
    if settings.get("license_secret") and not (driver and settings.get("driver_repository")):
        raise FabricError(
            "A vGPU licence goes with a vGPU guest driver, whose image is in no public registry.",
            "gpu_operator_license_secret",
            "no gpu_operator_driver_repository" if driver else f"{where} is false",
            "Name repository, image and version of the guest driver. A driver of the host's own takes its licence from "
            "/etc/nvidia/gridd.conf.",
        )


def components(registry: str, pull_secrets: t.Sequence[str]) -> Object:
    """Registry and pull secrets of every component; nothing where the chart's own will do."""
    values: Object = {}
    for path, repository in REPOSITORIES.items():
        own: Object = {"repository": f"{registry}/{repository}"} if registry else {}
        if pull_secrets and path not in WITHOUT_SECRETS:
            own["imagePullSecrets"] = list(pull_secrets)
        if own:
            values = combined(values, nested(path, own))
    return values


def gpu_operator_values(settings: t.Mapping[str, t.Any]) -> Object:
    """The chart's values; the filter's documentation lists the settings."""
    check(settings)
    driver: Object = {
        "enabled": bool(settings["driver"]),
        "rdma": {"enabled": bool(settings.get("rdma")), "useHostMofed": bool(settings.get("host_mofed"))},
    }
    chosen = {"repository": "driver_repository", "image": "driver_image", "version": "driver_version"}
    driver.update({key: settings[name] for key, name in chosen.items() if settings.get(name)})
    if settings.get("license_secret"):
        nls = bool(settings.get("license_nls", True))
        driver["licensingConfig"] = {"secretName": settings["license_secret"], "nlsEnabled": nls}
    places = {"CONTAINERD_CONFIG": "containerd_config", "CONTAINERD_SOCKET": "containerd_socket"}
    env = {key: settings[name] for key, name in places.items() if settings.get(name)}
    env.update(settings.get("toolkit_env") or {})
    own: Object = {
        "nfd": {"enabled": bool(settings.get("nfd"))},
        "operator": {"upgradeCRD": False},  # the definitions are applied by us: no hook has to run for them
        "driver": driver,
        "gdrcopy": {"enabled": bool(settings.get("gdrcopy"))},
        "toolkit": {
            "enabled": bool(settings["toolkit"]),
            **({"env": [{"name": name, "value": str(value)} for name, value in sorted(env.items())]} if env else {}),
        },
    }
    base = components(settings.get("registry") or "", settings.get("pull_secrets") or [])
    return combined(combined(base, own), settings.get("values") or {})
