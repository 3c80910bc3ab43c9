# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NicClusterPolicy and the chart values of each network operator release, from one set of settings."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube.merge_values import merge_values
from ansible_collections.ipu.fabric.plugins.module_utils._kube.query import Object
from ansible_collections.ipu.fabric.plugins.module_utils._model.plan import RdmaResource
from ansible_collections.ipu.fabric.plugins.module_utils._network.releases import (
    NETWORK_OPERATORS,
    components,
    features,
    parse,
)


class OperatorSettings(t.TypedDict, total=False):
    """What one release of the operator is installed with."""

    release: str
    ipam: str  # nv-ipam or whereabouts
    rdma_resources: t.List[RdmaResource]  # empty: no device plugin
    multus: bool  # whether the operator installs multus; it does without this key
    ofed_driver: Object  # ofedDriver of the policy; empty: the hosts' driver
    images: t.Dict[str, t.Dict[str, str]]  # repository, image, version by component, in place of the release's own
    pull_secrets: t.List[str]
    tolerations: t.List[Object]
    node_affinity: Object
    nfd: bool  # whether the chart installs Node Feature Discovery
    cni_bin_directory: str
    cni_network_directory: str
    values: Object  # further values of the chart; they win


# The operator's own limit of 50Mi gets multus killed on nodes with many pods.
MULTUS_MEMORY = "256Mi"
# Seconds between two scans of the device plugin for new devices.
UPDATE_INTERVAL = 300
# The operator can't render its driver's DaemonSet without probes. They and the policy are those of the vendor's chart,
# less what a drain may lose: pods without a controller, and their empty directories.
OFED_DEFAULTS: Object = {
    "startupProbe": {"initialDelaySeconds": 10, "periodSeconds": 20},
    "livenessProbe": {"initialDelaySeconds": 30, "periodSeconds": 30},
    "readinessProbe": {"initialDelaySeconds": 10, "periodSeconds": 30},
    "upgradePolicy": {
        "autoUpgrade": True,
        "maxParallelUpgrades": 1,
        "drain": {"enable": True, "force": False, "deleteEmptyDir": False, "timeoutSeconds": 300},
    },
}


def release_features(release: str) -> t.Dict[str, bool]:
    """What a release can do."""
    version = parse(release)
    if version[:2] not in NETWORK_OPERATORS:
        raise FabricError(
            "A network operator release was named.",
            "network_operator_version",
            release,
            "Write all of it, as in 26.7.1.",
            code="invalid-input",
        )
    return features(version[:2])


def device_plugin_config(resources: t.Sequence[RdmaResource]) -> str:
    """The shared device plugin's configuration: JSON that the operator pastes between two single quotes."""
    text = json.dumps({"periodicUpdateInterval": UPDATE_INTERVAL, "configList": list(resources)}, sort_keys=True)
    if "'" in text:
        raise FabricError(
            "The RDMA resources can't hold a single quote.",
            "rdma resources",
            text,
            "Name interfaces without quotes.",
            code="invalid-input",
        )
    return text


def component(image: t.Mapping[str, str], pull_secrets: t.Sequence[str], **more: t.Any) -> Object:
    """One component of the policy; an image pull secret is a plain name there."""
    secrets = {"imagePullSecrets": list(pull_secrets)} if pull_secrets else {}
    return {**image, **secrets, **more}


def ofed_driver(release: str, wanted: t.Mapping[str, t.Any], pull_secrets: t.Sequence[str]) -> Object:
    """The driver container, in the policy's own field names. Its version is the site's choice and has no default."""
    if not wanted.get("version"):
        raise FabricError(
            "The driver container needs a version.",
            "network_operator_ofed_driver",
            f"only {', '.join(sorted(wanted))}",
            "Add the version that the vendor names for this release, or leave all of it empty for the host's driver.",
            code="invalid-input",
        )
    image = "doca-driver" if parse(release)[:2] >= (24, 1) else "mofed"
    base = component({"repository": "nvcr.io/nvidia/mellanox", "image": image}, pull_secrets, **OFED_DEFAULTS)
    return merge_values(base, wanted)


