# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fabric networks: which NIC of which host, which addresses for pods, which RDMA resource."""

from __future__ import annotations

import ipaddress
import itertools
import re
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.subnet import FabricNode, SubnetRequest, plan_subnet
from ansible_collections.ipu.fabric.plugins.module_utils._network import spiderpool
from ansible_collections.ipu.fabric.plugins.module_utils._plan.host_checks import Hosts
from ansible_collections.ipu.fabric.plugins.module_utils._plan.network_spec import (
    FAMILIES,
    Network,
    as_list,
    read_gateways,
)
from ansible_collections.ipu.fabric.plugins.module_utils._plan.nics import choose_fabric_link
from ansible_collections.ipu.fabric.plugins.module_utils._plan.rails import (
    Links,
    choose_master,
    few,
    having,
    judge_pvrdma,
)
from ansible_collections.ipu.fabric.plugins.module_utils._plan.vipu_controllers import as_address

# What the plan keeps of a link. `altname` joins them: the name that the NIC needs besides its own, if any.
SUMMARY = ("netdev", "pci", "mac", "driver", "kind", "lower", "rdma_netdevs", "device", "mtu")


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


def _addresses(network: Network, link: t.Mapping[str, t.Any]) -> t.List[t.Dict[str, t.Any]]:
    """The link's address of each family of the network: inside a selected subnet if there is one of that family.

    A network that names no family has one: IPv4 where the link has it, else IPv6.
    """
    subnets = [ipaddress.ip_network(subnet) for subnet in as_list(network["select"].get("subnet") or [])]
    found: t.Dict[int, t.Dict[str, t.Any]] = {}
    for entry in link["addresses"]:
        address = ipaddress.ip_address(entry["address"])
        allowed = [net for net in subnets if net.version == address.version] if network["families"] else subnets
        if not address.is_link_local and (not allowed or any(address in net for net in allowed)):
            found.setdefault(address.version, {"address": entry["address"], "prefix": entry["prefix"]})
    wanted = [FAMILIES[family] for family in network["families"]] or sorted(found)[:1]
    return [found[version] for version in wanted] if set(wanted) <= set(found) else []


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
                rdma["links"],
                rdma["routes"],
                network["select"],
                vipu_of.get(name, ""),
                require_rdma,
                rdma.get("gpus", ()),
            )
        except FabricError as error:
            check = "link-layer" if "InfiniBand" in error.seen else "fabric-nic"
            seen = f"{error.seen} ({error.where})"
            found.error(check, [name], f"{network['name']}: {error.what}", seen, error.next_step)
            continue
        _judge_link(name, link, require_rdma, found)
        addresses = _addresses(network, link)
        if not addresses:
            has = " ".join(entry["address"] for entry in link["addresses"])
            families = f" of {' and of '.join(network['families'])}" if network["families"] else ""
            found.error(
                "fabric-nic",
                [name],
                f"{network['name']}: the fabric NIC needs an address{families}: it tells the subnet.",
                f"{link['netdev']} has {has or 'none'}",
                f"Give {link['netdev']} an address on the fabric.",
            )
            continue
        links[name] = {
            "altname": "",
            **{key: link[key] for key in SUMMARY},
            **addresses[0],
            "addresses": addresses,
        }
    return links


