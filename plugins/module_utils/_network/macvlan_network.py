# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks of the network operator in a cluster, and the NetworkAttachmentDefinition (NAD) that it creates for each."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.manager import is_ours
from .._common.result import FabricError, outcome
from .._kube.client import Cluster, connect, describe, unknown_kind, wait_until
from .._kube.multus import Attachment, nad_difference, nad_faults, nad_reference
from .._kube.query import Object, query
from .._model.profiles import profile_of
from .macvlan_objects import network_object, owners, readable_spec
from .unplanned import prune_networks

ASK_OPERATOR = "Read the log of the network operator's controller, and check that the IPAM is valid."
NOT_OWNED = (
    "The network operator does not overwrite {names}: delete it unless somebody needs it as it is, and the operator "
    "creates it as planned. Or give the planned network another name."
)


class Edited(t.NamedTuple):
    """A NAD that differs from its network. The operator leaves it so: by its own annotation, the NAD is done."""

    nad: Object
    owned: bool  # by a network of ours
    before: Object
    after: Object


def made_for(nad: Object, network: Attachment) -> bool:
    return (profile_of(network).kind, network["name"]) in owners(nad)


class Networks:
    """The networks of a cluster."""

    def __init__(self, cluster: Cluster, dry_run: bool, namespace: str) -> None:
        self.cluster, self.dry_run, self.namespace = cluster, dry_run, namespace

    def object_of(self, network: Attachment) -> Object:
        return network_object(network, self.namespace)

    def read_nad(self, network: Attachment) -> t.Optional[Object]:
        return self.cluster.read(nad_reference(network))

    def current(self, network: Attachment) -> t.Optional[Object]:
        return self.cluster.read(self.object_of(network))

    def spec(self, network: Attachment) -> t.Optional[Object]:
        return readable_spec(query("spec", self.current(network)), profile_of(network).kind)

    def apply(self, network: Attachment) -> None:
        """Apply strictly. In check mode the server does a dry run, if it knows the kind already."""
        wanted = self.object_of(network)
        if self.cluster.path_of(wanted) is not None:
            self.cluster.apply(wanted, self.dry_run)
        elif not self.dry_run:
            raise unknown_kind(wanted)

    def check_namespaces(self, networks: t.Sequence[Attachment]) -> None:
        """Refuse a missing namespace before anything is changed: a network in it would never become ready."""
        for namespace in sorted({network["namespace"] for network in networks}):
            if not self.dry_run and self.cluster.get(f"/api/v1/namespaces/{namespace}") is None:
                raise FabricError(
                    "A network needs its namespace.",
                    f"namespace {namespace}",
                    "no such namespace",
                    "Create the namespace first.",
                    code="not-found",
                )

    def refuse_strangers(self, missing: t.Sequence[Attachment]) -> None:
        """The operator would overwrite a NAD that no network of its name was created for: it is somebody else's."""
        nads = [(network, self.read_nad(network)) for network in missing]
        found = [describe(nad_reference(network)) for network, nad in nads if nad and not made_for(nad, network)]
        if found:
            raise FabricError(
                "A NetworkAttachmentDefinition of a planned network's name exists, but was made for no MacvlanNetwork.",
                ", ".join(found),
                "somebody else's object, which the network operator would overwrite",
                "Give the planned network another name or namespace in fabric_networks, or delete the object if nobody"
                " needs it.",
                code="not-ours",
            )

    def unready(self, network: Attachment) -> t.List[str]:
        """Why the network is not usable yet. `ready` proves nothing: the operator also sets it with a broken IPAM."""
        faults = nad_faults(self.read_nad(network), network)
        status = query("status", self.current(network)) or {}
        if faults and status.get("reason"):
            faults.append(f"{label(network)} is {status.get('state')}: {status['reason']}")
        return faults

    def edited(self, network: Attachment) -> t.Optional[Edited]:
        """The NAD, if it exists and differs."""
        nad, current = self.read_nad(network), self.current(network)
        if nad is None or current is None:
            return None
        before, after = nad_difference(nad, network)
        uids, profile = query("metadata.ownerReferences[].uid", nad) or [], profile_of(network)
        belongs = profile.namespaced and made_for(nad, network)
        owned = is_ours(current) and (belongs or query("metadata.uid", current) in uids)
        return Edited(nad, owned, before, after) if before != after else None

    def recreate(self, network: Attachment, nad: Object) -> None:
        """Delete a NAD, which the operator recreates within two or three seconds."""
        self.cluster.delete(t.cast(str, self.cluster.path_of(nad_reference(network))), nad)

    def lingering(self, network: Attachment) -> t.List[str]:
        """What remains of a deleted network. A NAD with the same name but another owner may stay."""
        left: t.List[str] = []
        if self.current(network) is not None:
            left.append(f"{label(network)} still exists")
        nad = self.read_nad(network)
        if nad is not None and any(kind == profile_of(network).kind for kind, _name in owners(nad)):
            left.append(f"its NetworkAttachmentDefinition {network['namespace']}/{network['name']} still exists")
        return left


