# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each cluster has one multus: when it is refused to bring a second one, or to do without any."""

from __future__ import annotations

import typing as t

from .._common.result import FabricError


def check_multus(role: str, wanted: bool, others: t.Sequence[str]) -> None:
    """FabricError where multus is wanted beside that of others, or not wanted and nobody else has one."""
    variables = f"fabric_multus ({role}_multus)"
    if wanted and others:
        raise FabricError(
            "The cluster has a multus already, and two of them overwrite each other's CNI configuration.",
            "DaemonSets of the cluster",
            ", ".join(others),
            f"Set {variables} to false to use the installed one, or remove it first.",
            code="not-ours",
        )
    if not wanted and not others:
        raise FabricError(
            "Without multus pods would get no fabric interface.",
            "DaemonSets of the cluster",
            f"{role}_multus is false, and the cluster has no multus of others",
            f"Set {variables} to true, or have what manages the cluster install one first.",
            code="not-found",
        )