def judge_links(network: Network, links: Links, found: Findings) -> None:
    """What must be the same on all hosts of a network."""
    mtus = {link["mtu"] for link in links.values()}
    seen = "; ".join(f"{mtu}: {few(having(links, 'mtu', mtu))}" for mtu in sorted(mtus))
    if network["mtu"] and mtus and network["mtu"] > min(mtus):
        found.error(
            "fabric-mtu",
            having(links, "mtu", min(mtus)),
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
    special = {**dict.fromkeys(vipu_of.values(), "V-IPU"), **dict.fromkeys(_gateways(network), "the gateway")}
    for name, link in links.items():
        for address in sorted(_own(link) & set(special)):
            found.error(
                "on-master",
                [name],
                f"{network['name']}: a pod can't reach its own node over macvlan, so pods here won't reach "
                f"{special[address]}.",
                f"{special[address]} has the address {address} of {link['netdev']} on this host",
                "Move it to a machine that runs no pods of this network, or take the host out of it (key hosts).",
            )


def _own(link: t.Mapping[str, t.Any]) -> t.Set[str]:
    return {entry["address"] for entry in link["addresses"]}


def _gateways(network: Network) -> t.List[str]:
    return list(read_gateways(network["gateway"]).values())


def _share(network: Network, version: int) -> str:
    """The pods' part of the subnet of this family; a network of two families may give one for each, with a comma."""
    if len(network["families"]) < 2:
        return str(network["share"])
    parts = [part.strip() for part in network["share"].split(",")]
    return next(
        (part for part in parts if not re.search("[.:]", part) or (":" in part) == (version == 6)), "upper_half"
    )


def _plan_subnets(
    network: Network,
    links: Links,
    reserved: t.Sequence[str],
    settings: t.Mapping[str, t.Any],
    releases: t.Mapping[str, t.Any],
) -> t.List[t.Dict[str, t.Any]]:
    """What rdma_subnet says of each family."""
    subnets: t.List[t.Dict[str, t.Any]] = []
    on_master = set().union(*(_own(link) for link in links.values()))  # a finding already if it is the gateway
    gateways = {version: text for version, text in read_gateways(network["gateway"]).items() if text not in on_master}
    for number in range(max(len(network["families"]), 1)):
        nodes = [FabricNode(name, **link["addresses"][number]) for name, link in links.items()]
        version = ipaddress.ip_address(nodes[0].address).version
        # A network's name has no dot in it, so pools never get each other's.
        pool_name = f"{network['name']}.ipv{version}" if number else network["name"]
        request = SubnetRequest(
            nodes=nodes,
            gateway=gateways.pop(version, ""),
            reserved=[*network["reserved"], *reserved],
            share=_share(network, version),
            avoid=settings["avoid"],
            pods=settings["pods_per_node"] * len(links),
            # Spiderpool allocates single addresses, as whereabouts does.
            ipam="whereabouts" if releases["ipam"] in ("", "spiderpool") else releases["ipam"],
            pool_name=pool_name,
            **({"ipam_release": releases["network_operator"]} if releases["features"] else {}),
        )
        subnet = plan_subnet(request)
        subnets.append({**subnet, "pool": subnet["pool"] and {"name": pool_name, **subnet["pool"]}})
    if gateways:
        raise FabricError(
            "The gateway must be a host address of the fabric subnet.",
            "gateway",
            f"{', '.join(gateways.values())} is not of {', '.join(subnet['cidr'] for subnet in subnets)}",
            "Correct it, leave it empty, or name both families (key families).",
        )
    return subnets


def _ipam(subnets: t.Sequence[t.Mapping[str, t.Any]]) -> t.Dict[str, t.Any]:
    """The ipam of the network's CR; of two families both give an address to each pod."""
    parts: t.List[t.Dict[str, t.Any]] = [dict(subnet["ipam"]) for subnet in subnets]
    if len(parts) == 1:
        return parts[0]
    if parts[0]["type"] == "nv-ipam":
        return {"type": "nv-ipam", "poolName": ",".join(part["poolName"] for part in parts)}
    ranges = [{key: value for key, value in part.items() if key != "type"} for part in parts]
    return {"type": "whereabouts", "ipRanges": ranges}


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
        "master": choose_master(network, links, hosts, found),
        "mode": network["mode"],
        "mtu": network["mtu"] or least,
        "resource": f"rdma/{network['rdma_resource']}",
        "rdma": settings["require_rdma"] and bool(links),
        "rdma_drivers": sorted({link["driver"] for link in links.values() if link["rdma_netdevs"]}),
        "rdma_netdevs": sorted({netdev for link in links.values() for netdev in link["rdma_netdevs"]}),
        "subnet": {},
        "subnets": [],
        "ipam": {},
        "pool": None,
        "pools": [],
    }
    if not links:
        return planned
    if (
        len(network["families"]) > 1
        and releases["ipam"] == "whereabouts"
        and not releases["features"].get("whereabouts_ranges", True)
    ):
        found.error(
            "networks",
            [],
            f"{network['name']}: two families need a whereabouts with ipRanges.",
            f"that of network operator {releases['network_operator']} has none",
            "Take network operator 23.4 or later, or name one family.",
        )
    try:
        subnets = _plan_subnets(network, links, _taken(hosts, vipu_of), settings, releases)
    except FabricError as error:
        found.error(
            "subnet", links, f"{network['name']}: {error.what}", f"{error.seen} ({error.where})", error.next_step
        )
        return planned
    for subnet in subnets:
        for warning in subnet["warnings"]:
            found.warning(
                "subnet", [], f"{network['name']}: {warning}", subnet["cidr"], "Read it; it may be as you want it."
            )
    keys = ("cidr", "prefix", "gateway", "range_start", "range_end", "exclude", "capacity", "warnings")
    needed = settings["pods_per_node"] * len(links)
    planned["subnets"] = [{**{key: subnet[key] for key in keys}, "needed": needed} for subnet in subnets]
    planned["pools"] = [_pool(subnet["pool"], links, hosts) for subnet in subnets if subnet["pool"]]
    planned["subnet"], planned["pool"] = planned["subnets"][0], next(iter(planned["pools"]), None)
    pooled = releases["ipam"] == "spiderpool"
    planned["ipam"] = spiderpool.ipam(t.cast(t.Any, planned)) if pooled else _ipam(subnets)
    return planned


def _pool(pool: t.Dict[str, t.Any], links: Links, hosts: Hosts) -> t.Dict[str, t.Any]:
    """nv-ipam gives a block to every node it finds: name the nodes where a network has only some."""
    nodes = sorted(hosts[name]["node"] for name in links)
    if len(nodes) == len(hosts):
        return pool
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}]}]
    return {**pool, "nodeSelector": {"nodeSelectorTerms": terms}}
