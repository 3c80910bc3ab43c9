# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device files that a release of the RDMA device plugin requires, and those that the hosts' kernels create."""

from __future__ import annotations

import re
import typing as t

from .._common.findings import Findings
from .._model.plan import Releases
from .._network.releases import kernel_before, operators_for, parse, show
from .host_links import HostLink, NetworkLinks


def check_device_files(chosen: t.Sequence[NetworkLinks], releases: Releases, ipam: str, findings: Findings) -> None:
    """Old device plugins ignore an RDMA device without issm*, which newer kernels do not create for RoCE."""
    release = releases["network_operator"]
    first = kernel_before(release)
    if not first:
        return
    fit = [one for one in operators_for(parse(releases["kubernetes"])[:2], ipam) if not kernel_before(one)]
    step = f"Boot a kernel before {show(first)}."
    if fit:
        step = f"Set fabric_network_operator_version to {fit[-1]} or later, or b{step[1:]}"
    for network in chosen:
        for name, link in network.links.items():
            seen = _missing(link, first) if link.nic["rdma_netdevs"] else ""
            if seen:
                findings.error(
                    "rdma-modules",
                    [name],
                    f"The RDMA device plugin of network operator {release} demands a device file issm*: without one the"
                    " node has 0 of the resource.",
                    f"{seen}; kernels from {show(first)} on make none for RoCE, and the plugin demands one up to 24.7",
                    step,
                )


def _missing(link: HostLink, first: t.Tuple[int, ...]) -> str:
    """Evidence that the NIC's RDMA device has no issm*; its files are more reliable than the kernel's release."""
    kernel = link.host.facts["kernel"] if link.host.facts else ""
    files = link.host.rdma.get("mad_files", {}).get(link.nic["device"], []) if link.host.rdma else []
    if files:
        lacks = not any(name.startswith("issm") for name in files)
        return f"{link.nic['device']} has {', '.join(files)} alone; the kernel is {kernel}" if lacks else ""
    match = re.match(r"(\d+)\.(\d+)", kernel)
    new = match and tuple(map(int, match.groups())) >= first
    return f"{link.nic['device']} of {link.nic['netdev']} is RoCE; the kernel is {kernel}" if new else ""
