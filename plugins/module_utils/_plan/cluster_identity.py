# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a kubeconfig points to the cluster that the hosts of the inventory are in."""

from __future__ import annotations

import collections
import ipaddress
import typing as t

from .._common.addresses import normal_addresses
from .._common.result import FabricError
from .._common.text import shorten_list
from .._model.observation import ClusterIdentity, HostFacts, NodeIdentity, Observations

SHOWN = 8  # names in a message


def observed(observations: Observations) -> t.Dict[str, HostFacts]:
    return {name: seen["host"] for name, seen in observations.items() if seen.get("host")}


def trusted_ca(facts: HostFacts) -> str:
    """The digest of the CA of the host's cluster; empty if it is in none.

    A half-finished kubeadm init is not a cluster: the next run resets it, and a new init creates a new CA.
    """
    return "" if facts["cluster"]["unfinished"] else facts["kubelet"]["cluster"]


def is_bare(observations: Observations) -> bool:
    """Whether no host is in a cluster built by kubeadm."""
    return not any(
        trusted_ca(facts) or (facts["kubelet"]["server"] and not facts["cluster"]["unfinished"])
        for facts in observed(observations).values()
    )


class HostIdentity(t.TypedDict):
    """What identifies a host."""

    hostname: str
    machine_id: str


def is_node(facts: t.Union[HostFacts, HostIdentity], node: NodeIdentity) -> bool:
    """Compare machine IDs if both are known, and otherwise names, which may repeat from site to site."""
    if facts["machine_id"] and node["machine_id"]:
        return facts["machine_id"] == node["machine_id"]
    return facts["hostname"].lower() == node["name"]


def claimed_names(observations: Observations) -> t.Dict[str, str]:
    """What hosts call themselves, by inventory name."""
    return {name: facts["hostname"].lower() for name, facts in observed(observations).items() if facts["hostname"]}


def inventory_names(name: str) -> t.Set[str]:
    """Names of a node that is named like its host in the inventory."""
    return {name.lower(), name.lower().partition(".")[0]}


def disputed(hosts: t.Iterable[str], claims: t.Mapping[str, str]) -> t.Dict[str, str]:
    """Hosts that claim another host's name, with the evidence, by inventory name.

    A host that did not answer keeps its inventory name.
    """
    owners: t.Dict[str, t.List[str]] = {}
    for name in hosts:
        for word in sorted({claims[name]} if name in claims else inventory_names(name)):
            owners.setdefault(word, []).append(name)
    found = {}
    for name, claim in claims.items():
        others = [other for other in owners.get(claim, ()) if other != name]
        if others and claim not in inventory_names(name):
            found[name] = f"{name} says that it is {claim}, but that name is taken by {shorten_list(others, SHOWN)}"
    return found


def inventory_addresses(observations: Observations) -> t.Dict[str, t.Set[str]]:
    """Addresses that only one host has in the inventory. Several hosts may be reached through ports of one address."""
    reached = collections.Counter(seen.get("reached", "") for seen in observations.values())
    return {
        name: normal_addresses(
            [*seen["address"].split(","), *([seen.get("reached", "")] if reached[seen.get("reached", "")] == 1 else [])]
        )
        for name, seen in observations.items()
    }


def mistaken(observations: Observations, nodes: t.Sequence[NodeIdentity]) -> t.Dict[str, str]:
    """Hosts that claim the name of a node that they are not, with the evidence, by inventory name.

    The inventory decides what a host is: by its addresses, or else by its name.
    """
    claims = claimed_names(observations)
    found = disputed(observations, claims)
    known = {node["name"]: node for node in nodes}
    inventory = inventory_addresses(observations)
    at: t.Dict[str, t.Set[str]] = {}
    for node in nodes:
        for address in normal_addresses(node.get("addresses", ())):
            at.setdefault(address, set()).add(node["name"])
    for name, claim in claims.items():
        if claim not in known or name in found:
            continue
        given = normal_addresses(observations[name]["address"].split(","))
        own = {node for address in inventory[name] for node in at.get(address, ())}
        own = own or {word for word in inventory_names(name) & set(known) if word not in claims.values()}
        addresses = known[claim].get("addresses", [])
        has, ours = observed(observations)[name].get("machine_id", ""), known[claim]["machine_id"]
        if own and claim not in own:
            found[name] = f"{name} says that it is {claim}, but the inventory has it as {', '.join(sorted(own))}"
        elif given and addresses and not given & normal_addresses(addresses):
            found[name] = (
                f"{name} says that it is {claim}, which has the address {', '.join(addresses)} in the cluster, but"
                f" {name} has {', '.join(sorted(given))} in the inventory"
            )
        elif not own and not given and claim not in inventory_names(name) and has and ours and has != ours:
            found[name] = (
                f"{name} says that it is {claim}, which has the machine-id {ours} in the cluster, but {name} has"
                f" {has}; no address in the inventory shows which it is"
            )
    return found


class Reserved(t.NamedTuple):
    """Addresses that do not belong to a single host."""

    addresses: t.Collection[str]  # of the API, shared by all control planes
    services: str  # CIDRs separated by commas


class KnownNodes(t.TypedDict):
    """Which node each host is according to plan and inventory, if the host confirms it."""

    nodes: t.Dict[str, str]  # by inventory name
    addresses: t.Dict[str, t.List[str]]  # addresses allowed in a node's certificate, by node name
    problems: t.Dict[str, str]  # by inventory name: why a host's claim is not accepted


class HostOfPlan(t.TypedDict):
    """The fields of a host that are read from plan.json."""

    node: str
    address: str


