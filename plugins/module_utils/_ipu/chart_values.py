# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values of the IPU operator's chart. Pure."""

from __future__ import annotations

import typing as t

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.controllers import VipuController, controllers_value

Values = t.Dict[str, t.Any]  # of a chart: any YAML


class Images(t.TypedDict, total=False):
    """Image references, whole. Without a tag: the chart's. Empty: the chart's own image."""

    controller: str
    proxy: str
    launcher: str
    certgen: str  # before 1.2 only


class OperatorSettings(t.TypedDict, total=False):
    """Settings of the filter ipu_operator_values. Only `release` is needed."""

    release: str
    vipu_controllers: t.Sequence[VipuController]
    images: Images
    image_pull_policy: str  # of all images
    pull_secrets: t.Sequence[str]
    worker_host_network: t.Union[bool, str]
    controller: t.Mapping[str, t.Any]  # options of GROUPS, likewise the next four
    proxy: t.Mapping[str, t.Any]
    webhook: t.Mapping[str, t.Any]
    launcher: t.Mapping[str, t.Any]
    certgen: t.Mapping[str, t.Any]  # before 1.2 only
    values: t.Mapping[str, t.Any]  # of the chart, by its own names; they win


# Chart values by setting. The charts ignore proxyPartitionTrackerConfigMap, and podAnnotations and podSecurityContext
# of the controller; with nameOverride or fullnameOverride the webhook's certificate would not match its Service.
POD = {
    "affinity": "affinity",
    "image_pull_policy": "image.pullPolicy",
    "node_selector": "nodeSelector",
    "rbac_create": "rbac.create",
    "resources": "resources",
    "security_context": "securityContext",
    "service_account_annotations": "serviceAccount.annotations",
    "service_account_create": "serviceAccount.create",
    "service_account_name": "serviceAccount.name",
    "service_port": "service.port",
    "service_type": "service.type",
    "tolerations": "tolerations",
}
GROUPS: t.Dict[str, t.Tuple[str, t.Dict[str, str]]] = {
    "controller": ("controller", {**POD, "devel_logs": "develLogs"}),
    "proxy": (
        "vipuProxy",
        {
            **POD,
            "idle_timeout": "proxyIdleTimeoutSeconds",
            "log_level": "logLevel",
            "pod_annotations": "podAnnotations",
            "pod_security_context": "podSecurityContext",
            "port": "proxyPort",
            "read_timeout": "proxyReadTimeoutSeconds",
            "write_timeout": "proxyWriteTimeoutSeconds",
        },
    ),
    "webhook": (
        "admissionWebhooks",
        {
            "port": "port",
            "service_annotations": "service.annotations",
            "service_port": "service.servicePort",
            "service_type": "service.type",
            "timeout": "timeoutSeconds",
        },
    ),
    "launcher": (
        "global",
        {"image_pull_policy": "launcherImagePullPolicy"},
    ),
}
# What 1.2.0 does not have any more, or ignores.
GROUPS_BEFORE_1_2: t.Dict[str, t.Tuple[str, t.Dict[str, str]]] = {
    "controller": ("controller", {"dns_policy": "dnsPolicy", "host_network": "hostNetwork"}),
    "webhook": ("admissionWebhooks", {"failure_policy": "failurePolicy"}),
    # The chart's own values spell the policy so; what its templates read is the table's spelling.
    "launcher": ("global", {"image_pull_policy": "laucherImagePullPolicy", "kubectl_version": "kubectlVersion"}),
    "certgen": (
        "admissionWebhooks.patch",
        {
            "image_pull_policy": "image.pullPolicy",
            "node_selector": "nodeSelector",
            "pod_annotations": "podAnnotations",
            "priority_class": "priorityClassName",
            "run_as_user": "runAsUser",
            "tolerations": "tolerations",
        },
    ),
}
# Paths of an image's repository and tag.
IMAGES = {
    "controller": ("controller.image.repository", "controller.image.tag"),
    "proxy": ("vipuProxy.image.repository", "vipuProxy.image.tag"),
    "launcher": ("global.launcherImage", "global.launcherImageTag"),
}
IMAGES_BEFORE_1_2 = {"certgen": ("admissionWebhooks.patch.image.repository", "admissionWebhooks.patch.image.tag")}
FLAGS = ("devel_logs", "host_network", "rbac_create", "service_account_create")
NUMBERS = (
    "idle_timeout", "log_level", "port", "read_timeout", "run_as_user", "service_port", "timeout", "write_timeout",
)  # fmt: skip


def is_before_1_2(release: str) -> bool:
    """Whether jobs of the chart make the certificate, and the chart does not hold the definition."""
    return tuple(int(part) for part in release.lstrip("v").split(".")[:2]) < (1, 2)


def set_value(values: Values, path: str, value: t.Any) -> None:
    """Set the value at a path such as a.b."""
    *parents, last = path.split(".")
    for part in parents:
        values = values.setdefault(part, {})
    values[last] = value


def typed_value(name: str, value: t.Any) -> t.Any:
    """A setting of the type that helm needs: to its templates the text "false" would be true."""
    return boolean(value) if name in FLAGS else int(value) if name in NUMBERS else value


def split_image(image: str) -> t.Tuple[str, str]:
    """Repository and tag. The charts join the two with a colon: a digest becomes repo@sha256 and its hash."""
    path, slash, name = image.rpartition("/")
    if "@" in name:
        name, _at, digest = name.partition("@")
        algorithm, _colon, checksum = digest.partition(":")
        return f"{path}{slash}{name.partition(':')[0]}@{algorithm}", checksum
    name, _colon, tag = name.partition(":")
    return f"{path}{slash}{name}", tag


def ipu_operator_values(settings: OperatorSettings) -> Values:
    """The chart's values: what is set, and nothing else."""
    before_1_2 = is_before_1_2(settings["release"])
    values: Values = {}
    set_value(values, "global.vipuControllers", controllers_value(settings.get("vipu_controllers") or []))
    set_value(values, "global.imagePullSecrets", [{"name": name} for name in settings.get("pull_secrets") or []])
    set_value(values, "worker.hostNetwork", boolean(settings.get("worker_host_network", False)))
    given: t.Mapping[str, t.Any] = {**settings}
    images: t.Mapping[str, t.Any] = {**settings.get("images", {})}
    for image, paths in {**IMAGES, **(IMAGES_BEFORE_1_2 if before_1_2 else {})}.items():
        parts = split_image(images.get(image) or "")
        for path, part in zip(paths, parts):
            if part:
                set_value(values, path, part)
    for table in [GROUPS, *([GROUPS_BEFORE_1_2] if before_1_2 else [])]:
        for group, (start, names) in table.items():
            options = {"image_pull_policy": settings.get("image_pull_policy") or None, **(given.get(group) or {})}
            for name, path in names.items():
                if options.get(name) is not None:
                    set_value(values, f"{start}.{path}", typed_value(name, options[name]))
    return values
