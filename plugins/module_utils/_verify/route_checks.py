# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of where a pod's packets go: the routes of its main table, and each network's gateway. Pure functions."""

from __future__ import annotations

import ipaddress
import typing as t

from .._common.addresses import Network
from .._model.checks import Check, Place
from .._model.plan import Plan, PlannedNetwork
from .._model.probe import GatewayAnswer, PodFacts, Route
from .._network.stacks import own_table
from .catalog import need_image, result, skip, unproven
from .pods import interface_of


def read_network(text: str) -> t.Optional[Network]:
    """The network of a route; None for the default route and anything that is not a network."""
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


def overlap(one: Network, other: Network) -> bool:
    # The standard library refuses to compare different families.
    return one.version == other.version and one.overlaps(other)


# The main table


def cluster_networks(plan: Plan) -> t.List[Network]:
    """Networks of pods and services; none if the plan does not know them."""
    cluster = plan.get("cluster") or {}
    texts = f"{cluster.get('pod_cidr', '')},{cluster.get('service_cidr', '')}".split(",")
    return [found for found in map(read_network, texts) if found]


def shown(route: Route) -> str:
    return f"{route['dst']} dev {route['dev']}"


def route_faults(plan: Plan, network: PlannedNetwork, pod: PodFacts, routes: t.Sequence[Route]) -> t.List[str]:
    """The faults in the routes of one interface."""
    interface = interface_of(pod, network["name"])
    planned = {other["name"]: {subnet["cidr"] for subnet in other["subnets"]} for other in plan["networks"]}
    faults = []
    for cidr in [subnet["cidr"] for subnet in network["subnets"]]:
        wanted = read_network(cidr)
        # Two networks may share a subnet, each with its own addresses.
        fellows = {interface_of(pod, name) for name in pod["networks"] if cidr in planned[name]}
        same = [route for route in routes if read_network(route["dst"]) == wanted]
        if own_table(network) != "all" and not any(route["dev"] == interface for route in same):
            faults.append(f"no route {cidr} dev {interface}")
        faults += [shown(route) for route in same if route["dev"] not in fellows]
    elsewhere = cluster_networks(plan)
    for route in routes:
        target = read_network(route["dst"])
        if route["dev"] == interface and target and any(overlap(target, other) for other in elsewhere):
            faults.append(f"{shown(route)}, which covers addresses of pods or services")
    return faults


def main_routes_check(plan: Plan, network: PlannedNetwork, pod: PodFacts, where: Place) -> Check:
    """Check that a network's subnet is routed to its interface, and the cluster's networks are not."""
    routes, interface = pod["root"]["main_routes"], interface_of(pod, network["name"])
    if not network["subnets"]:
        return skip("main_routes", "the plan has no subnet for this network", **where)
    there = "in a table of its own" if own_table(network) == "all" else f"dev {interface}"
    expected = f"{', '.join(subnet['cidr'] for subnet in network['subnets'])} {there}, the cluster's networks elsewhere"
    if routes is None:
        return result("main_routes", False, expected, "`ip -j route` gave no JSON", **where)
    faults = route_faults(plan, network, pod, routes)
    mine = [shown(route) for route in routes if route["dev"] == interface]
    return result("main_routes", not faults, expected, "; ".join(faults) or ", ".join(mine), **where)


# Gateways


def gateways_of(network: PlannedNetwork) -> t.List[str]:
    """The planned gateways of a network, at most one per family."""
    return [subnet["gateway"] for subnet in network["subnets"] if subnet["gateway"]]


def gateway_seen(address: str, answer: t.Optional[GatewayAnswer]) -> t.Tuple[bool, str]:
    """Whether a gateway exists, and how that shows. A switch may drop pings to itself."""
    if answer is None:
        return False, f"{address}: no output"
    ping = answer["ping"]
    if ping["received"]:
        took = f", {ping['rtt_ms']} ms" if ping["rtt_ms"] else ""
        return True, f"{address}: {ping['received']} of {ping['sent']} answered{took}"
    if answer["mac"]:
        return True, f"{address}: no ping, but {answer['mac']} answers for the address"
    return False, f"{address}: no answer, and no MAC for the address"


def gateway_check(network: PlannedNetwork, pod: PodFacts, where: Place) -> Check:
    """Check that each gateway of a network answers on the pod's interface."""
    wanted = gateways_of(network)
    if not wanted:
        return skip("gateway", "the network has no gateway", **where)
    answers = {each["address"]: each for each in pod.get("gateways", ()) if each["network"] == network["name"]}
    unfit = [each["ping"] for each in answers.values() if not each["ping"]["supported"] and not each["mac"]]
    if unfit:
        reason = f"the image's ping: {unfit[0]['seen']}"
        return unproven("gateway", reason, need_image("ping of iputils"), **where)
    seen = [gateway_seen(address, answers.get(address)) for address in wanted]
    error = f" ({pod['gateways_error']})" if pod.get("gateways_error") else ""
    good = all(there for there, _text in seen)
    return result("gateway", good, ", ".join(wanted), "; ".join(text for _there, text in seen) + error, **where)
