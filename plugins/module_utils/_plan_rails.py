# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What networks and hosts have in common: one master for all hosts of a network, nothing twice on one host."""

from __future__ import annotations

import hashlib
import ipaddress
import itertools
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._judge import Hosts
from ansible_collections.ipu.fabric.plugins.module_utils._network_spec import MASTER_LENGTH, Network

Links = t.Dict[str, t.Dict[str, t.Any]]

# The GID table of a port has no room for more.
RDMA_HCA_MAX = 63


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


# ---- addresses and resources ----------------------------------------------------------------------------------------


def judge_overlaps(networks: t.Sequence[Network], found: Findings) -> None:
    """Two networks on one subnet would hand out the same addresses."""
    planned = [network for network in networks if network["subnet"]]
    for one, other in itertools.combinations(planned, 2):
        first, second = (ipaddress.ip_network(network["subnet"]["cidr"]) for network in (one, other))
        if first.overlaps(second):
            found.error(
                "subnet",
                [],
                f"Networks {one['name']} and {other['name']} would give out the same addresses.",
                f"{first} and {second} overlap",
                "Give each its own NIC (key select) or its own hosts and subnet.",
            )


def rdma_resources(networks: t.Sequence[Network]) -> t.List[t.Dict[str, t.Any]]:
    """For the shared device plugin: one resource for each name, of all NICs of its networks."""
    names: t.Dict[str, t.Set[str]] = {}
    for network in networks:
        if network["rdma"]:
            names.setdefault(network["resource"].split("/", 1)[1], set()).update(network["rdma_netdevs"])
    return [
        {
            "resourceName": name,
            "resourcePrefix": "rdma",
            "rdmaHcaMax": RDMA_HCA_MAX,
            "selectors": {"ifNames": sorted(netdevs)},
        }
        for name, netdevs in names.items()
    ]
