# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of kubelets in the API: kubeadm's ConfigMap, for joins and upgrades, and certificates."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.result import outcome
from .client import ApiError, connect, refusal
from .kubelet_config import kubelet_config
from .kubelet_requests import manage_requests

CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/kubelet-config"


def apply_config_map(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Set these fields for future nodes. Without a cluster, or in one not made by kubeadm, there is nothing to set."""
    cluster = connect(module)
    found = cluster.get(CONFIG_MAP) or {}
    before = (found.get("data") or {}).get("kubelet") or ""
    after = kubelet_config(before, module.params["settings"])
    if before != after and not module.check_mode:
        body = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "data": {"kubelet": after}}
        try:
            cluster.patch(CONFIG_MAP, body)
        except ApiError as error:
            raise refusal(error, "change", "ConfigMap kube-system/kubelet-config") from error
    return outcome(before, after)


def manage_kubelets(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """The body of M(ipu.fabric.cluster_kubelets)."""
    configured = apply_config_map(module) if module.params["settings"] else outcome("", "")
    without = outcome("", "", approved=[], left=[])
    approved = manage_requests(module) if module.params["nodes"] else without
    changed, diffs = configured["changed"] or approved["changed"], [configured["diff"], approved["diff"]]
    return {**approved, "changed": changed, "diff": [each for each in diffs if each["before"] != each["after"]]}
