# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether nodes are Ready, and why not."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Object, connect, field, wait_until

NODES = "/api/v1/nodes"


def why_not_ready(node: Object) -> str:
    """The reason of a node that is not Ready in a line; empty for one that is."""
    for condition in field(node, "status.conditions") or []:
        if condition["type"] == "Ready":
            if condition["status"] == "True":
                return ""
            return f"{condition.get('reason', 'not Ready')}: {condition.get('message', '')}".rstrip(": ")
    return "its kubelet has not reported yet"


def not_ready(nodes: t.Sequence[Object], names: t.Sequence[str]) -> t.Dict[str, str]:
    """Reasons by name for those that were asked for, or for all nodes when nobody in particular was."""
    seen = {node["metadata"]["name"]: why_not_ready(node) for node in nodes}
    reasons = {name: seen.get(name, "the cluster has no such node") for name in names or seen}
    return {name: reason for name, reason in sorted(reasons.items()) if reason}


def run(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module nodes_ready."""
    cluster, names = connect(module), module.params["names"]

    def pending() -> t.Dict[str, str]:
        return not_ready(cluster.items(NODES), names)

    if module.check_mode:
        return {"changed": False, "waited": 0.0, "not_ready": pending()}
    waited = wait_until(
        lambda: [f"{name}: {reason}" for name, reason in pending().items()],
        module.params["timeout"],
        "Nodes were expected to be Ready.",
        "See journalctl -u kubelet on these hosts, and kubectl get pods -A for the pod network.",
        0.5,
    )
    return {"changed": False, "waited": waited, "not_ready": {}}
