# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which fabric NICs of a host are nearest to each of its GPUs."""

from __future__ import annotations

import typing as t

from .._common.findings import Findings
from .._model.observation import Link
from .._model.plan import PlannedGpu
from .._model.settings import Settings
from .hosts import Hosts, PlacedHost
from .nics import nearest


def check_gpus(settings: Settings, hosts: Hosts, findings: Findings) -> None:
    """The GPU operator is asked for, and no host that was observed has anything for it."""
    observed = {name: host.rdma["gpus"] for name, host in hosts.items() if host.rdma}
    if settings.gpu and observed and not any(observed.values()):
        findings.warning(
            "gpu-hosts",
            observed,
            "fabric_gpu is true, and no host has a GPU.",
            "fabric_gpu is true; no PCI device of any host is an NVIDIA GPU",
            "Set fabric_gpu: false, or see lspci -d 10de: on the hosts that should have GPUs.",
        )


def plan_gpus(host: PlacedHost, nics: t.Mapping[str, Link]) -> t.List[PlannedGpu]:
    """The GPUs of a host, with the networks among those of `nics` that are nearest."""
    if not host.rdma:
        return []
    found = []
    for gpu in host.rdma["gpus"]:
        near = [link["netdev"] for link in nearest(gpu, list(nics.values()), host.rdma["links"])]
        networks = [network for network, link in nics.items() if link["netdev"] in near]
        found.append(PlannedGpu(pci=gpu["pci"], model=gpu.get("model", ""), networks=networks))
    return found
