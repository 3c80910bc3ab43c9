# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks whose pods get their own device: the NIC itself (host_device), or one of its VFs (sriov)."""

from __future__ import annotations

import itertools
import typing as t

from .._common.findings import Findings
from .._common.text import shorten_list
from .._model.observation import Link
from .._model.plan import DeviceResource, OwnDevices, PlannedNetwork, SriovPolicy
from .._model.profiles import SHARED
from .host_links import NAMES, HostLink, NetworkLinks


def plan_own_devices(chosen: t.Sequence[NetworkLinks], networks: t.Sequence[PlannedNetwork]) -> OwnDevices:
    """The plan's fields for such networks; empty if pods share their NICs."""
    planned: OwnDevices = {}
    resources, policies = plan_device_resources(chosen, networks), plan_sriov_policies(chosen, networks)
    if resources:
        planned["device_resources"] = resources
    if policies:
        planned["sriov_policies"] = policies
    return planned


def plan_device_resources(
    chosen: t.Sequence[NetworkLinks], networks: t.Sequence[PlannedNetwork]
) -> t.List[DeviceResource]:
    """Resources of the SR-IOV device plugin: NICs by PCI address, which stays the same while a pod has them."""
    addresses: t.Dict[str, t.Set[str]] = {}
    for one, network in zip(chosen, networks):
        if one.network.type == "host_device" and one.links:
            addresses.setdefault(network["resource"], set()).update(_pci(one))
    return [
        {
            "resourceName": name.partition("/")[2],
            "resourcePrefix": name.partition("/")[0],
            "selectors": {"pciAddresses": sorted(own), "isRdma": True},
        }
        for name, own in addresses.items()
    ]


def plan_sriov_policies(chosen: t.Sequence[NetworkLinks], networks: t.Sequence[PlannedNetwork]) -> t.List[SriovPolicy]:
    """One policy for each network: its NICs on all hosts, by PCI address."""
    return [
        {
            "name": network["name"],
            "resource": network["resource"].partition("/")[2],
            "pci": sorted(_pci(one)),
            "vfs": network["vfs"],
            "mtu": 0 if network.get("link_layer") else network["mtu"],
            "link_layer": network.get("link_layer", "Ethernet"),
        }
        for one, network in zip(chosen, networks)
        if one.links and "vfs" in network
    ]


def _pci(chosen: NetworkLinks) -> t.Set[str]:
    return {link.nic["pci"] for link in chosen.links.values()} - {""}


def check_own_devices(
    chosen: t.Sequence[NetworkLinks],
    networks: t.Sequence[PlannedNetwork],
    vipu_of: t.Mapping[str, str],
    pods_per_node: int,
    findings: Findings,
) -> None:
    """Report NICs that can't be given to pods, and what it costs to give the others."""
    for one, network in zip(chosen, networks):
        if one.network.type in SHARED or not one.links:
            continue
        for name, link in one.links.items():
            why = _of_hardware(link) or (
                _needed_by_host(link, vipu_of.get(name, ""))
                if one.network.type == "host_device"
                else _too_few(link, network["vfs"])
            )
            if why:
                findings.error("fabric-nic", [name], f"{one.network.name}: {why[0]}", why[1], why[2])
        _check_elsewhere(one, chosen, findings)
        _say_costs(one, network, pods_per_node, findings)
    for one, other in itertools.combinations(chosen, 2):
        _check_pair(one, other, findings)


Why = t.Optional[t.Tuple[str, str, str]]  # what is required, what was seen, what to do


def _of_hardware(link: HostLink) -> Why:
    nic = link.nic
    if nic["kind"] == "physical" and nic["pci"]:
        return None
    below = " or ".join(nic["lower"])
    return (
        "pods get a hardware NIC, or a VF of one, but no device on top of it.",
        f"{nic['netdev']} is a {nic['kind']}",
        f"Name {below} in `select` instead, and take {nic['netdev']} off it; or set type to macvlan."
        if below
        else "Name the NIC itself in `select`, or set type to macvlan.",
    )


def _needed_by_host(link: HostLink, vipu: str) -> Why:
    """What the host would lose with the NIC. The device plugin offers no NIC with the default route or with VFs."""
    nic, links = link.nic, link.host.rdma["links"] if link.host.rdma else []
    on_top = [each["netdev"] for each in links if nic["netdev"] in each["lower"]]
    own = {entry["address"] for entry in nic["addresses"]}
    route = link.host.rdma["routes"].get(vipu) if link.host.rdma else None
    losses = {
        "the address of its node": own & set(link.host.addresses),
        "its default route": link.host.facts and link.host.facts["default_address"] in own,
        "its way to V-IPU": route and route["dev"] == nic["netdev"],
        f"{' and '.join(on_top)} on top of it": on_top,
        f"its {nic.get('vfs', 0)} VFs": nic.get("vfs", 0),
    }
    lost = [what for what, applies in losses.items() if applies]
    if not lost:
        return None
    return (
        "a NIC that moves into a pod takes away what the host uses it for.",
        f"the host uses {nic['netdev']} for {', '.join(lost)}",
        "Name another NIC in `select`, or set type to sriov or macvlan, which leave the NIC to the host.",
    )


