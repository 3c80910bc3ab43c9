# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fabric networks: which NIC of which host, which addresses for pods, which RDMA resource."""

from __future__ import annotations

import difflib
import ipaddress
import itertools
import re
import string
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils import _spiderpool
from ansible_collections.ipu.fabric.plugins.module_utils._findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._judge import Hosts
from ansible_collections.ipu.fabric.plugins.module_utils._plan_vipu import as_address
from ansible_collections.ipu.fabric.plugins.module_utils._rdma import choose_fabric_link
from ansible_collections.ipu.fabric.plugins.module_utils._result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._subnet import plan_subnet

Network = t.Dict[str, t.Any]
Links = t.Dict[str, t.Dict[str, t.Any]]

DEFAULTS: t.Dict[str, t.Any] = {
    "name": "",
    "namespace": "default",
    "hosts": [],
    "select": {},
    "mode": "bridge",
    "mtu": 0,
    "gateway": "",
    "reserved": [],
    "share": "upper_half",
    "rdma_resource": "",
}
SELECT = ("name", "pci", "driver", "subnet")
MODES = ("bridge", "private", "vepa", "passthru")
# The GID table of a port has no room for more.
RDMA_HCA_MAX = 63
# The driver of VMware's paravirtual RDMA, a PCI function beside that of the NIC; a virtual machine has one at most.
PVRDMA = "vmw_pvrdma"


# ---- what the site wrote --------------------------------------------------------------------------------------------


def _unknown_keys(where: str, given: t.Iterable[str], known: t.Iterable[str], found: Findings) -> None:
    for key in sorted(set(map(str, given)) - set(known)):
        near = difflib.get_close_matches(key, list(known), 1)
        meant = f"Did you mean {near[0]}? " if near else ""
        found.error("networks", [], f"{where} has an unknown key.", f"'{key}'", f"{meant}Known are {', '.join(known)}.")


def _value_problems(network: Network) -> t.Iterator[t.Tuple[str, str]]:
    """Pairs of what is wrong and what would be right."""
    yield from _select_problems(network["select"])
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", network["name"]):
        yield f"name is '{network['name']}'", "Give it a name of lower-case letters, digits and hyphens."
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", network["namespace"]):
        yield f"namespace is '{network['namespace']}'", "Write the name of a namespace."
    if network["mode"] not in MODES:
        yield f"mode is '{network['mode']}'", f"Take one of {', '.join(MODES)}."
    if not str(network["mtu"]).isdigit() or 0 < int(network["mtu"]) < 1280:
        yield f"mtu is '{network['mtu']}'", "Write 0 for the NIC's own, or a number from 1280 on."
    if network["gateway"] and as_address(network["gateway"]) is None:
        yield f"gateway is '{network['gateway']}'", "Write an IP address, or nothing."
    if not re.fullmatch(r"[A-Za-z0-9_]+", network["rdma_resource"]):
        yield f"rdma_resource is '{network['rdma_resource']}'", "Use letters, digits and underscores."
    for key in ("reserved", "hosts"):
        if not isinstance(network[key], list) or not all(isinstance(item, str) for item in network[key]):
            yield f"{key} is '{network[key]}'", "Write a list of text."


def _select_problems(select: t.Any) -> t.Iterator[t.Tuple[str, str]]:
    if not isinstance(select, dict):
        yield f"select is '{select}'", f"Write a dictionary of {', '.join(SELECT)}."
        return
    for key, value in select.items():
        if not isinstance(value, str):
            yield f"select.{key} is {value!r}", "Write text."
    try:
        ipaddress.ip_network(str(select.get("subnet") or "10.5.0.0/24"))
    except ValueError as error:
        yield f"select.subnet: {error}", "Write a CIDR such as 10.5.0.0/24."


