# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An approved plan in a file, and what has changed since it was made. Pure."""

from __future__ import annotations

import json
import typing as t

from .._common.differences import ABSENT, by_key, differences
from .._common.findings import Findings
from .._common.text import shorten_list
from .._model.plan import Mark, Moved, Plan
from .._model.settings import PlanFile

Content = t.Mapping[str, object]

# Parts that tell what was seen when the plan was made, and by whom.
AT_THE_TIME = (
    "certificates",
    "cni_token_ends",
    "drift",
    "drift_time",
    "findings",
    "made",
    "recorded",
    "since",
    "summary",
    "support",
)
TITLES = {
    "hardening": "hardening",
    "image_digests": "digests of images",
    "ipu_operator": "release of the IPU operator",
    "nic_groups": "groups of hosts by their NICs",
    "no_proxy": "addresses without the proxy",
    "rdma_resources": "RDMA resources",
    "role_variables": "variables of roles",
    "sources": "sources of downloads",
    "vipu": "V-IPU",
}
NAMES = 8  # host names in one sentence
WORDS = ("in the file", "now")
SINCE = ("before", "now")
NEXT_RECORDED = "Compare the two plans. Nothing is applied from a recording."
FINDINGS = 40  # differences that get their own finding
FIELDS = 8  # fields shown of one difference
NEXT = (
    "Look at the new plan. To apply it, run ipu.fabric.plan without fabric_plan_file and approve the plan.json that it"
    " writes; to apply the approved one, undo the change."
)


class Difference(t.NamedTuple):
    """One thing that differs from the file."""

    host: str  # inventory name; empty: it does not belong to a host
    thing: str  # such as NIC on rdma-net
    fields: t.List[str]  # what differs, with both values
    mark: Mark = "~"  # + if only the second plan has it, - if only the first has


def decisions(plan: Content) -> t.Dict[str, object]:
    """The decisions of a plan, without what was only seen when it was made and may change."""
    found = {key: value for key, value in plan.items() if key not in AT_THE_TIME}
    for key, seen in (("hardening", "due"), ("cluster", "running")):
        if key in found:
            found[key] = without(found[key], seen)
    if hosts_of(found):
        found["hosts"] = {name: decided_of(host) for name, host in hosts_of(found).items()}
    return found


def decided_of(host: object) -> object:
    """A host without what was only seen: its GPUs, and the GUID, firmware, driver version and state of its NICs."""
    kept = without(host, "gpus")
    links = kept.get("links") if isinstance(kept, dict) else None
    if not isinstance(kept, dict) or not isinstance(links, dict):
        return kept
    for seen in ("firmware", "guid", "driver_version", "down"):
        links = {name: without(link, seen) for name, link in links.items()}
    return {**kept, "links": links}


def hosts_of(plan: Content) -> Content:
    hosts = plan.get("hosts")
    return hosts if isinstance(hosts, dict) else {}


def without(content: object, key: str) -> object:
    return {name: value for name, value in content.items() if name != key} if isinstance(content, dict) else content


def check_approved(file: t.Optional[PlanFile], plan: Plan, findings: Findings) -> None:
    """Errors if the file is not a plan of these hosts, or if any decision differs from it.

    With a recording nothing is applied: there, different decisions are a warning, and show what a setting would change.
    """
    if not file:
        return
    if file.content is None:
        _refuse(file, findings, file.fault, "Give the path of a plan.json that ipu.fabric.plan has written.")
        return
    if file.content.get("schema") != plan["schema"]:
        seen = f"its schema is {file.content.get('schema')!r}, this release of the collection writes {plan['schema']}"
        _refuse(file, findings, seen, "Plan again with this release, and approve that plan.")
        return
    approved = decisions(file.content)
    now = decisions(json.loads(json.dumps(plan)))
    strangers = _strangers(hosts_of(approved), hosts_of(now))
    if strangers:
        _refuse(file, findings, strangers, "Give the file of this inventory, or plan again and approve that plan.")
        return
    found = moved(approved, now)
    report, next_step = (findings.warning, NEXT_RECORDED) if plan["recorded"] else (findings.error, NEXT)
    for each in found[:FINDINGS]:
        seen = "; ".join([*each.fields[:FIELDS], *_rest(each.fields, FIELDS, "field")])
        report(
            "plan-moved",
            filter(None, [each.host]),
            f"{each.thing} has to be as in the approved plan, {file.path}.",
            seen,
            next_step,
        )
    for seen in _rest(found, FINDINGS, "difference"):
        report("plan-moved", [], f"All decisions have to be as in the approved plan, {file.path}.", seen, next_step)


def _refuse(file: PlanFile, findings: Findings, seen: str, next_step: str) -> None:
    findings.error(
        "plan-file",
        [],
        f"fabric_plan_file has to be an approved plan of these hosts: {file.path}.",
        seen,
        next_step,
    )


def _rest(items: t.Sequence[object], shown: int, word: str) -> t.List[str]:
    rest = len(items) - shown
    return [f"{rest} more {word}{'' if rest == 1 else 's'}"] if rest > 0 else []


def _strangers(approved: Content, now: Content) -> str:
    """Hosts that only one of the two plans has; empty if both have the same."""
    if not set(approved) & set(now):
        return f"it is a plan of other hosts: {shorten_list(sorted(approved), NAMES) or 'none'}"
    sides = (("only in the file", set(approved) - set(now)), ("only in the inventory", set(now) - set(approved)))
    return "; ".join(f"{words}: {shorten_list(sorted(names), NAMES)}" for words, names in sides if names)


def moved(approved: Content, now: Content, words: t.Tuple[str, str] = WORDS) -> t.List[Difference]:
    """The differing decisions of two plans: by NIC, host, network and part of the plan."""
    was, becomes, found = _things(approved), _things(now), []
    for host, thing in {**was, **becomes}:
        before, after = was.get((host, thing), ABSENT), becomes.get((host, thing), ABSENT)
        fields = list(differences(before, after, words))
        if fields:
            found.append(Difference(host, thing, fields, "+" if before is ABSENT else "-" if after is ABSENT else "~"))
    return found


def since(before: Content, now: Content) -> t.List[Moved]:
    """The decisions that differ from an earlier plan. Additions and removals are named, but not detailed."""
    found = moved(decisions(before), decisions(now), SINCE)
    hosts = {each.host for each in found if each.mark != "~" and each.thing == "Host"}
    return [
        {
            "mark": each.mark,
            "host": each.host,
            "thing": each.thing,
            "fields": [] if each.mark != "~" else [*each.fields[:FIELDS], *_rest(each.fields, FIELDS, "field")],
        }
        for each in found
        if each.host not in hosts or each.thing == "Host"
    ]


def _things(plan: Content) -> t.Dict[t.Tuple[str, str], object]:
    """The parts of a plan that have a title for people, by host and title."""
    things: t.Dict[t.Tuple[str, str], object] = {}
    for name, host in hosts_of(plan).items():
        links = host.get("links") if isinstance(host, dict) else None
        things[name, "Host"] = without(host, "links") if isinstance(links, dict) else host
        if isinstance(links, dict):
            things.update({(name, f"NIC on {network}"): link for network, link in links.items()})
    for key, value in plan.items():
        if key == "networks" and by_key(value) is not None:
            for name, network in (by_key(value) or {}).items():
                # Its subnet and pool repeat the first of its subnets and pools.
                things["", f"Network {name}"] = without(without(network, "subnet"), "pool")
        elif key != "hosts":
            title = TITLES.get(key, key)
            things["", title[0].upper() + title[1:]] = value
    return things
