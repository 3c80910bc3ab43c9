# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cilium beside multus: by default, its chart has it disable all other CNI configurations."""

from __future__ import annotations

import typing as t

CONFIG = "cilium-config"  # its ConfigMap, in the namespace of its DaemonSet
BACKUP = ".cilium_bak"  # suffix that it appends to the names of disabled files
WHY = "Cilium renames the CNI configuration of multus, again and again: pods get no second network."
ADVICE = (
    "Set cni.exclusive to false for Cilium (Helm: --reuse-values --set cni.exclusive=false; kubespray:"
    " cilium_cni_exclusive; RKE2: HelmChartConfig rke2-cilium) and restart its DaemonSet, then kube-multus-ds."
)


def is_exclusive(settings: t.Mapping[str, str]) -> bool:
    """Whether it disables others, from the data of its ConfigMap. Without the key, the agent does not."""
    return settings.get("cni-exclusive") == "true"
