# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fabric networks of the plan: which addresses their pods get, from which IPAM, and on which NICs."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
import typing as t

from .._common.addresses import read_address, read_interface, read_network
from .._common.findings import Findings
from .._common.result import FabricError
from .._common.text import shorten_list
from .._ipam import own_pools
from .._ipam.planned_ranges import pool_names
from .._ipam.ranges import parse_ranges
from .._ipam.subnet import SHOWN, FabricNode, SubnetRequest, plan_subnet
from .._model.observation import ADVERTISED, LEASE, Address
from .._model.plan import (
    Ipam,
    NodeSelectorRequirement,
    PlannedNetwork,
    PlannedPool,
    PlannedSubnet,
    Releases,
    WhereaboutsRange,
)
from .._model.profiles import (
    CHAINING,
    INFINIBAND,
    LAYERS,
    META_PLUGINS,
    NO_ADVERTISEMENTS,
    OWN_ARP,
    PROFILES,
    SHARED,
    TYPES,
    MetaPlugin,
)
from .._model.stacks import OWN_IPAM, STACKS, describe_stack, stack_name
from .._network.address_sets import describe_addresses, planned_addresses
from .._network.releases import OTHER_TYPES, parse, show
from .endpoints import parse_address
from .host_links import HostLink, NetworkLinks, subnets_of
from .hosts import Hosts
from .network_spec import DEFAULTS, FAMILIES, NetworkSpec

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr


@dataclasses.dataclass(frozen=True)
class NetworkRules:
    """Input shared by all fabric networks."""

    releases: Releases
    pods_per_node: int
    require_rdma: bool
    taken: t.Sequence[str]  # addresses that no pod may get
    avoid: t.Mapping[str, str]  # CIDRs, and what uses them: pods or services
    avoid_stays: bool  # others manage the cluster
    cluster_size: int  # hosts
    vipu: t.Optional[t.Sequence[str]] = None  # known addresses of V-IPU; None: no IPUs are planned
    cni_network_directory: str = ""  # of CNI configurations; empty: the default


@dataclasses.dataclass(frozen=True)
class _FamilyPlan:
    """The addresses of one family of a network, and the IPAM's settings for them."""

    subnet: PlannedSubnet
    ipam: Ipam
    pool: t.Optional[PlannedPool]  # of nv-ipam


def taken_addresses(hosts: Hosts, vipu_of: t.Mapping[str, str]) -> t.List[str]:
    """Addresses in use: those of all links of hosts, of V-IPU, and of gateways on the way to it."""
    taken = {address for address in vipu_of.values() if parse_address(address)}
    for host in hosts.values():
        if host.rdma:
            taken |= {entry["address"] for nic in host.rdma["links"] for entry in nic["addresses"]}
            taken |= {route["gateway"] for route in host.rdma["routes"].values() if route["gateway"]}
    return sorted(taken)


def plan_networks(chosen: t.Sequence[NetworkLinks], rules: NetworkRules, findings: Findings) -> t.List[PlannedNetwork]:
    # Networks may share a subnet: one's gateway must not become an address of another's pods.
    gateways = [gateway for one in chosen for gateway in one.network.gateways.values()]
    rules = dataclasses.replace(rules, taken=[*rules.taken, *gateways], pods_per_node=max(rules.pods_per_node, 1))
    planned = [_plan_network(network, rules, findings) for network in chosen]
    _check_overlaps(planned, rules.releases["stack"], findings)
    _check_pools(planned, findings)
    if rules.releases["stack"] == OWN_IPAM:
        own_pools.check_networks(planned, findings)
    return planned


