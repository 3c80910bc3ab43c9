# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof of some nodes, and its comparison with an earlier one. Pure functions."""

from __future__ import annotations

import typing as t

from .._common.result import FabricError
from .._model.checks import Check
from .._model.plan import Plan
from .._plan.names import with_meant
from .catalog import CHECK_TYPES, FAILED, PASSED, UNPROVEN
from .pods import node_of

Key = t.Tuple[str, str, t.Tuple[str, ...], str, str]


def neighbours(names: t.Sequence[str], chosen: t.Set[str]) -> t.Set[str]:
    """A network's hosts next to the chosen ones in the ring of pairs, since a path needs another end."""
    ordered, found = sorted(names), set()
    for place, name in enumerate(ordered):
        if name in chosen:
            found |= {ordered[place - 1], ordered[(place + 1) % len(ordered)]}
    return found - chosen


def plan_of_hosts(plan: Plan, kept: t.Collection[str]) -> Plan:
    """The plan without its other hosts, which are also removed from its networks."""
    networks = [
        {**network, "hosts": [host for host in network["hosts"] if host in kept]} for network in plan["networks"]
    ]
    hosts = {host: facts for host, facts in plan["hosts"].items() if host in kept}
    return t.cast(Plan, {**plan, "hosts": hosts, "networks": networks})


def narrow_plan(plan: Plan, nodes: t.Sequence[str]) -> Plan:
    """The plan of these nodes and their neighbours on each network; the whole plan if no node is named."""
    if not nodes:
        return plan
    chosen = {host for host, facts in plan["hosts"].items() if facts["node"] in nodes}
    unknown = sorted(set(nodes) - {plan["hosts"][host]["node"] for host in chosen})
    if unknown:
        raise FabricError(
            "Only nodes of the plan can be proved.",
            "option nodes (verify_nodes)",
            f"the plan has no node {', '.join(unknown)}",
            "Set verify_nodes to names that kubectl get nodes shows, of hosts in the inventory.",
            code="invalid-input",
        )
    kept = set(chosen)
    for network in plan["networks"]:
        kept |= neighbours([host for host, facts in plan["hosts"].items() if network["name"] in facts["links"]], chosen)
    return plan_of_hosts(plan, kept)


def about_nodes(checks: t.Sequence[Check], nodes: t.Sequence[str]) -> t.List[Check]:
    """The checks of these nodes, of pairs with one of them, and of the cluster; all if no node is named."""

    def concerns(check: Check) -> bool:
        named = {node_of(key) for key in (check.node, *check.pair) if key}
        return not named or bool(named & set(nodes))

    return [check for check in checks if not nodes or concerns(check)]


def known_checks(names: t.Sequence[str], what: str, option: str) -> None:
    """FabricError for a name that is not a check's."""
    unknown = sorted(set(names) - set(CHECK_TYPES))
    if unknown:
        raise FabricError(
            what,
            f"option {option} (verify_{option})",
            f"no check named {with_meant(unknown, CHECK_TYPES)}",
            f"Choose from these: {', '.join(CHECK_TYPES)}.",
            code="invalid-input",
        )


def only_checks(checks: t.Sequence[Check], names: t.Sequence[str]) -> t.List[Check]:
    """The checks with these names; all if no name is given."""
    return [check for check in checks if not names or check.check in names]


def key_of(check: t.Mapping[str, t.Any]) -> Key:
    """What a check in a report is about."""
    pair = tuple(check.get("pair") or ())
    return check["check"], check.get("node") or "", pair, check.get("network") or "", check.get("subject") or ""


def regressions(checks: t.Sequence[Check], before: t.Sequence[t.Mapping[str, t.Any]]) -> t.List[Check]:
    """Checks that passed before and no longer pass, and failures of what was not checked before.

    What failed or was unproven before is not a regression.
    """
    statuses = {key_of(check): check["status"] for check in before}

    def is_worse(check: Check) -> bool:
        was = statuses.get(key_of(check._asdict()))
        return (check.status == FAILED and was in (None, PASSED)) or (check.status == UNPROVEN and was == PASSED)

    return [check for check in checks if is_worse(check)]