def read_networks(given: t.Sequence[t.Any], found: Findings) -> t.List[Network]:
    """The networks with their defaults; those that can't be used become findings and are left out."""
    networks: t.List[Network] = []
    for number, entry in enumerate(given):
        where = f"fabric_networks[{number}]"
        if not isinstance(entry, dict):
            found.error("networks", [], f"{where} is not a network.", repr(entry), "Write at least {name: rdma-net}.")
            continue
        _unknown_keys(where, entry, DEFAULTS, found)
        network = {**DEFAULTS, **{key: value for key, value in entry.items() if key in DEFAULTS and value is not None}}
        network.update({key: str(network[key]) for key, usual in DEFAULTS.items() if isinstance(usual, str)})
        network["rdma_resource"] = (
            network["rdma_resource"] or f"rdma_shared_device_{string.ascii_lowercase[number % 26]}"
        )
        if isinstance(network["select"], dict):
            _unknown_keys(f"{where}.select", network["select"], SELECT, found)
        problems = list(_value_problems(network))
        for seen, step in problems:
            found.error("networks", [], f"{where} can't be used.", seen, step)
        if not problems:
            networks.append({**network, "mtu": int(network["mtu"])})
    for name in sorted({network["name"] for network in networks}):
        if [network["name"] for network in networks].count(name) > 1:
            found.error("networks", [], "Networks need different names.", f"two are called {name}", "Rename one.")
    if not given:
        found.error("networks", [], "There is no fabric network.", "fabric_networks is empty", "Add {name: rdma-net}.")
    return networks


def members(network: Network, hosts: Hosts, found: Findings) -> t.List[str]:
    """The hosts whose pods use this network: all that run pods, or those that it names (hosts or groups)."""
    able = [name for name, host in hosts.items() if {"worker", "ipu"} & set(host["roles"])]
    if not network["hosts"]:
        return able
    wanted = set(network["hosts"])
    known = set(hosts) | set(itertools.chain.from_iterable(host["groups"] for host in hosts.values()))
    for name in sorted(wanted - known):
        found.error("networks", [], f"Network {network['name']} names an unknown host or group.", name, "Correct it.")
    return [name for name in able if name in wanted or wanted & set(hosts[name]["groups"])]


# ---- NICs -----------------------------------------------------------------------------------------------------------


def _address(link: t.Mapping[str, t.Any], subnet: str) -> t.Optional[t.Dict[str, t.Any]]:
    """The link's address on the fabric: inside the selected subnet if there is one, IPv4 before IPv6."""
    usable = []
    for entry in link["addresses"]:
        address = ipaddress.ip_address(entry["address"])
        if not address.is_link_local and (not subnet or address in ipaddress.ip_network(subnet)):
            usable.append((address.version, {"address": entry["address"], "prefix": entry["prefix"]}))
    return min(usable, key=lambda item: item[0])[1] if usable else None


def _judge_link(name: str, link: t.Mapping[str, t.Any], require_rdma: bool, found: Findings) -> None:
    if not link["up"] or (require_rdma and link["state"] not in ("", "ACTIVE")):
        state = link["state"] or "down"
        found.error(
            "fabric-nic",
            [name],
            "The fabric NIC must be up.",
            f"{link['netdev']} is {'down' if not link['up'] else state}",
            f"Check the cable and the switch port, then `ip link set {link['netdev']} up`.",
        )


def find_links(
    network: Network,
    names: t.Sequence[str],
    hosts: Hosts,
    vipu_of: t.Mapping[str, str],
    require_rdma: bool,
    found: Findings,
) -> Links:
    """The NIC of each host on this network."""
    links: Links = {}
    for name in names:
        rdma = hosts[name].get("rdma")
        if not rdma:  # a finding already: the host could not be looked at
            continue
        try:
            link = choose_fabric_link(
                rdma["links"], rdma["routes"], network["select"], vipu_of.get(name, ""), require_rdma
            )
        except FabricError as error:
            check = "link-layer" if "InfiniBand" in error.seen else "fabric-nic"
            seen = f"{error.seen} ({error.where})"
            found.error(check, [name], f"{network['name']}: {error.what}", seen, error.next_step)
            continue
        _judge_link(name, link, require_rdma, found)
        address = _address(link, network["select"].get("subnet", ""))
        if address is None:
            found.error(
                "fabric-nic",
                [name],
                f"{network['name']}: the fabric NIC needs an address: it tells the subnet.",
                f"{link['netdev']} has none",
                f"Give {link['netdev']} an address on the fabric.",
            )
            continue
        keys = ("netdev", "rdma_netdevs", "device", "driver", "mtu")
        links[name] = {**{key: link[key] for key in keys}, **address}
    return links