def _plan_network(chosen: NetworkLinks, rules: NetworkRules, findings: Findings) -> PlannedNetwork:
    """One network of the plan. It has no subnets if they can't be planned, which is a finding."""
    network, links = chosen.network, chosen.links
    planned: PlannedNetwork = {
        "name": network.name,
        "namespace": network.namespace,
        "hosts": list(links),
        "master": chosen.master,
        "mode": network.mode,
        "mtu": network.mtu or chosen.mtu(),
        "resource": network.rdma_resource,
        "rdma": rules.require_rdma and bool(links),
        "rdma_drivers": sorted({link.nic["driver"] for link in links.values() if link.nic["rdma_netdevs"]}),
        "rdma_netdevs": sorted({netdev for link in links.values() for netdev in link.nic["rdma_netdevs"]}),
        "subnet": None,
        "subnets": [],
        "ipam": {},
        "pool": None,
        "pools": [],
    }
    if not links:
        return planned
    if not network.accept_ra:
        planned["accept_ra"] = False
    chained = meta_plugins(network)
    if chained:
        planned["meta_plugins"] = chained
    if network.type != TYPES[0]:
        _plan_profile(chosen, planned, rules, findings)
    _check_whereabouts_ranges(network, rules.releases, findings)
    partly = _check_advertised(chosen, rules.releases, findings)
    elsewhere = list(_outside_stated(chosen))
    if _check_several_subnets(chosen, findings) or partly:
        return planned
    try:
        families = _plan_families(chosen, rules)
    except FabricError as error:
        what, seen = f"{network.name}: {error.what}", f"{error.seen} ({error.where})"
        instead = " ".join(step for _hosts, _seen, step in elsewhere)
        step = f"{instead} If pods are to have their own subnet: {error.next_step}" if instead else error.next_step
        findings.error("subnet", links, what, seen, step)
        return planned
    for hosts, seen, step in elsewhere:
        what = f"{network.name}: no NIC has an address in the subnet of fabric_networks."
        findings.warning("subnet", hosts, what, seen, f"{step} Nothing to do if pods are to have their own subnet.")
    for subnet in (family.subnet for family in families):
        for warning in subnet["warnings"]:
            findings.warning(
                "subnet", [], f"{network.name}: {warning}", subnet["cidr"], "Nothing to do if this is what you want."
            )
    planned["subnets"] = [family.subnet for family in families]
    reserved = _check_reserved(network, planned["subnets"], findings)
    _check_ipu_machines(network, planned["subnets"], reserved, rules.vipu, findings)
    _check_leases(chosen, planned["subnets"], reserved, findings)
    planned["pools"] = [family.pool for family in families if family.pool]
    planned["subnet"], planned["pool"] = planned["subnets"][0], next(iter(planned["pools"]), None)
    own_ipam = rules.releases["ipam"] == STACKS[OWN_IPAM].ipam
    ipam = own_pools.ipam(planned, network.pool) if own_ipam else _join_ipams(families)
    planned["ipam"] = _find_whereabouts(ipam, rules.cni_network_directory)
    return planned


def meta_plugins(network: NetworkSpec) -> t.List[MetaPlugin]:
    """The chained plugins, as in its CNI configuration: tuning first, then sbr, which moves routes."""
    if network.type not in CHAINING:
        return []
    sysctl = {**(OWN_ARP if "tuning" in network.meta_plugins else {})}
    sysctl.update({} if network.accept_ra else NO_ADVERTISEMENTS)
    tuning: t.List[MetaPlugin] = [{"type": "tuning", "sysctl": sysctl}] if sysctl else []
    return [*tuning, {"type": "sbr"}] if "sbr" in network.meta_plugins else tuning


