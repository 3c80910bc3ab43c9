# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All address pools of a cluster and their leaked addresses: the audit of ip_pool_info."""

from __future__ import annotations

import ipaddress
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._kube.client import Cluster, connect
from .._kube.multus import ATTACHMENTS
from .._kube.query import Object, query
from .._model.pools import AddressPool
from .leaks import Pods, confirmed_leaks, read_pod
from .nv_ipam import NV_IPAM, nv_ipam_pools
from .own_pools import PATH, spider_pools
from .whereabouts import WHEREABOUTS, whereabouts_pools

PAGE = 500  # pods per request: all pods of a large cluster in one answer would strain the API server


def running_pods(cluster: Cluster) -> t.Iterator[Object]:
    """Every pod that has not ended, page by page."""
    token = None
    while True:
        selector = "status.phase!=Succeeded,status.phase!=Failed"
        page = cluster.get("/api/v1/pods", fieldSelector=selector, limit=PAGE, **{"continue": token}) or {}
        yield from page.get("items") or ()
        token = query("metadata.continue", page)
        if not token:
            return


def read_pools(cluster: Cluster) -> t.List[AddressPool]:
    """All pools of all three IPAMs in their current state."""
    whereabouts = cluster.items(f"{WHEREABOUTS}/ippools")
    reservations = cluster.items(f"{WHEREABOUTS}/overlappingrangeipreservations") if whereabouts else []
    attachments = cluster.items(ATTACHMENTS) if whereabouts else []
    blocks = cluster.items(NV_IPAM)
    spider = cluster.items(f"{PATH}/spiderippools")
    endpoints = cluster.items(f"{PATH}/spiderendpoints") if spider else []
    if not (whereabouts or blocks or spider):
        return []
    pods: Pods = dict(read_pod(pod) for pod in running_pods(cluster))
    nodes = {node["metadata"]["name"] for node in cluster.items("/api/v1/nodes")} if blocks else set()
    found = [
        *whereabouts_pools(whereabouts, reservations, attachments, pods),
        *nv_ipam_pools(blocks, pods, nodes),
        *spider_pools(spider, endpoints, pods),
    ]
    return sorted(found, key=lambda pool: (pool["ipam"], pool["name"]))


def audit(cluster: Cluster, settle: float) -> t.List[AddressPool]:
    """All pools; if any address seems to have leaked, they are read again after `settle` seconds."""
    pools = read_pools(cluster)
    if not any(pool["leaked"] for pool in pools):
        return pools
    time.sleep(settle)
    return confirmed_leaks(pools, read_pools(cluster))


def report_pools(module: AnsibleModule) -> t.Dict[str, object]:
    """Body of the module ip_pool_info."""
    pools = audit(connect(module), module.params["settle"])
    wanted = module.params["cidrs"]
    if wanted:
        asked = {str(ipaddress.ip_network(cidr, strict=False)) for cidr in wanted}
        pools = [pool for pool in pools if pool["cidr"] in asked]
    return {"changed": False, "pools": pools, "leaks": sum(len(pool["leaked"]) for pool in pools)}
