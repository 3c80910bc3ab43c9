# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of a subnet that is the pods': as far as an IPAM can count, and as a site asks for it."""

from __future__ import annotations

import ipaddress
import re
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import (
    Network,
    Run,
    Runs,
    parse_run,
    size,
    subtract,
)

# nv-ipam checks a block's offset in the subnet as a double: beyond 2^53 it takes blocks for wrong and deals them anew.
# whereabouts stores offsets as int64. One limit for both.
WINDOW = 2**53


def window(network: Network) -> Run:
    """The part of the subnet that an IPAM can count in."""
    first = int(network[0])
    return first, first + min(network.num_addresses, WINDOW) - 1


def pods_share(network: Network, share: str) -> Run:
    """The part of the subnet that is the pods'."""
    first, last = window(network)
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


class Demand(t.NamedTuple):
    """What is wanted, to say what would work when it can't be had."""

    network: Network
    taken: Runs
    share: str
    pods: int
    nodes: int

    def allowed(self, share: str) -> Runs:
        return subtract(pods_share(self.network, share), self.taken)

    def more_room(self) -> str:
        """The next step of everybody who has too few addresses."""
        whole = size(self.allowed("all"))
        if self.share != "all" and whole >= max(self.pods, 1):
            return f"Set share to all ({whole} addresses) or to a larger part of {self.network}, or ask for fewer pods."
        wanted = max(self.pods, 1) + size(subtract(window(self.network), self.allowed("all")))
        bits = ((wanted if self.share == "all" else 2 * wanted) - 1).bit_length()
        prefix = max(self.network.max_prefixlen - bits, 1)
        return f"Renumber the fabric: a /{prefix} has room for them. Or ask for fewer pods."
