# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPUJobs as they are, and how many IPUs are free."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_spec import API
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_status import job_view, own_pods
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import (
    ApiError,
    Cluster,
    Object,
    connect,
    message_of,
)


def jobs_of(cluster: Cluster, params: Object) -> t.List[Object]:
    """The jobs that the options choose, each with its pods, in the order of namespace and name."""
    resource = cluster.resource(API, "IPUJob")
    if resource is None:
        return []
    chosen = {"fieldSelector": f"metadata.name={params['name']}" if params["name"] else None}
    chosen["labelSelector"] = ",".join(params["label_selectors"]) or None
    jobs = cluster.items(resource.path(namespace=params["namespace"] or ""), **chosen)
    pods: t.Dict[str, t.List[Object]] = {}
    for job in jobs:
        namespace = job["metadata"]["namespace"]
        if namespace not in pods:
            pods[namespace] = cluster.items(f"/api/v1/namespaces/{namespace}/pods")
    jobs.sort(key=lambda job: (job["metadata"]["namespace"], job["metadata"]["name"]))
    return [job_view(job, own_pods(job, pods[job["metadata"]["namespace"]])) for job in jobs]


def run_info(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module ipujob_info."""
    return {"changed": False, "jobs": jobs_of(connect(module), module.params)}


def usage(counts: t.Any) -> Object:
    """A count of IPUs as /stats gives it, with whole numbers."""
    used, available = int(counts["used"]), int(counts["available"])
    return {"used": used, "available": available, "ipus": used + available}


def read_stats(answer: Object) -> Object:
    """The answer of /stats: a count for each namespace that has partitions, and the total beside them."""
    counts = {name: usage(value) for name, value in answer.items()}
    return {"total": counts.pop("total"), "namespaces": counts}


def read_query(answer: Object) -> Object:
    """The answer of /query. Its word `available` is true with no partition left too: only the number counts."""
    number = int(answer["numOfPartitions"])
    return {"partitions": number, "fits": number > 0, "message": str(answer.get("message") or "")}


# What check mode ends with where the operator is not there yet.
NOTHING = {"changed": False, "total": usage({"used": 0, "available": 0}), "namespaces": {}, "sizes": []}


class Proxy:
    """The V-IPU proxy of the IPU operator, reached through the API server: it has no address outside of the cluster."""

    def __init__(self, cluster: Cluster, params: Object) -> None:
        self.cluster = cluster
        self.path = "/api/v1/namespaces/{namespace}/services/http:{service}:{port}/proxy".format(**params)

    def ask(self, verb: str, what: str, read: t.Callable[[Object], Object], body: t.Any = None) -> Object:
        try:
            return read(self.cluster.request(verb, f"{self.path}{what}", body=body))
        except ApiError as error:
            seen = f"{error.status}: {message_of(error)}"
            cause: Exception = error
        except (ValueError, KeyError, TypeError) as error:
            seen, cause = f"an answer that can't be read ({type(error).__name__}: {error})", error
        raise FabricError(
            "The V-IPU proxy was asked for its IPUs.",
            f"{self.path}{what}",
            seen,
            "Check namespace, service and port, and that the Deployment ipu-operator-vipu-proxy is ready. Its user "
            "needs the right to get and create services/proxy.",
        ) from cause


def size_problems(sizes: t.Sequence[int]) -> t.List[str]:
    return [
        f"sizes: {size} is not one of 1, 2, 4, 8, 16, 32, 64" for size in sizes if size not in (1, 2, 4, 8, 16, 32, 64)
    ]


def run_stats(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module ipu_stats_info."""
    params = module.params
    wrong = size_problems(params["sizes"])
    if wrong:
        raise FabricError(
            "The options were checked.", "sizes", "; ".join(wrong), "A partition has a power of two of IPUs, up to 64."
        )
    cluster = connect(module)
    try:
        return {"changed": False, **all_stats(Proxy(cluster, params), params["sizes"])} if cluster.present else NOTHING
    except FabricError as error:
        if not module.check_mode:
            raise
        module.warn(f"The V-IPU proxy does not answer yet, check mode takes it that there are no IPUs: {error.seen}")
        return NOTHING


def all_stats(proxy: Proxy, sizes: t.Sequence[int]) -> Object:
    stats = proxy.ask("get", "/stats", read_stats)
    return {**stats, "sizes": [{"size": n, **proxy.ask("post", "/query", read_query, {"size": n})} for n in sizes]}