def _plan_profile(chosen: NetworkLinks, planned: PlannedNetwork, rules: NetworkRules, findings: Findings) -> None:
    """Fields of a network that is not macvlan."""
    network, layers = chosen.network, {link.nic["link_layer"] for link in chosen.links.values()}
    profile = next(
        row for row in PROFILES if row.type == network.type and row.link_layer in {*layers, LAYERS[row.type][-1]}
    )
    planned["cni"] = profile.cni
    if profile.link_layer == INFINIBAND:
        planned["link_layer"] = INFINIBAND
    if network.type == "sriov":
        planned["vfs"] = _pods_per_node(network, rules)
    refusals = {
        f"only the network operator makes networks of type {network.type}.": (
            rules.releases["stack"] != "network_operator",
            f"the stack is {describe_stack(rules.releases)}",
            "Set fabric_stack to network_operator, or type to macvlan.",
        ),
        f"type {network.type} needs network operator {show(OTHER_TYPES)} or later.": (
            bool(rules.releases["features"]) and parse(rules.releases["network_operator"])[:2] < OTHER_TYPES,
            f"it is {rules.releases['network_operator']}",
            "Set fabric_network_operator_version to a later one, or type to macvlan.",
        ),
        f"type {network.type} is for RDMA.": (
            not rules.require_rdma,
            "fabric_require_rdma is false",
            "Set fabric_require_rdma to true, or type to macvlan.",
        ),
        "its NICs must have the same link layer on all hosts.": (
            len(layers) > 1,
            " and ".join(sorted(layers)),
            "Plan a network for each link layer (keys hosts and select).",
        ),
    }
    for what, (wrong, seen, step) in refusals.items():
        if wrong:
            findings.error("networks", [], f"{network.name}: {what}", seen, step)


def _pods_per_node(network: NetworkSpec, rules: NetworkRules) -> int:
    """The most pods of one host that can be on a network: each needs its own device, unless they share one."""
    if network.type == "sriov":
        return network.vfs or rules.pods_per_node
    return rules.pods_per_node if network.type in SHARED else 1


def _check_reserved(network: NetworkSpec, subnets: t.Sequence[PlannedSubnet], findings: Findings) -> t.List[str]:
    """Entries that keep addresses of these subnets from pods. Others are for another subnet, or mistyped."""
    ours = netaddr.IPSet([subnet["cidr"] for subnet in subnets])
    inside = [entry for entry in network.reserved if not ours.isdisjoint(parse_ranges([entry], "reserved"))]
    outside = [entry for entry in network.reserved if entry not in inside]
    if outside:
        findings.warning(
            "subnet",
            [],
            f"{network.name}: what is in `reserved` should be part of its subnet.",
            f"{shorten_list(outside, SHOWN)}, outside {' and '.join(subnet['cidr'] for subnet in subnets)}",
            "Write the addresses of `reserved` as they are in this subnet, or take them out.",
        )
    return inside


def _check_leases(
    chosen: NetworkLinks, subnets: t.Sequence[PlannedSubnet], reserved: t.Sequence[str], findings: Findings
) -> None:
    """A DHCP server does not know of pods. A site that set `reserved` or `share` has probably considered it."""
    network = chosen.network
    leased = [
        name
        for name, link in chosen.links.items()
        for entry in link.nic["addresses"]
        if entry.get("origin") == LEASE and entry["address"] in {one["address"] for one in link.addresses}
    ]
    if leased and not reserved and network.share == DEFAULTS["share"]:
        spans = " and ".join(_span(subnet) for subnet in subnets)
        findings.warning(
            "subnet",
            leased,
            f"{network.name}: hosts have addresses from a DHCP server, which may lease the pods' addresses to others.",
            f"leases on this network; pods get {spans}",
            "Put the addresses that the server gives out into `reserved`, or take a range away from the server and"
            " set `share` to it.",
        )


def _check_ipu_machines(
    network: NetworkSpec,
    subnets: t.Sequence[PlannedSubnet],
    reserved: t.Sequence[str],
    vipu: t.Optional[t.Sequence[str]],
    findings: Findings,
) -> None:
    """IPU-Machines have addresses next to V-IPU, which nothing reports; the lower half of a subnet is left to them."""
    if vipu is None or reserved or _share(network, 4) != "all":
        return
    known = [read_address(address) for address in vipu if parse_address(address)]
    for subnet in subnets:
        cidr = read_network(subnet["cidr"])
        inside = [str(address) for address in known if address in cidr]
        if cidr.version == 4 and (inside or not known):
            findings.warning(
                "ipu-machines",
                [],
                f"{network.name}: share is all, and IPU-Machines may have addresses of {cidr}.",
                f"`reserved` is empty; V-IPU ({', '.join(inside) or 'not known'}) does not report their addresses",
                "Set share to upper_half, or put their part into `reserved`: at Gcore the first /26, to be safe the"
                " first /25.",
            )


