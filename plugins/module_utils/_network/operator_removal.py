# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes this collection's objects that the network operator serves, each before the controller that cleans it up.

Objects of others stay, and with them the operator that serves them.
"""

from __future__ import annotations

import contextlib
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.result import outcome
from .._common.text import shorten_list
from .._host.cluster import MULTUS_IMAGES, image_names
from .._kube.client import connect, describe
from .._kube.multus import NAD, Name, Pool, networks_of, read_ipams
from .._kube.query import Object, query
from .._model.profiles import BY_KIND, MELLANOX, SRIOV
from .._model.stacks import STACKS
from .address_sets import MALFORMED, pool_names
from .macvlan_objects import known, owners
from .removal import SHOWN, Removal, divide, listed_networks, name_of, staying, user_names
from .unplanned import attachment_of, belongs_to, find_users

NV_IPAM = "nv-ipam.nvidia.com/v1alpha1"
POOLS = ("IPPool", "CIDRPool")
POLICY = "NicClusterPolicy"
POLICIES = (POLICY, "NicNodePolicy")
VF_POLICY = "SriovNetworkNodePolicy"
OWN_KINDS = tuple(profile.kind for profile in BY_KIND.values() if not profile.namespaced)


def owned_by(obj: Object, kinds: t.Sequence[str]) -> bool:
    return any(kind in kinds for kind in query("metadata.ownerReferences[].kind", obj) or [])


def selects(workload: Object, pod: Object) -> bool:
    """Whether a pod belongs to the workload."""
    wanted = query("spec.selector.matchLabels", workload) or {}
    labels = query("metadata.labels", pod) or {}
    same_place = workload["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return bool(wanted) and same_place and all(labels.get(key) == value for key, value in wanted.items())


def made_for(nad: Object, networks: t.Sequence[Object]) -> bool:
    """Whether the operator created a NAD for one of these networks."""
    return bool(owners(nad) & known(networks)) or belongs_to(nad, [attachment_of(network) for network in networks])


def draws_from(nad: Object, pools: t.Set[Pool]) -> bool:
    for ipam in read_ipams(nad):
        with contextlib.suppress(*MALFORMED):
            if pool_names(ipam) & pools:
                return True
    return False


class Served(t.NamedTuple):
    """This collection's objects, in the order of their removal, and what others have."""

    users: t.List[Object]
    networks: t.List[Object]
    pools: t.List[Object]
    policies: t.List[Object]  # empty while others need the operator
    other_users: t.List[str]  # pods on networks of others
    attachments: t.List[str]  # NADs of others
    needed_by: t.List[str]  # objects of others that depend on the operator or on its multus


class NetworkRemoval(Removal):
    """The network operator's objects in a cluster."""

    def attachments(self, networks: t.Sequence[Object]) -> t.List[Object]:
        """The NetworkAttachmentDefinitions that the operator created for these networks."""
        return [nad for nad in self.listed(*NAD) if made_for(nad, networks)]

    def other_multus(self) -> bool:
        """Whether there is a multus other than the operator's."""
        found = self.cluster.items("/apis/apps/v1/daemonsets")
        return any(set(image_names(w)) & set(MULTUS_IMAGES) and not owned_by(w, POLICIES) for w in found)

    @staticmethod
    def served(objects: t.Sequence[Object]) -> t.List[Object]:
        """Leave out objects of another SR-IOV operator: ours reads only those in its own namespace."""
        home = STACKS["network_operator"].namespace
        return [obj for obj in objects if obj["metadata"].get("namespace", home) == home]

    def find(self) -> Served:
        networks, other_networks = divide(self.served(listed_networks(self.cluster)))
        pools, other_pools = divide(self.listed(NV_IPAM, *POOLS))
        policies, other_policies = divide(
            self.served([*self.listed(SRIOV, VF_POLICY), *self.listed(MELLANOX, *POLICIES)])
        )
        nads, pods = self.listed(*NAD), self.pods()
        own = [nad for nad in nads if made_for(nad, networks)]
        others = [nad for nad in nads if nad not in own]
        names: t.Set[Pool] = {(pool["kind"], pool["metadata"]["name"]) for pool in pools}
        doomed = {name_of(nad) for nad in nads if nad in own or draws_from(nad, names)}
        by_operator = [nad for nad in others if owned_by(nad, OWN_KINDS) or owners(nad) & known(other_networks)]
        served: t.Set[Name] = {name_of(nad) for nad in by_operator}
        needed = [*other_networks, *other_pools, *other_policies]
        if not self.other_multus():
            needed += [nad for nad in others if nad not in by_operator]
        return Served(
            users=[pod for pod in pods if find_users([pod], doomed, names)],
            networks=networks,
            pools=pools,
            policies=[] if needed else policies,
            other_users=["/".join(name_of(pod)) for pod in pods if networks_of(pod) & served],
            attachments=["/".join(name_of(nad)) for nad in others],
            needed_by=[describe(obj) for obj in needed],
        )

    def workloads(self) -> t.List[Object]:
        """Workloads that the policy created."""
        found = [w for kind in ("daemonsets", "deployments") for w in self.cluster.items(f"/apis/apps/v1/{kind}")]
        return [workload for workload in found if owned_by(workload, POLICIES)]

    def remove_all(self, found: Served) -> None:
        """Remove pods, networks, pools and policy: each is gone before the next is deleted."""
        workloads = self.workloads() if found.policies else []
        finalizers = "Check the finalizers of what is left with kubectl get -o yaml."
        collector = f"Check that the cluster's garbage collector works. {finalizers}"
        self.remove_users(found.users)
        self.remove(
            found.networks,
            lambda: (
                [each for each in listed_networks(self.cluster) if known([each]) & known(found.networks)]
                + self.attachments(found.networks)
            ),
            collector,
        )
        self.remove(found.pools, lambda: self.left_of(found.pools, NV_IPAM, *POOLS), finalizers)
        self.remove(
            found.policies,
            lambda: (
                self.left_of(found.policies, SRIOV, VF_POLICY)
                + self.left_of(found.policies, MELLANOX, *POLICIES)
                + [pod for pod in self.pods() if any(selects(workload, pod) for workload in workloads)]
            ),
            collector,
        )


def remove_networks(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module for state=absent."""
    removal = NetworkRemoval(connect(module), module.params["timeout"])
    found = removal.find()
    if not module.params["force"]:
        removal.refuse_users(found.users)
    objects = [obj for group in (staying(found.users), found.networks, found.pools, found.policies) for obj in group]
    names = [describe(obj) for obj in objects]
    if objects and not module.check_mode:
        removal.remove_all(found)
    if found.needed_by:
        module.warn(
            "The network operator and its policy stay, since objects that this collection did not create need them: "
            f"{shorten_list(found.needed_by, SHOWN)}. To remove the operator, remove those first."
        )
    return outcome(
        names,
        [],
        objects=names,
        pods=user_names(found.users),
        other_pods=found.other_users,
        attachments=found.attachments,
        needed_by=found.needed_by,
    )
