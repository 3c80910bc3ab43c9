# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MacvlanNetworks, and the NetworkAttachmentDefinition (NAD) that the operator makes of each."""

from __future__ import annotations

import json
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import (
    Cluster,
    Object,
    connect,
    field,
    unknown_kind,
    wait_until,
)
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import NAD
from ansible_collections.ipu.fabric.plugins.module_utils._network.providers import macvlan_part

API = "mellanox.com/v1alpha1"


def macvlan_object(network: Object) -> Object:
    """The MacvlanNetwork of a network: every field is set, so that none keeps an old value."""
    return {
        "apiVersion": API,
        "kind": "MacvlanNetwork",
        "metadata": {"name": network["name"]},
        "spec": {
            "networkNamespace": network["namespace"],
            "master": network["master"],
            "mode": network["mode"],
            "mtu": network["mtu"],
            "ipam": json.dumps(network["ipam"], sort_keys=True),
        },
    }


def readable_spec(spec: t.Optional[Object]) -> t.Optional[Object]:
    """A spec with its IPAM as data: two texts that say the same compare as the same."""
    if spec is None:
        return None
    shown = {"mtu": 0, "mode": "bridge", **spec}
    try:
        return {**shown, "ipam": json.loads(spec["ipam"])}
    except (KeyError, ValueError):
        return shown


def nad_faults(nad: t.Optional[Object], network: Object) -> t.List[str]:
    """In what the NAD differs from the network; empty when it says what was planned."""
    place = f"NetworkAttachmentDefinition {network['namespace']}/{network['name']}"
    if nad is None:
        return [f"{place} is not there"]
    text = field(nad, "spec.config") or ""
    try:
        config = macvlan_part(json.loads(text))
    except ValueError as error:
        return [f"{place} is not valid JSON ({error}): {text}"]
    wanted = {"type": "macvlan", "master": network["master"], "mode": network["mode"], "ipam": network["ipam"]}
    if network["mtu"]:
        wanted["mtu"] = network["mtu"]
    differing = [
        f"{place} says {key}={config.get(key)!r}, planned is {value!r}"
        for key, value in wanted.items()
        if config.get(key) != value
    ]
    if not network["mtu"] and config.get("mtu"):
        differing.append(f"{place} says mtu={config['mtu']}, planned is the master's")
    return differing


def nad_of(cluster: Cluster, network: Object) -> t.Optional[Object]:
    metadata = {"name": network["name"], "namespace": network["namespace"]}
    return cluster.read({"apiVersion": NAD[0], "kind": NAD[1], "metadata": metadata})


class Networks:
    """The networks of a cluster."""

    def __init__(self, cluster: Cluster, dry_run: bool) -> None:
        self.cluster, self.dry_run = cluster, dry_run

    def current(self, network: Object) -> t.Optional[Object]:
        return self.cluster.read(macvlan_object(network))

    def apply(self, network: Object) -> None:
        """Apply strictly. In check mode the server judges it, as far as it knows the kind already."""
        wanted = macvlan_object(network)
        if self.cluster.path_of(wanted) is not None:
            self.cluster.apply(wanted, self.dry_run)
        elif not self.dry_run:
            raise unknown_kind(wanted)

    def check_namespaces(self, networks: t.Sequence[Object]) -> None:
        """A network in a namespace that does not exist never becomes ready: say so before anything is changed."""
        for namespace in sorted({network["namespace"] for network in networks}):
            if not self.dry_run and self.cluster.get(f"/api/v1/namespaces/{namespace}") is None:
                raise FabricError(
                    "A network was to be made.",
                    f"namespace {namespace}",
                    "no such namespace",
                    "Create the namespace first.",
                )

    def unready(self, network: Object) -> t.List[str]:
        """Why the network is not usable yet. `ready` proves nothing: the operator says it of broken IPAM as well."""
        faults = nad_faults(nad_of(self.cluster, network), network)
        status = (self.current(network) or {}).get("status") or {}
        if faults and status.get("reason"):
            faults.append(f"MacvlanNetwork {network['name']} is {status.get('state')}: {status['reason']}")
        return faults

    def lingering(self, network: Object) -> t.List[str]:
        """What is left of a deleted network. A NAD that somebody else made under the same name may stay."""
        left = []
        if self.current(network) is not None:
            left.append(f"MacvlanNetwork {network['name']} still exists")
        owners = field(nad_of(self.cluster, network), "metadata.ownerReferences") or []
        if any(owner.get("kind") == "MacvlanNetwork" for owner in owners):
            left.append(f"its NetworkAttachmentDefinition {network['namespace']}/{network['name']} still exists")
        return left


def ensure_present(networks: Networks, wanted: t.Sequence[Object], timeout: float) -> t.Tuple[Object, Object]:
    networks.check_namespaces(wanted)
    before = {n["name"]: readable_spec(field(networks.current(n), "spec")) for n in wanted}
    after = {n["name"]: readable_spec(macvlan_object(n)["spec"]) for n in wanted}
    for network in wanted:
        if before[network["name"]] != after[network["name"]]:
            networks.apply(network)
    if not networks.dry_run:
        wait_until(
            lambda: [fault for network in wanted for fault in networks.unready(network)],
            timeout,
            "The network operator was expected to make the planned NetworkAttachmentDefinition.",
            "Read the log of the network operator's controller, and check that the IPAM is valid.",
            0.5,
        )
    return before, after


def ensure_absent(networks: Networks, wanted: t.Sequence[Object], timeout: float) -> t.Tuple[Object, Object]:
    before = {n["name"]: readable_spec(field(networks.current(n), "spec")) for n in wanted}
    if not networks.dry_run:
        for network in wanted:
            if before[network["name"]] is not None:
                networks.cluster.delete(t.cast(str, networks.cluster.path_of(macvlan_object(network))))
        wait_until(
            lambda: [left for network in wanted for left in networks.lingering(network)],
            timeout,
            "A deleted network was expected to go.",
            "Look at the finalizers of what is left with kubectl get -o yaml.",
            0.5,
        )
    return before, {n["name"]: None for n in wanted}


def run(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module macvlan_network."""
    params = module.params
    single = {key: params[key] for key in ("name", "namespace", "master", "mode", "mtu", "ipam")}
    wanted = params["networks"] if params["networks"] is not None else [single]
    networks = Networks(connect(module), module.check_mode)
    if params["state"] == "present":
        for network in wanted:
            if not network["master"]:
                raise FabricError(
                    "A macvlan network needs its master.",
                    f"network {network['name']}",
                    "no master",
                    "Name the RDMA NIC; without one the operator would take the NIC of the default route.",
                )
    ensure = ensure_present if params["state"] == "present" else ensure_absent
    before, after = ensure(networks, wanted, params["timeout"])
    return outcome(before, after, networks=[name for name in before if before[name] != after[name]])
