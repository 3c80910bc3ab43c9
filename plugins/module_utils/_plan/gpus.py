# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which fabric NICs of a host are nearest to each of its GPUs."""

from __future__ import annotations

import typing as t

from .._model.observation import Link
from .._model.plan import PlannedGpu
from .hosts import PlacedHost
from .nics import nearest


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
