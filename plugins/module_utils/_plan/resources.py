# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""RDMA resources: which NICs the shared device plugin offers, under which name, and to how many pods."""

from __future__ import annotations

import collections
import itertools
import typing as t

from .._common.findings import Findings
from .._common.text import shorten_list
from .._model.plan import PVRDMA, PlannedNetwork, RdmaResource
from .._model.stacks import OWN_DEVICES
from .host_links import NAMES, NetworkLinks

GID_ROOM = 128  # addresses in a port's GID table if not known: 256 entries, with RoCE v1 and v2 for each address


def plan_resources(chosen: t.Sequence[NetworkLinks], networks: t.Sequence[PlannedNetwork]) -> t.List[RdmaResource]:
    """One resource for each name, with all NICs of its networks."""
    drivers: t.Dict[str, t.Set[str]] = {}
    for network in networks:
        drivers.setdefault(network["resource"], set()).update(network["rdma_drivers"])
    hca_max: t.Dict[str, int] = {}  # the highest value that a network of the resource requests
    for spec in (one.network for one in chosen):
        hca_max[spec.rdma_resource] = max(spec.rdma_hca_max, hca_max.get(spec.rdma_resource, 0))
    room = _room(chosen, networks)
    return [
        {
            "resourceName": name.partition("/")[2],
            "resourcePrefix": name.partition("/")[0],
            "rdmaHcaMax": hca_max[name] or room[name],
            # PVRDMA's PCI function has no netdev: only its driver identifies it.
            "selectors": {"drivers": [PVRDMA]} if drivers[name] == {PVRDMA} else {"ifNames": sorted(own)},
        }
        for name, own in _netdevs_by_resource(networks).items()
        if own
    ]


def check_resources(
    chosen: t.Sequence[NetworkLinks],
    networks: t.Sequence[PlannedNetwork],
    resources: t.Sequence[RdmaResource],
    pods_per_node: int,
    grouped: bool,
    findings: Findings,
) -> None:
    """Check resources: the device plugin knows NICs only by name, and by the same names on all hosts of a policy."""
    _check_first_names(chosen, networks, findings)
    resource_of = {network["name"]: network["resource"] for network in networks}
    for resource, netdevs in _netdevs_by_resource(networks).items():
        own: t.Dict[str, t.Set[str]] = {}  # by host
        rdma: t.Dict[str, t.Set[str]] = {}  # all RDMA NICs of the host
        for links in (one.links for one in chosen if resource_of[one.network.name] == resource):
            for name, link in links.items():
                own.setdefault(name, set()).update(link.nic["rdma_netdevs"])
                rdma[name] = {nic["netdev"] for nic in (link.host.rdma or {"links": []})["links"] if nic["device"]}
        for name in own:
            for netdev in () if grouped else sorted((netdevs - own[name]) & rdma[name]):
                findings.warning(
                    "rdma-resource",
                    [name],
                    f"{resource} should select the NICs of its own networks only.",
                    f"{netdev} belongs to it on other hosts, but is the name of another NIC here: pods get both",
                    "Give the NICs the same names on all hosts (systemd .link files by MAC or path). Or set"
                    " fabric_nic_policy to node, with network operator 26.4 or later.",
                )
    room = _room(chosen, networks)
    for planned in resources:
        name, most = f"{planned['resourcePrefix']}/{planned['resourceName']}", planned["rdmaHcaMax"]
        if most > room[name]:
            findings.warning(
                "rdma-resource",
                [],
                f"{name} should be given to no more pods of a host than its GID table has room for.",
                f"rdma_hca_max is {most}, the GID table has room for {room[name]}",
                "Pods beyond that start, but have no GID of their address: RDMA fails in them (check gid). Set"
                f" rdma_hca_max to {room[name]} to keep them pending instead, or run fewer pods on a host.",
            )
        elif most < pods_per_node:
            full = most == room[name]
            limit = f"the GID table has room for {most}" if full else f"rdma_hca_max is {most}"
            findings.warning(
                "rdma-resource",
                [],
                f"{name} should serve all pods of a host.",
                f"fabric_pods_per_node is {pods_per_node}, {limit}",
                "Pods beyond that stay pending if they ask for it. Set fabric_pods_per_node to"
                f" {most}, or {'plan fewer networks on one NIC' if full else 'set rdma_hca_max to 0'}.",
            )


def _check_first_names(
    chosen: t.Sequence[NetworkLinks], networks: t.Sequence[PlannedNetwork], findings: Findings
) -> None:
    """The device plugin knows a PCI function only by the name of its first network device."""
    resource_of, selected = {one["name"]: one["resource"] for one in networks}, _netdevs_by_resource(networks)
    for one in chosen:
        resource = resource_of[one.network.name]
        for host, link in one.links.items():
            nics = {nic["netdev"]: nic for nic in link.host.rdma["links"]} if link.host.rdma else {}
            for name in link.nic["rdma_netdevs"]:
                names = nics[name].get("function_netdevs", []) if name in nics else []
                if link.nic["driver"] == PVRDMA or not names or names[0] in selected.get(resource, {names[0]}):
                    continue
                first = names[0]
                others = any(first in mine.links[host].nic["rdma_netdevs"] for mine in chosen if host in mine.links)
                step = f"Give {name} a name that comes before {first} (a systemd .link file by MAC or path)"
                step += f", or the networks of {name} and {first} one rdma_resource" if others else ""
                findings.error(
                    "rdma-resource",
                    [host],
                    f"{resource} would be 0: the device plugin knows a PCI function by its first network device alone.",
                    f"{name} is to be selected; {nics[name]['pci']} has {shorten_list(names, NAMES)}"
                    + ("" if name in names else f", and {name} is a subfunction of it"),
                    f"{step if name in names else f'Select {first}'}, or select another NIC.",
                )


def _netdevs_by_resource(networks: t.Sequence[PlannedNetwork]) -> t.Dict[str, t.Set[str]]:
    """The NICs of each resource's networks, on all hosts."""
    names: t.Dict[str, t.Set[str]] = {}
    for network in networks:
        if network["rdma"] and network.get("cni") not in OWN_DEVICES:
            names.setdefault(network["resource"], set()).update(network["rdma_netdevs"])
    return names


def _room(chosen: t.Sequence[NetworkLinks], networks: t.Sequence[PlannedNetwork]) -> t.Dict[str, int]:
    """How many pods of a host fit into the GID tables of each resource's NICs, by the smallest table of all hosts.

    Addresses that pods configure from router advertisements take entries too. The plugin allows several resources for
    the same NIC, such as those of two VLANs: they share its GID table.
    """
    netdevs = _netdevs_by_resource(networks)
    sharing = collections.Counter(itertools.chain.from_iterable(netdevs.values()))
    more = {one.network.name for one in chosen if one.network.accept_ra and one.advertised()}
    families = max((len(network["subnets"]) + (network["name"] in more) for network in networks), default=1)
    tables: t.Dict[str, int] = {}
    for one in chosen:
        name = one.network.rdma_resource
        seen = [link.nic.get("gid_room", 0) or GID_ROOM for link in one.links.values()]
        tables[name] = min([*seen, tables.get(name, GID_ROOM * 8)])
    return {
        name: max(_pods_of_a_port(tables[name], families) // max(sharing[netdev] for netdev in own), 1)
        for name, own in netdevs.items()
        if own
    }


def _pods_of_a_port(room: int, families: int) -> int:
    """How many macvlans fit into a port's GID table besides the host: each has a link-local address, and others."""
    return room // (1 + max(families, 1)) - 1
