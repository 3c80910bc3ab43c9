# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a link of a host can't carry a macvlan, according to the kernel (tested with Linux 6.1 and 6.18)."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._model.observation import Link

Links = t.Mapping[str, Link]  # of one host, by netdev
VRF = "vrf"  # its members stay independent: macvlan works on them
OVS = "openvswitch"
# Devices of pods, containers and virtual machines: none leads to another host. Bridges come first, by their type.
END_OF_PAIR = r"veth.+|vnet\d+|tap.+|cali.+|lxc.+"
INSIDE = (
    (re.compile(r"cni\d+|cbr0|kube-bridge|weave"), "bridge of the pod network"),
    (
        re.compile(r"docker0|br-[0-9a-f]{12}|podman\d+|cni-podman\d+|virbr\d+|lxdbr\d+"),
        "bridge of this host's containers or guests",
    ),
    (
        re.compile(
            r"flannel.+|tunl0|vxlan(-v6)?\.calico|(wireguard|wg-v6)\.cali|cilium_.+|antrea-.+|ovn-k8s-.+|vxlan-6784"
            r"|kube-ipvs0|kube-dummy-if|nodelocaldns"
        ),
        "device of the pod network",
    ),
    (re.compile(END_OF_PAIR), "device of a pod, a container or a guest"),
)


@dataclasses.dataclass(frozen=True)
class Obstacle:
    why: str  # follows the link's name
    step: str  # what to do about it, as a sentence without its period; empty: only another NIC helps


Obstacles = t.Mapping[str, Obstacle]  # by netdev


def masters(links: t.Iterable[Link]) -> t.Dict[str, str]:
    """The device that each link is a member of. Observations of earlier releases only list members."""
    links = list(links)
    found = {name: link["netdev"] for link in links if link["kind"] not in ("vlan", VRF) for name in link["lower"]}
    for link in links:
        if link.get("master_kind") == VRF:
            found.pop(link["netdev"], "")
        elif link.get("master"):
            found[link["netdev"]] = link["master"]
    return found


def inside(link: Link) -> str:
    """The type of a device that serves only pods, containers or virtual machines of its host; empty for others.

    Recognised by its name. A bridge with a NIC is never one of them.
    """
    if link["rdma_netdevs"] or link["kind"] not in ("bridge", "other"):
        return ""
    if not all(re.fullmatch(END_OF_PAIR, name) for name in link["lower"]):
        return ""
    return next((what for name, what in INSIDE if name.fullmatch(link["netdev"])), "")


def find_obstacles(links: t.Iterable[Link], macvlan: bool) -> Obstacles:
    """The links of a host that can't carry a macvlan. Without macvlans, other devices may use the NIC too."""
    if not macvlan:
        links = [t.cast(Link, {**link, "taken_by": []}) for link in links]
    by_name = {link["netdev"]: link for link in links}
    master_of = masters(by_name.values())
    found = {name: _own(link) for name, link in by_name.items()}
    found.update({name: _of_member(name, master_of, by_name) for name in by_name if name in master_of})
    return {name: obstacle for name, obstacle in found.items() if obstacle}


def _own(link: Link) -> t.Optional[Obstacle]:
    members = " or ".join(link["lower"])
    if link["kind"] == VRF:
        step = f"Name its member {members} in `select` instead" if members else ""
        return Obstacle("a VRF: macvlan works on its members, not on itself", step)
    if link["kind"] == OVS:
        return Obstacle("a device of Open vSwitch: a macvlan on it reaches no NIC", "")
    if link["kind"] in ("ipvlan", "ipvtap"):
        return Obstacle("an ipvlan: macvlan can't use it", "")
    serves = inside(link)
    if serves:
        return Obstacle(f"{serves}: a macvlan on it reaches no NIC", "")
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