def _check_advertised(chosen: NetworkLinks, releases: Releases, findings: Findings) -> bool:
    """Pods accept advertisements on their rail, as NICs do. True if only some hosts have no other address."""
    network, stack = chosen.network, STACKS[stack_name(releases)]
    chains = stack.chains or network.type in CHAINING
    if not network.accept_ra and not chains:
        findings.error(
            "networks",
            [],
            f"{network.name}: accept_ra: false needs chained plugins, which no release of MacvlanNetwork supports.",
            f"accept_ra is false, the stack is {describe_stack(releases)}",
            "Set accept_ra to true and turn router advertisements off on the routers of this VLAN, or set fabric_stack"
            f" to {OWN_IPAM}.",
        )
    seen = {
        name: f"{chosen.links[name].nic['netdev']} of {name} has {entry['address']}/{entry['prefix']}"
        for name, entry in chosen.advertised().items()
    }
    if seen and network.accept_ra:
        findings.warning(
            "subnet",
            seen,
            f"{network.name}: routers advertise on this network. Pods get an address from them besides the planned one,"
            " which takes an entry of the GID table, and often a default route.",
            shorten_list(seen.values(), SHOWN, "; "),
            STACKS[OWN_IPAM].advertised if chains else stack.advertised,
        )
    own = {
        name: f"{link.nic['netdev']} of {name} has {entry['address']}/{entry['prefix']}"
        for name, link in chosen.links.items()
        for entry in link.nic["addresses"]
        if entry.get("origin") == ADVERTISED and entry["address"] in {one["address"] for one in link.addresses}
    }
    if not own:
        return False
    others = sorted({str(subnet) for name, link in chosen.links.items() if name not in own for subnet in link.subnets})
    if others:
        findings.error(
            "subnet",
            own,
            f"{network.name}: these hosts have no address but that of router advertisements; others have a static one.",
            shorten_list(own.values(), SHOWN, "; "),
            f"Give their NICs a static address of {' and '.join(others)}.",
        )
    else:
        findings.warning(
            "subnet",
            own,
            f"{network.name}: the subnet is that of router advertisements, and changes with them.",
            shorten_list(own.values(), SHOWN, "; "),
            "Give the NICs static addresses of that subnet, or of another for pods: static ones take precedence.",
        )
    return bool(others)


def _check_several_subnets(chosen: NetworkLinks, findings: Findings) -> bool:
    """The first of a NIC's subnets is used, but another host may order them differently. True if one does."""
    network = chosen.network
    if all(len(link.nic["addresses"]) <= len(link.addresses) for link in chosen.links.values()):
        return False  # no NIC has addresses besides the chosen ones
    subnets = {name: subnets_of(network, link) for name, link in chosen.links.items()}
    cidrs = {
        name: [str(read_interface(one["address"], one["prefix"]).network) for one in link.addresses]
        for name, link in chosen.links.items()
    }
    several = [name for name, found in subnets.items() if len(found) > len(cidrs[name])]
    if not several:
        return False
    seen = [f"{chosen.links[name].nic['netdev']} of {name} has {' and '.join(subnets[name])}" for name in several]
    common = [cidr for cidr in subnets[several[0]] if all(cidr in found for found in subnets.values())]
    differ = len(set(map(tuple, cidrs.values()))) > 1
    report, what = (
        (findings.error, "only one of them is the fabric's, and the first is not the same on all hosts")
        if differ
        else (findings.warning, f"the plan uses {' and '.join(cidrs[several[0]])}")
    )
    report(
        "subnet",
        several,
        f"{network.name}: a NIC has addresses of several subnets; {what}.",
        shorten_list(seen, SHOWN, "; "),
        f"Name the fabric's subnet in select.subnet of {network.name} in fabric_networks: {' or '.join(common)}."
        if common
        else f"Name those of the fabric in select.subnet of {network.name} in fabric_networks, or plan one network for"
        " each subnet: these hosts have none in common.",
    )
    return differ


