# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases that break another part of the plan, as a table. docs/releases.md shows it."""

from __future__ import annotations

import typing as t

from .._common.findings import Findings
from .._model.plan import Level
from .._model.settings import Settings


class Pair(t.NamedTuple):
    """Releases of the GPU operator, and the part of the plan that they break."""

    gpu_operators: t.Tuple[str, ...]
    beside: str  # that part of the plan, in words
    applies: t.Callable[[Settings], bool]
    level: Level
    what: str
    seen: str
    step: str
    sources: t.Tuple[str, ...]


PAIRS = (
    Pair(
        ("26.3.0", "26.3.1", "26.3.2"),
        "fabric networks",
        lambda settings: bool(settings.networks),
        "error",
        "breaks RDMA and NCCL of pods with GPUs: each of their containers gets the device files of all RDMA NICs",
        "its device plugin, 0.19.0 to 0.19.2, has MOFED_ENABLED on by default",
        "Set fabric_gpu_operator_version to 26.3.3 or later.",
        (
            "https://github.com/NVIDIA/k8s-device-plugin/issues/1692",
            "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/release-notes.html",
        ),
    ),
    Pair(
        ("26.3.0", "26.3.1", "26.3.2", "26.3.3", "26.7.0"),
        "`fabric_ofed`",
        lambda settings: bool(settings.ofed),
        "warning",
        "can't always load nvidia-peermem again once the driver of NICs or GPUs was restarted without a reboot",
        "the release notes of 26.3.0 list it, it was reported for 26.3.2, and no later notes say that it is fixed",
        "With gpu_operator_rdma: true, drain and reboot each node after a restart of either driver. If GPUDirect RDMA"
        " uses DMA-BUF, do nothing.",
        (
            "https://github.com/NVIDIA/gpu-operator/issues/2619",
            "https://github.com/Mellanox/doca-driver-build/pull/481",
        ),
    ),
)


def check_pairs(settings: Settings, findings: Findings) -> None:
    """Add a finding for each row with the plan's GPU operator whose condition the plan meets."""
    release = settings.gpu_operator_version.lstrip("v")
    for pair in PAIRS:
        if release in pair.gpu_operators and pair.applies(settings):
            add = findings.error if pair.level == "error" else findings.warning
            add(
                "release-table",
                [],
                f"Together with {pair.beside.strip('`')}, GPU operator {release} {pair.what}.",
                f"{pair.seen} ({pair.sources[0]})",
                pair.step,
            )
