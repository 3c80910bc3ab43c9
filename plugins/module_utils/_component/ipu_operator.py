# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Graphcore IPU operator, and the labels by which V-IPU controllers are assigned to nodes.

A removal takes the release, the labels, `leftovers` and `remnants`; `stays` says what it keeps. The IPUJobs go before
it: _ipu/job_removal.py.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible.module_utils.parsing.convert_bool import boolean

from .._common.pod_security import POD_SECURITY, PRIVILEGED
from .._common.result import FabricError
from .._host.ipu_operator import MANAGER, PROXY
from .._ipu.controllers import SECRET, TRACKER, controllers_value, ipu_node_labels
from .._kube.merge_values import merge_values
from .._model.failure import Code
from .._model.operators import IpuFacts, VipuController
from .._model.wish import Wish
from .._network.ipu_release import (
    Refusal,
    downgrade,
    is_before_1_2,
    missing_definition,
    of_release,
    place,
    second_operator,
)
from .manifests import check_manifest, parse_manifest
from .objects import definitions, home, named
from .settings import ChartSettings

Values = t.Dict[str, t.Any]  # values of a chart: any YAML
CRD = "ipujobs.graphcore.ai"
# The charts still refer to it, but it is no longer served.
RETIRED_IMAGE = "gcr.io/kubebuilder/kube-rbac-proxy:v0.8.0"
# The smallest possible job, for a dry run only.
PROBE = {
    **named("graphcore.ai/v1alpha1", "IPUJob", "fabric-probe", "default"),
    "spec": {
        "jobInstances": 1,
        "ipusPerJobInstance": "1",
        "workersPerJobInstance": "1",
        "workers": {"template": {"spec": {"containers": [{"name": "probe", "image": "registry.k8s.io/pause"}]}}},
    },
}
# Chart values by setting. The charts ignore proxyPartitionTrackerConfigMap, and the controller's podAnnotations and
# podSecurityContext; nameOverride or fullnameOverride would make the webhook's certificate mismatch its Service.
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
# Settings that 1.2.0 removed or ignores.
GROUPS_BEFORE_1_2: t.Dict[str, t.Tuple[str, t.Dict[str, str]]] = {
    "controller": ("controller", {"dns_policy": "dnsPolicy", "host_network": "hostNetwork"}),
    "webhook": ("admissionWebhooks", {"failure_policy": "failurePolicy"}),
    # The chart's own values use this spelling; its templates read the one in GROUPS.
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
# Chart paths of each image's repository and tag.
IMAGES = {
    "controller_image": ("controller.image.repository", "controller.image.tag"),
    "proxy_image": ("vipuProxy.image.repository", "vipuProxy.image.tag"),
    "launcher_image": ("global.launcherImage", "global.launcherImageTag"),
}
CERTGEN = {"certgen_image": ("admissionWebhooks.patch.image.repository", "admissionWebhooks.patch.image.tag")}
FLAGS = ("devel_logs", "host_network", "rbac_create", "service_account_create")
NUMBERS = (
    "idle_timeout", "log_level", "port", "read_timeout", "run_as_user", "service_port", "timeout", "write_timeout",
)  # fmt: skip
NOTHING: IpuFacts = {
    "operators": [],
    "own": [],
    "vipu_controllers": [],
    "labelled": [],
    "certificate_end": "",
    "certificate_days": None,
    "tracker": False,
    "definition": False,
    "jobs": [],
}


@dataclasses.dataclass(frozen=True)
class Settings(ChartSettings):
    """Variables of the role, without its name as a prefix."""

    release_name: str
    crd_url: str
    crd_sha256: str
    vipu_controllers: t.Sequence[VipuController]
    worker_host_network: bool
    controller_image: str
    proxy_image: str
    launcher_image: str
    certgen_image: str
    rbac_proxy_image: str
    image_pull_policy: str
    image_pull_secrets: t.Sequence[str]
    controller: t.Mapping[str, t.Any]  # options of the chart's parts, like the next four
    proxy: t.Mapping[str, t.Any]
    launcher: t.Mapping[str, t.Any]
    webhook: t.Mapping[str, t.Any]
    certgen: t.Mapping[str, t.Any]
    renew_days: int
    keep_tracker: bool


@dataclasses.dataclass(frozen=True)
class Seen:
    """What ipu.fabric.cluster_info found, and the IPUJob definition, which the chart of 1.1.0 lacks."""

    ipu: IpuFacts = dataclasses.field(default_factory=lambda: NOTHING)
    crd: str = ""
    bundle: bool = False  # there is no cluster yet
    removed: bool = False  # the state after the removal


def decide(settings: Settings, seen: Seen) -> Wish:
    """Raise FabricError for a second operator, one of others, a downgrade, or a missing definition."""
    absent, before_1_2 = settings.state == "absent", is_before_1_2(settings.version)
    if seen.removed:
        check_gone(settings, seen.ipu)
    else:
        check_operators(settings, seen.ipu)
    needs_crd = before_1_2 and not absent and not seen.bundle and bool(settings.crd_url)
    if needs_crd:
        check_manifest(seen.crd, settings.crd_url, settings.crd_sha256, "ipu_operator_crd_sha256")
    elif not absent and not seen.bundle:
        missing = missing_definition(settings.version, settings.crd_url, seen.ipu["definition"])
        refuse(missing, "ipu_operator_crd_url", "invalid-input")
    host_network = settings.controller.get("host_network")
    keep = settings.keep_tracker and seen.ipu["tracker"]
    # The Secret that a hook of 1.1.0 created.
    secret = named("v1", "Secret", SECRET, settings.namespace)
    tracker = named("v1", "ConfigMap", TRACKER, settings.namespace)
    return Wish(
        release=dataclasses.replace(
            settings.release(settings.release_name, settings.namespace, all_values(settings, seen.bundle)),
            images={RETIRED_IMAGE: settings.rbac_proxy_image},
        ),
        objects=parse_manifest(seen.crd) if needs_crd else [],
        # Before 1.2.0, the controller uses the host's network, which only privileged namespaces allow.
        namespace_labels={POD_SECURITY: PRIVILEGED}
        if boolean(before_1_2 if host_network is None else host_network)
        else {},
        # Since 1.2.0, the chart itself creates the webhook's certificate, for a year.
        renew={} if before_1_2 else {"secret": SECRET, "days": settings.renew_days},
        ready=[{"kind": "Deployment", "name": name, "namespace": settings.namespace} for name in (MANAGER, PROXY)],
        crds=[CRD],
        accepted=[PROBE],
        nodes=ipu_node_labels(
            settings.vipu_controllers, seen.ipu["vipu_controllers"], seen.ipu["labelled"], absent=absent
        ),
        leftovers=[secret] if keep else [secret, tracker],
        remnants=[*definitions([CRD]), *([] if keep else home(settings.namespace))],
        stays=f"ConfigMap {settings.namespace}/{TRACKER} and its namespace stay: an IPU operator that is installed"
        " later continues from the partitions in it. -e ipu_operator_keep_tracker=false removes both."
        if keep
        else "",
    )


def check_operators(settings: Settings, ipu: IpuFacts) -> None:
    """Refuse operators of others, before a removal too: it would delete IPUJobs and their definition."""
    release = (settings.namespace, settings.release_name)
    refuse(second_operator(ipu["operators"], *release), "Deployments of the cluster", "not-ours")
    ours = of_release(ipu["operators"], *release)
    strangers = [place(each) for each in ours if place(each) not in ipu["own"]]
    if settings.state == "absent":
        if strangers:
            raise FabricError(
                "Only an IPU operator that this collection has installed is removed, with its IPUJobs and their "
                "definition.",
                "Deployments of the cluster",
                f"{', '.join(strangers)} was installed by somebody else",
                "Leave it, or have those who installed it remove it.",
                code="not-ours",
            )
        return
    refuse(downgrade(ipu["operators"], *release, settings.version), "ipu_operator_version", "invalid-input")


def refuse(refusal: t.Optional[Refusal], where: str, code: Code) -> None:
    if refusal:
        raise FabricError(refusal.what, where, refusal.seen, refusal.next_step, code=code)


def check_gone(settings: Settings, ipu: IpuFacts) -> None:
    left = [place(each) for each in ipu["operators"] if each["namespace"] == settings.namespace]
    if left:
        raise FabricError(
            "The IPU operator was removed, and the cluster still has it.",
            "Deployments of the cluster",
            ", ".join(left),
            "Something else installs it: check its owner with kubectl get -o yaml.",
            code="not-ours",
        )


def set_value(values: Values, path: str, value: t.Any) -> None:
    """Set the value at a path such as a.b."""
    *parents, last = path.split(".")
    for part in parents:
        values = values.setdefault(part, {})
    values[last] = value


def typed_value(name: str, value: t.Any) -> t.Any:
    """A setting in the type that Helm needs: its templates would take the text "false" for true."""
    return boolean(value) if name in FLAGS else int(value) if name in NUMBERS else value


def split_image(image: str) -> t.Tuple[str, str]:
    """Repository and tag. The charts join them with a colon, so a digest becomes repo@sha256 and its hash."""
    path, slash, name = image.rpartition("/")
    if "@" in name:
        name, _at, digest = name.partition("@")
        algorithm, _colon, checksum = digest.partition(":")
        return f"{path}{slash}{name.partition(':')[0]}@{algorithm}", checksum
    name, _colon, tag = name.partition(":")
    return f"{path}{slash}{name}", tag


def all_values(settings: Settings, bundle: bool = False) -> Values:
    """The chart's values; those of the site take precedence."""
    values: Values = merge_values(chart_values(settings, bundle), settings.values)
    return values


def chart_values(settings: Settings, bundle: bool) -> Values:
    """Values that are set, without any others."""
    before_1_2, given = is_before_1_2(settings.version), dataclasses.asdict(settings)
    # A chart in a directory means a site without registries: its images are on the hosts, and must not be pulled again.
    offline = bundle or settings.chart_repo_url.startswith("/")
    policy = settings.image_pull_policy or ("IfNotPresent" if offline else None)
    values: Values = {}
    set_value(values, "global.vipuControllers", controllers_value(settings.vipu_controllers))
    set_value(values, "global.imagePullSecrets", [{"name": name} for name in settings.image_pull_secrets])
    set_value(values, "worker.hostNetwork", settings.worker_host_network)
    for image, paths in {**IMAGES, **(CERTGEN if before_1_2 else {})}.items():
        for path, part in zip(paths, split_image(given[image])):
            if part:
                set_value(values, path, part)
    for table in [GROUPS, *([GROUPS_BEFORE_1_2] if before_1_2 else [])]:
        for group, (start, names) in table.items():
            options = {"image_pull_policy": policy, **given[group]}
            for name, path in names.items():
                if options.get(name) is not None:
                    set_value(values, f"{start}.{path}", typed_value(name, options[name]))
    return values
