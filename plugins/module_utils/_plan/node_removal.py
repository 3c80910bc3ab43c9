# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes leave the cluster, in which order, and what must remain: a control plane, and etcd's majority. Pure."""

from __future__ import annotations

import typing as t

from .._common.result import FabricError
from .._common.text import printable
from .._host.vipu import split_endpoint
from .._kubeadm.etcd import MemberFacts
from .._model.observation import HostFacts, NodeIdentity, Observations
from .cluster import API_PORT
from .cluster_identity import inventory_addresses, inventory_names, is_node, observed


class ClusterNode(NodeIdentity):
    """A node, as cluster_info returns it."""

    ready: bool
    control_plane: bool


class LeavingNode(t.TypedDict):
    """A node that leaves the cluster."""

    name: str
    host: str  # its inventory name; empty if it is not in the inventory
    groups: t.List[str]  # inventory groups, through which site would rejoin it
    present: bool  # the node exists in the cluster
    alive: bool  # its host answers and has this node's files: its kubelet confirms what it is told
    reset: bool  # its host answers, and is this node, or was until it was reset
    control_plane: bool
    member: t.List[str]  # addresses of its etcd member; empty if it has none
    note: str  # what this run can't do, and what to do instead


class RemovalPlan(t.TypedDict):
    """What remove_node.yml does."""

    nodes: t.List[LeavingNode]
    through: str  # inventory name of the control plane that talks to etcd; empty if none can
    through_node: str  # its node
    asks_etcd: bool  # at least one of the nodes is or was a control plane
    table: t.List[str]
    notes: t.List[str]  # not named `warnings`, which Ansible would show itself


def asked_names(given: t.Union[str, t.Sequence[str], None]) -> t.List[str]:
    """Names from a list, or from a text with commas, as -e gives it."""
    names = given.split(",") if isinstance(given, str) else list(given or [])
    return list(dict.fromkeys(name.strip() for name in names if name and name.strip()))


def check_names(asked: t.Sequence[str], hosts: t.Collection[str], nodes: t.Collection[str]) -> None:
    """Raise FabricError unless each name is a host of the inventory or a node of the cluster."""
    names = ", ".join(sorted(nodes)) or "none"
    if not asked:
        raise FabricError(
            "The nodes to remove have to be named.",
            "fabric_remove_nodes",
            "it is empty",
            f"Name them: -e fabric_remove_nodes=w2,cp3. The cluster has {names}.",
        )
    unknown = [name for name in asked if name not in nodes and name not in hosts]
    if unknown:
        raise FabricError(
            "Only nodes of this cluster are removed.",
            "fabric_remove_nodes",
            f"neither the cluster nor the inventory has {', '.join(unknown)}",
            f"Correct the names: the cluster has {names}.",
        )


def facts_of(observations: Observations, host: str) -> t.Optional[HostFacts]:
    return observed(observations).get(host)


def why_it_is(host: str, facts: t.Optional[HostFacts], own: t.Set[str], node: NodeIdentity) -> t.List[str]:
    """What a host has in common with a node: name, its own addresses in the inventory, machine-id."""
    names = {facts["hostname"].lower()} if facts else inventory_names(host)
    return [
        *(["name"] if node["name"] in names else []),
        *(["address"] if own & set(node.get("addresses", ())) else []),
        *(["machine-id"] if facts and node["machine_id"] and facts["machine_id"] == node["machine_id"] else []),
    ]


def host_of(observations: Observations, ca: str, node: NodeIdentity) -> str:
    """Inventory name of the node's host; empty if there is none. FabricError if several hosts may be it."""
    known, own = observed(observations), inventory_addresses(observations)
    found = {host: why_it_is(host, known.get(host), own[host], node) for host in observations}
    found = {host: why for host, why in found.items() if why}
    if len(found) > 1:
        raise FabricError(
            f"It has to be clear which host is the node {node['name']}.",
            "the inventory, and what hosts say of themselves",
            "; ".join(f"{host} has its {' and '.join(why)}" for host, why in found.items()),
            "Give each host a name and a machine-id of its own (on a clone: rm /etc/machine-id, then"
            " systemd-machine-id-setup, then reboot), and correct ip in the inventory.",
        )
    host = next(iter(found), "")
    facts = facts_of(observations, host)
    if facts and facts["kubelet"]["cluster"] == ca and not is_node(facts, node):
        raise FabricError(
            f"The host of a node has to be the one that the cluster knows as {node['name']}.",
            host,
            f"{facts['hostname']} with the machine-id {facts['machine_id']}; the cluster has {node['name']} with"
            f" {node['machine_id']}",
            "Correct the inventory, or restart the kubelet of the host if its machine-id has changed.",
        )
    return host


def find_node(observations: Observations, nodes: t.Mapping[str, ClusterNode], name: str) -> str:
    """The node that a name means; it may be the name of the node's host in the inventory."""
    if name in nodes or name not in observations:
        return name
    facts, own = facts_of(observations, name), inventory_addresses(observations)[name]
    found = [(node, why) for node in nodes.values() for why in [why_it_is(name, facts, own, node)] if why]
    if len(found) > 1:
        raise FabricError(
            f"It has to be clear which node the host {name} is.",
            "the nodes of the cluster",
            "; ".join(f"it has the {' and '.join(why)} of {node['name']}" for node, why in found),
            "Name the node instead of the host, and give each host a name and a machine-id of its own.",
        )
    if found:
        return found[0][0]["name"]
    return facts["hostname"].lower() if facts else name


