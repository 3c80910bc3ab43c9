# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exclude list: the fewest CIDRs that keep pods off addresses that are not for them."""

from __future__ import annotations

import contextlib
import typing as t

from .._common.addresses import Network
from .ranges import whole

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr


def exclude_list(network: Network, allowed: netaddr.IPSet) -> t.List[str]:
    """The fewest CIDRs that cover every host address of the subnet except the allowed ones.

    They may also cover the network and broadcast addresses, which no pod gets: this turns .1 to .127 into 10.5.0.0/25.
    """
    ends = (int(network[0]), int(network[-1]))
    cidrs = (netaddr.IPSet(whole(network)) - allowed).iter_cidrs()
    return [str(cidr) for cidr in cidrs if cidr.size > 1 or cidr.first not in ends]
