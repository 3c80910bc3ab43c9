# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types of fabric networks of the network operator, a row each: on which NICs, and which object makes them."""

from __future__ import annotations

import typing as t

ETHERNET, INFINIBAND = "Ethernet", "InfiniBand"  # link layers
MELLANOX, SRIOV = "mellanox.com/v1alpha1", "sriovnetwork.openshift.io/v1"
PREFIX = "nvidia.com"  # of resources that are devices of a pod's own: both operators have no other


# Sysctls of the CNI plugin tuning, which puts the interface's name for IFNAME.
NO_ADVERTISEMENTS = {"net.ipv6.conf.IFNAME.accept_ra": "0"}
# Rails on one subnet: an interface answers ARP for its own addresses only, and asks with them.
OWN_ARP = {
    "net.ipv4.conf.IFNAME.arp_ignore": "1",
    "net.ipv4.conf.IFNAME.arp_announce": "2",
    "net.ipv4.conf.IFNAME.rp_filter": "2",
}
META_PLUGINS = ("tuning", "sbr")  # that a network may name, in the order in which they run


class MetaPlugin(t.TypedDict, total=False):
    """A CNI plugin that follows the one which makes the interface, as a CNI configuration has it."""

    type: str
    sysctl: t.Dict[str, str]  # of tuning


class Profile(t.NamedTuple):
    """A type of network on NICs of one link layer."""

    type: str  # as fabric_networks has it
    link_layer: str
    cni: str  # its CNI plugin
    api: str
    kind: str
    plural: str
    shared: bool = False  # pods share the NIC; else each has a device of its own

    @property
    def path(self) -> str:
        """Where the API lists its objects."""
        return f"/apis/{self.api}/{self.plural}"

    @property
    def namespaced(self) -> bool:
        """Whether its objects are in the namespace of the network operator, and say nothing of their state.

        These alone have plugins that follow the main one: others of the network operator have none up to 26.7.
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
    """That of a planned network, by its CNI plugin."""
    return BY_CNI[str(network.get("cni") or "macvlan")]