def _too_few(link: HostLink, wanted: int) -> Why:
    most = link.nic.get("max_vfs", wanted)
    if most >= wanted:
        return None
    pci = link.nic["pci"]
    return (
        f"each of its NICs needs {wanted} VFs.",
        f"{link.nic['netdev']} ({pci}) can have {most}" + ("" if most else ": SR-IOV is off in its firmware or BIOS"),
        f"Run `mlxconfig -d {pci} set SRIOV_EN=1 NUM_OF_VFS={wanted}`, switch SR-IOV (and the IOMMU) on in the BIOS,"
        " then reboot." + (f" Or set vfs to {most} in fabric_networks." if most else ""),
    )


def _check_elsewhere(chosen: NetworkLinks, networks: t.Sequence[NetworkLinks], findings: Findings) -> None:
    """The operators have one list of PCI addresses for all nodes of the fabric, so it must suit each host."""
    own = _pci(chosen)
    others: t.Dict[str, str] = {}  # by host
    for name, link in {name: link for network in networks for name, link in network.links.items()}.items():
        mine: t.Optional[Link] = chosen.links[name].nic if name in chosen.links else None
        for nic in link.host.rdma["links"] if link.host.rdma else ():
            if nic["kind"] == "physical" and nic["device"] and nic["pci"] in own - {mine["pci"] if mine else ""}:
                others[name] = f"{nic['netdev']} of {name} is at {nic['pci']}"
    if others:
        findings.error(
            "fabric-nic",
            others,
            f"{chosen.network.name}: its NICs are found by PCI address, at which some hosts have another NIC.",
            shorten_list(others.values(), NAMES),
            f"Select NICs at the same PCI address on all hosts (`select: {{pci: ...}}`, and `hosts` of"
            f" {chosen.network.name}), or set type to macvlan, which finds them by name.",
        )


def _say_costs(chosen: NetworkLinks, network: PlannedNetwork, pods_per_node: int, findings: Findings) -> None:
    name, links = chosen.network.name, chosen.links
    most = network.get("vfs", 1)
    if chosen.network.type == "host_device":
        findings.warning(
            "networks",
            links,
            f"{name}: one pod of a host at a time has the NIC. Meanwhile the host does not have it: its addresses and"
            " routes go with it.",
            f"{shorten_list(sorted({link.nic['netdev'] for link in links.values()}), NAMES)};"
            f" fabric_pods_per_node is {pods_per_node}",
            "Nothing to do if that is what you want. Stop these pods before the next plan: it looks for the NIC on"
            " hosts.",
        )
        return
    due = [host for host, link in links.items() if link.nic.get("vfs") != most]
    if due:
        findings.warning(
            "networks",
            due,
            f"{name}: the SR-IOV operator drains these nodes, one after the other, to make VFs, and may reboot them.",
            "; ".join(
                sorted({f"{links[host].nic.get('vfs', 'no known number of')} VFs, planned {most}" for host in due})
            ),
            "Let jobs end first, or run site while no jobs are due. A node is drained again when vfs or mtu changes.",
        )
    if most < pods_per_node:
        findings.warning(
            "networks",
            [],
            f"{name}: each pod of a host takes a VF.",
            f"vfs is {most}, fabric_pods_per_node is {pods_per_node}",
            f"Set vfs to {pods_per_node}, or fabric_pods_per_node to {most}: pods beyond that stay pending.",
        )


def _check_pair(one: NetworkLinks, other: NetworkLinks, findings: Findings) -> None:
    """A NIC that leaves its host can't be in another network, and its VFs belong to one network."""
    types = {one.network.type, other.network.type}
    both = [
        host
        for host, link in one.links.items()
        if host in other.links and set(link.nic["rdma_netdevs"]) & set(other.links[host].nic["rdma_netdevs"])
    ]
    if both and ("host_device" in types or types == {"sriov"}):
        findings.error(
            "networks",
            both,
            f"Networks {one.network.name} and {other.network.name} can't share a NIC.",
            f"{one.links[both[0]].nic['netdev']}: types {one.network.type} and {other.network.type}",
            "Give each its own NIC (key select), or take one of them out of fabric_networks.",
        )
