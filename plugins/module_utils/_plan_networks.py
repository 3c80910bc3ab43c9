# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fabric networks: which NIC of which host, which addresses for pods, which RDMA resource."""

from __future__ import annotations

import ipaddress
import itertools
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._fabric_link import choose_fabric_link
from ansible_collections.ipu.fabric.plugins.module_utils._findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._judge import Hosts
from ansible_collections.ipu.fabric.plugins.module_utils._network_spec import Network, as_list
from ansible_collections.ipu.fabric.plugins.module_utils._plan_rails import Links, choose_master, few, having
from ansible_collections.ipu.fabric.plugins.module_utils._plan_vipu import as_address
from ansible_collections.ipu.fabric.plugins.module_utils._result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._subnet import plan_subnet

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


def _address(link: t.Mapping[str, t.Any], subnets: t.Sequence[str]) -> t.Optional[t.Dict[str, t.Any]]:
    """The link's address on the fabric: inside a selected subnet if there is one, IPv4 before IPv6."""
    usable = []
    for entry in link["addresses"]:
        address = ipaddress.ip_address(entry["address"])
        inside = not subnets or any(address in ipaddress.ip_network(subnet) for subnet in subnets)
        if not address.is_link_local and inside:
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
        address = _address(link, as_list(network["select"].get("subnet") or []))
        if address is None:
            found.error(
                "fabric-nic",
                [name],
                f"{network['name']}: the fabric NIC needs an address: it tells the subnet.",
                f"{link['netdev']} has none",
                f"Give {link['netdev']} an address on the fabric.",
            )
            continue
        links[name] = {"altname": "", **{key: link[key] for key in SUMMARY}, **address}
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
        "rdma_netdevs": sorted({netdev for link in links.values() for netdev in link["rdma_netdevs"]}),
        "subnet": {},
        "subnets": [],
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
            ipam=releases["ipam"] or "whereabouts",
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
    planned["ipam"] = subnet["ipam"]
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
