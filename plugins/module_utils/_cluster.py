# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cluster is and has that roles have to know before they change it."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._kube import Object, connect, field


def image_names(workload: Object) -> t.List[str]:
    """The last parts of a workload's images, without registry and tag."""
    containers = field(workload, "spec.template.spec.containers") or []
    return [c.get("image", "").rpartition("/")[2].partition("@")[0].partition(":")[0] for c in containers]


def places(workloads: t.Sequence[Object], images: t.Sequence[str]) -> t.List[str]:
    """Namespace and name of the workloads that run one of the images."""
    found = [w["metadata"] for w in workloads if set(image_names(w)) & set(images)]
    return sorted(f"{metadata['namespace']}/{metadata['name']}" for metadata in found)


def node_view(node: Object) -> Object:
    conditions = field(node, "status.conditions") or []
    return {
        "name": node["metadata"]["name"],
        "ready": any(c["type"] == "Ready" and c["status"] == "True" for c in conditions),
        "schedulable": not field(node, "spec.unschedulable"),
        "version": (field(node, "status.nodeInfo.kubeletVersion") or "").lstrip("v"),
    }


def run(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module cluster_info."""
    cluster = connect(module)
    daemonsets = cluster.items("/apis/apps/v1/daemonsets")
    version = (cluster.get("/version") or {}).get("gitVersion", "")
    return {
        "changed": False,
        "present": cluster.present,
        "version": version.lstrip("v"),
        "nodes": [node_view(node) for node in cluster.items("/api/v1/nodes")],
        "nfd": places(daemonsets, ("node-feature-discovery", "node-feature-discovery-minimal")),
        "prometheus_operator": cluster.resource("monitoring.coreos.com/v1", "ServiceMonitor") is not None,
        "multus": places(daemonsets, ("multus-cni", "multus", "hardened-multus-cni", "multus-thick")),
    }
