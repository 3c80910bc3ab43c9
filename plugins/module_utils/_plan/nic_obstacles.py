# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a link of a host can't carry a macvlan, as the kernel refuses it (tried with Linux 6.1 and 6.18)."""

from __future__ import annotations

import dataclasses
import typing as t

from .._model.observation import Link

Links = t.Mapping[str, Link]  # of a host, by netdev
VRF = "vrf"  # its members stay on their own: macvlan works on them
OVS = "openvswitch"


@dataclasses.dataclass(frozen=True)
class Obstacle:
    why: str  # follows the link's name
    step: str  # what to do about it, as a sentence without its full stop; empty: only another NIC helps


def masters(links: t.Iterable[Link]) -> t.Dict[str, str]:
    """The device that each link is a member of. Observations of earlier releases only have it from above."""
    links = list(links)
    found = {name: link["netdev"] for link in links if link["kind"] not in ("vlan", VRF) for name in link["lower"]}
    for link in links:
        if link.get("master_kind") == VRF:
            found.pop(link["netdev"], "")
        elif link.get("master"):
            found[link["netdev"]] = link["master"]
    return found


def find_obstacles(links: Links, macvlan: bool) -> t.Dict[str, Obstacle]:
    """The links of a host that can't carry a macvlan, by netdev. Without macvlans others may stand on a NIC."""
    if not macvlan:
        links = {name: t.cast(Link, {**link, "taken_by": []}) for name, link in links.items()}
    master_of = masters(links.values())
    found = {name: _own(link) for name, link in links.items()}
    found.update({name: _of_member(name, master_of, links) for name in links if name in master_of})
    return {name: obstacle for name, obstacle in found.items() if obstacle}


def _own(link: Link) -> t.Optional[Obstacle]:
    members = " or ".join(link["lower"])
    if link["kind"] == VRF:
        step = f"Name its member {members} in `select` instead" if members else ""
        return Obstacle("a VRF: macvlan works on its members, not on itself", step)
    if link["kind"] == OVS:
        return Obstacle("a device of Open vSwitch, which leads macvlan to no NIC", "")
    if link["kind"] in ("ipvlan", "ipvtap"):
        return Obstacle("an ipvlan: macvlan can't use it", "")
    if link.get("taken_by"):
        taker = link["taken_by"][0]
        return Obstacle(f"taken by {taker}: the kernel refuses a macvlan beside it", f"Delete {taker.split()[1]}")
    return None


def _of_member(name: str, master_of: t.Mapping[str, str], links: Links) -> Obstacle:
    master = master_of[name]
    why = f"member of {master}: macvlan can't use it"
    above = links[master]["kind"] if master in links else links[name].get("master_kind", "")
    step = f"ake {name} out of {master}" + (f" (ovs-vsctl del-port {name})" if above == OVS else "")
    if master not in links or _own(links[master]):
        return Obstacle(why, f"T{step}")
    if master in master_of and master_of[master] != name:
        return Obstacle(why, f"{_of_member(master, master_of, links).step}, then name {master} in `select`")
    return Obstacle(why, f"Name {master} in `select` instead, or t{step}")