def multus_resources() -> t.List[Object]:
    memory = {"memory": MULTUS_MEMORY}
    return [{"name": "kube-multus", "requests": {"cpu": "100m", **memory}, "limits": dict(memory)}]


def policy_spec(settings: OperatorSettings) -> Object:
    """spec of the NicClusterPolicy."""
    release, ipam = settings["release"], settings["ipam"]
    can = release_features(release)
    found = components(release, ipam)
    own: t.Mapping[str, t.Mapping[str, str]] = settings.get("images") or {}
    images: t.Dict[str, Object] = {name: {**image, **own.get(name, {})} for name, image in found.items()}
    secrets = settings.get("pull_secrets") or []
    multus = {"containerResources": multus_resources()} if can["container_resources"] else {}
    secondary = {"cniPlugins": component(images["cniPlugins"], secrets)}
    if settings.get("multus", True):
        secondary["multus"] = component(images["multus"], secrets, **multus)
    spec: Object = {"secondaryNetwork": secondary}
    if ipam == "nv-ipam":
        spec["nvIpam"] = component(images["nvIpam"], secrets, enableWebhook=False)
    elif can["whereabouts"]:  # else whereabouts is installed on its own
        secondary["ipamPlugin"] = component(images["ipamPlugin"], secrets)
    if settings.get("rdma_resources"):
        config = device_plugin_config(settings["rdma_resources"])
        spec["rdmaSharedDevicePlugin"] = component(images["rdmaSharedDevicePlugin"], secrets, config=config)
    if settings.get("ofed_driver"):
        spec["ofedDriver"] = ofed_driver(release, settings["ofed_driver"], secrets)
    if settings.get("tolerations") and can["tolerations"]:
        spec["tolerations"] = list(settings["tolerations"])
    if settings.get("node_affinity"):
        spec["nodeAffinity"] = dict(settings["node_affinity"])
    return spec


def nic_cluster_policy(settings: OperatorSettings) -> Object:
    """The NicClusterPolicy. The operator acts on this one name only."""
    return {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": {"name": "nic-cluster-policy"},
        "spec": policy_spec(settings),
    }


def network_operator_values(settings: OperatorSettings) -> Object:
    """The chart's values."""
    can = release_features(settings["release"])
    nfd = bool(settings.get("nfd"))
    values: Object = {"nfd": {"enabled": nfd}, "sriovNetworkOperator": {"enabled": False}}
    if can["deploy_cr"]:
        values["deployCR"] = False
    if can["nfd_rules"]:
        values["nfd"]["deployNodeFeatureRules"] = nfd
    if can["upgrade_crds"]:
        # The CRDs are applied by us: no hook has to run for them.
        values["upgradeCRDs"] = False
    if can["keep_policy_hook"]:
        # Nor for a policy that helm owns: the role sees to that.
        values["keepNCP"] = False
    operator = {}
    if settings.get("cni_bin_directory") and can["cni_bin_directory"]:
        operator["cniBinDirectory"] = settings["cni_bin_directory"]
    if settings.get("cni_network_directory") and can["cni_network_directory"]:
        operator["cniNetworkDirectory"] = settings["cni_network_directory"]
    if operator:
        values["operator"] = operator
    if settings.get("pull_secrets"):
        values["imagePullSecrets"] = list(settings["pull_secrets"])
    return merge_values(values, settings.get("values") or {})


def upgrade_steps(installed: str, wanted: str) -> t.Tuple[str, t.List[str]]:
    """The kind of change from one release to another, and the releases to install one after the other.

    The vendor supports upgrades within a line and to the next line, so each line between the two is a step of its own.
    """
    old, new = parse(installed), parse(wanted)
    if not installed:
        return "install", [wanted]
    if old == new:
        return "keep", []
    if old > new:
        return "downgrade", []
    between = sorted(line for line in NETWORK_OPERATORS if old[:2] < line < new[:2]) if old else []
    return "skip" if between or not old else "upgrade", [*(NETWORK_OPERATORS[line].newest for line in between), wanted]
