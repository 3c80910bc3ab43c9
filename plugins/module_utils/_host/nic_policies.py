# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policies of the network operator, and the sections that both kinds may have."""

from __future__ import annotations

import typing as t

from .._common.helm_record import Object
from .._common.manager import is_ours
from .._model.observation import NicPolicy
from .kubectl import Ask

KINDS = {
    "NicClusterPolicy": "/apis/mellanox.com/v1alpha1/nicclusterpolicies",
    "NicNodePolicy": "/apis/mellanox.com/v1alpha1/nicnodepolicies",
}
SHARED = ("ofedDriver", "rdmaSharedDevicePlugin", "sriovDevicePlugin")  # sections of either kind, but never of both


def read_nic_policies(asks: Ask) -> t.List[NicPolicy]:
    """The NicClusterPolicy and NicNodePolicies of the cluster."""
    return [_policy(kind, each) for kind, path in KINDS.items() for each in asks(path).get("items", [])]


def _policy(kind: str, policy: Object) -> NicPolicy:
    spec = policy.get("spec", {})
    return {
        "kind": kind,
        "name": policy["metadata"]["name"],
        "sections": [section for section in SHARED if spec.get(section)],
        "node_selector": dict(spec.get("nodeSelector") or {}),
        "ours": is_ours(policy),
    }