def _check_whereabouts_ranges(network: NetworkSpec, releases: Releases, findings: Findings) -> None:
    able = releases["ipam"] != "whereabouts" or releases["features"].get("whereabouts_ranges", True)
    if len(network.families) > 1 and not able:
        findings.error(
            "networks",
            [],
            f"{network.name}: two families need a whereabouts that supports ipRanges.",
            f"that of network operator {releases['network_operator']} does not",
            "Set fabric_network_operator_version to 23.4 or later, or name one family (key families).",
        )


def _plan_families(chosen: NetworkLinks, rules: NetworkRules) -> t.List[_FamilyPlan]:
    """The addresses of each family, planned by the rules of rdma_subnet."""
    network, links, releases = chosen.network, chosen.links, rules.releases
    families: t.List[_FamilyPlan] = []
    on_master = {entry["address"] for link in links.values() for entry in link.addresses}
    # A gateway that is a host of this network is already a finding.
    gateways = {version: text for version, text in network.gateways.items() if text not in on_master}
    needed = _pods_per_node(network, rules) * len(links)
    for number, version in enumerate(_versions(chosen)):
        nodes = [FabricNode(name, **_address(link, version)) for name, link in links.items()]
        # The site's own names contain no dots.
        pool_name = network.pool or network.name
        pool_name += f".ipv{version}" if number else ""
        request = SubnetRequest(
            nodes=nodes,
            subnet=network.subnets.get(version, ""),
            gateway=gateways.pop(version, ""),
            reserved=[*network.reserved, *rules.taken],
            share=_share(network, version),
            avoid=list(rules.avoid),
            avoid_of=rules.avoid,
            avoid_stays=rules.avoid_stays,
            pods=needed,
            # The stack with its own IPAM allocates single addresses, like whereabouts.
            ipam="whereabouts" if releases["ipam"] in ("", STACKS[OWN_IPAM].ipam) else releases["ipam"],
            ipam_release=releases["network_operator"] if releases["features"] else "",
            pool_name=pool_name,
        )
        subnet = plan_subnet(request)
        planned: PlannedSubnet = {
            "cidr": subnet["cidr"],
            "prefix": subnet["prefix"],
            "gateway": subnet["gateway"],
            "range_start": subnet["range_start"],
            "range_end": subnet["range_end"],
            "exclude": subnet["exclude"],
            "capacity": subnet["capacity"],
            "needed": needed,
            "warnings": subnet["warnings"],
        }
        pool: t.Optional[PlannedPool] = None
        if subnet["pool"]:
            pool = _select_nodes({"name": pool_name, **subnet["pool"]}, links, rules.cluster_size)
        families.append(_FamilyPlan(planned, subnet["ipam"], pool))
    if gateways:
        cidrs = ", ".join(family.subnet["cidr"] for family in families)
        raise FabricError(
            "The gateway must be a host address of the fabric subnet.",
            "gateway",
            f"{', '.join(gateways.values())} is not in {cidrs}",
            "Correct `gateway`, leave it empty, or name both families (key families).",
        )
    return families


def _versions(chosen: NetworkLinks) -> t.List[int]:
    """IP versions of the network, in order. If it names none, that of its subnet or else of its NICs."""
    named = [FAMILIES[family] for family in chosen.network.families] or list(chosen.network.subnets)
    return named or [read_address(next(iter(chosen.links.values())).addresses[0]["address"]).version]


