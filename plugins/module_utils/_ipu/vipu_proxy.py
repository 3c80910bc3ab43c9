# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The V-IPU proxy of the IPU operator: how many IPUs are used and free, and which partitions would fit."""

from __future__ import annotations

import dataclasses
import functools
import typing as t

from .._common.result import FabricError
from .._kube.client import ApiError, Cluster, is_transient, message_of, refusal_code
from .._kube.query import Object
from .._model.failure import Code
from .._model.jobs import IpuCount, IpuUsage, PartitionRoom
from .job_request import PARTITION_SIZES
from .job_spec import API

Answer = t.TypeVar("Answer")

# For check mode, in which the operator may not be installed yet.
NO_IPUS: IpuUsage = {"total": {"used": 0, "available": 0, "ipus": 0}, "namespaces": {}, "sizes": []}

OTHER_PLACE = (
    "If the operator is in another namespace, set vipu_proxy: {namespace: NAMESPACE}. Check service and port, and"
    " that the Deployment ipu-operator-vipu-proxy is ready. Its user needs the right to get and create services/proxy."
)
NO_OPERATOR = (
    "The cluster has no IPU operator: it knows no IPUJob. Set fabric_ipu to true and run ipu.fabric.site to install it."
    " Jobs without IPUs need no IPUJob: see the role ipu.fabric.native_workload."
)


@dataclasses.dataclass(frozen=True)
class ProxyAddress:
    """The proxy's Service."""

    namespace: str
    service: str
    port: int


def ipu_count(counts: Object) -> IpuCount:
    """A count of IPUs in an answer of /stats, as integers."""
    used, available = int(counts["used"]), int(counts["available"])
    return {"used": used, "available": available, "ipus": used + available}


def read_stats(answer: Object) -> IpuUsage:
    """The answer of /stats: a count for each namespace with partitions, and the total."""
    counts = {name: ipu_count(value) for name, value in answer.items()}
    return {"total": counts.pop("total"), "namespaces": counts, "sizes": []}


def read_room(size: int, answer: Object) -> PartitionRoom:
    """The answer of /query. Its field `available` is true even if no partition is left: only the number counts."""
    number = int(answer["numOfPartitions"])
    return {"size": size, "partitions": number, "fits": number > 0, "message": str(answer.get("message") or "")}


def check_sizes(sizes: t.Sequence[int]) -> None:
    wrong = [size for size in sizes if size not in PARTITION_SIZES]
    if wrong:
        allowed = ", ".join(map(str, PARTITION_SIZES))
        raise FabricError(
            "The sizes of partitions are not valid.",
            "partition_sizes",
            "; ".join(f"{size} is not one of {allowed}" for size in wrong),
            f"A partition has a power of two of IPUs, up to {PARTITION_SIZES[-1]}.",
            code="invalid-input",
        )


class VipuProxy:
    """The proxy, accessed through the API server: it has no address outside the cluster."""

    def __init__(self, cluster: Cluster, address: ProxyAddress) -> None:
        self.cluster = cluster
        service = f"http:{address.service}:{address.port}"
        self.path = f"/api/v1/namespaces/{address.namespace}/services/{service}/proxy"

    def ask(self, verb: str, path: str, read: t.Callable[[Object], Answer], body: t.Any = None) -> Answer:
        """The answer, parsed by `read`. FabricError if there is none, or it has another format."""
        code: Code = "failed"
        transient, step = False, OTHER_PLACE
        try:
            return read(self.cluster.request(verb, f"{self.path}{path}", body=body))
        except ApiError as error:
            code, transient = refusal_code(error), is_transient(error)
            seen, cause = f"{error.status}: {message_of(error)}", error
            if error.status == 404 and not self.cluster.resource(API, "IPUJob"):
                step = NO_OPERATOR
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            seen, cause = f"an answer that can't be read ({type(error).__name__}: {error})", error
        raise FabricError(
            "The V-IPU proxy could not be asked about its IPUs.",
            f"{self.path}{path}",
            seen,
            step,
            code=code,
            transient=transient,
        ) from cause

    def usage(self, sizes: t.Sequence[int]) -> IpuUsage:
        """IPUs in use and free, and how many more partitions of each size are possible."""
        usage = self.ask("get", "/stats", read_stats)
        usage["sizes"] = [
            self.ask("post", "/query", functools.partial(read_room, size), {"size": size}) for size in sizes
        ]
        return usage
