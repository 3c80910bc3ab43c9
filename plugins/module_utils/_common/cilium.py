# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cilium beside multus: by default its chart has it take the CNI configurations of all others out of service."""

from __future__ import annotations

import typing as t

CONFIG = "cilium-config"  # its ConfigMap, in the namespace of its DaemonSet
BACKUP = ".cilium_bak"  # what it appends to the names of the others' files
WHY = "Cilium renames the CNI configuration of multus, again and again: pods get no second network."
ADVICE = (
    "Set cni.exclusive to false for Cilium (Helm: --reuse-values --set cni.exclusive=false; kubespray:"
    " cilium_cni_exclusive; RKE2: HelmChartConfig rke2-cilium) and restart its DaemonSet, then kube-multus-ds."
)


def is_exclusive(settings: t.Mapping[str, str]) -> bool:
    """By the data of its ConfigMap. Without the key the agent leaves the others alone."""
    return settings.get("cni-exclusive") == "true"