def why_it_stays(observations: Observations, host: str, node: ClusterNode, nodes: t.Iterable[ClusterNode]) -> str:
    """Why the host found for a node is, or may be, another node: it was renamed and joined again, or a kubelet lies."""
    facts = observed(observations)[host]
    called, own = facts["hostname"].lower(), inventory_addresses(observations)[host]
    if called == node["name"]:
        return ""
    why = {each["name"]: " and ".join(why_it_is(host, facts, own, each)) for each in nodes}
    others = [name for name, reason in why.items() if reason and name != node["name"]]
    if not others:
        return ""
    return (
        f"host {host} has its {why[node['name']]}, but calls itself {called}, and may be node {', '.join(others)}: it"
        " stays as it is"
    )


def leaving_node(
    observations: Observations, ca: str, nodes: t.Mapping[str, ClusterNode], name: str, members: t.Sequence[MemberFacts]
) -> LeavingNode:
    node = nodes.get(name)
    host = host_of(observations, ca, node or {"name": name, "machine_id": ""})
    facts = facts_of(observations, host)
    note = ""
    if facts is None:
        note = (
            "its host was not reached: before it is on the network again, reinstall it or run kubeadm reset on its"
            " console"
        )
    elif node:
        note = why_it_stays(observations, host, node, nodes.values())
        host, facts = ("", None) if note else (host, facts)
    trusts = facts["kubelet"]["cluster"] if facts else ""
    same = bool(facts and (is_node(facts, node) if node else trusts))
    if facts and not same and (node or facts["kubelet"]["server"]):
        note = f"host {host} answers and is not this node: it stays as it is"
    # Kubelets report addresses, but can't label their node as a control plane. A member that another node names is its.
    addresses = node.get("addresses", []) if node and node["control_plane"] else []
    member = [
        each
        for each in members
        if each["name"] == name or (each["name"] not in nodes and set(each["addresses"]) & set(addresses))
    ]
    return {
        "name": name,
        "host": host,
        "groups": list(observations[host]["groups"]) if host else [],
        "present": node is not None,
        "alive": same and trusts == ca,
        # A host without a CA was reset before, perhaps incompletely.
        "reset": same and trusts in (ca, ""),
        "control_plane": bool(node and node["control_plane"]) or bool(member),
        "member": sorted({address for each in member for address in each["addresses"]}),
        "note": note,
    }


def check_silent(leaving: t.Sequence[LeavingNode], nodes: t.Mapping[str, ClusterNode]) -> None:
    """Refuse if a kubelet would keep running: it would continue its pods, and rejoin as a node."""
    for each in leaving:
        if each["present"] and nodes[each["name"]]["ready"] and not each["reset"]:
            raise FabricError(
                f"Node {each['name']} is Ready, and its host can't be reset.",
                each["host"] or "the inventory",
                each["note"] or "its host has no files of this cluster",
                "Make the host reachable, with its name in the inventory, or switch it off and wait until the node is"
                " NotReady.",
            )


def check_control_planes(leaving: t.Sequence[LeavingNode], nodes: t.Mapping[str, ClusterNode], endpoint: str) -> None:
    gone = {each["name"] for each in leaving}
    planes = [node["name"] for node in nodes.values() if node["control_plane"]]
    if planes and not set(planes) - gone:
        raise FabricError(
            "A cluster needs at least one control plane.",
            "fabric_remove_nodes",
            f"its control planes are {', '.join(sorted(planes))}",
            "Add another control plane first, or remove the whole cluster: ipu.fabric.reset with"
            " -e fabric_reset=cluster.",
        )
    for name in sorted(gone & set(nodes)):
        host = split_endpoint(endpoint, API_PORT)[0] if endpoint else ""
        if host and host in (name, *nodes[name].get("addresses", [])):
            raise FabricError(
                f"Node {name} has the address of the API that all nodes use.",
                "the cluster's endpoint",
                endpoint,
                "Move the endpoint to another address first: it is in the kubeconfig of every node.",
            )


def check_quorum(leaving: t.Sequence[LeavingNode], members: t.Sequence[MemberFacts]) -> None:
    """Check each removal in order: etcd needs a majority before it, and must keep one after it."""
    left = list(members)
    for each in leaving:
        going = [member for member in left if each["member"] and set(member["addresses"]) & set(each["member"])]
        if not going:
            continue
        after = [member for member in left if member not in going]
        for group, when in ((left, "now"), (after, f"without {each['name']}")):
            alive = [member["name"] for member in group if member["alive"]]
            if len(alive) < len(group) // 2 + 1:
                dead = [member["name"] or member["id"] for member in group if not member["alive"]]
                raise FabricError(
                    "etcd keeps a majority of its members.",
                    f"etcd, {when}",
                    f"{len(alive)} of {len(group)} members answer; silent: {', '.join(dead) or 'none'}",
                    "Start the silent members, or remove those whose hosts are gone for good first.",
                )
        left = after


