# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts the RDMA device plugin serves by one policy: all by the NicClusterPolicy, or each group by its own.

The device plugin finds NICs by name. A NicClusterPolicy has one list of names for all nodes, so if a name belongs to
another NIC on some hosts, that NIC is offered too. A NicNodePolicy has only the names of its own nodes.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

from .._common.findings import Findings
from .._common.text import shorten_list
from .._model.observation import NicPolicy
from .._model.plan import NicGroup, RdmaResource, Releases
from .host_links import NAMES, NetworkLinks
from .running_cluster import Running

AUTO, CLUSTER, NODE = "auto", "cluster", "node"  # values of fabric_nic_policy
SECTION = "rdmaSharedDevicePlugin"


def plan_nic_groups(
    wanted: str,
    running: t.Optional[Running],
    chosen: t.Sequence[NetworkLinks],
    resources: t.Sequence[RdmaResource],
    releases: Releases,
    findings: Findings,
) -> t.List[NicGroup]:
    """The groups; empty if the NicClusterPolicy configures the plugin."""
    if releases["stack"] != "network_operator" or not resources:
        return []
    able = releases["features"].get("node_policies", False)
    if wanted == NODE and not able:
        findings.error(
            "nic-policy",
            [],
            f"Network operator {releases['network_operator']} has no NicNodePolicy.",
            "fabric_nic_policy is node",
            "Set fabric_nic_policy to cluster, or use network operator 26.4 or later"
            " (fabric_network_operator_version).",
        )
        return []
    groups = _groups(chosen, resources)
    policies = [each for each in _seen(running) if SECTION in each["sections"]]
    grouped = able and wanted != CLUSTER and (wanted == NODE or _prefers_groups(policies, groups))
    _check_others(policies, grouped, findings)
    _check_move(policies, grouped, findings)
    return groups if grouped else []


def _seen(running: t.Optional[Running]) -> t.Sequence[NicPolicy]:
    return running.facts.get("nic_policies", []) if running else []


def _prefers_groups(policies: t.Sequence[NicPolicy], groups: t.Sequence[NicGroup]) -> bool:
    """An existing cluster keeps its kind of policy: during a move, all nodes lack the resources for a while."""
    kinds = {each["kind"] for each in policies if each["ours"] or each["kind"] == "NicClusterPolicy"}
    return "NicNodePolicy" in kinds if kinds else len(groups) > 1


def _groups(chosen: t.Sequence[NetworkLinks], resources: t.Sequence[RdmaResource]) -> t.List[NicGroup]:
    """Hosts whose resources have NICs with the same names, sorted by host name."""
    netdevs: t.Dict[str, t.Dict[str, t.Set[str]]] = {}  # by host and resource
    for one in chosen:
        for host, link in one.links.items():
            if link.nic["device"]:
                own = netdevs.setdefault(host, {}).setdefault(one.network.rdma_resource, set())
                own.update(link.nic["rdma_netdevs"])
    groups: t.Dict[str, NicGroup] = {}
    for host in sorted(netdevs):
        found = [_own(resource, netdevs[host]) for resource in resources]
        own_resources = [resource for resource in found if resource]
        text = json.dumps(own_resources, sort_keys=True)
        # A hash, not a number: otherwise groups would change their nodes whenever a host comes or goes.
        name = f"fabric-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        groups.setdefault(text, {"name": name, "hosts": [], "resources": own_resources})["hosts"].append(host)
    return list(groups.values())


def _own(resource: RdmaResource, netdevs: t.Mapping[str, t.Set[str]]) -> t.Optional[RdmaResource]:
    """A resource with only the host's own NICs; None if the host has none of them."""
    own = netdevs.get(f"{resource['resourcePrefix']}/{resource['resourceName']}")
    if not own or "drivers" in resource["selectors"]:
        return resource if own else None
    return {**resource, "selectors": {"ifNames": sorted(own)}}


def _check_others(policies: t.Sequence[NicPolicy], grouped: bool, findings: Findings) -> None:
    """Unless its webhook is on, the operator does not separate policies: two plugins take each other's socket."""
    others = [each for each in policies if not each["ours"]]
    for kind in ("NicNodePolicy", "NicClusterPolicy"):
        names = [each["name"] for each in others if each["kind"] == kind]
        if not names or (kind == "NicClusterPolicy" and not grouped):
            continue
        listed = shorten_list(names, NAMES)
        apart = grouped and kind == "NicNodePolicy" and all(each["node_selector"] for each in others)
        (findings.warning if apart else findings.error)(
            "nic-policy",
            [],
            "A node gets the RDMA device plugin from one policy only.",
            f"{kind} {listed}, which this collection did not create, has {SECTION}"
            + (f", for nodes with {_labels(others)}" if apart else ""),
            "Keep these labels off the hosts of the inventory: where two NicNodePolicies select a node, the operator"
            " follows none."
            if apart
            else f"Remove {SECTION} from {listed}, or delete {listed}.",
        )


def _labels(policies: t.Sequence[NicPolicy]) -> str:
    labels = {f"{key}={value}" for each in policies for key, value in each["node_selector"].items()}
    return shorten_list(sorted(labels), NAMES)


def _check_move(policies: t.Sequence[NicPolicy], grouped: bool, findings: Findings) -> None:
    """In a move from one kind of policy to the other, all nodes lose the section before they get it again."""
    kinds = {each["kind"] for each in policies if each["ours"]}
    target = "NicNodePolicy" if grouped else "NicClusterPolicy"
    if kinds and target not in kinds:
        findings.warning(
            "nic-policy",
            [],
            f"The RDMA device plugin moves from the {' and '.join(sorted(kinds))} to the {target}.",
            "on all nodes the RDMA resources are 0 until its new pods run, a minute or so",
            "Nothing to do if no job starts meanwhile: running pods keep their NICs, new ones wait. site refuses the"
            " move while pods have the resources, unless fabric_allow has nic-policy.",
        )
