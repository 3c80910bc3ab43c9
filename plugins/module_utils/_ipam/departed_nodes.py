# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that leaves a cluster: its object, its pods that no kubelet ends any more, and the addresses of those pods.

The controllers of nv-ipam and Calico release the blocks of a deleted node, so this only waits for them.
"""

from __future__ import annotations

import ipaddress
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.result import FabricError, outcome
from .._kube.client import ApiError, Cluster, connect, refusal
from .._kube.query import Object, query
from .leaks import NO_POD, OTHER_ADDRESS
from .nv_ipam import NV_IPAM
from .pool_audit import audit
from .whereabouts import WHEREABOUTS, reserved_address

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
BLOCK_AFFINITIES = "/apis/crd.projectcalico.org/v1/blockaffinities"
ATTEMPTS = 5
PAUSE = 2.0  # seconds between two reads

Address = t.Tuple[str, str]  # an address, and the namespace/name of the pod that it is kept for


def offsets_of(pool: Object, leaked: t.Collection[Address]) -> t.List[str]:
    """The entries of a whereabouts pool that hold leaked addresses."""
    start = ipaddress.ip_interface(pool["spec"]["range"]).ip
    entries = query("spec.allocations", pool) or {}
    return [
        offset
        for offset, entry in entries.items()
        if offset.isdigit() and (str(start + int(offset)), entry.get("podref") or "") in leaked
    ]


def reservations_of(
    reservations: t.Sequence[Object], pools: t.Sequence[Object], leaked: t.Collection[Address]
) -> t.List[Object]:
    """The OverlappingRangeIPReservations that hold leaked addresses."""
    cidrs = [ipaddress.ip_interface(pool["spec"]["range"]).network for pool in pools]
    return [
        item
        for item in reservations
        if (reserved_address(item["metadata"]["name"], cidrs), query("spec.podref", item) or "") in leaked
    ]


def object_path(plural: str, item: Object) -> str:
    return "{}/namespaces/{namespace}/{}/{name}".format(WHEREABOUTS, plural, **item["metadata"])


def blocks_of(names: t.Collection[str], pools: t.Sequence[Object], affinities: t.Sequence[Object]) -> t.List[str]:
    """Blocks that nv-ipam and Calico still assign to these nodes."""
    nv_ipam = [
        f"nv-ipam {pool['metadata']['name']} {each.get('startIP')}-{each.get('endIP')} ({each['nodeName']})"
        for pool in pools
        for each in query("status.allocations", pool) or []
        if each.get("nodeName") in names
    ]
    calico = [
        f"Calico {each['spec'].get('cidr')} ({each['spec']['node']})"
        for each in affinities
        if query("spec.node", each) in names and query("spec.deleted", each) != "true"
    ]
    return sorted(nv_ipam + calico)


def pod_name(pod: Object) -> str:
    return "{namespace}/{name}".format(**pod["metadata"])


class Departure:
    """A node that leaves the cluster, as the API shows it."""

    def __init__(self, cluster: Cluster, name: str, settle: float) -> None:
        self.cluster, self.name, self.settle = cluster, name, settle
        self.nodes = [name] if cluster.get(f"{NODES}/{name}") else []
        self.pods = self.read_pods()
        self.leaked = self.read_leaked()

    def read_pods(self) -> t.List[Object]:
        """Pods bound to this node."""
        return self.cluster.items(PODS, fieldSelector=f"spec.nodeName={self.name}")

    def read_leaked(self) -> t.List[Address]:
        """Addresses that whereabouts holds for pods that are gone or have others by now, as seen in two reads."""
        return [
            (leak["address"], leak["pod"])
            for pool in audit(self.cluster, self.settle)
            if pool["ipam"] == "whereabouts"
            for leak in pool["leaked"]
            if leak["why"] in (NO_POD, OTHER_ADDRESS)
        ]

    def blocks(self) -> t.List[str]:
        pools, affinities = self.cluster.items(NV_IPAM), self.cluster.items(BLOCK_AFFINITIES)
        return blocks_of([self.name], pools, affinities)

    def view(self) -> Object:
        return {
            "nodes": self.nodes,
            "pods": sorted(map(pod_name, self.pods)),
            "addresses": [f"{address} ({pod})" for address, pod in self.leaked],
        }

    def delete_pods(self) -> None:
        """No kubelet confirms the end of a pod whose node is gone: with grace period 0, the API server ends it."""
        for pod in self.read_pods():
            path = "/api/v1/namespaces/{namespace}/pods/{name}".format(**pod["metadata"])
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
            try:
                self.cluster.request("delete", path, body=body)
            except ApiError as error:
                if error.status not in (404, 409):  # gone, or a new pod has this name
                    raise refusal(error, "delete", f"Pod {pod_name(pod)}") from error

    def wait_for_blocks(self, timeout: float) -> t.List[str]:
        """The blocks that their controllers have not released in time."""
        end = time.monotonic() + timeout
        left = self.blocks()
        while left and time.monotonic() < end:
            time.sleep(PAUSE)
            left = self.blocks()
        return left

    def release(self, leaked: t.Collection[Address]) -> None:
        """Release leaked addresses. Pods take addresses meanwhile: on a conflict the pool is read again."""
        if not leaked:
            return
        for attempt in range(1, ATTEMPTS + 1):
            pools = self.cluster.items(f"{WHEREABOUTS}/ippools")
            held = {pool["metadata"]["name"]: offsets_of(pool, leaked) for pool in pools}
            busy = [pool for pool in pools if held[pool["metadata"]["name"]] and not self.give_back(pool, held)]
            if not busy:
                break
            if attempt == ATTEMPTS:
                raise FabricError(
                    "Leaked addresses could not be released.",
                    ", ".join(pool["metadata"]["name"] for pool in busy),
                    "something else changed the pool during each attempt",
                    "Run again when fewer pods come and go.",
                    code="conflict",
                )
        reservations = self.cluster.items(f"{WHEREABOUTS}/overlappingrangeipreservations")
        for item in reservations_of(reservations, pools, leaked):
            self.cluster.delete(object_path("overlappingrangeipreservations", item))

    def give_back(self, pool: Object, held: t.Mapping[str, t.Sequence[str]]) -> bool:
        """Remove entries from a pool. False if the pool has changed since it was read."""
        metadata = pool["metadata"]
        body = {
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "spec": {"allocations": dict.fromkeys(held[metadata["name"]])},
        }
        try:
            self.cluster.patch(object_path("ippools", pool), body)
        except ApiError as error:
            if error.status == 409:
                return False
            raise refusal(error, "patch", f"IPPool {metadata['name']}") from error
        return True


def remove_node(module: AnsibleModule) -> t.Dict[str, object]:
    """Body of the module node_drain for state=absent."""
    params, cluster = module.params, connect(module)
    if not params["name"]:  # its path would be that of all nodes
        raise FabricError(
            "A node is removed by its name.", "option name", "no name", "Name the node.", code="invalid-input"
        )
    departure = Departure(cluster, params["name"], params["settle"])
    before = departure.view()
    left: t.List[str] = []
    if not module.check_mode:
        for name in departure.nodes:
            cluster.delete(f"{NODES}/{name}")
        departure.delete_pods()
        left = departure.wait_for_blocks(params["timeout"])
        # The addresses of the pods that were just deleted are among them.
        leaked = departure.read_leaked() if departure.pods else departure.leaked
        before["addresses"] = [f"{address} ({pod})" for address, pod in leaked]
        departure.release(leaked)
    return outcome(before, {"nodes": [], "pods": [], "addresses": []}, left=left)
