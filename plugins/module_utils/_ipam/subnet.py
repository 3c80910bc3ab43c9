# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address plan of one fabric network: which addresses pods may get, and how to say so to an IPAM.

Addresses are whole numbers here, sets of them sorted runs `(first, last)` that neither touch nor overlap: a /16 with
1,000 nodes and an IPv6 /64 cost the same. `ipaddress` of the standard library does it: one dependency less.
"""

from __future__ import annotations

import functools
import ipaddress
import math
import re
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError

Network = t.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]
Address = t.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Run = t.Tuple[int, int]
Runs = t.List[Run]

# nv-ipam checks a block's offset in the subnet as a double: beyond 2^53 it takes blocks for wrong and deals them anew.
# whereabouts stores offsets as int64. One limit for both.
WINDOW = 2**53
# Block sizes tried beyond the one that would just do, when powers of two do not fit.
ODD_SIZES = 512
NV_IPAM_EXCLUSIONS = (24, 7)  # first release that knows IPPool.exclusions
NV_IPAM_SKIPS = (26, 1)  # first release that does not deal blocks without a free address


# ---- runs -----------------------------------------------------------------------------------------------------------


def merge(runs: t.Iterable[Run]) -> Runs:
    """Sorted runs; those that touch or overlap become one."""
    merged: Runs = []
    for first, last in sorted(runs):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def subtract(whole: Run, taken: t.Iterable[Run]) -> Runs:
    """What is left of `whole` without `taken`."""
    left: Runs = []
    start, end = whole
    for first, last in merge(taken):
        if last < start or first > end:
            continue
        if first > start:
            left.append((start, first - 1))
        start = last + 1
    if start <= end:
        left.append((start, end))
    return left


def size(runs: t.Iterable[Run]) -> int:
    return sum(last - first + 1 for first, last in runs)


# ---- reading what people write --------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=65536)  # every rail of a large site has the same thousands of addresses to look at
def _read_run(text: str) -> t.Tuple[int, Run]:
    if "-" in text:
        low, high = (ipaddress.ip_address(part.strip()) for part in text.split("-"))
        if low.version != high.version or int(low) > int(high):
            raise ValueError(f"{high} does not follow {low}")
        return low.version, (int(low), int(high))
    network = ipaddress.ip_network(text.strip())
    return network.version, (int(network[0]), int(network[-1]))


def parse_run(text: str, where: str) -> t.Tuple[int, Run]:
    """IP version and run of an address, a CIDR or an `a-b` range."""
    try:
        return _read_run(text)
    except ValueError as error:
        raise FabricError(
            "An address, a CIDR or a range a-b was expected.",
            where,
            f"{text!r} ({error})",
            "Write it like 10.5.0.20, 10.5.0.64/26 or 10.5.0.10-10.5.0.20.",
        ) from error


def _parse_address(text: str, where: str) -> Address:
    try:
        return ipaddress.ip_address(text.strip())
    except ValueError as error:
        raise FabricError("An IP address was expected.", where, f"{text!r}", "Write it like 10.5.0.1.") from error


def parse_release(text: str) -> t.Tuple[int, int]:
    """Year and month of a network operator release such as 26.4.1 or v25.10.0-rc.1."""
    match = re.match(r"v?(\d+)\.(\d+)", text)
    if not match:
        raise FabricError(
            "The network operator's release decides how nv-ipam deals addresses.",
            "ipam_release",
            f"{text!r}",
            "Write it like 26.4.1.",
        )
    return int(match.group(1)), int(match.group(2))


# ---- the subnet and what is taken in it -----------------------------------------------------------------------------


def _names(names: t.Iterable[str], most: int = 5) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def _interfaces(nodes: t.Sequence[t.Mapping[str, t.Any]]) -> t.Dict[str, t.Any]:
    """Each node's address with its prefix, by name."""
    found: t.Dict[str, t.Any] = {}
    if not nodes:
        raise FabricError(
            "The fabric subnet comes from the nodes' addresses.",
            "nodes",
            "no node",
            "Give at least one node with its address.",
        )
    for node in nodes:
        name, text = str(node["name"]), f"{node['address']}/{node['prefix']}"
        try:
            interface = ipaddress.ip_interface(text)
        except ValueError as error:
            raise FabricError(
                "A node's fabric address with its prefix was expected.",
                f"node {name}",
                f"{text!r} ({error})",
                "Write it like 10.5.0.11 and 24.",
            ) from error
        if interface.ip.is_link_local or interface.ip.is_loopback or interface.ip.is_multicast:
            raise FabricError(
                "A fabric address must be reachable from other nodes.",
                f"node {name}",
                f"{interface}",
                "Give the fabric NIC a routable address, or select another NIC.",
            )
        found[name] = interface
    return found


