# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NIC of every host on every fabric network, and problems with these NICs."""

from __future__ import annotations

import dataclasses
import fnmatch
import typing as t

from .._common.addresses import Network, read_address, read_interface, read_network
from .._common.findings import Findings
from .._common.result import FabricError
from .._common.text import shorten_list
from .._model.observation import ADVERTISED, Address, Link, LinkAddress, RdmaFacts
from .._model.plan import HOST, PVRDMA, PlannedLink
from .._model.profiles import ETHERNET
from .._model.stacks import STACKS
from .endpoints import parse_address, static_first
from .hosts import Hosts, PlacedHost
from .names import ALIKE_KEYS, GROUPS, meant_group, nearest
from .network_spec import FAMILIES, NetworkSpec, Select
from .nic_obstacles import Obstacles, find_obstacles
from .nics import LinkLayerError, choose_nic

ROCE_SIZES, ROCE_HEADERS = (4096, 2048, 1024, 512, 256), 96  # bytes, as the kernel computes them
NAMES = 4  # host names in a finding


@dataclasses.dataclass(frozen=True)
class HostLink:
    """The NIC of a host on a fabric network."""

    host: PlacedHost
    nic: Link
    addresses: t.List[Address]  # one for each family of the network, in its order; may lack those of a stated subnet
    stated: t.Sequence[str] = ()  # subnets that the site states
    down: str = ""  # state of a NIC that can't carry traffic

    @property
    def subnets(self) -> t.List[Network]:
        """The subnets that pods reach through this NIC."""
        own = (read_interface(one["address"], one["prefix"]).network for one in self.addresses)
        return [*(read_network(each, False) for each in self.stated), *own]


@dataclasses.dataclass(frozen=True)
class NetworkLinks:
    """A fabric network and the NICs of its hosts. A host without a clear NIC is left out, and is a finding."""

    network: NetworkSpec
    links: t.Dict[str, HostLink]  # by inventory name
    master: str = ""  # the name by which macvlans find the NIC on every host; empty if there are no NICs

    def hosts_with(self, matches: t.Callable[[Link], bool]) -> t.List[str]:
        return [name for name, link in self.links.items() if matches(link.nic)]

    def advertised(self) -> t.Dict[str, LinkAddress]:
        """An address that the NIC got from router advertisements, by host: pods on it configure one too."""
        return {
            name: entry
            for name, link in self.links.items()
            for entry in link.nic["addresses"]
            if entry.get("origin") == ADVERTISED
        }

    def mtu(self) -> int:
        """The smallest MTU of all NICs, in bytes; 0 if there are none."""
        return min((link.nic["mtu"] for link in self.links.values()), default=0)


def choose_links(
    networks: t.Sequence[NetworkSpec],
    hosts: Hosts,
    vipu_of: t.Mapping[str, str],
    require_rdma: bool,
    findings: Findings,
) -> t.List[NetworkLinks]:
    """For each network, one NIC on each of its hosts. Hosts without an observation are already a finding."""
    chosen = []
    obstacles = {
        (name, macvlan): find_obstacles(host.rdma["links"], macvlan)
        for macvlan in {network.name != HOST for network in networks}
        for name, host in hosts.items()
        if host.rdma
    }
    for network in networks:
        links = {}
        members = _members(network, hosts, findings)
        for host in members:
            on_host = obstacles.get((host.name, network.name != HOST), {})
            link = _choose_link(network, host, on_host, vipu_of.get(host.name, ""), require_rdma, findings)
            if link:
                links[host.name] = link
        chosen.append(NetworkLinks(network, links))
        # Errors that fabric_allow accepts for single hosts leave nothing to plan if they concern all hosts.
        if (
            members
            and not links
            and not any(map(findings.has_error, ("fabric-nic", "link-layer", "networks", "unobserved")))
        ):
            findings.error(
                "networks",
                [],
                f"{network.name} has no NIC on any host.",
                "each of its hosts is without one, which fabric_allow allows",
                "For Ethernet without RDMA, set fabric_require_rdma: false and name the NIC, as"
                f" fabric_networks: [{{name: {network.name}, select: {{name: eth1}}}}]. For no fabric network, set"
                " fabric_networks: [].",
            )
    return chosen


