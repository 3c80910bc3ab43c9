# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The master of each fabric network: one name by which its macvlans find the NIC on every host."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import typing as t

from .._common.findings import Findings
from .._model.profiles import SHARED
from .host_links import HostLink, NetworkLinks
from .network_spec import MASTER_LENGTH


def name_masters(chosen: t.Sequence[NetworkLinks], findings: Findings) -> t.List[NetworkLinks]:
    """The networks with their masters; NICs with another name get the master's as an alternative name."""
    named = [dataclasses.replace(one, master=_choose_master(one, findings)) for one in chosen]
    for one, other in itertools.combinations([network for network in named if network.master], 2):
        both = [
            host
            for host, link in one.links.items()
            if host in other.links and link.nic["netdev"] != other.links[host].nic["netdev"]
        ]
        if one.master == other.master and both:
            findings.error(
                "master-name",
                both,
                f"Networks {one.network.name} and {other.network.name} need masters of different names.",
                f"both have {one.master}, on different NICs",
                "Set the key master of one of them to another name, or leave it out.",
            )
    return named


def _choose_master(chosen: NetworkLinks, findings: Findings) -> str:
    names = {link.nic["netdev"] for link in chosen.links.values()}
    used = _other_names(chosen.links)
    master = chosen.network.master
    if chosen.network.type not in SHARED:
        return ""  # each pod has its own device
    if not master and names:
        master = names.pop() if len(names) == 1 else _common_name(chosen.network.name, used)
    if master in used:
        findings.error(
            "master-name",
            used[master],
            f"{chosen.network.name}: the master's name must be that of the fabric NIC on every host.",
            f"another NIC is called {master}",
            "Rename that NIC (a systemd .link file by MAC or path), or set the network's key master to another name.",
        )
    return master


def _other_names(links: t.Mapping[str, HostLink]) -> t.Dict[str, t.List[str]]:
    """All names of all NICs except this network's, with the hosts that have them."""
    used: t.Dict[str, t.List[str]] = {"lo": list(links)}
    for name, chosen in links.items():
        for nic in chosen.host.rdma["links"] if chosen.host.rdma else ():
            if nic["netdev"] != chosen.nic["netdev"]:
                for other in (nic["netdev"], *nic["altnames"]):
                    used.setdefault(other, []).append(name)
    return used


def _common_name(network: str, used: t.Container[str]) -> str:
    """A name for a network's NICs: the network's own if the kernel allows its length and no other NIC has it."""
    if len(network) <= MASTER_LENGTH and network not in used:
        return network
    digests = (hashlib.sha256(f"{network}{number}".encode()).hexdigest()[:4] for number in itertools.count())
    return next(name for name in (f"{network[:10]}-{digest}" for digest in digests) if name not in used)
