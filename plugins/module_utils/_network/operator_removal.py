# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the network operator serves, removed in an order in which nothing loses the controller that cleans it up."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome
from ansible_collections.ipu.fabric.plugins.module_utils._common.text import shorten_list
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster, connect, describe, wait_until
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import NAD, Name, networks_of
from ansible_collections.ipu.fabric.plugins.module_utils._kube.query import Object, query

MELLANOX = "mellanox.com/v1alpha1"
NV_IPAM = "nv-ipam.nvidia.com/v1alpha1"
NETWORKS = ("MacvlanNetwork", "HostDeviceNetwork", "IPoIBNetwork")
POOLS = ("IPPool", "CIDRPool")
POLICY = "NicClusterPolicy"
RUNNING = "status.phase!=Succeeded,status.phase!=Failed"


def owned_by(obj: Object, kinds: t.Sequence[str]) -> bool:
    return any(kind in kinds for kind in query("metadata.ownerReferences[].kind", obj) or [])


def name_of(obj: Object) -> Name:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def selects(workload: Object, pod: Object) -> bool:
    """Whether a pod is one of the workload's."""
    wanted = query("spec.selector.matchLabels", workload) or {}
    labels = query("metadata.labels", pod) or {}
    same_place = workload["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return bool(wanted) and same_place and all(labels.get(key) == value for key, value in wanted.items())


class Served(t.NamedTuple):
    """What there is, in the order of its removal."""

    users: t.List[Object]
    networks: t.List[Object]
    pools: t.List[Object]
    policies: t.List[Object]
    attachments: t.List[str]  # of others: they stay


class Removal:
    """Objects that go together with what depends on them."""

    def __init__(self, cluster: Cluster, timeout: float) -> None:
        self.cluster, self.timeout = cluster, timeout

    def listed(self, api_version: str, *kinds: str) -> t.List[Object]:
        """The objects of some kinds, in all namespaces; none of a kind that the cluster does not know."""
        found = []
        for kind in kinds:
            resource = self.cluster.resource(api_version, kind)
            items = self.cluster.items(resource.path()) if resource else []
            found += [{"apiVersion": api_version, "kind": kind, "metadata": item["metadata"]} for item in items]
        return found

    def remove(self, objects: t.Sequence[Object], left: t.Callable[[], t.Sequence[Object]], next_step: str) -> None:
        """Delete the objects, and wait until nothing is left of them and of what depends on them."""
        for obj in objects:
            self.cluster.delete(t.cast(str, self.cluster.path_of(obj)))
        wait_until(
            lambda: [f"{describe(obj)} still exists" for obj in left()],
            self.timeout,
            "Deleted objects are still there.",
            next_step,
        )


class NetworkRemoval(Removal):
    """The network operator's objects in a cluster."""

    def pods(self) -> t.List[Object]:
        items = self.cluster.items("/api/v1/pods", fieldSelector=RUNNING)
        return [{"apiVersion": "v1", "kind": "Pod", "metadata": item["metadata"]} for item in items]

    def attachments(self) -> t.List[Object]:
        """The NetworkAttachmentDefinitions that the operator created."""
        return [nad for nad in self.listed(*NAD) if owned_by(nad, NETWORKS)]

    def find(self) -> Served:
        nads = self.listed(*NAD)
        names = {name_of(nad) for nad in nads if owned_by(nad, NETWORKS)}
        return Served(
            [pod for pod in self.pods() if networks_of(pod) & names],
            self.listed(MELLANOX, *NETWORKS),
            self.listed(NV_IPAM, *POOLS),
            self.listed(MELLANOX, POLICY),
            ["/".join(name_of(nad)) for nad in nads if not owned_by(nad, NETWORKS)],
        )

    def workloads(self) -> t.List[Object]:
        """What runs because of the policy."""
        found = [w for kind in ("daemonsets", "deployments") for w in self.cluster.items(f"/apis/apps/v1/{kind}")]
        return [workload for workload in found if owned_by(workload, [POLICY])]

    def remove_all(self, found: Served) -> None:
        """Pods, networks, pools, policy: each is gone before the next is deleted."""
        workloads = self.workloads()
        users = {pod["metadata"]["uid"] for pod in found.users}
        finalizers = "Check the finalizers of what is left with kubectl get -o yaml."
        collector = f"Check that the cluster's garbage collector works. {finalizers}"
        self.remove(
            found.users,
            lambda: [pod for pod in self.pods() if pod["metadata"]["uid"] in users],
            "Check these pods: their nodes may be down.",
        )
        self.remove(found.networks, lambda: self.listed(MELLANOX, *NETWORKS) + self.attachments(), collector)
        self.remove(found.pools, lambda: self.listed(NV_IPAM, *POOLS), finalizers)
        self.remove(
            found.policies,
            lambda: (
                self.listed(MELLANOX, POLICY)
                + [pod for pod in self.pods() if any(selects(workload, pod) for workload in workloads)]
            ),
            collector,
        )


def remove_networks(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module network_operator."""
    cluster = connect(module)
    removal = NetworkRemoval(cluster, module.params["timeout"])
    found = removal.find()
    users = ["/".join(name_of(pod)) for pod in found.users]
    if users and not module.params["force"]:
        raise FabricError(
            "The networks are in use.",
            "pods of the cluster",
            f"{len(users)} pods have an address on them: {shorten_list(users, 20)}",
            "Stop what creates these pods (a Deployment, an IPUJob), or set force to true to delete them.",
        )
    objects = [obj for group in (found.users, found.networks, found.pools, found.policies) for obj in group]
    names = [describe(obj) for obj in objects]
    if objects and not module.check_mode:
        removal.remove_all(found)
    return outcome(names, [], objects=names, pods=users, attachments=found.attachments)