def planned_link(link: HostLink, master: str) -> PlannedLink:
    """The plan's view of a NIC. It keeps the altname even if the NIC has it already, so that the next plan is equal."""
    nic = link.nic
    pcie = nic.get("pcie")  # missing in observations of earlier releases
    planned: PlannedLink = {
        "netdev": nic["netdev"],
        "altname": "" if nic["netdev"] == master else master,
        "pci": nic["pci"],
        "mac": nic["mac"],
        "driver": nic["driver"],
        "kind": nic["kind"],
        "lower": nic["lower"],
        "rdma_netdevs": nic["rdma_netdevs"],
        "device": nic["device"],
        "mtu": nic["mtu"],
        "rate_gbps": nic.get("rate_gbps"),
        "pcie_gbps": pcie["gbps"] if pcie else None,
        "address": link.addresses[0]["address"] if link.addresses else "",
        "prefix": link.addresses[0]["prefix"] if link.addresses else 0,
        "addresses": link.addresses,
    }
    if nic.get("firmware"):
        planned["firmware"] = nic["firmware"]
    if nic.get("guid"):
        planned["guid"] = nic["guid"]
    if nic.get("driver_version"):
        planned["driver_version"] = nic["driver_version"]
    if link.down:
        planned["down"] = link.down
    return planned


def _members(network: NetworkSpec, hosts: Hosts, findings: Findings) -> t.List[PlacedHost]:
    """The hosts whose pods use this network: all that run pods, or those that it lists (hosts or groups)."""
    able = [host for host in hosts.values() if {"worker", "ipu"} & set(host.roles)]
    if not network.hosts:
        return able
    wanted = set(network.hosts)
    known = set(hosts).union(*(host.groups for host in hosts.values()))
    for name in sorted(wanted - known):
        if name in GROUPS and findings.has_error("unknown-group"):
            continue  # the other finding names the misspelt group
        fits = [host.name for host in able if fnmatch.fnmatchcase(host.name, name)]
        meant = next((group for group in sorted(known - {*GROUPS}) if meant_group(group) == name), "")
        meant = meant or nearest(name, known, ALIKE_KEYS)
        step = f"Did you mean {meant}?" if meant else f"Correct `hosts` of {network.name} in fabric_networks."
        if fits:
            listed = f"[{', '.join(fits)}]" if len(fits) <= NAMES else "each of them"
            step = f"Patterns don't work here. Write {listed}, or a group of the inventory that has these hosts."
        if name == "all":
            step = f"Leave `hosts` of {network.name} out: the default is all hosts that run pods."
        findings.error(
            "networks",
            [],
            f"Network {network.name} names a host or group that the inventory does not have.",
            f"'{name}' in its hosts",
            step,
        )
    found = [host for host in able if wanted & {host.name, *host.groups}]
    if not found and wanted <= known:
        findings.error(
            "networks",
            [],
            f"Network {network.name} has no host that runs pods.",
            f"`hosts` is [{', '.join(network.hosts)}]",
            f"Name hosts of kube_node in `hosts` of {network.name}, or put these hosts into kube_node.",
        )
    return found


def _selection(network: NetworkSpec, rdma: RdmaFacts) -> Select:
    """What selects the NIC; without any rule, the RDMA NIC that is named like the master, if there is one."""
    select = network.select
    if not network.master or select.gpu is not None or select.rules():
        return select
    able = [nic for nic in rdma["links"] if nic["rdma_netdevs"]]
    named = any(network.master in (nic["netdev"], *nic["altnames"]) for nic in able)
    return Select(name=(network.master,)) if named else select


