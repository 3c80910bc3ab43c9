# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ConfigMap of kubeadm with the kubelet's configuration: for nodes that join, and for all of them in an upgrade."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import outcome
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import ApiError, connect, refusal
from ansible_collections.ipu.fabric.plugins.module_utils._kube.kubelet_config import kubelet_config

CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/kubelet-config"


def apply_config_map(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.kubelet_config_map)."""
    cluster = connect(module)
    found = cluster.get(CONFIG_MAP)
    if found is None:  # no cluster yet, or none of kubeadm
        return outcome("", "", found=False)
    before = (found.get("data") or {}).get("kubelet") or ""
    after = kubelet_config(before, module.params["settings"])
    if before != after and not module.check_mode:
        body = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "data": {"kubelet": after}}
        try:
            cluster.patch(CONFIG_MAP, body)
        except ApiError as error:
            raise refusal(error, "change", "ConfigMap kube-system/kubelet-config") from error
    return outcome(before, after, found=True)