def judge_links(network: Network, links: Links, found: Findings) -> None:
    """What must be the same on all hosts of a network."""
    mtus = {link["mtu"] for link in links.values()}
    seen = "; ".join(f"{mtu}: {_few(_with(links, 'mtu', mtu))}" for mtu in sorted(mtus))
    if network["mtu"] and mtus and network["mtu"] > min(mtus):
        found.error(
            "fabric-mtu",
            _with(links, "mtu", min(mtus)),
            f"{network['name']}: a pod's MTU can't exceed the NIC's.",
            f"mtu is {network['mtu']}, the NICs have {seen}",
            f"Set mtu to {min(mtus)} or 0, or raise the NICs' MTU.",
        )
    elif len(mtus) > 1:
        found.warning(
            "fabric-mtu",
            links,
            f"{network['name']}: NICs have different MTUs; pods get the least.",
            seen,
            "Set one MTU on all NICs and switch ports of the fabric.",
        )


def judge_pvrdma(network: Network, links: Links, found: Findings) -> None:
    """PVRDMA reaches PVRDMA only, and a virtual switch drops addresses that it does not know."""
    virtual = _with(links, "driver", PVRDMA)
    others = [name for name in links if name not in virtual]
    if virtual and others:
        found.error(
            "pvrdma",
            virtual,
            f"{network['name']}: PVRDMA speaks RDMA with other PVRDMA only.",
            f"{_few(others)} of this network {'have' if len(others) > 1 else 'has'} another driver",
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


def _with(links: Links, key: str, value: t.Any) -> t.List[str]:
    return [name for name, link in links.items() if link[key] == value]


def _few(names: t.Sequence[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _master(network: Network, links: Links, found: Findings) -> str:
    names = [link["netdev"] for link in links.values()]
    if len(set(names)) > 1:
        found.error(
            "master-name",
            links,
            f"{network['name']}: a macvlan network has one NIC name for all its hosts.",
            "; ".join(f"{name}: {_few(_with(links, 'netdev', name))}" for name in sorted(set(names))),
            "Rename the NICs alike (a systemd .link file by MAC or path), or plan one network per group (key hosts).",
        )
    return max(sorted(set(names)), key=names.count) if names else ""


# ---- addresses ------------------------------------------------------------------------------------------------------


def _taken(hosts: Hosts, vipu_of: t.Mapping[str, str]) -> t.List[str]:
    """Addresses that are somebody's already: of every host's links, of V-IPU, of gateways on the way to it."""
    taken = {address for address in vipu_of.values() if as_address(address)}
    for host in hosts.values():
        rdma = host.get("rdma") or {}
        taken |= {entry["address"] for link in rdma.get("links", ()) for entry in link["addresses"]}
        taken |= {route["gateway"] for route in rdma.get("routes", {}).values() if route.get("gateway")}
    return sorted(taken)


def _judge_master(network: Network, links: Links, vipu_of: t.Mapping[str, str], found: Findings) -> None:
    """A pod never reaches its own node over macvlan."""
    special = dict.fromkeys(vipu_of.values(), "V-IPU")
    if network["gateway"]:
        special[network["gateway"]] = "the gateway"
    for name, link in links.items():
        if link["address"] in special:
            found.error(
                "on-master",
                [name],
                f"{network['name']}: a pod can't reach its own node over macvlan, so pods here won't reach "
                f"{special[link['address']]}.",
                f"{special[link['address']]} has the address {link['address']} of {link['netdev']} on this host",
                "Move it to a machine that runs no pods of this network, or take the host out of it (key hosts).",
            )


def plan_network(
    network: Network,
    links: Links,
    hosts: Hosts,
    vipu_of: t.Mapping[str, str],
    settings: t.Mapping[str, t.Any],
    releases: t.Mapping[str, t.Any],
    found: Findings,
) -> Network:
    """One network of the plan; `subnet` stays empty where there can be none."""
    judge_links(network, links, found)
    judge_pvrdma(network, links, found)
    _judge_master(network, links, vipu_of, found)
    least = min((link["mtu"] for link in links.values()), default=0)
    planned: Network = {
        "name": network["name"],
        "namespace": network["namespace"],
        "hosts": list(links),
        "master": _master(network, links, found),
        "mode": network["mode"],
        "mtu": network["mtu"] or least,
        "resource": f"rdma/{network['rdma_resource']}",
        "rdma": settings["require_rdma"] and bool(links),
        "rdma_drivers": sorted({link["driver"] for link in links.values() if link["rdma_netdevs"]}),
        "rdma_netdevs": sorted({netdev for link in links.values() for netdev in link["rdma_netdevs"]}),
        "subnet": {},
        "ipam": {},
        "pool": None,
    }
    if not links:
        return planned
    nodes = [
        {"name": name, "address": link["address"], "prefix": link["prefix"], "mtu": least}
        for name, link in links.items()
    ]
    on_master = {link["address"] for link in links.values()}  # a finding already if it is the gateway
    try:
        subnet = plan_subnet(
            nodes=nodes,
            gateway="" if network["gateway"] in on_master else network["gateway"],
            reserved=network["reserved"] + _taken(hosts, vipu_of),
            share=network["share"],
            avoid=settings["avoid"],
            pods=settings["pods_per_node"] * len(links),
            # Spiderpool deals single addresses, as whereabouts does.
            ipam="whereabouts" if releases["ipam"] in ("", "spiderpool") else releases["ipam"],
            ipam_release=releases["network_operator"] if releases["features"] else "26.4.1",
            pool_name=network["name"],
        )
    except FabricError as error:
        found.error(
            "subnet", links, f"{network['name']}: {error.what}", f"{error.seen} ({error.where})", error.next_step
        )
        return planned
    for warning in subnet["warnings"]:
        found.warning(
            "subnet", [], f"{network['name']}: {warning}", subnet["cidr"], "Read it; it may be as you want it."
        )
    keys = ("cidr", "prefix", "gateway", "range_start", "range_end", "exclude", "capacity", "warnings")
    planned["subnet"] = {**{key: subnet[key] for key in keys}, "needed": settings["pods_per_node"] * len(links)}
    planned["ipam"] = _spiderpool.ipam(planned) if releases["ipam"] == "spiderpool" else subnet["ipam"]
    planned["pool"] = _pool(network, subnet["pool"], links, hosts)
    return planned


def _pool(network: Network, pool: t.Optional[t.Dict[str, t.Any]], links: Links, hosts: Hosts) -> t.Optional[Network]:
    """nv-ipam gives a block to every node it finds: name the nodes where a network has only some."""
    if pool is None:
        return None
    nodes = sorted(hosts[name]["node"] for name in links)
    if len(nodes) == len(hosts):
        return {"name": network["name"], **pool}
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}]}]
    return {"name": network["name"], **pool, "nodeSelector": {"nodeSelectorTerms": terms}}


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
    drivers: t.Dict[str, t.Set[str]] = {}
    for network in networks:
        if network["rdma"]:
            name = network["resource"].split("/", 1)[1]
            names.setdefault(name, set()).update(network["rdma_netdevs"])
            drivers.setdefault(name, set()).update(network["rdma_drivers"])
    return [
        {
            "resourceName": name,
            "resourcePrefix": "rdma",
            "rdmaHcaMax": RDMA_HCA_MAX,
            # The PCI function of PVRDMA has no netdev: only its driver finds it.
            "selectors": {"drivers": [PVRDMA]} if drivers[name] == {PVRDMA} else {"ifNames": sorted(netdevs)},
        }
        for name, netdevs in names.items()
    ]
