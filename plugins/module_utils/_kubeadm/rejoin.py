# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Old nodes of reinstalled hosts, before these hosts join again."""

from __future__ import annotations

import ipaddress
import json
import time
import typing as t

from .._common.result import FabricError, outcome, printed_by
from .._host.kubectl import run_kubectl
from . import paths
from .membership import CONTROL_PLANE_LABEL, Node, host_name, node_labels

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

PAUSE = 3.0  # seconds between two checks
SECONDS = 30


def kubectl(*arguments: str) -> str:
    """The output of kubectl, as this host's administrator."""
    return printed_by(
        run_kubectl(paths.ADMIN, *arguments, timeout=SECONDS),
        SECONDS,
        "The nodes of hosts that join could not be read or changed.",
        f"kubectl {' '.join(arguments[:2])} on {host_name()}",
        "Check that the API server of this control plane answers, then run again. No host has joined.",
    )


def is_ready(node: Node) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def addresses_of(node: Node) -> str:
    return ", ".join(address["address"] for address in node.get("status", {}).get("addresses", []))


def check_addresses(nodes: t.Mapping[str, Node], planned: t.Mapping[str, t.Sequence[str]]) -> None:
    """Refuse a host without its node's address: a reinstalled host has a new machine-id, but the same address."""
    for name, node in sorted(nodes.items()):
        seen = [each["address"] for each in node.get("status", {}).get("addresses", []) if each["type"] == "InternalIP"]
        own = [address for address in planned.get(name, ()) if address]
        if seen and own and not {ipaddress.ip_address(each) for each in seen} & set(map(ipaddress.ip_address, own)):
            raise FabricError(
                "A host can't join under the name of another host's node.",
                f"node {name} of the cluster",
                f"it has the address {', '.join(seen)}, and the host that would join as {name} has {', '.join(own)}",
                "Give the host the name of its own node with hostnamectl. If it is the same host with another address,"
                f" remove the former node first (kubectl delete node {name}). No host has joined.",
                code="not-ours",
            )


def read_nodes(names: t.Sequence[str]) -> t.Dict[str, Node]:
    """The existing nodes with these names, by name."""
    if not names:
        return {}
    printed = kubectl("get", "nodes", "--ignore-not-found", "--output", "json", *names)
    answer = json.loads(printed) if printed.strip() else {"items": []}
    nodes: t.List[Node] = answer.get("items", [answer])  # kubectl returns a single node without a list
    return {node["metadata"]["name"]: node for node in nodes}


def wait_until_not_ready(names: t.Sequence[str], timeout: float) -> t.Dict[str, Node]:
    """Wait until none of the nodes is Ready, and return them."""
    give_up = time.monotonic() + timeout
    while True:
        nodes = read_nodes(names)
        ready = {name: node for name, node in nodes.items() if is_ready(node)}
        if not ready:
            return nodes
        if time.monotonic() > give_up:
            raise FabricError(
                "A host can't join under the name of a node that is Ready.",
                "; ".join(f"node {name} ({addresses_of(node)})" for name, node in sorted(ready.items())),
                f"still Ready after {timeout:g} s, but the host of this name in the inventory has no Kubernetes",
                "Another host has this name: give one of them another name. No host has joined.",
                code="not-ours",
            )
        time.sleep(PAUSE)


def prepare_nodes(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.kubeadm) with O(command=rejoin)."""
    names: t.List[str] = module.params["names"]
    nodes = read_nodes(names)
    check_addresses(nodes, module.params["addresses"])
    if not module.check_mode:
        nodes = wait_until_not_ready(names, module.params["timeout"])
    labelled = sorted(name for name, node in nodes.items() if CONTROL_PLANE_LABEL in node_labels(node))
    if labelled and not module.check_mode:
        kubectl("label", "nodes", *labelled, f"{CONTROL_PLANE_LABEL}-")
    return outcome({"control_planes": labelled}, {"control_planes": []}, nodes=sorted(nodes))
