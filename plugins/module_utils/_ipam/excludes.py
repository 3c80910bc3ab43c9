# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exclude list: the fewest CIDRs that keep pods off every address that is not theirs."""

from __future__ import annotations

import ipaddress
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import Network, Runs, subtract


def exclude_list(network: Network, allowed: Runs) -> t.List[str]:
    """The fewest CIDRs that hold every host address of the subnet but the allowed ones.

    They may also hold the network and the broadcast address, which no pod gets: that makes 10.5.0.0/25 of .1 to .127.
    """
    ends = (int(network[0]), int(network[-1]))
    address = type(network[0])
    blocks: t.List[Network] = []
    for first, last in subtract(ends, allowed):
        blocks.extend(ipaddress.summarize_address_range(address(first), address(last)))
    return [str(block) for block in blocks if block.num_addresses > 1 or int(block[0]) not in ends]
