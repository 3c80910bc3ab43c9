# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The IPU operators of a cluster and the IPUJobs that run, as one of its control planes reads them."""

from __future__ import annotations

import re
import typing as t
import urllib.parse

from .._common.helm_record import RENDER_LABEL, Object, Record, shown, unpack
from .._model.operators import SeenIpu, SeenIpuJob, SeenIpuOperator
from .._model.stacks import NETWORKS
from .kubectl import Ask

DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ipujobs.graphcore.ai"
JOBS = "/apis/graphcore.ai/v1alpha1/ipujobs"
DEPLOYMENTS = "/apis/apps/v1/deployments"
# Names of the charts' objects. Before 1.1.0 these names begin with that of the release.
MANAGER, PROXY = "ipu-operator-controller-manager", "ipu-operator-vipu-proxy"
CONTROLLERS = "ipu-operator-vipu-controllers"
METRICS_SERVICE, WEBHOOK_SERVICE = f"{MANAGER}-metrics", "ipu-operator-webhook-svc"
# A controller as written in the chart and its ConfigMap: host:port:label=value.
CONTROLLER = re.compile(r"(\[[^\]\s]+\]|[^\s,:\"'\[\]]+):(\d+):([^\s,\"'=:]+)=([^\s,\"':]*)")
FAILED = ("Failed", "Error")
ENDED = ("Completed", "Succeeded", *FAILED)


def read_ipu(asks: Ask) -> t.Optional[SeenIpu]:
    """None without the CRD of IPUJobs: if there is no operator, nothing more is read."""
    if not asks(DEFINITION):
        return None
    managers = [each for each in asks(DEPLOYMENTS).get("items", []) if each["metadata"]["name"].endswith(MANAGER)]
    jobs = [job for job in asks(JOBS).get("items", []) if not has_ended(job)]
    return {
        "operators": [seen_operator(asks, manager) for manager in managers],
        "jobs": [seen_job(job) for job in jobs],
    }


def seen_operator(asks: Ask, manager: Object) -> SeenIpuOperator:
    metadata = manager["metadata"]
    namespace, release = metadata["namespace"], metadata.get("annotations", {}).get("meta.helm.sh/release-name", "")
    selector = urllib.parse.quote(f"owner=helm,name={release}")
    path = f"/api/v1/namespaces/{namespace}"
    secrets = asks(f"{path}/secrets?labelSelector={selector}").get("items", []) if release else []
    record = installed_record(secrets)
    config_map = asks(f"{path}/configmaps/{metadata['name'][: -len(MANAGER)]}{CONTROLLERS}")
    return {
        "namespace": namespace,
        "name": metadata["name"],
        "release": release,
        "version": chart_version(record, metadata.get("labels", {})),
        "ours": any(RENDER_LABEL in secret["metadata"].get("labels", {}) for secret in secrets),
        "values": shown(record.get("config") or {}),
        "defaults": shown(record.get("chart", {}).get("values") or {}),
        "controllers": controllers_in(config_map),
    }


def controllers_in(config_map: Object) -> t.List[str]:
    """host:port:label=value of each controller in the operator's ConfigMap."""
    return [match[0] for text in config_map.get("data", {}).values() for match in CONTROLLER.finditer(text)]


def installed_record(secrets: t.Sequence[Object]) -> Record:
    """Helm's record of the newest revision that it finished; empty without one."""
    done = [each for each in secrets if not each["metadata"]["labels"].get("status", "").startswith("pending-")]
    newest = max(done, key=lambda each: int(each["metadata"]["labels"].get("version", 0)), default=None)
    return unpack(newest) if newest else {}


def chart_version(record: Record, labels: t.Mapping[str, str]) -> str:
    """The chart's version, with three numbers; empty if nothing tells."""
    told = record.get("chart", {}).get("metadata", {}).get("version", "")
    labelled = labels.get("helm.sh/chart", "") or labels.get("app.kubernetes.io/version", "")
    found = re.search(r"\d+\.\d+\.\d+", told or labelled)
    return found[0] if found else ""


def has_ended(job: Object) -> bool:
    status = job.get("status", {})
    return bool(status.get("completionTime")) or status.get("launcherStatus") in ENDED


def seen_job(job: Object) -> SeenIpuJob:
    template = job["spec"].get("workers", {}).get("template", {})
    annotations = template.get("metadata", {}).get("annotations") or {}
    return {"name": "{namespace}/{name}".format(**job["metadata"]), "networks": annotations.get(NETWORKS, "")}
