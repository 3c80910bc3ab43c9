# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is to its cluster: nothing yet, a member, or something between."""

from __future__ import annotations

import json
import os
import socket
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import paths

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"


class Taint(t.TypedDict):
    """A taint of a node."""

    key: str


class NodeMetadata(t.TypedDict, total=False):
    """The part of a node's metadata that is read."""

    labels: t.Dict[str, str]


class NodeSpec(t.TypedDict, total=False):
    """The part of a node's spec that is read."""

    taints: t.List[Taint]


class Node(t.TypedDict, total=False):
    """What the API says of this host; empty when it knows no such node."""

    metadata: NodeMetadata
    spec: NodeSpec


class Membership(t.TypedDict):
    """Where a host stands with its cluster."""

    membership: str  # none, member, unfinished or broken
    seen: str  # why it is broken
    registered: bool  # the cluster has this node
    is_control_plane: bool  # the cluster has it as a control plane
    taints: t.List[str]  # their keys


def host_name() -> str:
    return socket.gethostname().lower()


def node_labels(node: t.Optional[Node]) -> t.Dict[str, str]:
    return dict(node.get("metadata", {}).get("labels") or {}) if node else {}


def classify(traces: t.Sequence[str], unfinished: bool, node: t.Optional[Node], control_plane: bool) -> str:
    """none, member, unfinished or broken; node is None when the API gave no answer.

    A half-made node without our mark is broken: it may belong to somebody, and is left alone.
    """
    if unfinished:
        return "unfinished"
    if node and (not control_plane or CONTROL_PLANE_LABEL in node_labels(node)):
        return "member"
    return "broken" if traces else "none"


def why_broken(traces: t.Sequence[str], node: t.Optional[Node]) -> str:
    files = "there are " + ", ".join(traces)
    if node is None:
        return files + ", but the API server gives no answer"
    if not node:
        return files + ", but the cluster knows no such node"
    return files + ", and the node is in a cluster, but not as a control plane"


def read_node(module: AnsibleModule, name: str) -> t.Optional[Node]:
    """This host's node, read with the kubelet's own credentials; {} if unknown, None without an answer."""
    kubectl = module.get_bin_path("kubectl")
    if not kubectl or not os.path.exists(paths.KUBELET):
        return None
    argv = [kubectl, "--kubeconfig", paths.KUBELET, "--request-timeout", "10s", "get", "node", name, "-o", "json"]
    code, out, err = module.run_command(argv)
    if code == 0:
        node: Node = json.loads(out)
        return node
    return {} if "NotFound" in err else None


def inspect_host(module: AnsibleModule, name: str, control_plane: bool, unfinished: bool) -> Membership:
    traces = [path for path in paths.TRACES if os.path.exists(path)]
    node = read_node(module, name) if traces else Node()
    membership = classify(traces, unfinished, node, control_plane)
    return {
        "membership": membership,
        "seen": why_broken(traces, node) if membership == "broken" else "",
        "registered": bool(node),
        "is_control_plane": CONTROL_PLANE_LABEL in node_labels(node),
        "taints": [taint["key"] for taint in (node or Node()).get("spec", {}).get("taints", [])],
    }