def _choose_link(
    network: NetworkSpec,
    host: PlacedHost,
    obstacles: Obstacles,
    vipu_address: str,
    require_rdma: bool,
    findings: Findings,
) -> t.Optional[HostLink]:
    if not host.rdma:
        return None
    try:
        select = _selection(network, host.rdma)
        nic = choose_nic(host.rdma, select, obstacles, vipu_address, require_rdma, network.type)
    except FabricError as error:
        check = "link-layer" if isinstance(error, LinkLayerError) else "fabric-nic"
        seen = f"{error.seen} ({error.where})"
        findings.error(check, [host.name], f"{network.name}: {error.what}", seen, error.next_step)
        return None
    down = "" if nic["up"] else "down"
    if require_rdma and nic["up"] and nic["state"] not in ("", "ACTIVE"):
        down = nic["state"]
    if down:
        findings.error(
            "fabric-nic",
            [host.name],
            "The fabric NIC must be up.",
            f"{nic['netdev']} is {down}",
            f"Check the cable and the switch port, then `ip link set {nic['netdev']} up`.",
        )
    addresses = _choose_addresses(network, nic)
    if addresses is None:
        listed = " ".join(entry["address"] for entry in nic["addresses"])
        families = f" of {' and of '.join(network.families)}" if network.families else ""
        findings.error(
            "fabric-nic",
            [host.name],
            f"{network.name}: the fabric NIC needs an address{families}, from which the plan takes the subnet.",
            f"{nic['netdev']} has {listed or 'none'}",
            f"Give {nic['netdev']} an address on the fabric"
            + (
                "."
                if network.name == HOST
                else f", or name the pods' subnet: key subnet of {network.name} in fabric_networks."
            )
            + (
                " If its pods are to have the NIC's family alone, correct the key families."
                if families and listed
                else ""
            ),
        )
        return None
    return HostLink(host, nic, addresses, [*network.subnets.values()], down)


def _selected(network: NetworkSpec, nic: Link) -> t.Iterator[LinkAddress]:
    """The NIC's addresses that may be on the network, the most permanent ones first."""
    subnets = [read_network(subnet, False) for subnet in network.select.subnet]
    for entry in static_first(nic["addresses"]):
        address = read_address(entry["address"])
        allowed = [cidr for cidr in subnets if cidr.version == address.version] if network.families else subnets
        if address.version in network.subnets and address not in read_network(network.subnets[address.version], False):
            continue
        if not address.is_link_local and (not allowed or any(address in cidr for cidr in allowed)):
            yield entry


def subnets_of(network: NetworkSpec, link: HostLink) -> t.List[str]:
    """The subnets of a NIC's possible addresses, in the families that were chosen.

    Advertised addresses count only if one was chosen, which means that there is no other.
    """
    chosen = {read_address(one["address"]).version: one["address"] for one in link.addresses}
    entries = list(_selected(network, link.nic))
    advertised = {entry["address"] for entry in entries if entry.get("origin") == ADVERTISED}
    found = []
    for entry in entries:
        interface = read_interface(entry["address"], entry["prefix"])
        own = chosen.get(interface.version, "")
        alike = (entry["address"] in advertised) == (own in advertised)
        if own and alike and interface.network.num_addresses > 1:
            found.append(str(interface.network))
    return list(dict.fromkeys(found))


def _choose_addresses(network: NetworkSpec, nic: Link) -> t.Optional[t.List[Address]]:
    """The NIC's address for each family of the network: in a selected subnet, if one is of that family.

    Static addresses come before leases, and leases before advertised ones. None: an address is missing. A family with a
    stated subnet needs none.

    A network that names no family has one: IPv4 if the NIC has it, or else IPv6.
    """
    first: t.Dict[int, Address] = {}
    for entry in _selected(network, nic):
        version = read_address(entry["address"]).version
        first.setdefault(version, {"address": entry["address"], "prefix": entry["prefix"]})
    wanted = [FAMILIES[family] for family in network.families] or sorted(network.subnets or first)[:1]
    if not wanted or not set(wanted) <= {*first, *network.subnets}:
        return None
    return [first[version] for version in wanted if version in first]


# ---- checks ---------------------------------------------------------------------------------------------------------


