# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What networks and hosts have in common: one master for all hosts of a network, nothing twice on one host."""

from __future__ import annotations

import collections
import hashlib
import ipaddress
import itertools
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._plan.host_checks import Hosts
from ansible_collections.ipu.fabric.plugins.module_utils._plan.network_spec import MASTER_LENGTH, Network

Links = t.Dict[str, t.Dict[str, t.Any]]

# The driver of VMware's paravirtual RDMA, a PCI function beside that of the NIC; a virtual machine has one at most.
PVRDMA = "vmw_pvrdma"
GIDS = 256  # in the table of a port; RoCE v1 and v2 take one each


def having(links: Links, key: str, value: t.Any) -> t.List[str]:
    return [name for name, link in links.items() if link[key] == value]


def few(names: t.Sequence[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# ---- the master ------------------------------------------------------------------------------------------------------


def _others(links: Links, hosts: Hosts) -> t.Dict[str, t.List[str]]:
    """Every name of every link but those of this network, with the hosts that use it."""
    used: t.Dict[str, t.List[str]] = {"lo": list(links)}
    for host, chosen in links.items():
        for link in hosts[host]["rdma"]["links"]:
            if link["netdev"] != chosen["netdev"]:
                for name in (link["netdev"], *link.get("altnames", ())):
                    used.setdefault(name, []).append(host)
    return used


def _common_name(network: str, used: t.Container[str]) -> str:
    """A name for the NICs of a network: its own if the kernel takes it and nobody has it."""
    if len(network) <= MASTER_LENGTH and network not in used:
        return network
    digests = (hashlib.sha256(f"{network}{number}".encode()).hexdigest()[:4] for number in itertools.count())
    return next(name for name in (f"{network[:10]}-{digest}" for digest in digests) if name not in used)


def choose_master(network: Network, links: Links, hosts: Hosts, found: Findings) -> str:
    """The name by which a NAD finds the NIC on every host; those named otherwise get it as an alternative name.

    A NIC keeps its altname in the plan when it has it already: the plan says what is to be, and stays the same.
    """
    names = {link["netdev"] for link in links.values()}
    used = _others(links, hosts)
    master: str = network["master"]
    if not master and names:
        master = names.pop() if len(names) == 1 else _common_name(network["name"], used)
    for link in links.values():
        link["altname"] = "" if link["netdev"] == master else master
    if master in used:
        found.error(
            "master-name",
            used[master],
            f"{network['name']}: the master's name must mean the fabric NIC on every host.",
            f"another NIC is called {master}",
            "Rename that NIC (a systemd .link file by MAC or path), or set the network's key master to another name.",
        )
    return master


def judge_masters(networks: t.Sequence[Network], links: t.Mapping[str, Links], found: Findings) -> None:
    """One name can't stand for two NICs of a host."""
    for one, other in itertools.combinations([network for network in networks if network["master"]], 2):
        first, second = links[one["name"]], links[other["name"]]
        both = [host for host in first if host in second and first[host]["netdev"] != second[host]["netdev"]]
        if one["master"] == other["master"] and both:
            found.error(
                "master-name",
                both,
                f"Networks {one['name']} and {other['name']} need masters of different names.",
                f"both have {one['master']}, and stand on different NICs",
                "Change the key master of one of them, or leave it out.",
            )


def judge_pvrdma(network: Network, links: Links, found: Findings) -> None:
    """PVRDMA reaches PVRDMA only, and a virtual switch drops addresses that it does not know."""
    virtual = having(links, "driver", PVRDMA)
    others = [name for name in links if name not in virtual]
    if virtual and others:
        found.error(
            "pvrdma",
            virtual,
            f"{network['name']}: PVRDMA speaks RDMA with other PVRDMA only.",
            f"{few(others)} of this network {'have' if len(others) > 1 else 'has'} another driver",
            "Plan a network of its own for the virtual machines (key hosts).",
        )
    elif virtual:
        found.warning(
            "pvrdma",
            virtual,
            f"{network['name']}: pods on a macvlan have MAC addresses that the virtual switch does not know.",
            f"the driver is {PVRDMA}",
            "Have the port group accept forged transmits and learn MAC addresses; then see what verify says.",
        )


# ---- addresses and resources ----------------------------------------------------------------------------------------


def judge_overlaps(networks: t.Sequence[Network], found: Findings) -> None:
    """Two networks on one subnet would hand out the same addresses."""
    planned = [(network["name"], subnet["cidr"]) for network in networks for subnet in network["subnets"]]
    for (one, cidr), (other, its) in itertools.combinations(planned, 2):
        first, second = ipaddress.ip_network(cidr), ipaddress.ip_network(its)
        if first.overlaps(second):
            found.error(
                "subnet",
                [],
                f"Networks {one} and {other} would give out the same addresses.",
                f"{first} and {second} overlap",
                "Give each its own NIC (key select) or its own hosts and subnet.",
            )


def _netdevs(networks: t.Sequence[Network]) -> t.Dict[str, t.Set[str]]:
    """For each RDMA resource the NICs of its networks, on whatever host."""
    names: t.Dict[str, t.Set[str]] = {}
    for network in networks:
        if network["rdma"]:
            names.setdefault(network["resource"], set()).update(network["rdma_netdevs"])
    return names


def rdma_resources(networks: t.Sequence[Network]) -> t.List[t.Dict[str, t.Any]]:
    """For the shared device plugin: one resource for each name, of all NICs of its networks.

    The plugin lets several resources have the same NIC, as those of two VLANs on it: they divide its GID table.
    """
    netdevs = _netdevs(networks)
    drivers: t.Dict[str, t.Set[str]] = {}
    for network in networks:
        drivers.setdefault(network["resource"], set()).update(network["rdma_drivers"])
    sharing = collections.Counter(itertools.chain.from_iterable(netdevs.values()))
    families = max((len(network["subnets"]) for network in networks), default=1)
    return [
        {
            "resourceName": name.split("/", 1)[1],
            "resourcePrefix": "rdma",
            "rdmaHcaMax": most_pods(families) // max(sharing[netdev] for netdev in own),
            # The PCI function of PVRDMA has no netdev: only its driver finds it.
            "selectors": {"drivers": [PVRDMA]} if drivers[name] == {PVRDMA} else {"ifNames": sorted(own)},
        }
        for name, own in netdevs.items()
        if own
    ]


def most_pods(families: int) -> int:
    """How many macvlans a port has GIDs for: each takes two for its link-local address and two for every other one."""
    return GIDS // (2 * (1 + max(families, 1))) - 1


def judge_resources(
    networks: t.Sequence[Network], links: t.Mapping[str, Links], hosts: Hosts, pods_per_node: int, found: Findings
) -> None:
    """The device plugin knows NICs by name alone, and by the same names on every host."""
    for name, netdevs in _netdevs(networks).items():
        mine = [links[network["name"]] for network in networks if network["resource"] == name]
        for host in dict.fromkeys(itertools.chain.from_iterable(mine)):
            own = {netdev for of in mine if host in of for netdev in of[host]["rdma_netdevs"]}
            there = {link["netdev"] for link in hosts[host]["rdma"]["links"] if link["device"]}
            for netdev in sorted((netdevs - own) & there):
                found.warning(
                    "rdma-resource",
                    [host],
                    f"{name} should stand for the NICs of its own networks only.",
                    f"{netdev} belongs to it on other hosts, and is the name of another NIC here: pods get both",
                    "Name the NICs alike on all hosts (systemd .link files by MAC or path).",
                )
    for resource in rdma_resources(networks):
        if resource["rdmaHcaMax"] < pods_per_node:
            found.warning(
                "rdma-resource",
                [],
                f"rdma/{resource['resourceName']} should serve all pods of a host.",
                f"fabric_pods_per_node is {pods_per_node}, the GID table has room for {resource['rdmaHcaMax']}",
                "Pods beyond that stay pending if they ask for it. Plan fewer pods, or fewer networks on one NIC.",
            )