def order(leaving: t.Iterable[LeavingNode], members: t.Sequence[MemberFacts]) -> t.List[LeavingNode]:
    """Workers first; among control planes, those with a dead etcd member before those with a live one."""
    alive = {address for member in members if member["alive"] for address in member["addresses"]}
    return sorted(leaving, key=lambda each: (each["control_plane"], bool(set(each["member"]) & alive)))


def table_row(node: LeavingNode) -> str:
    if not node["present"] and not node["reset"] and not node["member"]:
        return f"{node['name']}: is not in the cluster"
    steps = [
        *(["drain"] if node["present"] else []),
        *([f"remove etcd member {', '.join(node['member'])}"] if node["member"] else []),
        *([f"reset host {node['host']}"] if node["reset"] else []),
        *(["delete the node and its addresses"] if node["present"] else []),
    ]
    note = f" ({node['note']})" if node["note"] else ""
    return f"{node['name']} ({'control plane' if node['control_plane'] else 'worker'}): {', '.join(steps)}{note}"


def runs_pods(groups: t.Collection[str]) -> bool:
    """Whether site lets pods run on a control plane."""
    return "kube_control_plane" in groups and bool({"kube_node", "ipu_node"} & set(groups))


def list_notes(
    leaving: t.Sequence[LeavingNode],
    nodes: t.Mapping[str, ClusterNode],
    members: t.Sequence[MemberFacts],
    observations: Observations,
) -> t.List[str]:
    notes = []
    gone = {each["name"] for each in leaving}
    count = len([member for member in members if not any(set(member["addresses"]) & set(e["member"]) for e in leaving)])
    if members and count < len(members) and count % 2 == 0:
        notes.append(f"etcd then has {count} members: it survives no more losses than with {count - 1}.")
    if not any(not node["control_plane"] and name not in gone for name, node in nodes.items()):
        hosts = {each["host"] for each in leaving}
        able = [name for name, seen in observations.items() if name not in hosts and runs_pods(seen["groups"])]
        notes.append(
            f"Then only control planes are left. Pods run on those that are in kube_node too: {', '.join(able)}."
            if able
            else "Then only control planes are left, and none is in kube_node: new pods stay Pending. Add one to"
            " kube_node and run ipu.fabric.site to have pods run there."
        )
    for each in leaving:
        if each["groups"]:
            notes.append(
                f"Take {each['host']} out of the inventory ({', '.join(each['groups'])}) afterwards: site would join it"
                " again, and plans addresses for it."
            )
    return notes


def through_which(
    observations: Observations, leaving: t.Sequence[LeavingNode], nodes: t.Mapping[str, ClusterNode]
) -> t.Tuple[str, str]:
    """A remaining control plane whose API server answers: its inventory name, and its node."""
    gone = {each["name"] for each in leaving}
    for host, facts in observed(control_planes(observations)).items():
        for name, node in nodes.items():
            if facts["cluster"]["answered"] and node["control_plane"] and name not in gone and is_node(facts, node):
                return host, name
    return "", ""


def control_planes(observations: Observations) -> Observations:
    """Control planes of the inventory: what other hosts report of the API does not count."""
    return {host: seen for host, seen in observations.items() if "kube_control_plane" in seen["groups"]}


def endpoint_of(observations: Observations) -> str:
    found = (facts["cluster"]["endpoint"] for facts in observed(control_planes(observations)).values())
    return next((endpoint for endpoint in found if endpoint), "")


def plan_removal(
    asked: t.Sequence[str],
    observations: Observations,
    ca: str,
    cluster: t.Sequence[ClusterNode],
    members: t.Optional[t.Sequence[MemberFacts]],
) -> RemovalPlan:
    """The plan. members is None if etcd was not asked yet: then its majority is not checked."""
    nodes = {node["name"]: node for node in cluster}
    check_names(asked, observations, nodes)
    known = list(members or [])
    meant = dict.fromkeys(find_node(observations, nodes, name) for name in asked)
    leaving = order((leaving_node(observations, ca, nodes, name, known) for name in meant), known)
    check_silent(leaving, nodes)
    check_control_planes(leaving, nodes, endpoint_of(observations))
    through, through_node = through_which(observations, leaving, nodes)
    if any(each["control_plane"] for each in leaving) and not through:
        raise FabricError(
            "A control plane that stays has to speak for the cluster.",
            "kube_control_plane",
            "none of these control planes has an API server that answers on its own host",
            "Start one: look at crictl ps and journalctl -u kubelet on its host. Without a majority of etcd, restore"
            " etcd first.",
        )
    check_quorum(leaving, known)
    return {
        "nodes": leaving,
        "through": through,
        "through_node": through_node,
        # For a node missing from the cluster, nothing tells whether it had a member.
        "asks_etcd": bool(through) and any(each["control_plane"] or not each["present"] for each in leaving),
        "table": [printable(table_row(each)) for each in leaving],
        "notes": [printable(each) for each in list_notes(leaving, nodes, known, observations)],
    }
