# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ipujob_info: the IPUJobs of a cluster and, on request, the number of free IPUs."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.result import FabricError
from .._kube.client import Cluster, connect
from .._kube.query import Object, query
from .._model.jobs import IpuUsage, JobView
from .job_spec import API, job_name
from .job_status import job_view, own_pods
from .vipu_proxy import NO_IPUS, ProxyAddress, VipuProxy, check_sizes


def read_jobs(cluster: Cluster, namespace: str = "", **selectors: t.Optional[str]) -> t.List[Object]:
    """The IPUJobs of one namespace or of all; none if the cluster does not know the kind."""
    resource = cluster.resource(API, "IPUJob")
    items = cluster.items(resource.path(namespace=namespace), **selectors) if resource else []
    return [{**item, "apiVersion": API, "kind": "IPUJob"} for item in items]


def view_jobs(cluster: Cluster, jobs: t.Sequence[Object]) -> t.List[JobView]:
    """The jobs with their pods, ordered by namespace and name."""
    namespaces = {query("metadata.namespace", job) for job in jobs}
    pods = {namespace: cluster.items(f"/api/v1/namespaces/{namespace}/pods") for namespace in namespaces}
    ordered = sorted(jobs, key=lambda job: job_name(job).split("/"))
    return [job_view(job, own_pods(job, pods[query("metadata.namespace", job)])) for job in ordered]


def read_usage(module: AnsibleModule, cluster: Cluster, address: ProxyAddress, sizes: t.Sequence[int]) -> IpuUsage:
    """The IPUs of the cluster; in check mode none if the operator is not installed yet."""
    try:
        return VipuProxy(cluster, address).usage(sizes) if cluster.present else NO_IPUS
    except FabricError as error:
        if not module.check_mode:
            raise
        module.warn(f"The V-IPU proxy does not answer yet, so check mode assumes that there are no IPUs: {error.seen}")
        return NO_IPUS


def read_job_info(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module ipujob_info."""
    name, namespace, labels = (module.params[option] for option in ("name", "namespace", "label_selectors"))
    sizes: t.List[int] = module.params["partition_sizes"]
    check_sizes(sizes)
    cluster = connect(module)
    selectors = {
        "fieldSelector": f"metadata.name={name}" if name else None,
        "labelSelector": ",".join(labels) or None,
    }
    result: t.Dict[str, t.Any] = {"changed": False, "usage": {}}
    result["jobs"] = view_jobs(cluster, read_jobs(cluster, namespace or "", **selectors))
    if module.params["usage"] or sizes:
        result["usage"] = read_usage(module, cluster, ProxyAddress(**module.params["vipu_proxy"]), sizes)
    return result
