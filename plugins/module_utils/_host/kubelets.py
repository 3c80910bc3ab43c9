# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet of a host, whatever the Kubernetes distribution."""

from __future__ import annotations

import os
import typing as t

from .distributions import find_distribution


def kubelet_kubectl() -> t.Optional[t.Tuple[str, t.List[str]]]:
    """The kubelet's kubeconfig and the matching kubectl; None if there is no kubelet."""
    found = find_distribution()
    if not found or not found.there(found.distribution.kubelet):
        return None
    return found.path(found.distribution.kubelet), found.kubectl


def node_name(given: str) -> str:
    """The name of the host's node: the given one, or the kubelet's default."""
    return given or os.uname().nodename.lower()
