# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of GPUs: what GPUDirect RDMA and gdrcopy require of the kernel, and the bandwidth between GPUs. Pure."""

from __future__ import annotations

import re
import typing as t

from .._model.checks import Check, Expect, Place
from .._model.plan import PVRDMA, Plan
from .._model.probe import GpuFacts, PodFacts, Probe
from .._model.stacks import has_rdma
from .catalog import NO_RDMA, NODE_POD, NOT_MEASURED, result, skip, unproven
from .pods import devices_on, gpu_of
from .traffic_checks import judge_speeds

GPU_LABEL = "nvidia.com/gpu.present"
NO_GPU = "GPU checks are off"
NO_GDRCOPY = "gdrcopy is not planned (gpu_operator_gdrcopy)"
NO_PVRDMA = "PVRDMA does not reach the memory of GPUs"
NO_NODE = (
    f"no node has the label {GPU_LABEL}",
    f"Check that Node Feature Discovery and the GPU operator run and find the GPUs: kubectl get nodes -L {GPU_LABEL}.",
)
NOT_NEAR = "no GPU of the node is near the NIC of this network"
NOT_OFFERED = (
    "the node offers no nvidia.com/gpu",
    "Find out why NVIDIA's device plugin does not offer GPUs: see its pod on this node, and `kubectl describe node`.",
)
IN_USE = "The proof takes all GPUs of a node, or none. Run it again when no other pod holds one of them."
TWO_NODES = (
    "needs pods with GPUs on two nodes",
    "Add a second node with GPUs to this network. If there are several, raise verify_rdma_seconds: time was too short.",
)
PEERMEM, GDRDRV = "nvidia_peermem", "gdrdrv"
DMA_BUF_KERNEL = (5, 12)
OPEN_DRIVER = "Open Kernel Module"  # the proprietary module has no DMA-BUF


def pods_of(probe: Probe) -> t.Dict[str, PodFacts]:
    """Pods on nodes with GPUs. A second pod on a node would only repeat the result."""
    labelled = {name for name, node in probe["nodes"].items() if node["labels"].get(GPU_LABEL) == "true"}
    return {name: pod for name, pod in sorted(probe["pods"].items()) if name in labelled}


def check_gpus(plan: Plan, probe: Probe, expect: Expect) -> t.Iterator[Check]:
    reasons = {
        "gpudirect": NO_GPU if not expect.gpu else "" if has_rdma(plan) else NO_RDMA,
        "gdrcopy": NO_GPU if not expect.gpu else "" if expect.gdrcopy else NO_GDRCOPY,
    }
    pods = pods_of(probe)
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


def check_gpu_bandwidth(plan: Plan, probe: Probe, expect: Expect) -> t.Iterator[Check]:
    check = "gpu_bandwidth"
    pods = pods_of(probe)
    if not expect.gpu or not has_rdma(plan):
        yield skip(check, NO_RDMA if expect.gpu else NO_GPU)
    elif not pods:
        yield unproven(check, *NO_NODE)
    elif not plan["networks"]:
        yield unproven(check, *NOT_MEASURED)
    else:
        for network in [each["name"] for each in plan["networks"] if each["rdma"]]:
            tests = [test for test in probe["traffic"] if (test["network"], test["check"]) == (network, check)]
            yield from judge_speeds(check, plan, probe, devices_on(probe["pods"], network), tests, expect)
            tested = {node for test in tests for node in (test["from"], test["to"])}
            for node in [node for node, pod in pods.items() if network in pod["networks"] and node not in tested]:
                yield untested(plan, pods[node], {"node": node, "network": network})


def untested(plan: Plan, pod: PodFacts, where: Place) -> Check:
    """Why nothing was measured between the GPUs of this node and others."""
    check = "gpu_bandwidth"
    if pod["state"] != "running":
        return unproven(check, *NODE_POD, **where)
    if is_paravirtual(plan, pod["host"]):
        return skip(check, NO_PVRDMA, **where)
    if gpu_of(plan, where["network"], pod["host"]) is None:
        return skip(check, NOT_NEAR, **where)
    if pod.get("gpus_refused"):
        return unproven(check, f"the probe pod did not get the node's GPUs: {pod['gpus_refused']}", IN_USE, **where)
    return unproven(check, *(TWO_NODES if pod.get("gpus") else NOT_OFFERED), **where)


def is_paravirtual(plan: Plan, host: str) -> bool:
    """Whether all RDMA devices of the host are VMware's."""
    links = plan["hosts"][host]["links"].values() if host in plan["hosts"] else ()
    return {link["driver"] for link in links if link["device"]} == {PVRDMA}


Seen = t.Tuple[bool, str, str]  # whether it is so, what was expected, and what was found


def loaded(facts: GpuFacts) -> str:
    return f"{', '.join(facts['modules'])} loaded" if facts["modules"] else "no module of NVIDIA loaded"


def gdrcopy_seen(facts: GpuFacts) -> Seen:
    return GDRDRV in facts["modules"], f"{GDRDRV} loaded", loaded(facts)


def gpudirect_seen(facts: GpuFacts, way: str) -> Seen:
    """GPUDirect RDMA in the planned way, or by nvidia_peermem, which works with every network driver."""
    if PEERMEM in facts["modules"] or way == "peermem":
        wanted = f"{PEERMEM} loaded" if way == "peermem" else f"DMA-BUF, or {PEERMEM} loaded"
        return PEERMEM in facts["modules"], wanted, loaded(facts)
    numbers = re.match(r"(\d+)\.(\d+)", facts["kernel"])
    new = bool(numbers and tuple(map(int, numbers.groups())) >= DMA_BUF_KERNEL)
    expected = f"DMA-BUF: kernel {'.'.join(map(str, DMA_BUF_KERNEL))} or later, NVIDIA's open kernel modules"
    seen = f"kernel {facts['kernel']}, {facts['driver'] or 'no driver of NVIDIA'}"
    return new and OPEN_DRIVER in facts["driver"], expected, seen
