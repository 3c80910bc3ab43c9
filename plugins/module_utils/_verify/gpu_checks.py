# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of what GPUs need of the kernel of their node, for GPUDirect RDMA and gdrcopy. Pure."""

from __future__ import annotations

import re
import typing as t

from .._model.checks import Check, Expect
from .._model.plan import PVRDMA, Plan
from .._model.probe import GpuFacts, Probe
from .._model.stacks import has_rdma
from .catalog import NO_RDMA, NODE_POD, result, skip, unproven

GPU_LABEL = "nvidia.com/gpu.present"
NO_GPU = "GPU checks are off"
NO_GDRCOPY = "gdrcopy is not planned (gpu_operator_gdrcopy)"
NO_PVRDMA = "PVRDMA does not reach the memory of GPUs"
NO_NODE = (
    f"no node has the label {GPU_LABEL}",
    f"Let Node Feature Discovery and the GPU operator find the GPUs: kubectl get nodes -L {GPU_LABEL}.",
)
PEERMEM, GDRDRV = "nvidia_peermem", "gdrdrv"
DMA_BUF_KERNEL = (5, 12)
OPEN_DRIVER = "Open Kernel Module"  # the other one has no DMA-BUF


def check_gpus(plan: Plan, probe: Probe, expect: Expect) -> t.Iterator[Check]:
    reasons = {
        "gpudirect": NO_GPU if not expect.gpu else "" if has_rdma(plan) else NO_RDMA,
        "gdrcopy": NO_GPU if not expect.gpu else "" if expect.gdrcopy else NO_GDRCOPY,
    }
    labelled = {name for name, node in probe["nodes"].items() if node["labels"].get(GPU_LABEL) == "true"}
    # A second pod on a node would only say the same.
    pods = {name: pod for name, pod in sorted(probe["pods"].items()) if name in labelled}
    for check, reason in reasons.items():
        if reason:
            yield skip(check, reason)
        elif not pods:
            yield unproven(check, *NO_NODE)
        for node, pod in pods.items() if not reason else ():
            if pod["state"] != "running":
                yield unproven(check, *NODE_POD, node=node)
                continue
            facts, error = pod["root"]["gpu"], pod["root"]["error"]
            if check == "gpudirect" and PEERMEM not in facts["modules"] and is_paravirtual(plan, pod["host"]):
                yield skip(check, NO_PVRDMA, node=node)
                continue
            good, expected, seen = gdrcopy_seen(facts) if check == "gdrcopy" else gpudirect_seen(facts, expect.gpu_rdma)
            yield result(check, good, expected, seen if facts["kernel"] else error or "no output", node=node)


def is_paravirtual(plan: Plan, host: str) -> bool:
    """Whether all that the host has of RDMA is VMware's."""
    links = plan["hosts"][host]["links"].values() if host in plan["hosts"] else ()
    return {link["driver"] for link in links if link["device"]} == {PVRDMA}


Seen = t.Tuple[bool, str, str]  # whether it is so, what was expected, and what is there


def loaded(facts: GpuFacts) -> str:
    return f"{', '.join(facts['modules'])} loaded" if facts["modules"] else "no module of NVIDIA loaded"


def gdrcopy_seen(facts: GpuFacts) -> Seen:
    return GDRDRV in facts["modules"], f"{GDRDRV} loaded", loaded(facts)


def gpudirect_seen(facts: GpuFacts, way: str) -> Seen:
    """GPUDirect RDMA in the planned way, or by nvidia_peermem, which serves every network driver."""
    if PEERMEM in facts["modules"] or way == "peermem":
        wanted = f"{PEERMEM} loaded" if way == "peermem" else f"DMA-BUF, or {PEERMEM} loaded"
        return PEERMEM in facts["modules"], wanted, loaded(facts)
    numbers = re.match(r"(\d+)\.(\d+)", facts["kernel"])
    new = bool(numbers and tuple(map(int, numbers.groups())) >= DMA_BUF_KERNEL)
    expected = f"DMA-BUF: kernel {'.'.join(map(str, DMA_BUF_KERNEL))} or later, NVIDIA's open kernel modules"
    seen = f"kernel {facts['kernel']}, {facts['driver'] or 'no driver of NVIDIA'}"
    return new and OPEN_DRIVER in facts["driver"], expected, seen
