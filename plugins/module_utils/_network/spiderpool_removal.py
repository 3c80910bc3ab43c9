# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes this collection's objects from Spiderpool, while its controller still releases addresses.

Either all of them, or those no longer planned. After Spiderpool's removal, also objects that nothing would finalize any
more. Objects of others stay, and with them Spiderpool.
"""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.manager import is_ours
from .._common.result import outcome
from .._common.text import shorten_list
from .._host.cluster import MULTUS_IMAGES, image_names
from .._ipam.own_pools import API
from .._kube.client import connect, describe
from .._kube.multus import NAD, Name, networks_of, read_ipams
from .._kube.query import Object, query
from .._model.operators import Installation
from .cluster_info import installations
from .removal import SHOWN, Removal, divide, name_of, staying, user_names

NETWORK, POOL, ENDPOINT = "SpiderMultusConfig", "SpiderIPPool", "SpiderEndpoint"
# Kinds that Spiderpool creates for itself, and kinds that only people create.
OTHERS = ("SpiderCoordinator",)
SETTINGS = ("SpiderSubnet", "SpiderReservedIP")
KINDS = (NETWORK, POOL, ENDPOINT, *OTHERS, *SETTINGS)
CONTROLLER, AGENT = "spiderpool-controller", "spiderpool-agent"
# Field managers of its own programs, which create the cluster's coordinator and the network of its own CNI.
MAKERS = {"spiderpool-init", CONTROLLER, AGENT}
CRD_API = "apiextensions.k8s.io/v1"
CRDS = f"/apis/{CRD_API}/customresourcedefinitions"
GROUP = API.partition("/")[0]
# The chart brings these too, but another SR-IOV operator needs them.
SRIOV = "sriovnetwork.openshift.io"


class Served(t.NamedTuple):
    """This collection's objects, in the order of their removal, and what others have."""

    users: t.List[Object]
    networks: t.List[Object]
    pools: t.List[Object]
    strangers: t.List[Object]  # attachments of others
    needed_by: t.List[str]  # objects of others that depend on Spiderpool or on its multus


def made_by_itself(obj: Object) -> bool:
    """Whether Spiderpool created the object for itself."""
    writers = set(query("metadata.managedFields[].manager", obj) or ())
    return bool(writers) and writers <= MAKERS


def pools_in_use(endpoint: Object) -> t.Set[str]:
    """The pools that a pod's addresses come from."""
    return set(query("status.current.ips[].[ipv4Pool, ipv6Pool][]", endpoint) or ()) - {None}


def owned_by_network(nad: Object, names: t.Set[Name]) -> bool:
    """Whether Spiderpool made the NAD for one of these networks, which have the same name."""
    owners = query("metadata.ownerReferences[].kind", nad) or ()
    return NETWORK in owners and name_of(nad) in names


