# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The IPU operator: its chart values, its V-IPU controllers, and what there is of it in a cluster."""

from __future__ import annotations

import datetime
import re
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_spec import API
from ansible_collections.ipu.fabric.plugins.module_utils._kube.certificates import first_end
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster, Object, connect, describe
from ansible_collections.ipu.fabric.plugins.module_utils._network.operator_info import operator_view

SECRET = "ipu-operator-admission"
CONTROLLERS = "ipu-operator-vipu-controllers"
# Releases before 1.1.0 had another chart, and their names begin with that of the release.
MANAGER = "ipu-operator-controller-manager"
PORT = 8090
ENTRY = re.compile(r"(\[[^\]\s]+\]|[^\s,:\"'\[\]]+):(\d+):([^\s,\"'=:]+)=([^\s,\"':]*)")

# Chart values by setting. The charts ignore proxyPartitionTrackerConfigMap, and podAnnotations and podSecurityContext
# of the controller; nameOverride and fullnameOverride would part the webhook's certificate from its Service.
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
        {"image_pull_policy": "launcherImagePullPolicy", "kubectl_version": "kubectlVersion"},
    ),
}
# What 1.2.0 does not have any more, or does not look at.
FORMER: t.Dict[str, t.Tuple[str, t.Dict[str, str]]] = {
    "controller": ("controller", {"dns_policy": "dnsPolicy", "host_network": "hostNetwork"}),
    "webhook": ("admissionWebhooks", {"failure_policy": "failurePolicy"}),
    # The chart's own values spell the policy so; what its templates read is the table's spelling.
    "launcher": ("global", {"image_pull_policy": "laucherImagePullPolicy"}),
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
# Where repository and tag of an image go.
IMAGES = {
    "controller": ("controller.image.repository", "controller.image.tag"),
    "proxy": ("vipuProxy.image.repository", "vipuProxy.image.tag"),
    "launcher": ("global.launcherImage", "global.launcherImageTag"),
}
FORMER_IMAGES = {"certgen": ("admissionWebhooks.patch.image.repository", "admissionWebhooks.patch.image.tag")}
FLAGS = ("devel_logs", "host_network", "rbac_create", "service_account_create")
NUMBERS = (
    "idle_timeout", "log_level", "port", "read_timeout", "run_as_user", "service_port", "timeout", "write_timeout",
)  # fmt: skip


def former(release: str) -> bool:
    """Whether a release makes its certificate by jobs, and has no definition in its chart: those before 1.2."""
    return tuple(int(part) for part in release.lstrip("v").split(".")[:2]) < (1, 2)


def put(values: Object, path: str, value: t.Any) -> None:
    *parents, last = path.split(".")
    for part in parents:
        values = values.setdefault(part, {})
    values[last] = value


def typed(name: str, value: t.Any) -> t.Any:
    """A setting as helm has to see it: to its templates the text "false" would be true."""
    return boolean(value) if name in FLAGS else int(value) if name in NUMBERS else value


def split_image(image: str) -> t.Tuple[str, str]:
    """Repository and tag. The charts join the two with a colon: a digest goes as repo@sha256 and its number."""
    place, slash, name = image.rpartition("/")
    if "@" in name:
        name, _at, digest = name.partition("@")
        kind, _colon, number = digest.partition(":")
        return f"{place}{slash}{name.partition(':')[0]}@{kind}", number
    name, _colon, tag = name.partition(":")
    return f"{place}{slash}{name}", tag


def ipu_operator_values(settings: t.Mapping[str, t.Any]) -> Object:
    """The chart's values: what is set, and nothing else. The filter's documentation lists the settings."""
    before_12 = former(settings["release"])
    values: Object = {}
    put(values, "global.vipuControllers", controllers_value(settings.get("vipu_controllers") or []))
    put(values, "global.imagePullSecrets", [{"name": name} for name in settings.get("pull_secrets") or []])
    put(values, "worker.hostNetwork", boolean(settings.get("worker_host_network", False)))
    for name, (repository, tag) in {**IMAGES, **(FORMER_IMAGES if before_12 else {})}.items():
        parts = split_image((settings.get("images") or {}).get(name) or "")
        for path, part in zip((repository, tag), parts):
            if part:
                put(values, path, part)
    for table in [GROUPS, *([FORMER] if before_12 else [])]:
        for group, (start, paths) in table.items():
            given = {"image_pull_policy": settings.get("image_pull_policy") or None, **(settings.get(group) or {})}
            for name, path in paths.items():
                if given.get(name) is not None:
                    put(values, f"{start}.{path}", typed(name, given[name]))
    return values


# V-IPU controllers


def controllers_value(controllers: t.Sequence[Object]) -> str:
    """The chart's form of the controllers: host:port:label=value, separated by commas. FabricError on a wrong one."""
    entries: t.Dict[str, str] = {}
    for controller in controllers:
        host, label = str(controller["host"]).strip("[]"), str(controller["label"])
        place = f"[{host}]" if ":" in host else host
        entry = f"{place}:{int(controller.get('port') or PORT)}:{label}"
        match = ENTRY.fullmatch(entry)
        at = entry[: -len(label) - 1]
        wrong = "" if match else "not of the form host:port:label=value"
        if place.partition(".")[0] == "localhost" or place.startswith("127."):
            wrong = "a loopback address, which the operator's proxy on the pod network can't reach"
        elif at in entries:
            wrong = "named twice"
        if wrong:
            raise FabricError(
                "A V-IPU controller was to be given to the IPU operator.",
                "ipu_operator_vipu_controllers",
                f"{entry} is {wrong}",
                "Give each controller once: a host that pods reach, its port, and a label as key=value.",
            )
        entries[at] = entry
    return ",".join(entries.values())


def parse_controllers(text: str) -> t.List[Object]:
    """The controllers in a text of the operator's ConfigMap."""
    return [
        {"host": host.strip("[]"), "port": int(port), "label": f"{key}={value}"}
        for host, port, key, value in ENTRY.findall(text)
    ]


def label_of(controller: Object) -> t.Tuple[str, str]:
    key, _equals, value = str(controller["label"]).partition("=")
    return key, value


def ipu_node_labels(
    controllers: t.Sequence[Object],
    former_ones: t.Sequence[Object] = (),
    labelled: t.Sequence[Object] = (),
    absent: bool = False,
) -> t.List[Object]:
    """The nodes and their labels, for node_labels: null takes one off a node that a controller serves no more.

    controllers: {label, nodes}; without `nodes` their labels are the site's own business. former_ones: {label}.
    labelled: nodes as they are, {name, labels}. absent: no controller serves any node any more.
    """
    wanted: t.Dict[str, t.Dict[str, t.Optional[str]]] = {}
    for controller in controllers:
        key, value = label_of(controller)
        for name in [] if absent else controller.get("nodes") or []:
            labels = wanted.setdefault(name, {})
            if labels.setdefault(key, value) != value:
                raise FabricError(
                    "A node has one V-IPU controller for a label.",
                    f"node {name} in ipu_operator_vipu_controllers",
                    f"{key}={labels[key]} and {key}={value}",
                    "Take the node out of one of the two.",
                )
    foreign = {label_of(controller) for controller in controllers if controller.get("nodes") is None}
    ours = {label_of(controller) for controller in [*controllers, *former_ones]} - foreign
    for node in labelled:
        for key, value in ours:
            if node["labels"].get(key) == value:
                wanted.setdefault(node["name"], {}).setdefault(key, None)
    return [{"name": name, "labels": wanted[name]} for name in sorted(wanted)]


# What there is


def version_of(deployment: Object) -> str:
    """The chart's version: the application's may have a suffix."""
    labels = deployment["metadata"].get("labels") or {}
    chart = re.search(r"-v?(\d+\.\d+\.\d+)", labels.get("helm.sh/chart", ""))
    return chart.group(1) if chart else operator_view(deployment)["version"].partition("-")[0]


def installed(cluster: Cluster) -> t.List[Object]:
    """The IPU operators, in all namespaces."""
    found = []
    for deployment in cluster.items("/apis/apps/v1/deployments"):
        if deployment["metadata"]["name"].endswith(MANAGER):
            available = (deployment.get("status") or {}).get("availableReplicas") or 0
            view = {**operator_view(deployment), "version": version_of(deployment), "available": available > 0}
            found.append(view)
    return found


def ipujobs(cluster: Cluster) -> t.List[Object]:
    """The IPUJobs of all namespaces; none while the cluster does not know them."""
    resource = cluster.resource(API, "IPUJob")
    items = cluster.items(resource.path()) if resource else []
    return [{**item, "apiVersion": API, "kind": "IPUJob"} for item in items]


def certificate(cluster: Cluster, namespace: str) -> Object:
    """When the webhook's certificate ends, and the days until then; empty and None when there is none to read."""
    end = first_end(cluster.get(f"/api/v1/namespaces/{namespace}/secrets/{SECRET}"))
    if end is None:
        return {"end": "", "days": None}
    return {"end": end.isoformat(), "days": (end - datetime.datetime.now(datetime.timezone.utc)).days}


def run(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module ipu_operator_info."""
    cluster, namespace = connect(module), module.params["namespace"]
    config = cluster.get(f"/api/v1/namespaces/{namespace}/configmaps/{CONTROLLERS}") or {}
    controllers = [c for text in (config.get("data") or {}).values() for c in parse_controllers(text)]
    pairs = {label_of(controller) for controller in controllers}
    pairs |= {label_of({"label": label}) for label in module.params["labels"]}
    labelled = []
    for node in cluster.items("/api/v1/nodes") if pairs else []:
        own = node["metadata"].get("labels") or {}
        labels = {key: value for key, value in sorted(pairs) if own.get(key) == value}
        if labels:
            labelled.append({"name": node["metadata"]["name"], "labels": labels})
    seen = certificate(cluster, namespace)
    return {
        "changed": False,
        "operators": installed(cluster),
        "vipu_controllers": controllers,
        "labelled": labelled,
        "certificate_end": seen["end"],
        "certificate_days": seen["days"],
        "tracker": cluster.get(f"/api/v1/namespaces/{namespace}/configmaps/ipu-partitions-tracker") is not None,
        "jobs": [describe(job).partition(" ")[2] for job in ipujobs(cluster)],
    }
