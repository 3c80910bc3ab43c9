# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network operator's types of fabric networks, one row each: on which NICs, and which object creates them."""

from __future__ import annotations

import typing as t

ETHERNET, INFINIBAND = "Ethernet", "InfiniBand"  # link layers
MELLANOX, SRIOV = "mellanox.com/v1alpha1", "sriovnetwork.openshift.io/v1"
PREFIX = "nvidia.com"  # of resources that give a pod its own device: both operators use only this prefix


# Sysctls for the CNI plugin tuning, which replaces IFNAME with the interface's name.
NO_ADVERTISEMENTS = {"net.ipv6.conf.IFNAME.accept_ra": "0"}
# Several rails on one subnet: an interface answers ARP only for its own addresses, and uses them in its requests.
OWN_ARP = {
    "net.ipv4.conf.IFNAME.arp_ignore": "1",
    "net.ipv4.conf.IFNAME.arp_announce": "2",
    "net.ipv4.conf.IFNAME.rp_filter": "2",
}
META_PLUGINS = ("tuning", "sbr")  # that a network may use, in the order in which they run


class MetaPlugin(t.TypedDict, total=False):
    """A chained CNI plugin, which runs after the one that creates the interface, as a CNI configuration has it."""

    type: str
    sysctl: t.Dict[str, str]  # for tuning


class Profile(t.NamedTuple):
    """A type of network on NICs with one link layer."""

    type: str  # as written in fabric_networks
    link_layer: str
    cni: str  # its CNI plugin
    api: str
    kind: str
    plural: str
    shared: bool = False  # pods share the NIC; otherwise each has its own device

    @property
    def path(self) -> str:
        """Where the API lists objects of this kind."""
        return f"/apis/{self.api}/{self.plural}"

    @property
    def namespaced(self) -> bool:
        """Whether its objects are in the network operator's namespace, and have no state in their status.

        Only these types support chained plugins: the network operator's other types do not, up to 26.7.
        """
        return self.api == SRIOV


PROFILES = (
    Profile("macvlan", ETHERNET, "macvlan", MELLANOX, "MacvlanNetwork", "macvlannetworks", shared=True),
    Profile("ipoib", INFINIBAND, "ipoib", MELLANOX, "IPoIBNetwork", "ipoibnetworks", shared=True),
    Profile("host_device", ETHERNET, "host-device", MELLANOX, "HostDeviceNetwork", "hostdevicenetworks"),
    Profile("host_device", INFINIBAND, "host-device", MELLANOX, "HostDeviceNetwork", "hostdevicenetworks"),
    Profile("sriov", ETHERNET, "sriov", SRIOV, "SriovNetwork", "sriovnetworks"),
    Profile("sriov", INFINIBAND, "ib-sriov", SRIOV, "SriovIBNetwork", "sriovibnetworks"),
)
TYPES = tuple(dict.fromkeys(profile.type for profile in PROFILES))
SHARED = frozenset(profile.type for profile in PROFILES if profile.shared)
LAYERS = {kind: tuple(profile.link_layer for profile in PROFILES if profile.type == kind) for kind in TYPES}
INFINIBAND_ONLY = {each.cni for each in PROFILES if each.link_layer == INFINIBAND} - {
    each.cni for each in PROFILES if each.link_layer == ETHERNET
}
BY_CNI = {profile.cni: profile for profile in PROFILES}
BY_KIND = {profile.kind: profile for profile in PROFILES}
CHAINING = frozenset(profile.type for profile in PROFILES if profile.namespaced)


def profile_of(network: t.Mapping[str, object]) -> Profile:
    """The profile of a planned network, by its CNI plugin."""
    return BY_CNI[str(network.get("cni") or "macvlan")]
