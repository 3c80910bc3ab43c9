# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other users of fabric NICs and their addresses in the cluster: the kernel refuses whoever comes second.

Tested with Linux 6.1 and 6.18: next to an ipvlan, a macvlan gets EBUSY; next to one in mode passthru, EINVAL.
"""

from __future__ import annotations

import contextlib
import itertools
import typing as t

from .._common.findings import Findings
from .._common.text import shorten_list
from .._ipam.ranges import parse_ranges, range_texts, read_address
from .._model.observation import DraNic, SeenAttachment
from .._model.plan import PlannedNetwork, PlannedSubnet
from .._network.address_sets import MALFORMED, range_addresses, read_ranges
from .host_links import NAMES, NetworkLinks
from .running_cluster import Running

if t.TYPE_CHECKING:
    import netaddr

PASSTHRU = "passthru"
# How to tell a DRA driver to leave a NIC alone.
LEAVE_OUT = {
    "dra.net": "Set args.filter of DRANET's chart to leave the NIC out",
    "sriovnetwork.k8snetworkplumbingwg.io": "Leave the NIC out of the SriovResourcePolicy",
}


def check_shared_nics(
    running: t.Optional[Running],
    chosen: t.Sequence[NetworkLinks],
    networks: t.Sequence[PlannedNetwork],
    pods_per_node: int,
    findings: Findings,
) -> None:
    """Compare with attachments of others, our networks with each other, and pods of one network."""
    own = {(network["namespace"], network["name"]) for network in networks}
    seen = running.facts.get("attachments", []) if running else []
    others = [each for each in seen if (each["namespace"], each["name"]) not in own]
    offered = running.facts.get("dra_nics", []) if running else []
    for network in chosen:
        _check_attachments(network, others, findings)
        _check_dra(network, [nic for nic in offered if nic["claims"]], findings)
        _check_dra(network, [nic for nic in offered if not nic["claims"]], findings)
    for planned in networks:
        _check_static(planned, others, findings)
        _check_ranges(planned, others, findings)
    for network in chosen:
        if network.network.mode == PASSTHRU and pods_per_node > 1:
            findings.warning(
                "networks",
                [],
                f"{network.network.name}: in mode passthru one pod of a host has the NIC, and no other starts there.",
                f"fabric_pods_per_node is {pods_per_node}",
                "Set mode to bridge, or fabric_pods_per_node to 1.",
            )
    for one, other in itertools.combinations(chosen, 2):
        _check_passthru(one, other, findings)


def _excludes(attachment: SeenAttachment, mode: str) -> str:
    """Why the kernel allows no macvlan next to it; empty if it does."""
    plugin = attachment["plugin"]
    if plugin == "ipvlan" and mode:
        return "a NIC has ipvlans or macvlans, never both: the kernel says EBUSY (device or resource busy)"
    if plugin == "host-device":
        return "it moves the NIC itself into a pod"
    if plugin == "macvlan" and mode and PASSTHRU in (attachment["mode"], mode):
        return "a macvlan in mode passthru is the only one of its NIC: the kernel says EINVAL (invalid argument)"
    return ""


def _check_attachments(chosen: NetworkLinks, others: t.Sequence[SeenAttachment], findings: Findings) -> None:
    for each in others:
        hosts = [
            name
            for name, link in chosen.links.items()
            if each["nic"] in {chosen.master, link.nic["netdev"], *link.nic["altnames"], link.nic["pci"]} - {""}
        ]
        why = _excludes(each, chosen.network.mode)
        if hosts and why:
            what = f"NetworkAttachmentDefinition {each['namespace']}/{each['name']}"
            mode = f" in mode {each['mode']}" if each["mode"] else ""
            findings.error(
                "fabric-nic",
                hosts,
                f"{chosen.network.name}: another network uses its NIC, and pods of one of the two can't start.",
                f"{what} is {each['plugin']}{mode} on {each['nic']}: {why}",
                f"Delete {what} and its pods, give it another NIC, or name another one in `select` of"
                f" {chosen.network.name}.",
            )


def _check_dra(chosen: NetworkLinks, offered: t.Sequence[DraNic], findings: Findings) -> None:
    """NICs that pods get through a ResourceClaim: either all of `offered` are claimed, or none."""
    hosts = [
        (name, nic)
        for name, link in chosen.links.items()
        for nic in offered
        if nic["node"] == link.host.node and {nic["nic"], nic["pci"]} & {link.nic["netdev"], link.nic["pci"]} - {""}
    ]
    if not hosts:
        return
    nics = [nic for _name, nic in hosts]
    claims = sorted({claim for nic in nics for claim in nic["claims"]})
    listed = shorten_list((f"{nic['nic'] or nic['pci']} of {nic['node']}" for nic in nics), NAMES)
    driver = nics[0]["driver"]
    aside = f"{LEAVE_OUT[driver]}, or name another one in `select` of {chosen.network.name}."
    if claims:
        findings.error(
            "fabric-nic",
            [name for name, _nic in hosts],
            f"{chosen.network.name}: a ResourceClaim has its NIC, and pods of one of the two can't start.",
            f"ResourceClaim {shorten_list(claims, NAMES)}: driver {driver} gives {listed} to its pods",
            f"Delete the pods of the claim. {aside}",
        )
    else:
        findings.warning(
            "fabric-nic",
            [name for name, _nic in hosts],
            f"{chosen.network.name}: a pod can claim its NIC, and would take it from all others on that host.",
            f"driver {driver} offers {listed}",
            aside,
        )


def _given_out(subnet: PlannedSubnet) -> t.Tuple[str, netaddr.IPSet]:
    """A subnet's range as text, and the addresses that pods get from it."""
    span = f"{subnet['range_start']}-{subnet['range_end']}"
    return span, parse_ranges([span], "subnet") - parse_ranges(subnet["exclude"], "exclude")