def _network(interfaces: t.Mapping[str, t.Any]) -> Network:
    """The one subnet that all nodes share."""
    groups: t.Dict[Network, t.List[str]] = {}
    holders: t.Dict[Address, t.List[str]] = {}
    for name, interface in interfaces.items():
        groups.setdefault(interface.network, []).append(name)
        holders.setdefault(interface.ip, []).append(name)
    if len(groups) > 1:
        raise FabricError(
            "All nodes of one fabric network must be on one subnet.",
            "nodes",
            "; ".join(
                f"{network}: {_names(names)}"
                for network, names in sorted(groups.items(), key=lambda item: str(item[0]))
            ),
            "Mend the prefix of the nodes that differ, or plan one network for each subnet.",
        )
    for address, names in holders.items():
        if len(names) > 1:
            raise FabricError(
                "Each node needs an address of its own.",
                _names(names),
                f"both have {address}",
                "Give one of them another address.",
            )
    network = next(iter(groups))
    if network.max_prefixlen - network.prefixlen < 2:
        raise FabricError(
            "A fabric subnet needs room for pods.",
            "nodes",
            f"{network} has no usable address besides the nodes'",
            f"Use a subnet of /{network.max_prefixlen - 2} or shorter on the fabric NICs; a /24 is usual.",
        )
    return network


def _refuse_overlap(network: Network, avoid: t.Iterable[str]) -> None:
    for text in avoid:
        version, (first, last) = parse_run(text, "avoid")
        if version == network.version and first <= int(network[-1]) and last >= int(network[0]):
            raise FabricError(
                "The fabric subnet must not overlap another network of the cluster.",
                f"avoid {text}",
                f"the fabric subnet is {network}",
                "Choose another pod or service CIDR: the fabric's addresses are given by the hosts.",
            )


def _gateway(network: Network, text: str, interfaces: t.Mapping[str, t.Any]) -> t.Optional[Address]:
    if not text:
        return None
    gateway = _parse_address(text, "gateway")
    if gateway not in network or gateway in (network[0], network[-1]):
        raise FabricError(
            "The gateway must be a host address of the fabric subnet.",
            "gateway",
            f"{gateway} is not one of {network}",
            "Correct it, or leave it empty.",
        )
    for name, interface in interfaces.items():
        if interface.ip == gateway:
            raise FabricError(
                "A pod cannot reach its own node over macvlan, so no node can be the gateway.",
                f"node {name}",
                f"it has the gateway's address {gateway}",
                "Move the gateway to a machine that runs no pods, or leave it empty.",
            )
    return gateway


def _window(network: Network) -> Run:
    """The part of the subnet that an IPAM can count in."""
    first = int(network[0])
    return first, first + min(network.num_addresses, WINDOW) - 1


def _share(network: Network, share: str) -> Run:
    """The part of the subnet that is the pods'."""
    first, last = _window(network)
    if share == "all":
        return first, last
    if share == "upper_half":
        return first + (last - first + 1) // 2, last
    if not re.search(r"[.:]", share):
        raise FabricError(
            "The pods' share of the subnet was expected.",
            "share",
            f"{share!r}",
            "Write upper_half, all, a CIDR or a range a-b.",
        )
    version, (low, high) = parse_run(share, "share")
    if version != network.version or low < int(network[0]) or high > int(network[-1]):
        raise FabricError(
            "The pods' share must lie in the fabric subnet.",
            "share",
            f"{share} is not inside {network}",
            "Choose a part of the subnet, upper_half or all.",
        )
    if high > last:
        raise FabricError(
            "The pods' share must lie where the IPAMs can count.",
            "share",
            f"{share} goes beyond {ipaddress.ip_address(last)}, the 2^53rd address of {network}",
            f"Choose a share up to {ipaddress.ip_address(last)}.",
        )
    return low, high


