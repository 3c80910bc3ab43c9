# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of an upgrade: which nodes have to be upgraded, in which order, and what prevents it."""

from __future__ import annotations

import json
import textwrap
import typing as t

from .._common.findings import Findings
from .._common.text import printable, shorten_list
from .._kubeadm.upgrade import COMPONENTS, ETCD, release_order
from .._model.observation import Observations
from .._model.upgrade import SeenCluster, SeenNode, Upgrade
from .._network.releases import parse, show, such_as
from .hosts import Hosts, place_hosts
from .report import NAMES, ROWS, WIDTH, finding_lines, table
from .source_questions import offered_releases

# How many minor releases a kubelet may be behind the API server. It must never be ahead.
KUBELET_SKEW = 3
# The label of the role drain: a node left by an interrupted upgrade need not be healthy.
MARK = "ipu.fabric/cordoned"


def is_resumed(before: str, ca: str) -> bool:
    """Whether the proof from before an upgrade, which is kept until that has ended, is of the cluster with this CA."""
    try:
        return bool(json.loads(before)["ca"] == ca)
    except (ValueError, TypeError, KeyError):  # no file, or one of an earlier release
        return False


def plan_upgrade(observations: Observations, cluster: SeenCluster, wanted: str, allow: t.Sequence[str]) -> Upgrade:
    """The upgrade from the cluster's current nodes to `wanted`."""
    findings = Findings(allow)
    hosts, nodes = place_hosts(observations), {node["name"]: node for node in cluster["nodes"]}
    members = {name: nodes[host.node] for name, host in hosts.items() if host.node in nodes}
    planes_of = {name for name, host in hosts.items() if "control_plane" in host.roles}
    control_planes = [node for name, node in members.items() if name in planes_of]
    servers = _api_versions(hosts, control_planes, cluster["version"])
    _check_step(wanted, servers, offered_releases(hosts), findings)
    _check_nodes(hosts, nodes, findings)
    _check_ready(members, findings)
    _check_skew(members, wanted, findings)
    behind = _behind(members, planes_of, wanted)
    due = list(behind)
    planes = [name for name in due if name in planes_of]
    done = [name for name, node in members.items() if name not in due]
    begun = any(name in planes_of for name in done)
    return {
        "to": wanted,
        "servers": sorted(servers, key=parse),
        # Nodes that an interrupted run was working on come first.
        "control_planes": sorted(planes, key=lambda name: not _is_marked(members[name])),
        "workers": sorted([name for name in due if name not in planes], key=lambda name: not _is_marked(members[name])),
        "done": done,
        "behind": behind,
        "begun": begun,
        "marked": [name for name in done if _is_marked(members[name])],
        "versions": {name: node["version"] for name, node in members.items()},
        "nodes": {name: node["name"] for name, node in members.items()},
        "findings": findings.as_list(),
    }


def _behind(members: t.Mapping[str, SeenNode], planes: t.Container[str], wanted: str) -> t.Dict[str, str]:
    """Nodes to upgrade, with their parts that are not on the release.

    The kubelet alone proves nothing: it is upgraded last, but an earlier step may have been lost. Only kubeadm knows
    which etcd belongs to a release: here, it is the newest one seen.
    """
    told = [node["components"].get(ETCD, "") for name, node in members.items() if name in planes]
    etcd = max(told, key=release_order, default="")
    behind = {}
    for name, node in members.items():
        parts = {part: node["components"].get(part, "") for part in COMPONENTS} if name in planes else {}
        old = [f"{part} {release or 'unknown'}" for part, release in parts.items() if release != wanted]
        if name in planes and release_order(node["components"].get(ETCD, etcd)) < release_order(etcd):
            old.append(f"{ETCD} {node['components'][ETCD]}")
        if node["version"] != wanted:
            old.append(f"kubelet {node['version'] or 'unknown'}")
        if old:
            behind[name] = ", ".join(old)
    return behind


def _api_versions(hosts: Hosts, planes: t.Sequence[SeenNode], answered: str) -> t.Set[str]:
    """Of the API server that answered, and of those on the inventory's control planes."""
    seen = {host.facts["cluster"]["version"] for host in hosts.values() if host.facts and "control_plane" in host.roles}
    seen |= {node["components"].get(COMPONENTS[0], "") for node in planes}
    return {version for version in [*seen, answered] if version}


def _is_marked(node: SeenNode) -> bool:
    return MARK in node["own_labels"]