def is_reserved(address: str, reserved: Reserved) -> bool:
    if address in reserved.addresses:
        return True
    try:
        ranges = [ipaddress.ip_network(part.strip()) for part in reserved.services.split(",") if part.strip()]
        return any(ipaddress.ip_address(address) in each for each in ranges)
    except ValueError:  # not an address, so no certificate is for it
        return True


def known_nodes(
    inventory: t.Mapping[str, str],
    claims: t.Mapping[str, str],
    plan: t.Mapping[str, HostOfPlan],
    reserved: Reserved,
    asking: t.Collection[str] = (),
) -> KnownNodes:
    """Nodes of the hosts that reported their names. `inventory` has all hosts, with their addresses if it names any.

    Hosts in `asking` want a serving certificate, for which they need an address.
    """
    names = {
        host: plan[host]["node"]
        if host in plan
        else (claims[host] if claims.get(host) in inventory_names(host) else host.lower())
        for host in inventory
    }
    texts = {host: given or (plan[host]["address"] if host in plan else "") for host, given in inventory.items()}
    addresses = {host: [part for part in text.split(",") if part] for host, text in texts.items()}
    counts = collections.Counter(address for each in addresses.values() for address in each)
    twins = {name for name, count in collections.Counter(names.values()).items() if count > 1}
    problems = disputed(inventory, claims)
    for host, claim in claims.items():
        if claim != names[host]:
            source = "plan.json" if host in plan else "the inventory"
            problems[host] = f"{host} says that it is {claim}, but {source} has it as {names[host]}"
        elif names[host] in twins:
            problems[host] = f"{host} is {names[host]}, and so is another host of the inventory"
    own = {
        host: [each for each in given if counts[each] == 1 and not is_reserved(each, reserved)]
        for host, given in addresses.items()
    }
    for host in asking:
        if host not in problems and not own[host]:
            problems[host] = f"{host} needs a serving certificate, but inventory and plan give it no address of its own"
    sure = [host for host in claims if host not in problems]
    return {
        "nodes": {host: names[host] for host in sure},
        "addresses": {names[host]: own[host] for host in sure},
        "problems": problems,
    }


def check_planned(
    found: KnownNodes,
    inventory: t.Mapping[str, str],
    claims: t.Mapping[str, str],
    planned: t.Collection[str],
    plan_file: str,
) -> None:
    """Refuse to start if only a plan could tell which node a host is, or which address it has.

    If a host claims the name of another, only that host is refused.
    """
    others = disputed(inventory, claims)
    seen = [
        why
        for host, why in found["problems"].items()
        if host not in planned
        and host not in others
        and (claims[host] not in inventory_names(host) or not inventory[host])
    ]
    if seen:
        raise FabricError(
            "The inventory or a plan has to name each host's node and the addresses in its certificates.",
            plan_file,
            f"{shorten_list(seen, SHOWN, '; ')}; these hosts are in no plan there",
            "Run ipu.fabric.plan, and keep its file for this run (fabric_artifacts_dir). That does not need the API.",
            code="not-found",
        )


def check_names(observations: Observations, nodes: t.Sequence[NodeIdentity]) -> None:
    """Refuse to go on if a host claims to be another: the wrong node would be drained, changed or deleted."""
    found = mistaken(observations, nodes)
    if found:
        raise FabricError(
            "Each host has to be the node that it says it is.",
            "host names, inventory and nodes of the cluster",
            shorten_list(list(found.values()), SHOWN, "; "),
            "Give the host the name of its node with hostnamectl, or correct its address in the inventory (ip).",
            code="unsafe",
        )


def why_another(observations: Observations, cluster: ClusterIdentity) -> str:
    """Evidence that the hosts are in another cluster; empty if there is none.

    Every host that trusts a CA must trust the cluster's. If no host reports a CA, as with k3s, at least one host has to
    be a node of the cluster.
    """
    hosts = observed(observations)
    trusted = {name: trusted_ca(facts) for name, facts in hosts.items() if trusted_ca(facts)}
    if trusted and cluster["ca"]:
        strangers = [name for name, ca in trusted.items() if ca != cluster["ca"]]
        if not strangers:
            return ""
        return f"its CA is {cluster['ca']}, that of {shorten_list(strangers, SHOWN)} is {trusted[strangers[0]]}"
    if any(is_node(facts, node) for facts in hosts.values() for node in cluster["nodes"]):
        return ""
    nodes = shorten_list([node["name"] for node in cluster["nodes"]], SHOWN) or "none"
    return f"no host of the inventory ({shorten_list(observations, SHOWN)}) is one of its nodes ({nodes})"


def check_cluster(observations: Observations, cluster: ClusterIdentity) -> None:
    """Refuse to go on with another cluster."""
    why = why_another(observations, cluster)
    if not why:
        return
    interrupted = [name for name, facts in observed(observations).items() if facts["cluster"]["unfinished"]]
    raise FabricError(
        "The kubeconfig must lead to the cluster that the hosts of this inventory are in.",
        cluster["kubeconfig"],
        why,
        "Run in the folder of this site, or set fabric_kubeconfig (fabric_api_kubeconfig, if fabric_api_host is not"
        " localhost) to the kubeconfig of this cluster."
        # If this were allowed, the run would write to whichever cluster the kubeconfig belongs to.
        + (
            f" kubeadm was interrupted on {shorten_list(interrupted, SHOWN)}: ipu.fabric.site finishes it."
            if interrupted
            else " While the CA of a cluster is being changed, allow it with fabric_allow: [other-cluster]."
        ),
        code="other-cluster",
    )