def check_mtu(chosen: NetworkLinks, rdma: bool, findings: Findings) -> None:
    name, wanted, least = chosen.network.name, chosen.network.mtu, chosen.mtu()
    by_mtu: t.Dict[int, t.List[str]] = {}
    for host, link in chosen.links.items():
        by_mtu.setdefault(link.nic["mtu"], []).append(host)
    seen = "; ".join(f"{mtu}: {shorten_list(by_mtu[mtu], NAMES)}" for mtu in sorted(by_mtu))
    if by_mtu and wanted > least:
        findings.error(
            "fabric-mtu",
            by_mtu[least],
            f"{name}: a pod's MTU can't exceed the NIC's.",
            f"mtu is {wanted}, the NICs have {seen}",
            f"Set mtu to {least} or 0 in fabric_networks, or raise the NICs' MTU.",
        )
    elif len(by_mtu) > 1:
        findings.warning(
            "fabric-mtu",
            chosen.links,
            f"{name}: NICs have different MTUs; pods get the smallest.",
            seen,
            "Set one MTU on all NICs and switch ports of the fabric.",
        )
    elif rdma and any(
        link.nic["rdma_netdevs"] and link.nic["link_layer"] == ETHERNET for link in chosen.links.values()
    ):
        _check_packets(name, wanted or least, findings)


def _check_packets(name: str, mtu: int, findings: Findings) -> None:
    """RDMA uses the largest InfiniBand packet size that fits into the MTU with all headers."""
    payload = next((size for size in ROCE_SIZES if size + ROCE_HEADERS <= mtu), ROCE_SIZES[-1])
    if payload < ROCE_SIZES[0]:
        findings.warning(
            "fabric-mtu",
            [],
            f"{name}: with this MTU RDMA uses small packets, and is slower than it could be.",
            f"{mtu}, for packets of {payload} bytes instead of {ROCE_SIZES[0]}",
            f"Set an MTU of {ROCE_SIZES[0] + ROCE_HEADERS} or more, such as 4200 or 9000, on NICs and switch ports."
            " Nothing to do if the switches allow no more.",
        )


def check_pcie(chosen: NetworkLinks, findings: Findings) -> None:
    """Find links that trained below what both ends support, and slots that carry less than the port."""
    for name, link in chosen.links.items():
        nic, pcie, rate = link.nic["netdev"], link.nic.get("pcie"), link.nic.get("rate_gbps")
        if not pcie:
            continue
        now, most = (pcie["speed_gtps"], pcie["width"]), (pcie["max_speed_gtps"], pcie["max_width"])
        seen = f"{nic}: {_lanes(*now)} at {pcie['pci']}, {pcie['gbps']:g} Gb/s"
        if now[0] < most[0] or now[1] < most[1]:
            findings.warning(
                "pcie-link",
                [name],
                "A NIC's PCIe link trained below what both of its ends support.",
                f"{seen}; possible: {_lanes(*most)}",
                f"Reseat the NIC, check its slot's settings in the firmware, then look at LnkSta in"
                f" `sudo lspci -vv -s {pcie['pci']}`.",
            )
        elif rate and pcie["gbps"] < rate:
            findings.warning(
                "pcie-link",
                [name],
                "A NIC's PCIe slot carries less than its port.",
                f"{seen}; the port has {rate:g} Gb/s",
                "Move the NIC to a wider or faster slot. verify expects no more than the slot carries.",
            )


def _lanes(speed_gtps: float, width: int) -> str:
    return f"{speed_gtps:g} GT/s x{width}"