def _taken(
    network: Network, interfaces: t.Mapping[str, t.Any], gateway: t.Optional[Address], reserved: t.Iterable[str]
) -> Runs:
    """What no pod may get, wherever the share lies. IPv6 has no broadcast address, but its last one is for anycast."""
    single = [network[0], network[-1], *(interface.ip for interface in interfaces.values())]
    if gateway is not None:
        single.append(gateway)
    runs = [(int(address), int(address)) for address in single]
    runs += [run for version, run in (parse_run(text, "reserved") for text in reserved) if version == network.version]
    return merge(runs)


def _exclude(network: Network, allowed: Runs) -> t.List[str]:
    """The fewest CIDRs that hold every host address of the subnet but the allowed ones.

    They may also hold the network and the broadcast address, which no pod gets: that makes 10.5.0.0/25 of .1 to .127.
    """
    ends = (int(network[0]), int(network[-1]))
    address = type(network[0])
    blocks: t.List[Network] = []
    for first, last in subtract(ends, allowed):
        blocks.extend(ipaddress.summarize_address_range(address(first), address(last)))
    return [str(block) for block in blocks if block.num_addresses > 1 or int(block[0]) not in ends]


# ---- nv-ipam's blocks -----------------------------------------------------------------------------------------------


class Blocks(t.NamedTuple):
    """How nv-ipam deals a subnet: from its second address on, in blocks of one size, one for each node, in order."""

    allowed: Runs
    first: int
    last: int
    skips: bool  # this release passes over blocks without a free address

    def total(self, block_size: int) -> int:
        return (self.last - self.first + 1) // block_size

    def span(self, block: int, block_size: int) -> Run:
        start = self.first + block * block_size
        return start, start + block_size - 1

    def edges(self, block_size: int) -> t.Dict[int, int]:
        """Free addresses of the blocks in which a run begins or ends. All others are wholly free or wholly excluded."""
        free: t.Dict[int, int] = {}
        for low, high in self.allowed:
            begin, finish = (low - self.first) // block_size, (high - self.first) // block_size
            for block in (begin, finish) if begin != finish else (begin,):
                start, end = self.span(block, block_size)
                if end <= self.last:
                    free[block] = free.get(block, 0) + min(high, end) - max(low, start) + 1
        return free

    def whole(self, block_size: int) -> int:
        """How many blocks lie inside a run and are not among the edges."""
        inner = ((high - self.first) // block_size - (low - self.first) // block_size - 1 for low, high in self.allowed)
        return sum(max(blocks, 0) for blocks in inner)

    def dealt(self, block_size: int, nodes: int) -> t.List[int]:
        """Free addresses of the blocks that the first `nodes` nodes get; shorter when the blocks run out."""
        free: t.Dict[int, int] = {}
        most = self.total(block_size)
        for low, high in self.allowed:
            for block in range((low - self.first) // block_size, min((high - self.first) // block_size + 1, most)):
                if block not in free and (len(free) if self.skips else block) >= nodes:
                    break
                start, end = self.span(block, block_size)
                free[block] = free.get(block, 0) + min(high, end) - max(low, start) + 1
        return list(free.values()) if self.skips else [free.get(block, 0) for block in range(min(nodes, most))]

    def least(self, block_size: int, nodes: int) -> int:
        """What the worst served of `nodes` nodes gets, at best."""
        if not self.skips:
            free = self.dealt(block_size, nodes)
            return min(free) if len(free) == nodes else 0
        missing = nodes - self.whole(block_size)
        if missing <= 0:
            return block_size
        edges = sorted(self.edges(block_size).values(), reverse=True)
        return edges[missing - 1] if len(edges) >= missing else 0

    def powers(self, need: int, nodes: int) -> t.Iterator[int]:
        """Powers of two: they stay the same while a cluster grows."""
        power = 1 << (need - 1).bit_length()
        while power <= min(self.total(nodes), 2**30):
            yield power
            power *= 2

    def choose(self, need: int, nodes: int) -> int:
        """The size with which each node gets `need` addresses; 0: there is none."""
        odd = range(need, min(self.total(nodes), need + ODD_SIZES) + 1)
        return next(
            (block_size for block_size in (*self.powers(need, nodes), *odd) if self.least(block_size, nodes) >= need), 0
        )

    def best(self, nodes: int) -> int:
        """The most addresses that every node can get with a power of two as the size."""
        return max((self.least(block_size, nodes) for block_size in self.powers(1, nodes)), default=0)

    def without_poor(self, block_size: int, need: int) -> Blocks:
        """Exclude what is left of blocks that would serve a node badly, so that they are passed over."""
        if not self.skips:
            return self
        poor = [self.span(block, block_size) for block, free in self.edges(block_size).items() if free < need]
        return self._replace(allowed=[run for whole in self.allowed for run in subtract(whole, poor)])


def _pool(network: Network, blocks: Blocks, block_size: int, gateway: t.Optional[Address]) -> t.Dict[str, t.Any]:
    """The spec of an nv-ipam IPPool. The gateway is excluded too: only so a block of nothing else is passed over."""
    address = type(network[0])
    exclusions = [
        {"startIP": str(address(first)), "endIP": str(address(last))}
        for first, last in subtract((blocks.first, blocks.last), blocks.allowed)
    ]
    spec: t.Dict[str, t.Any] = {"subnet": str(network), "perNodeBlockSize": block_size, "exclusions": exclusions}
    if gateway is not None:
        spec["gateway"] = str(gateway)
    return spec


# ---- the plan -------------------------------------------------------------------------------------------------------


class _Demand(t.NamedTuple):
    """What is wanted, to say what would work when it can't be had."""

    network: Network
    taken: Runs
    share: str
    pods: int
    nodes: int

    def allowed(self, share: str) -> Runs:
        return subtract(_share(self.network, share), self.taken)

    def more_room(self) -> str:
        """The next step of everybody who has too few addresses."""
        whole = size(self.allowed("all"))
        if self.share != "all" and whole >= max(self.pods, 1):
            return f"Set share to all ({whole} addresses) or to a larger part of {self.network}, or ask for fewer pods."
        wanted = max(self.pods, 1) + size(subtract(_window(self.network), self.allowed("all")))
        bits = ((wanted if self.share == "all" else 2 * wanted) - 1).bit_length()
        prefix = max(self.network.max_prefixlen - bits, 1)
        return f"Renumber the fabric: a /{prefix} has room for them. Or ask for fewer pods."


def _refuse_blocks(demand: _Demand, blocks: Blocks, need: int, release: str) -> t.NoReturn:
    """Say why nv-ipam cannot serve the nodes, and with what it or another IPAM could."""
    total, best = size(blocks.allowed), blocks.best(demand.nodes)
    advice = []
    if best:
        advice.append(f"ask for at most {best * demand.nodes} pods ({best} on each of {demand.nodes} nodes)")
    if not blocks.skips:
        advice.append("use network operator 26.1 or later, which passes over blocks without a free address")
    if demand.share != "all" and blocks._replace(allowed=demand.allowed("all")).choose(need, demand.nodes):
        advice.append("set share to all")
    if total >= demand.pods:
        advice.append(f"use whereabouts ({total} addresses)")
    raise FabricError(
        f"nv-ipam must have a block with at least {need} free for each of {demand.nodes} nodes.",
        f"fabric subnet {demand.network}, nv-ipam of network operator {release}",
        f"{total} addresses for pods, but no block size gives every node {need}",
        (" or ".join(advice) + ".").capitalize() if advice else demand.more_room(),
    )


def _nv_ipam_blocks(network: Network, allowed: Runs, release: str) -> Blocks:
    if parse_release(release) < NV_IPAM_EXCLUSIONS:
        raise FabricError(
            "The nodes' own addresses must be excluded from the pool.",
            f"nv-ipam of network operator {release}",
            "its IPPool has no exclusions",
            "Use network operator 24.7 or later, or whereabouts.",
        )
    last = int(network[-1]) - 1 if network.version == 4 else _window(network)[1]
    return Blocks(allowed, int(network[0]) + 1, last, parse_release(release) >= NV_IPAM_SKIPS)


def _plan_nv_ipam(demand: _Demand, allowed: Runs, release: str) -> t.Tuple[Blocks, int, t.List[str]]:
    """The blocks, their size, and warnings."""
    blocks = _nv_ipam_blocks(demand.network, allowed, release)
    need = math.ceil(demand.pods / demand.nodes) or max(blocks.best(demand.nodes), 1)
    block_size = blocks.choose(need, demand.nodes)
    if not block_size:
        _refuse_blocks(demand, blocks, need, release)
    blocks = blocks.without_poor(block_size, need)
    warnings = []
    if blocks.least(block_size, demand.nodes + 1) < need:
        warnings.append(f"{demand.network}: nv-ipam has no block with {need} free addresses left for a further node.")
    return blocks, block_size, warnings


def _mtu(nodes: t.Iterable[t.Mapping[str, t.Any]]) -> t.Tuple[int, t.List[str]]:
    """The least MTU (0: none is known), and a warning when they differ."""
    by_mtu: t.Dict[int, t.List[str]] = {}
    for node in nodes:
        if node.get("mtu"):
            by_mtu.setdefault(int(node["mtu"]), []).append(str(node["name"]))
    warnings = []
    if len(by_mtu) > 1:
        seen = "; ".join(f"{mtu}: {_names(names)}" for mtu, names in sorted(by_mtu.items()))
        warnings.append(f"The fabric NICs have different MTUs, pods get the least ({seen}).")
    return min(by_mtu, default=0), warnings


def _ipam(ipam: str, subnet: t.Mapping[str, t.Any], pool_name: str) -> t.Dict[str, t.Any]:
    """The ipam of the network's CR."""
    if ipam == "nv-ipam":
        return {"type": ipam, "poolName": pool_name} if pool_name else {"type": ipam}
    # The excludes alone would do, but old releases walk through an excluded half address by address.
    return {
        "type": ipam,
        "range": subnet["cidr"],
        **{key: subnet[key] for key in ("range_start", "range_end", "exclude")},
    }


def plan_subnet(
    *,
    nodes: t.Sequence[t.Mapping[str, t.Any]],
    gateway: str = "",
    reserved: t.Sequence[str] = (),
    share: str = "upper_half",
    avoid: t.Sequence[str] = (),
    pods: int = 0,
    ipam: str = "whereabouts",
    ipam_release: str = "26.4.1",
    pool_name: str = "",
) -> t.Dict[str, t.Any]:
    """Plan which addresses of the nodes' subnet pods get. See the module rdma_subnet for the options and the result."""
    if ipam not in ("whereabouts", "nv-ipam"):
        raise FabricError("An IPAM was expected.", "ipam", f"{ipam!r}", "Choose whereabouts or nv-ipam.")
    if pods < 0:
        raise FabricError("A number of pods was expected.", "pods", str(pods), "Give 0 or more.")
    interfaces = _interfaces(nodes)
    network = _network(interfaces)
    _refuse_overlap(network, avoid)
    gateway_address = _gateway(network, gateway, interfaces)
    demand = _Demand(network, _taken(network, interfaces, gateway_address, reserved), share, pods, len(interfaces))
    allowed = demand.allowed(share)
    capacity = size(allowed)
    if capacity < max(pods, 1):
        raise FabricError(
            f"Addresses for {pods} pods were asked for." if pods else "Pods need addresses of the fabric subnet.",
            f"fabric subnet {network}, share {share}",
            f"{capacity} are left without the nodes', the gateway's and the reserved ones",
            demand.more_room(),
        )
    mtu, warnings = _mtu(nodes)
    pool = None
    if ipam == "nv-ipam":
        blocks, block_size, more = _plan_nv_ipam(demand, allowed, ipam_release)
        allowed, capacity = blocks.allowed, sum(blocks.dealt(block_size, len(interfaces)))
        pool = _pool(network, blocks, block_size, gateway_address)
        warnings += more
    if network.num_addresses > WINDOW:
        warnings.append(f"{network} is wider than IPAMs can count: pods get addresses of its first 2^53 only.")
    subnet = {
        "cidr": str(network),
        "prefix": network.prefixlen,
        "gateway": str(gateway_address) if gateway_address is not None else "",
        "range_start": str(type(network[0])(allowed[0][0])),
        "range_end": str(type(network[0])(allowed[-1][1])),
        "exclude": _exclude(network, allowed),
        "capacity": capacity,
        "mtu": mtu,
    }
    return {**subnet, "ipam": _ipam(ipam, subnet, pool_name), "pool": pool, "warnings": warnings}