def label(network: Attachment) -> str:
    return f"{profile_of(network).kind} {network['name']}"


def key_of(network: Attachment) -> str:
    """How a diff names a network: a macvlan by its name only."""
    return network["name"] if profile_of(network).type == "macvlan" else label(network)


def ensure_present(networks: Networks, wanted: t.Sequence[Attachment], timeout: float) -> t.Tuple[Object, Object]:
    networks.check_namespaces(wanted)
    before = {key_of(n): networks.spec(n) for n in wanted}
    networks.refuse_strangers([network for network in wanted if before[key_of(network)] is None])
    after = {key_of(n): readable_spec(networks.object_of(n)["spec"], profile_of(n).kind) for n in wanted}
    strangers = []
    for network in wanted:
        if before[key_of(network)] != after[key_of(network)]:
            networks.apply(network)
            continue
        edited = networks.edited(network)
        if edited is not None:
            place = describe(nad_reference(network))
            before[place], after[place] = edited.before, edited.after
            if not edited.owned:
                strangers.append(place)
            elif not networks.dry_run:
                networks.recreate(network, edited.nad)
    if not networks.dry_run:
        wait_until(
            lambda: [fault for network in wanted for fault in networks.unready(network)],
            timeout,
            "The network operator has not created the planned NetworkAttachmentDefinition.",
            NOT_OWNED.format(names=", ".join(strangers)) if strangers else ASK_OPERATOR,
            0.5,
        )
    return before, after


def ensure_absent(networks: Networks, wanted: t.Sequence[Attachment], timeout: float) -> t.Tuple[Object, Object]:
    before = {key_of(n): networks.spec(n) for n in wanted}
    if not networks.dry_run:
        for network in wanted:
            if before[key_of(network)] is not None:
                networks.cluster.delete(t.cast(str, networks.cluster.path_of(networks.object_of(network))))
        wait_until(
            lambda: [left for network in wanted for left in networks.lingering(network)],
            timeout,
            "Deleted networks are still there.",
            "Check the finalizers of what is left with kubectl get -o yaml.",
            0.5,
        )
    return before, {key_of(n): None for n in wanted}


def check_options(network: Attachment) -> None:
    profile = profile_of(network)
    if profile.shared and not network["master"]:
        raise FabricError(
            f"A network of type {profile.type} needs its master.",
            f"network {network['name']}",
            "no master",
            "Set master to the RDMA NIC; without one, the operator would take the NIC of the default route.",
            code="invalid-input",
        )
    if not profile.shared and not network.get("resource"):
        raise FabricError(
            f"A network of type {profile.type} needs the resource of its devices.",
            f"network {network['name']}",
            "no resource",
            "Set resource to the one that the device plugin offers, such as nvidia.com/sriov_a.",
            code="invalid-input",
        )


def manage_networks(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module macvlan_network."""
    params = module.params
    if params["state"] == "pruned":
        return prune_networks(module)
    single: Attachment = {
        "name": params["name"],
        "namespace": params["namespace"],
        "master": params["master"],
        "mode": params["mode"],
        "mtu": params["mtu"],
        "ipam": params["ipam"],
        "cni": params["cni"],
        "resource": params["resource"],
        "meta_plugins": params["meta_plugins"],
    }
    wanted: t.List[Attachment] = params["networks"] if params["networks"] is not None else [single]
    networks = Networks(connect(module), module.check_mode, params["pool_namespace"])
    if params["state"] == "present":
        for network in wanted:
            check_options(network)
    ensure = ensure_present if params["state"] == "present" else ensure_absent
    before, after = ensure(networks, wanted, params["timeout"])
    places = {n["name"]: (key_of(n), describe(nad_reference(n))) for n in wanted}
    changed = [name for name, keys in places.items() if any(before.get(key) != after.get(key) for key in keys)]
    return outcome(before, after, networks=changed)
