# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Block sizes of nv-ipam, which gives each node one block of a subnet.

Sizes are computed with integers, not with netaddr: some 500 sizes are tried, each over all ranges of the subnet.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import re
import typing as t

from .._common.addresses import Address, Network
from .._common.result import FabricError
from .._model.plan import Exclusion, PoolSpec
from .pod_share import Demand, window

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr

# Block sizes tried beyond the smallest sufficient one, if powers of two do not fit.
ODD_SIZES = 512
NV_IPAM_EXCLUSIONS = (24, 7)  # first release with IPPool.exclusions
NV_IPAM_SKIPS = (26, 1)  # first release that skips blocks without a free address


def parse_release(text: str) -> t.Tuple[int, int]:
    """Year and month of a network operator release such as 26.7.1 or v25.10.0-rc.1; empty text is the newest."""
    if not text:
        return NV_IPAM_SKIPS
    match = re.match(r"v?(\d+)\.(\d+)", text)
    if not match:
        raise FabricError(
            "The network operator's release decides how nv-ipam allocates blocks.",
            "ipam_release",
            f"{text!r}",
            "Write it like 26.7.1.",
            code="invalid-input",
        )
    return int(match.group(1)), int(match.group(2))


@dataclasses.dataclass(frozen=True)
class Blocks:
    """How nv-ipam allocates a subnet: from its second address on, in blocks of one size, one per node, in order."""

    allowed: netaddr.IPSet  # what pods may get
    first: netaddr.IPAddress  # of the first block
    last: netaddr.IPAddress  # no block ends after it
    skips: bool  # this release skips blocks without a free address

    @functools.cached_property
    def runs(self) -> t.List[t.Tuple[int, int]]:
        """First and last address of each allowed range, counted from the first block on."""
        start = int(self.first)
        return [(run.first - start, run.last - start) for run in self.allowed.iter_ipranges()]

    @functools.cached_property
    def length(self) -> int:
        """Number of addresses that blocks can consist of."""
        return int(self.last) - int(self.first) + 1

    def total(self, block_size: int) -> int:
        return self.length // block_size

    def edges(self, block_size: int) -> t.Dict[int, int]:
        """Free addresses of the blocks in which a run begins or ends. Others are entirely free or entirely excluded."""
        free: t.Dict[int, int] = {}
        for low, high in self.runs:
            begin, finish = low // block_size, high // block_size
            for block in (begin, finish) if begin != finish else (begin,):
                start, end = block * block_size, (block + 1) * block_size - 1
                if end < self.length:
                    free[block] = free.get(block, 0) + min(high, end) - max(low, start) + 1
        return free

    def whole(self, block_size: int) -> int:
        """Number of blocks that lie inside a run and are not among the edges."""
        inner = (high // block_size - low // block_size - 1 for low, high in self.runs)
        return sum(max(blocks, 0) for blocks in inner)

    def allocated(self, block_size: int, nodes: int) -> t.List[int]:
        """Free addresses of the blocks that the first `nodes` nodes get; shorter if the blocks run out."""
        free: t.Dict[int, int] = {}
        most = self.total(block_size)
        for low, high in self.runs:
            for block in range(low // block_size, min(high // block_size + 1, most)):
                if block not in free and (len(free) if self.skips else block) >= nodes:
                    break
                start, end = block * block_size, (block + 1) * block_size - 1
                free[block] = free.get(block, 0) + min(high, end) - max(low, start) + 1
        return list(free.values()) if self.skips else [free.get(block, 0) for block in range(min(nodes, most))]

    def least(self, block_size: int, nodes: int) -> int:
        """How many addresses the node with the fewest gets, of `nodes` nodes, at best."""
        if not self.skips:
            free = self.allocated(block_size, nodes)
            return min(free) if len(free) == nodes else 0
        missing = nodes - self.whole(block_size)
        if missing <= 0:
            return block_size
        edges = sorted(self.edges(block_size).values(), reverse=True)
        return edges[missing - 1] if len(edges) >= missing else 0

    def powers(self, need: int, nodes: int) -> t.Iterator[int]:
        """Powers of two as block sizes: they stay the same while a cluster grows."""
        power = 1 << (need - 1).bit_length()
        while power <= min(self.total(nodes), 2**30):
            yield power
            power *= 2

    def choose(self, need: int, nodes: int) -> int:
        """The block size with which each node gets `need` addresses; 0: there is none."""
        odd = range(need, min(self.total(nodes), need + ODD_SIZES) + 1)
        return next(
            (block_size for block_size in (*self.powers(need, nodes), *odd) if self.least(block_size, nodes) >= need), 0
        )

    def best(self, nodes: int) -> int:
        """The most addresses that every node can get if the block size is a power of two."""
        return max((self.least(block_size, nodes) for block_size in self.powers(1, nodes)), default=0)

    def without_poor(self, block_size: int, need: int) -> Blocks:
        """Exclude the rest of blocks with too few free addresses for a node, so that nv-ipam skips them."""
        if not self.skips:
            return self
        poor = [block * block_size for block, free in self.edges(block_size).items() if free < need]
        spans = (netaddr.IPRange(self.first + start, self.first + start + block_size - 1) for start in poor)
        return dataclasses.replace(self, allowed=self.allowed - netaddr.IPSet(spans))

    def exclusions(self) -> t.List[Exclusion]:
        everything = netaddr.IPSet(netaddr.IPRange(self.first, self.last))
        excluded = (everything - self.allowed).iter_ipranges()
        return [{"startIP": str(run[0]), "endIP": str(run[-1])} for run in excluded]


def pool_spec(network: Network, blocks: Blocks, block_size: int, gateway: t.Optional[Address]) -> PoolSpec:
    """The spec of an nv-ipam IPPool. The gateway is excluded too, so that a block of it alone is skipped."""
    spec: PoolSpec = {
        "subnet": str(network),
        "perNodeBlockSize": block_size,
        "exclusions": blocks.exclusions(),
    }
    if gateway is not None:
        spec["gateway"] = str(gateway)
    return spec


def _refuse_blocks(demand: Demand, blocks: Blocks, need: int, release: str) -> t.NoReturn:
    """Say why nv-ipam can't serve the nodes, and with which settings it or another IPAM could."""
    total, best = blocks.allowed.size, blocks.best(demand.nodes)
    advice = []
    if best:
        advice.append(f"set fabric_pods_per_node to {best} ({best * demand.nodes} pods on {demand.nodes} nodes)")
    if not blocks.skips:
        advice.append("use network operator 26.1 or later, which skips blocks without a free address")
    if demand.share != "all" and dataclasses.replace(blocks, allowed=demand.allowed("all")).choose(need, demand.nodes):
        advice.append("set share to all")
    if total >= demand.pods:
        advice.append(f"use whereabouts ({total} addresses)")
    raise FabricError(
        f"nv-ipam must have a block with at least {need} free addresses for each of {demand.nodes} nodes.",
        f"fabric subnet {demand.network}, nv-ipam of network operator {release}",
        f"{total} addresses for pods, but no block size gives every node {need}",
        (" or ".join(advice) + ".").capitalize() if advice else demand.more_room(best),
        code="invalid-input",
    )


def _unsized_blocks(network: Network, allowed: netaddr.IPSet, release: str) -> Blocks:
    if parse_release(release) < NV_IPAM_EXCLUSIONS:
        raise FabricError(
            "The nodes' own addresses must be excluded from the pool.",
            f"nv-ipam of network operator {release}",
            "its IPPool does not support exclusions",
            "Use network operator 24.7 or later, or whereabouts.",
            code="invalid-input",
        )
    countable = window(network)
    last = countable[-2] if network.version == 4 else countable[-1]
    return Blocks(allowed, countable[1], last, parse_release(release) >= NV_IPAM_SKIPS)


def most_per_node(demand: Demand, allowed: netaddr.IPSet, ipam: str, release: str) -> int:
    """How many pods each node could have, where each pod gets one address."""
    if ipam == "nv-ipam":
        return _unsized_blocks(demand.network, allowed, release).best(demand.nodes)
    return allowed.size // (demand.nodes or 1)


def plan_blocks(demand: Demand, allowed: netaddr.IPSet, release: str) -> t.Tuple[Blocks, int, t.List[str]]:
    """The blocks, their size, and warnings."""
    blocks = _unsized_blocks(demand.network, allowed, release)
    need = math.ceil(demand.pods / demand.nodes) or max(blocks.best(demand.nodes), 1)
    block_size = blocks.choose(need, demand.nodes)
    if not block_size:
        _refuse_blocks(demand, blocks, need, release)
    blocks = blocks.without_poor(block_size, need)
    warnings = []
    if blocks.least(block_size, demand.nodes + 1) < need:
        warnings.append(f"{demand.network}: nv-ipam has no block with {need} free addresses left for another node.")
    return blocks, block_size, warnings