def check_pvrdma(chosen: NetworkLinks, findings: Findings) -> None:
    """PVRDMA reaches only PVRDMA, through hypervisors; a virtual switch drops MAC addresses that it does not know."""
    virtual = chosen.hosts_with(lambda nic: nic["driver"] == PVRDMA)
    others = chosen.hosts_with(lambda nic: nic["driver"] != PVRDMA)
    if virtual and others:
        findings.error(
            "pvrdma",
            virtual,
            f"{chosen.network.name}: PVRDMA works with other PVRDMA only.",
            f"{shorten_list(others, NAMES)} of this network {'have' if len(others) > 1 else 'has'} another driver",
            "Plan a network of its own for the virtual machines (key hosts).",
        )
        return
    if not virtual:
        return
    seen = [chosen.links[name].host.rdma for name in virtual]
    licence = any(rdma["gpus"] for rdma in seen if rdma)
    findings.warning(
        "pvrdma",
        virtual,
        f"{chosen.network.name}: whether PVRDMA uses RDMA depends on the hypervisors: one distributed switch for all"
        " virtual machines, with RDMA NICs of each ESXi host as its uplinks.",
        f"the driver is {PVRDMA}; within one ESXi host it copies memory, and with a host without RDMA it goes over TCP,"
        " slower and without an error",
        "Check that in vCenter, let TCP 28250 pass between ESXi hosts"
        + (", TCP 7070 to a legacy licence server of vGPU," if licence else "")
        + " and measure between virtual machines on different ESXi hosts.",
    )
    if chosen.network.name != HOST:
        findings.warning(
            "pvrdma",
            virtual,
            f"{chosen.network.name}: pods on a macvlan have MAC addresses that the virtual switch does not know.",
            f"the driver is {PVRDMA}",
            "Let the port group accept forged transmits and learn MAC addresses; then run ipu.fabric.verify.",
        )


def check_bond(chosen: NetworkLinks, findings: Findings) -> None:
    """In a RoCE LAG, a card's ports are one RDMA device; otherwise answers arrive at a port that can't handle them."""
    for name, link in chosen.links.items():
        devices = link.nic.get("rdma_devices", [])
        if len(devices) > 1:
            links = link.host.rdma["links"] if link.host.rdma else []
            cards = {each["pci"].rpartition(".")[0] for each in links if each["netdev"] in link.nic["rdma_netdevs"]}
            whose = "different cards" if len(cards) > 1 else "one card"
            findings.warning(
                "fabric-nic",
                [name],
                f"{chosen.network.name}: the ports of a bond should be one RDMA device. Otherwise what the switch sends"
                " to the other port is lost, and RDMA fails between some pods.",
                f"{link.nic['netdev']} has {', '.join(devices)} of {whose}",
                "Bond the two ports of one card, in a mode in which its driver makes them one device (802.3ad,"
                " balance-xor or active-backup: mlx5_bond_0). Or take the ports out of the bond, and plan a network for"
                " each.",
            )


def check_node_subnet(chosen: NetworkLinks, own_routes: bool, findings: Findings) -> None:
    """If a pod is on the subnet of its node's address, its answers to the node leave by the macvlan and are lost.

    own_routes: whether the stack routes node addresses through the pod network.
    """
    able = " or ".join(name for name, stack in STACKS.items() if stack.routes_nodes)
    for name, link in () if own_routes else chosen.links.items():
        subnets = [read_interface(entry["address"], entry["prefix"]).network for entry in link.addresses]
        nodes = [parse_address(text) for text in link.host.addresses]
        inside = [subnet for subnet in subnets if any(address in subnet for address in nodes if address)]
        if inside:
            findings.warning(
                "on-master",
                [name],
                f"{chosen.network.name}: pods of this network can't answer their own node on eth0. The kubelet's probes"
                " fail in them, and they don't reach a hostPort of their node.",
                f"addresses of nodes are in {' and '.join(map(str, inside))}, and pods go there by net1",
                "Give nodes an address of another NIC and subnet (fabric_node_address, or ip in the inventory). Or set"
                f" fabric_stack to {able}, which routes to nodes by eth0. Nothing to do if these pods need neither.",
            )


def check_own_node(chosen: NetworkLinks, findings: Findings) -> None:
    """Over macvlan, a pod never reaches its own node: no node can be the gateway. V-IPU may have another address."""
    for name, link in chosen.links.items() if chosen.network.type == "macvlan" else ():
        own = {entry["address"] for entry in link.addresses}
        for address in own.intersection(chosen.network.gateways.values()):
            findings.error(
                "on-master",
                [name],
                f"{chosen.network.name}: a pod can't reach its own node over macvlan, so pods here won't reach the "
                "gateway.",
                f"the gateway has the address {address} of {link.nic['netdev']} on this host",
                "Correct `gateway` in fabric_networks if it is a mistake. Otherwise move it to a machine that runs no"
                " pods of this network, or remove the host from it (key hosts).",
            )
