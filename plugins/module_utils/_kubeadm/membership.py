# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is to its cluster: nothing yet, a member, or something in between."""

from __future__ import annotations

import json
import os
import socket
import time
import typing as t

from .._common.text import EXPIRED
from .._host.certificates import expired_certificates
from .._host.distributions import find_distribution
from .._host.kubectl import run_kubectl
from . import paths

CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
# What to do about a broken or expired host. Only one that is no longer a member may be reset.
START = (
    "See why on its control plane (crictl ps, journalctl -u kubelet), and start its cluster. Leave this host as it is."
    " Take the host out only if that cluster is gone for good:"
    " https://github.com/ipu-fabric/ipu.fabric/blob/main/docs/kubernetes.md#add-and-remove-hosts"
)
RENEW = "Run the playbook ipu.fabric.renew_certificates. The cluster is not lost: leave this host as it is."
REMOVED = (
    "If the host was renamed, give it the name of its node again. If it was removed from the cluster with kubectl"
    " delete node, finish that on it: sudo kubeadm reset --force; sudo ip link delete cni0."
)
WORKER = "It is a worker of a cluster that runs: take it out of kube_control_plane, and put it into kube_node."


class Taint(t.TypedDict):
    """A taint of a node."""

    key: str


class NodeMetadata(t.TypedDict, total=False):
    """The part of a node's metadata that is read here."""

    name: str
    labels: t.Dict[str, str]


class NodeSpec(t.TypedDict, total=False):
    """The part of a node's spec that is read here."""

    taints: t.List[Taint]


class NodeSystemInfo(t.TypedDict, total=False):
    """The part of a node's own report that is read here."""

    kubeletVersion: str  # of the running kubelet


class NodeCondition(t.TypedDict):
    """What the kubelet reports about its node."""

    type: str  # Ready and others
    status: str  # True, False or Unknown
    lastHeartbeatTime: str  # time of the report, by the host's own clock


class NodeAddress(t.TypedDict):
    """An address, or a name, of a node."""

    type: str
    address: str


class NodeStatus(t.TypedDict, total=False):
    """The part of a node's status that is read here."""

    addresses: t.List[NodeAddress]
    conditions: t.List[NodeCondition]
    nodeInfo: NodeSystemInfo


class Node(t.TypedDict, total=False):
    """What the API reports about this host; empty if it knows no such node."""

    metadata: NodeMetadata
    spec: NodeSpec
    status: NodeStatus


class Membership(t.TypedDict):
    """Where a host stands with its cluster."""

    membership: str  # none, member, unfinished, broken, or expired: the cluster exists, but certificates have expired
    seen: str  # why it is broken or expired
    next_step: str  # what to do about that
    answered: bool  # an API server reported whether the cluster has this node
    registered: bool  # the cluster has this node
    is_control_plane: bool  # the cluster has it as a control plane
    taints: t.List[str]  # their keys


class Lookup(t.NamedTuple):
    """An API server's answer about this host."""

    node: t.Optional[Node]  # {} if the cluster has no such node; None without an answer
    error: str = ""  # why there is no answer


def host_name() -> str:
    return socket.gethostname().lower()


def node_labels(node: t.Optional[Node]) -> t.Dict[str, str]:
    return dict(node.get("metadata", {}).get("labels") or {}) if node else {}


def classify(traces: t.Sequence[str], unfinished: bool, node: t.Optional[Node], control_plane: bool) -> str:
    """none, member, unfinished or broken; node is None if the API gave no answer.

    A half-made node without our marker is broken: it may belong to somebody else, and is left alone.
    """
    if unfinished:
        return "unfinished"
    if node and (not control_plane or CONTROL_PLANE_LABEL in node_labels(node)):
        return "member"
    return "broken" if traces else "none"


class Diagnosis(t.NamedTuple):
    """Why a host with traces of a node is not confirmed to be one."""

    membership: str  # broken or expired
    seen: str
    next_step: str


def diagnose(traces: t.Sequence[str], lookup: Lookup, expired: t.Sequence[str]) -> Diagnosis:
    """Why a host is broken, and what to do about it. A host with expired certificates counts as expired instead."""
    files = "the host has " + ", ".join(traces)
    if lookup.node is None:
        answer = lookup.error or "no API server can be asked"
        if expired:
            return Diagnosis("expired", f"its certificates have expired: {', '.join(expired)}; {answer}", RENEW)
        if EXPIRED in lookup.error:
            return Diagnosis("expired", answer, RENEW)
        return Diagnosis("broken", f"{files}, but {answer}", START)
    if not lookup.node:
        return Diagnosis("broken", f"{files}, but the cluster knows no such node", REMOVED)
    return Diagnosis("broken", f"{files}, and its node is in the cluster, but not as a control plane", WORKER)


def ask_for_node(kubeconfig: str, name: str) -> Lookup:
    done = run_kubectl(kubeconfig, "get", "node", name, "-o", "json", request_timeout="10s")
    if done.rc == 0:
        node: Node = json.loads(done.out)
        return Lookup(node)
    if "NotFound" in done.err:
        return Lookup(Node())
    lines = done.err.strip().splitlines()
    return Lookup(None, f"the API server gives no answer ({lines[-1] if lines else f'kubectl: rc {done.rc}'})")


def find_node(name: str) -> Lookup:
    """This host's node, requested as the kubelet, or as the administrator if the kubelet gets no answer.

    A control plane's kubelet asks the API server of its own host, which may be down while the cluster is up.
    """
    lookup = Lookup(None)
    for kubeconfig in (paths.KUBELET, paths.ADMIN):
        if lookup.node is None and os.path.exists(kubeconfig):
            lookup = ask_for_node(kubeconfig, name)
    return lookup


def of_others() -> t.Optional[Membership]:
    """The membership of a node of k3s or RKE2, on which kubeadm must not create another one."""
    found = find_distribution()
    if not found or not found.distribution.embeds_containerd or os.path.exists(paths.KUBELET):
        return None
    return {
        "membership": "broken",
        "seen": f"it is a node of {found.distribution.name}",
        "next_step": "Set fabric_manage_kubernetes to false to keep its cluster, or remove it with its uninstaller.",
        "answered": False,
        "registered": False,
        "is_control_plane": False,
        "taints": [],
    }


def inspect_host(name: str, control_plane: bool, unfinished: bool) -> Membership:
    other = of_others()
    if other:
        return other
    traces = [path for path in paths.TRACES if os.path.exists(path)]
    lookup = find_node(name) if traces else Lookup(Node())
    membership = classify(traces, unfinished, lookup.node, control_plane)
    seen, next_step = "", ""
    if membership == "broken":
        membership, seen, next_step = diagnose(traces, lookup, expired_certificates(paths.ROOT, time.time()))
    return {
        "membership": membership,
        "seen": seen,
        "next_step": next_step,
        "answered": bool(traces) and lookup.node is not None,
        "registered": bool(lookup.node),
        "is_control_plane": CONTROL_PLANE_LABEL in node_labels(lookup.node),
        "taints": [taint["key"] for taint in (lookup.node or Node()).get("spec", {}).get("taints", [])],
    }
