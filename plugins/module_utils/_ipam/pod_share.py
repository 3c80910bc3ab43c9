# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of a subnet that pods may use: within what IPAMs can handle, and as the site asks."""

from __future__ import annotations

import contextlib
import re
import typing as t

from .._common.addresses import Network
from .._common.result import FabricError
from .ranges import ip_range, parse_range, whole

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr

# nv-ipam checks a block's offset in the subnet as a double: beyond 2^53 it considers blocks invalid and allocates them
# again. whereabouts stores offsets as int64. The lower limit applies to both.
WINDOW = 2**53


def window(network: Network) -> netaddr.IPRange:
    """The part of the subnet that IPAMs can handle."""
    return ip_range(network[0], network[min(network.num_addresses, WINDOW) - 1])


def pods_share(network: Network, share: str) -> netaddr.IPRange:
    """The part of the subnet that `share` gives to pods."""
    countable = window(network)
    if share == "all":
        return countable
    if share == "upper_half":
        return netaddr.IPRange(countable[countable.size // 2], countable[-1])
    if not re.search(r"[.:]", share):
        raise FabricError(
            "The pods' share of the subnet is not valid.",
            "share",
            f"{share!r}",
            "Set share to upper_half, all, a CIDR or a range a-b.",
            code="invalid-input",
        )
    chosen = parse_range(share, "share")
    if chosen not in whole(network):
        raise FabricError(
            "The pods' share must lie in the fabric subnet.",
            "share",
            f"{share} is not inside {network}",
            "Choose a part of the subnet, upper_half or all.",
            code="invalid-input",
        )
    if chosen not in countable:
        raise FabricError(
            "The pods' share must lie within the addresses that the IPAMs can count.",
            "share",
            f"{share} goes beyond {countable[-1]}, the 2^53rd address of {network}",
            f"Choose a share up to {countable[-1]}.",
            code="invalid-input",
        )
    return chosen


class Demand(t.NamedTuple):
    """The addresses that are requested, to say what would work if they are not available."""

    network: Network
    taken: netaddr.IPSet  # addresses that no pod may get
    share: str
    pods: int  # addresses, 0: at least one
    nodes: int

    def allowed(self, share: str) -> netaddr.IPSet:
        """The addresses of this share that pods may get."""
        return netaddr.IPSet(pods_share(self.network, share)) - self.taken

    def more_room(self, most: int) -> str:
        """The next step if there are too few addresses."""
        everything = self.allowed("all").size
        if self.share != "all" and everything >= max(self.pods, 1):
            return (
                f"Set share to all ({everything} addresses: put IPU-Machines into `reserved`), or to a larger part"
                f" of {self.network}, or {_fewer_pods(most)}."
            )
        wanted = max(self.pods, 1) + window(self.network).size - everything
        bits = ((wanted if self.share == "all" else 2 * wanted) - 1).bit_length()
        prefix = max(self.network.max_prefixlen - bits, 1)
        return f"Renumber the fabric: a /{prefix} has room for them. Or {_fewer_pods(most)}."


def _fewer_pods(most: int) -> str:
    return f"set fabric_pods_per_node to {most} or less" if most else "take nodes out of it"
