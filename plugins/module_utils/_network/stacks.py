# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a stack's network, in a cluster and in its pods, for checks of both. Pure."""

from __future__ import annotations

import typing as t

from .._model.plan import Plan, PlannedNetwork
from .._model.probe import NetworkState, RoutingPolicy
from .._model.profiles import BY_CNI, Profile
from .._model.stacks import STACKS, Stack, stack_of


def network_path(plan: Plan, network: PlannedNetwork) -> str:
    """The API path of a network's object; empty if no stack creates it."""
    stack = stack_of(plan, network)
    if not stack:
        return ""
    profile = _profile(stack, network)
    if profile:
        above, _slash, plural = profile.path.rpartition("/")
        place = f"namespaces/{stack.namespace}/{plural}" if profile.namespaced else plural
        return f"{above}/{place}/{network['name']}"
    place = stack.path.format(name=network["name"], namespace=network["namespace"])
    return f"/apis/{stack.group}/{place}"


def _profile(stack: Stack, network: PlannedNetwork) -> t.Optional[Profile]:
    """The profile of a network, if the network operator creates it."""
    return BY_CNI.get(network.get("cni", "macvlan")) if stack.states else None


def network_state(stack: Stack, network: PlannedNetwork, state: t.Optional[NetworkState]) -> t.Tuple[bool, str, str]:
    """Whether a network is in the right state, the name of that state, and what was seen."""
    profile = _profile(stack, network)
    kind = profile.kind if profile else stack.network
    if not stack.states or (profile and profile.namespaced):
        return state is not None, "there", f"no {kind}" if state is None else "there"
    text = f"no {kind}" if state is None else state.get("state") or "no state yet"
    if state and state.get("state") != "ready" and state.get("reason"):
        text += ": " + state["reason"]
    return (state or {}).get("state") == "ready", "ready", text


def own_table(network: PlannedNetwork) -> t.Literal["", "all", "default"]:
    """Which routes each rail has in a table of its own in the pod; empty: there is no such table."""
    if any(plugin["type"] == "sbr" for plugin in network.get("meta_plugins", [])):
        return "all"
    by_stack = network.get("made_by") != "" and network["ipam"].get("type") in {stack.ipam for stack in STACKS.values()}
    return "default" if by_stack else ""


def route_seen(policy: RoutingPolicy, address: str, interface: str, gateway: str) -> t.Tuple[bool, str]:
    """Whether traffic from an address leaves by its own rail's gateway, if there is one, and what was seen.

    :arg policy: rules and default routes, as read_policy() gives them.
    """
    table = policy["rules"].get(address)
    if table is None:
        return False, f"no rule from {address}"
    routes = policy["defaults"].get(table, [])
    shown = ", ".join(f"default via {route['gateway'] or 'no gateway'} dev {route['dev']}" for route in routes)
    good = not gateway or {"gateway": gateway, "dev": interface} in routes
    return good, f"from {address} lookup {table}: {shown or 'no default route'}"