class SpiderpoolRemoval(Removal):
    """Spiderpool's objects in a cluster."""

    def installations(self) -> t.List[Installation]:
        return installations(self.cluster, CONTROLLER)

    def other_multus(self) -> bool:
        """Whether there is a multus other than Spiderpool's."""
        daemonsets = map(image_names, self.cluster.items("/apis/apps/v1/daemonsets"))
        return any(set(images) & set(MULTUS_IMAGES) and AGENT not in images for images in daemonsets)

    def find(self) -> Served:
        networks, rest = divide(self.listed(API, NETWORK))
        pools, more = divide(self.listed(API, POOL))
        others = [obj for obj in (*rest, *more, *self.listed(API, *SETTINGS)) if not made_by_itself(obj)]
        names = {name_of(network) for network in networks}
        nads = self.listed(*NAD)
        made = names | {name_of(obj) for obj in rest}
        strangers = [nad for nad in nads if not owned_by_network(nad, made)]
        needed = others + (strangers if self.installations() else [])
        if self.other_multus():
            by_ipam = [nad for nad in strangers if any(ipam.get("type") == "spiderpool" for ipam in read_ipams(nad))]
            needed = others + by_ipam
        users = self.users_of(networks, pools)
        return Served(users, networks, pools, strangers, [describe(obj) for obj in needed])

    def find_unplanned(self, planned: t.Sequence[Object]) -> Served:
        """Our objects that are not among the planned ones. Objects of others do not matter here."""
        kept = {(obj["kind"], *name_of(obj)) for obj in planned}
        networks, pools = (
            [obj for obj in divide(self.listed(API, kind))[0] if (kind, *name_of(obj)) not in kept]
            for kind in (NETWORK, POOL)
        )
        return Served(self.users_of(networks, pools), networks, pools, [], [])

    def users_of(self, networks: t.Sequence[Object], pools: t.Sequence[Object]) -> t.List[Object]:
        """Pods that request one of the networks, or have an address from one of the pools."""
        if not networks and not pools:
            return []
        names = {name_of(network) for network in networks}
        own_pools = {pool["metadata"]["name"] for pool in pools}
        holders = {name_of(each) for each in self.listed(API, ENDPOINT) if pools_in_use(each) & own_pools}
        return [pod for pod in self.pods() if networks_of(pod) & names or name_of(pod) in holders]

    def remove_all(self, found: Served) -> None:
        """Remove pods, networks and pools: each is gone before the next is deleted."""
        self.remove_users(found.users)
        names = {name_of(network) for network in found.networks}
        self.remove(
            found.networks,
            lambda: (
                self.left_of(found.networks, API, NETWORK)
                + [nad for nad in self.listed(*NAD) if owned_by_network(nad, names)]
            ),
            "Check that the cluster's garbage collector works, and the log of the spiderpool-controller.",
        )
        self.remove(
            found.pools,
            lambda: self.left_of(found.pools, API, POOL),
            "A pool is deleted when its last address is released: see kubectl get spiderendpoint -A, and the log of the"
            " spiderpool-controller.",
        )

    def leftovers(self) -> t.List[Object]:
        """Spiderpool's objects after its removal: nothing would remove their finalizers."""
        if self.installations():
            return []
        return [obj for obj in self.listed(API, *KINDS) if is_ours(obj) or made_by_itself(obj)]

    def remove_leftovers(self, objects: t.Sequence[Object]) -> None:
        for obj in objects:
            path = t.cast(str, self.cluster.path_of(obj))
            self.cluster.delete(path)
            if query("metadata.finalizers", obj) and self.cluster.get(path) is not None:
                self.cluster.patch(path, {"metadata": {"finalizers": None}})

    def definitions(self, found: Served) -> t.List[Object]:
        """The CRDs that nobody else needs once Spiderpool is gone."""
        crds = {crd["metadata"]["name"]: crd["spec"] for crd in self.cluster.items(CRDS)}
        own = [name for name, spec in crds.items() if spec["group"] == GROUP]
        if found.needed_by or not own:
            return []
        sriov = {name: spec for name, spec in crds.items() if spec["group"] == SRIOV}
        kinds = [(f"{SRIOV}/{spec['versions'][0]['name']}", spec["names"]["kind"]) for spec in sriov.values()]
        if not any(self.listed(version, kind) for version, kind in kinds):
            own += sriov
        shared = "network-attachment-definitions.k8s.cni.cncf.io"
        if shared in crds and not found.strangers and not self.other_multus():
            own.append(shared)
        metadata = [{"name": name} for name in sorted(own)]
        return [{"apiVersion": CRD_API, "kind": "CustomResourceDefinition", "metadata": each} for each in metadata]


def prune_networks(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module for state=pruned. Pods on a network to be removed are never deleted for it."""
    removal = SpiderpoolRemoval(connect(module), module.params["timeout"])
    found = removal.find_unplanned(module.params["planned"])
    names = [describe(obj) for obj in (*found.networks, *found.pools)]
    if module.params["unplanned"] == "check":
        if names:
            module.warn(
                f"No longer planned, and kept: {', '.join(names)}. Spiderpool still injects them into"
                " pods; fabric_prune_networks: true (in the role spiderpool: spiderpool_prune) removes them."
            )
        return outcome([], [], objects=names)
    removal.refuse_users(found.users, "or plan the network again. Nothing was removed.")
    if names and not module.check_mode:
        removal.remove_all(found)
    return outcome(names, [], objects=names)


def remove_networks(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module for state=absent."""
    removal = SpiderpoolRemoval(connect(module), module.params["timeout"])
    found = removal.find()
    if not module.params["force"]:
        removal.refuse_users(found.users)
    definitions = removal.definitions(found)
    installed = removal.installations()
    if found.needed_by:
        module.warn(
            "Spiderpool stays, since objects that this collection did not create need it: "
            f"{shorten_list(found.needed_by, SHOWN)}. To remove Spiderpool, remove those first."
        )
    objects = [*staying(found.users), *found.networks, *found.pools]
    left = removal.leftovers()
    if not module.check_mode and installed:
        removal.remove_all(found)
    elif not module.check_mode:
        removal.remove_users(found.users)
        removal.remove_leftovers(left)
    names = list(dict.fromkeys(describe(obj) for obj in (*objects, *left)))
    return outcome(
        names,
        [],
        objects=names,
        pods=user_names(found.users),
        needed_by=found.needed_by,
        installations=installed,
        definitions=definitions,
    )