def _address(link: HostLink, version: int) -> Address:
    """The NIC's address; empty if it has none in a stated subnet."""
    own = [one for one in link.addresses if read_address(one["address"]).version == version]
    return own[0] if own else {"address": "", "prefix": 0}


def _outside_stated(chosen: NetworkLinks) -> t.Iterator[t.Tuple[t.Collection[str], str, str]]:
    """Hosts, what was seen and what to do, for each stated subnet that no NIC has an address in: it may be mistyped."""
    for version, cidr in chosen.network.subnets.items():
        found = {
            name: (link.nic["netdev"], read_interface(entry["address"], entry["prefix"]))
            for name, link in chosen.links.items()
            for entry in link.nic["addresses"]
            if read_address(entry["address"]).version == version and entry.get("origin") != ADVERTISED
        }
        if found and not any(_address(link, version)["address"] for link in chosen.links.values()):
            others = [f"{netdev} of {name} has {interface}" for name, (netdev, interface) in found.items()]
            own = shorten_list(dict.fromkeys(str(interface.network) for _netdev, interface in found.values()), SHOWN)
            seen = f"subnet is {cidr}; {shorten_list(others, SHOWN, '; ')}"
            yield found, seen, f"Correct `subnet` in fabric_networks (NICs are in {own}), or leave it empty."


def _share(network: NetworkSpec, version: int) -> str:
    """The pods' part of this family's subnet; a network with two families may state two, separated by a comma."""
    if len(network.families) < 2:
        return network.share
    parts = [part.strip() for part in network.share.split(",")]
    return next(
        (part for part in parts if not re.search("[.:]", part) or (":" in part) == (version == 6)), "upper_half"
    )


