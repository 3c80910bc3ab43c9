# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failed check in detail: what the proof saw, and commands to inspect it now and to repeat it. Pure functions."""

from __future__ import annotations

import json
import typing as t

from .._common.redaction import redact
from .._model.checks import Check
from .._model.probe import Probe
from .catalog import CHECK_TYPES
from .pods import node_of

VERIFY = "ansible-playbook -i inventory ipu.fabric.verify"
ANY_CLUSTER = "ansible-playbook ipu.fabric.prove_cluster"
MOST = 4  # nodes in one command; with more, the whole site is proved
LONGEST = 3_000  # characters of an object
NETWORK, NODE = "{network}", "{node}"  # replaced in paths by those of the check
ATTACHMENTS = "kubectl get network-attachment-definitions --all-namespaces --field-selector metadata.name={network}"
LOOK = {
    "release": "helm list --all-namespaces --all",
    "kinds": "kubectl api-resources",
    "policy": "kubectl get nicclusterpolicies -o yaml",
    "attachment": f"{ATTACHMENTS} -o yaml",
    "nfd": "kubectl get daemonsets,deployments --all-namespaces",
    "multus_once": "kubectl get daemonsets --all-namespaces",
    "multus_node": "kubectl get daemonsets --all-namespaces",
    "node": "kubectl describe node {node}",
    "rdma_resource": "kubectl describe node {node}",
    "ipu_labels": "kubectl get node {node} --show-labels",
    "kubelet_requests": "kubectl get csr",
}
# Where the probe stores the facts of a check.
PLACES = {
    "release": ("releases",),
    "kinds": ("kinds",),
    "policy": ("policy",),
    "network": ("networks", NETWORK, "state"),
    "attachment": ("networks", NETWORK, "attachment"),
    "nfd": ("addons", "nfd"),
    "multus_once": ("addons", "multus"),
    "multus_node": ("addons", "multus_nodes"),
    "node": ("nodes", NODE),
    "kubelet_requests": ("kubelet_requests",),
    "workloads": ("pods_without", NETWORK),
    "dns": ("pods", NODE, "root", "dns"),
    "gateway": ("pods", NODE, "gateways"),
    "ip_pool": ("pools",),
    "image_digest": ("images",),
    "rail_isolation": ("crossings",),
    "multus": ("pods", NODE, "network_status"),
    "interface": ("pods", NODE, "root", "links"),
    "address": ("pods", NODE, "root", "links"),
    "mtu": ("pods", NODE, "root", "links"),
    "default_route": ("pods", NODE, "root", "default_routes"),
    "main_routes": ("pods", NODE, "root", "main_routes"),
    "policy_routes": ("pods", NODE, "root", "policy"),
    "memlock_root": ("pods", NODE, "root", "memlock"),
    "memlock_user": ("pods", NODE, "user"),
    "rdma_resource": ("nodes", NODE, "allocatable"),
    "ipu_labels": ("nodes", NODE, "labels"),
    "rdma_link": ("pods", NODE, "rdma", "ports"),
    "link_layer": ("pods", NODE, "rdma", "ports"),
    "rdma_files": ("pods", NODE, "rdma", "files"),
    "gid": ("pods", NODE, "rdma", "gids"),
    "ipu_operator": ("ipu", "deployments"),
    "ipu_certificate": ("ipu", "certificate"),
    "vipu_proxy": ("ipu", "proxy"),
    "webhook": ("webhook",),
}


def nodes_at_fault(checks: t.Sequence[Check]) -> t.List[str]:
    """The nodes that a repetition needs: the one that all failed pairs share, else all that failed."""
    named = [{node_of(key) for key in (check.node, *check.pair) if key} for check in checks]
    common = set.intersection(*named) if named else set()
    return sorted(common or set().union(*named))


def repeat_command(checks: t.Sequence[Check], any_cluster: bool = False) -> str:
    """The command that repeats this check on these nodes and their neighbours, or on all if it concerns none or many.

    any_cluster: the plan was derived from the cluster.
    """
    nodes = nodes_at_fault(checks)
    some = {"verify_nodes": nodes} if 0 < len(nodes) <= MOST else {}
    start = ANY_CLUSTER if any_cluster else VERIFY
    names = {check.subject if check.check == "regression" else check.check for check in checks}
    if not names <= set(CHECK_TYPES):
        return start  # a node that moved needs a whole proof
    return f"{start} -e '{json.dumps({'verify_checks': sorted(names), **some})}'"


def look_command(check: Check) -> str:
    """The command that shows the object of a check; empty if there is none, as for a deleted pod."""
    return LOOK.get(check.check, "").format(network=check.network, node=node_of(check.node))


def live_object(check: Check, probe: Probe) -> str:
    """What the probe has seen of a check's object, as JSON without secrets; empty if it has seen nothing."""
    found: object = probe
    for key in PLACES.get(check.check, ()) or ("",):
        name = {NETWORK: check.network, NODE: check.node}.get(key, key)
        found = found.get(name) if isinstance(found, dict) else None
    if found is None:
        return ""
    text = json.dumps(redact(found), indent=2)  # this escapes terminal control sequences
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n... probe.json has all of it"