def _check_static(planned: PlannedNetwork, others: t.Sequence[SeenAttachment], findings: Findings) -> None:
    """Report addresses that an attachment assigns to its pods directly, unknown to any IPAM."""
    for subnet in planned["subnets"]:
        span, ours = _given_out(subnet)
        taken = {
            address: f"{each['namespace']}/{each['name']}"
            for each in others
            for address in each["addresses"]
            if read_address(address) in ours
        }
        if taken:
            listed = shorten_list((f"{address} of {name}" for address, name in taken.items()), NAMES)
            findings.error(
                "subnet",
                [],
                f"{planned['name']}: a NetworkAttachmentDefinition has addresses that the plan would give to others.",
                f"{listed}; the plan gives out {span}",
                f"Set reserved to [{', '.join(taken)}] in {planned['name']} of fabric_networks, besides what it has.",
            )


def _check_ranges(planned: PlannedNetwork, others: t.Sequence[SeenAttachment], findings: Findings) -> None:
    """Report overlapping ranges of IPAMs that do not know of ours."""
    for subnet in planned["subnets"]:
        span, ours = _given_out(subnet)
        shared = {}
        for each in others:
            with contextlib.suppress(*MALFORMED):
                addresses = ours & range_addresses(read_ranges(dict(each.get("ipam") or {})))
                if addresses:
                    shared[f"{each['namespace']}/{each['name']}"] = ", ".join(range_texts(addresses))
        if shared:
            listed = shorten_list((f"{addresses} of {name}" for name, addresses in shared.items()), NAMES)
            findings.warning(
                "subnet",
                [],
                f"{planned['name']}: other networks of the cluster give out addresses that the plan gives out too.",
                f"NetworkAttachmentDefinitions: {listed}; the plan gives out {span}",
                f"Choose another part of the subnet (`share`) for {planned['name']} in fabric_networks, or delete"
                " these networks. The proof fails with pool_overlap while both have the addresses.",
            )


def _check_passthru(one: NetworkLinks, other: NetworkLinks, findings: Findings) -> None:
    if PASSTHRU not in (one.network.mode, other.network.mode):
        return
    both = [
        name
        for name, link in one.links.items()
        if name in other.links and link.nic["netdev"] == other.links[name].nic["netdev"]
    ]
    if both:
        findings.error(
            "networks",
            both,
            f"Networks {one.network.name} and {other.network.name} can't share a NIC.",
            f"{one.links[both[0]].nic['netdev']}: a macvlan in mode passthru is the only one of its NIC",
            "Set mode to bridge in both, or give each its own NIC (key select).",
        )