def _select_nodes(pool: PlannedPool, links: t.Mapping[str, HostLink], cluster_size: int) -> PlannedPool:
    """nv-ipam gives every node a block, so the pool lists its nodes if the network has only some of the hosts."""
    nodes = sorted(link.host.node for link in links.values())
    if len(nodes) == cluster_size:
        return pool
    requirement: NodeSelectorRequirement = {"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}
    return {**pool, "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}


def _join_ipams(families: t.Sequence[_FamilyPlan]) -> Ipam:
    """The ipam of the network's custom resource; with two families, each gives every pod an address."""
    parts = [family.ipam for family in families]
    if len(parts) == 1:
        return parts[0]
    if parts[0]["type"] == "nv-ipam":
        return {"type": "nv-ipam", "poolName": ",".join(part["poolName"] for part in parts)}
    ranges: t.List[WhereaboutsRange] = [
        {
            "range": part["range"],
            "range_start": part["range_start"],
            "range_end": part["range_end"],
            "exclude": part["exclude"],
        }
        for part in parts
    ]
    return {"type": "whereabouts", "ipRanges": ranges}


def _find_whereabouts(ipam: Ipam, directory: str) -> Ipam:
    """whereabouts expects its own files in the usual directory: tell it if they are elsewhere."""
    if ipam.get("type") != "whereabouts" or not directory:
        return ipam
    own = f"{directory}/whereabouts.d/whereabouts"
    return {**ipam, "configuration_path": f"{own}.conf", "kubernetes": {"kubeconfig": f"{own}.kubeconfig"}}


def _check_overlaps(networks: t.Sequence[PlannedNetwork], stack: str, findings: Findings) -> None:
    """Compare the pods' addresses. Networks may share a subnet with separate shares, but not overlap."""
    subnets = [(network, subnet) for network in networks for subnet in network["subnets"]]
    sharing: t.Dict[str, t.Dict[str, str]] = {}  # by subnet, the pods' range on each network
    for (one, first), (other, second) in itertools.combinations(subnets, 2):
        cidrs = [read_network(subnet["cidr"]) for subnet in (first, second)]
        if not cidrs[0].overlaps(cidrs[1]):
            continue
        both = f"Networks {one['name']} and {other['name']}"
        same = _range(first) & _range(second)
        if same:  # exclusions may separate them
            same &= planned_addresses(dict(one)) & planned_addresses(dict(other))
        spans = f"{_span(first)} and {_span(second)}"
        if same:
            findings.error(
                "subnet",
                [],
                f"{both} would give out the same addresses.",
                f"{cidrs[0]} and {cidrs[1]} overlap, and pods get {spans}: {describe_addresses(same)} in both",
                (
                    "Give each its own hosts and subnet"
                    if one["master"] != other["master"]
                    else "Give each its own NIC (key select) or its own hosts and subnet"
                )
                + (", or its own share of this subnet (key share)." if cidrs[0] == cidrs[1] else "."),
            )
        elif cidrs[0] != cidrs[1]:
            findings.error(
                "subnet",
                [],
                f"{both} are on subnets that overlap without being the same: hosts and pods of one take addresses of"
                " the other for neighbours.",
                f"{cidrs[0]} and {cidrs[1]}; pods get {spans}, which differ",
                "Give the NICs of both the same prefix, or subnets that don't overlap.",
            )
        elif set(one["hosts"]) & set(other["hosts"]) and not (_keeps_apart(one) and _keeps_apart(other)):
            named = {one["name"]: _span(first), other["name"]: _span(second)}
            sharing.setdefault(first["cidr"], {}).update(named)
    for cidr, named in sharing.items():
        arp = ":" not in cidr  # IPv6 answers only on the interface with the address
        findings.warning(
            "subnet",
            [],
            "Rails on one subnet are one network to the kernel: the first interface takes what is sent to any of them"
            + (", and each answers ARP for the addresses of all (ARP flux)." if arp else "."),
            f"{cidr}: " + ", ".join(f"{name} {span}" for name, span in named.items()),
            "Give the NICs of each rail a subnet of its own, such as a /24. Otherwise"
            + (
                " set net.ipv4.conf.all.arp_ignore to 1, net.ipv4.conf.all.arp_announce to 2 and"
                " net.ipv4.conf.all.rp_filter to 2 on the hosts (pods inherit them),"
                if arp
                else ""
            )
            + " bind programs to a rail's address, and route by source address: a table for each rail, which pods have"
            + (
                " if each network has a gateway:"
                if stack == OWN_IPAM
                else f" with {STACKS[OWN_IPAM].title} (fabric_stack: {OWN_IPAM}) and a gateway for each network, or"
                f" with type: sriov and meta_plugins: [{', '.join(META_PLUGINS)}]:"
            )
            + " https://github.com/ipu-fabric/ipu.fabric/blob/main/docs/networks.md#many-rails",
        )


def _keeps_apart(network: PlannedNetwork) -> bool:
    """Whether pods answer ARP and route by source address on this rail."""
    return {each["type"] for each in network.get("meta_plugins", [])} >= {*META_PLUGINS}


def _range(subnet: PlannedSubnet) -> netaddr.IPSet:
    return netaddr.IPSet(netaddr.IPRange(subnet["range_start"], subnet["range_end"]))


def _span(subnet: PlannedSubnet) -> str:
    return f"{subnet['range_start']}-{subnet['range_end']}"


def _check_pools(networks: t.Sequence[PlannedNetwork], findings: Findings) -> None:
    """Two pools with the same name would become one, with the addresses of the network applied last."""
    owners: t.Dict[str, t.List[str]] = {}
    for network in networks:
        for pool in pool_names(network["ipam"]):
            owners.setdefault(pool, []).append(network["name"])
    for pool, names in owners.items():
        if len(set(names)) > 1:  # two networks of one name are a finding already
            findings.error(
                "networks",
                [],
                "Pools of addresses need different names.",
                f"{' and '.join(names)} have the pool {pool}",
                "Give each a name of its own (key pool).",
            )