def _check_step(wanted: str, servers: t.Set[str], offered: t.Sequence[str], findings: Findings) -> None:
    """Allow one minor release at a time, and no downgrade."""
    if not parse(wanted):
        return  # already a finding of the plan
    if not servers:
        findings.error(
            "upgrade-step",
            [],
            "There is no cluster to upgrade.",
            "no API server reports its version",
            "Run ipu.fabric.site to build one; if there is one, start its API server.",
        )
        return
    oldest, newest, target = (parse(version) for version in (min(servers, key=parse), max(servers, key=parse), wanted))
    seen = f"fabric_kubernetes_version is {wanted}; the API servers run {', '.join(sorted(servers, key=parse))}"
    if target < newest:
        findings.error(
            "upgrade-step",
            [],
            "A cluster does not go back to an older Kubernetes.",
            seen,
            f"Set fabric_kubernetes_version to {max(servers, key=parse)} or later.",
        )
    elif target[0] != oldest[0] or target[1] > oldest[1] + 1:
        due = (oldest[0], oldest[1] + 1)
        findings.error(
            "upgrade-step",
            [],
            "Kubernetes is upgraded by one minor release at a time.",
            seen,
            f"Set fabric_kubernetes_version to a release of {show(due)} first{such_as(due, offered)}.",
        )


def _check_nodes(hosts: Hosts, nodes: t.Mapping[str, SeenNode], findings: Findings) -> None:
    """Nodes without a host would not be upgraded; hosts without a node are left to `site`."""
    known = {host.node for host in hosts.values()}
    strangers = [name for name in nodes if name not in known]
    if strangers:
        findings.error(
            "upgrade-nodes",
            [],
            "Every node of the cluster has to be in the inventory: others would stay at their release.",
            f"not in the inventory: {shorten_list(strangers, NAMES)}",
            "Add these hosts to the inventory, or remove these nodes: ipu.fabric.remove_node with"
            f" -e fabric_remove_nodes={','.join(strangers)}.",
        )
    missing = [name for name, host in hosts.items() if host.node not in nodes]
    if missing and nodes:
        findings.warning(
            "upgrade-nodes",
            missing,
            "A host of the inventory is not a node of the cluster.",
            "the cluster has no node of that name",
            "It is left as it is. Run ipu.fabric.site to have it join, after the upgrade.",
        )


def _check_ready(members: t.Mapping[str, SeenNode], findings: Findings) -> None:
    ill = [name for name, node in members.items() if not node["ready"] and not _is_marked(node)]
    if ill:
        findings.error(
            "upgrade-ready",
            ill,
            "Every node has to be Ready before an upgrade: one that is not can't show whether the upgrade harmed it.",
            "the node is not Ready",
            "Run kubectl describe node, and on its host journalctl -u kubelet and kubeadm certs check-expiration.",
        )


def _check_skew(members: t.Mapping[str, SeenNode], wanted: str, findings: Findings) -> None:
    target = parse(wanted)
    for name, node in members.items():
        version = parse(node["version"])
        if not version or not target:
            continue  # already a finding of the plan, or a kubelet that has not reported yet
        if version > target:
            findings.error(
                "upgrade-skew",
                [name],
                "A kubelet must not be newer than its API server.",
                f"the kubelet runs {node['version']}, fabric_kubernetes_version is {wanted}",
                f"Set fabric_kubernetes_version to {node['version']}.",
            )
        elif version[:2] < (target[0], target[1] - KUBELET_SKEW):
            findings.error(
                "upgrade-skew",
                [name],
                f"A kubelet may be at most {KUBELET_SKEW} minor releases older than its API server.",
                f"the kubelet runs {node['version']}, fabric_kubernetes_version is {wanted}",
                f"Upgrade this node to {target[0]}.{target[1] - KUBELET_SKEW} or later first by hand: kubeadm upgrade"
                " node, then the package kubelet.",
            )


def upgrade_text(upgrade: Upgrade) -> str:
    """The upgrade for a terminal: every node in its turn, with its old and new release, and the findings."""
    turns = [*((name, "control plane") for name in upgrade["control_planes"])]
    turns += [*((name, "worker") for name in upgrade["workers"]), *((name, "done") for name in upgrade["done"])]
    rows = [[name, upgrade["versions"][name], upgrade["to"], turn] for name, turn in turns]
    # The kubelet's release is already in the table.
    halves = {name: seen for name, seen in upgrade["behind"].items() if upgrade["versions"][name] == upgrade["to"]}
    due = len(upgrade["control_planes"]) + len(upgrade["workers"])
    lines = [f"Upgrade to Kubernetes {upgrade['to']}: {due} of {len(rows)} nodes", ""]
    lines += table(["host", "from", "to", "turn"], rows[:ROWS])
    if len(rows) > ROWS:
        lines.append(f"... and {len(rows) - ROWS} more hosts")
    lines += [f"{name} was upgraded in part: {seen}" for name, seen in halves.items()]
    for finding in upgrade["findings"]:
        lines.append("")
        for line in finding_lines(finding):
            lines += textwrap.wrap(line, WIDTH, subsequent_indent="    ", break_long_words=False)
    return printable("\n".join(lines)) + "\n"
