# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes a proof has proved, and which take no new pods until a proof passes. Pure functions."""

from __future__ import annotations

import itertools
import json
import typing as t

from .._common.admission import CONDITION, ENFORCE, RECORD, TAINT, at_most
from .._common.text import fingerprint, natural, shorten_list
from .._kube.query import Object, query, quoted
from .._model.checks import Check
from .._model.plan import Finding, Plan
from .._model.stacks import STACKS
from .attribution import PEERS, attribute
from .catalog import CHECK_TYPES, FAILED, PASSED, UNPROVEN
from .pods import node_of, targets

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
BOTH_WAYS = ("ping", "full_size")  # tests whose answers take the reverse direction
REGRESSION = "regression"  # a check that compares with earlier proofs
CUT_OFF = ("node", "pod", "vipu")  # checks of a node that explain failed paths to it on any network
LONGEST = 160  # characters of what was seen, and of a next step: `kubectl describe node` does not wrap lines
NEW = "New"  # the reason of a node that no proof has judged
PLAN_ERROR = "PlanError"  # the plan has errors about this node's host, so there was no proof
UNOBSERVED = "unobserved"  # the error of the plan that says nothing about the node itself
LEFT_OPEN = " Left open: "  # precedes the reason, at the end of a message
PROVES = "run ipu.fabric.verify, or ipu.fabric.site, to prove it."
PROVE = f"Next: {PROVES}"
# Reasons for Unknown, by the part of a node that has changed since it was proved; the first one counts.
PARTS = {
    "machine": ("Reinstalled", "Reinstalled, or replaced by another machine,"),
    "nics": ("Changed", "NICs changed (PCI address, MAC, device)"),
    "guids": ("Changed", "NICs changed (GUID)"),
    "firmware": ("Changed", "NIC firmware changed"),
    "drivers": ("Changed", "NIC drivers changed"),
    "kernel": ("Changed", "Kernel changed"),
    "driver_versions": ("Changed", "NIC driver version changed"),  # the kernel's own drivers change with it
    "kubelet": ("Upgraded", "Kubelet or container runtime changed"),
    "releases": ("Upgraded", "Releases of operators or of their components changed"),
    "boot": ("Rebooted", "Rebooted"),
}
OF_ALL = ("releases",)  # parts that change on all nodes at once close no node: that would close the whole cluster
RELEASES = (*STACKS, "whereabouts", "gpu_operator")  # of components that run on nodes
Parts = t.Mapping[str, str]  # digests by the names in PARTS; unknown parts are missing


class Verdict(t.NamedTuple):
    """The result of a proof for one node."""

    status: str  # True, False or Unknown
    reason: str
    text: str  # what was seen, and the next step


class Record(t.NamedTuple):
    """The last proof that a node passed, as stored in its annotation."""

    time: str  # UTC, ISO 8601
    report: str  # sha256 of report.json, hexadecimal
    parts: Parts


class NodeSeen(t.NamedTuple):
    """A node as read from the API."""

    name: str
    status: str  # of the condition; empty if there is none
    reason: str
    message: str
    record: t.Optional[Record]
    tainted: bool
    ordinary: bool  # takes ordinary pods, apart from our taint: not cordoned, and no foreign taint
    parts: Parts  # its current parts


class NodeProof(t.NamedTuple):
    """The marks that a node should carry."""

    status: str = ""  # empty: nothing
    reason: str = ""
    message: str = ""
    record: t.Optional[Record] = None
    tainted: bool = False
    time: str = ""  # of the proof that has just decided it; empty if none has


class Proof(t.NamedTuple):
    """A proof's verdicts by node; empty without a proof. Those from a plan with errors have no report."""

    verdicts: t.Mapping[str, Verdict]
    time: str = ""
    report: str = ""


# What a proof says about nodes


def verdicts(checks: t.Sequence[Check], nodes: t.Sequence[str] = ()) -> t.Dict[str, Verdict]:
    """Verdicts by tested node. Checks of the whole cluster say nothing about a node.

    A failed pair is blamed on the node that the failures point to, or on neither if they point to none. If a node is at
    fault, what could not be tested with it does not count against the other end. nodes: limits the result to these.
    """
    own, groups = by_node(checks), by_test(checks)
    at_fault = {node: [check for check in mine if check.status == FAILED] for node, mine in own.items()}
    alone = {node: list(mine) for node, mine in at_fault.items()}
    unclear: t.Dict[str, t.List[Check]] = {}
    for (network, name), pairs in groups.items():
        suspects = {node for node, mine in alone.items() if any(breaks(check, network) for check in mine)}
        for check, guilty in blamed(name, pairs, suspects):
            for node in guilty or map(node_of, check.pair):
                (at_fault if guilty else unclear).setdefault(node, []).append(check)
    faulty = {node for node, found in at_fault.items() if found}
    for check in itertools.chain.from_iterable(pairs.values() for pairs in groups.values()):
        ends = set(map(node_of, check.pair))
        for node in ends if check.status == UNPROVEN and not ends & faulty else ():
            own.setdefault(node, []).append(check)
    known = {*own, *faulty, *unclear} & (set(nodes) or {*own, *faulty, *unclear})
    found = {node: verdict(own.get(node, ()), at_fault.get(node, ()), unclear.get(node, ())) for node in known}
    return {node: one for node, one in sorted(found.items()) if one}


def by_node(checks: t.Sequence[Check]) -> t.Dict[str, t.List[Check]]:
    """The checks of single nodes by node; moving to other groups is not a fault of the node."""
    found: t.Dict[str, t.List[Check]] = {}
    for check in checks:
        if check.node and (check.check, check.subject) != (REGRESSION, "groups"):
            found.setdefault(node_of(check.node), []).append(check)
    return found


def by_test(checks: t.Sequence[Check]) -> t.Dict[t.Tuple[str, str], t.Dict[t.Tuple[str, ...], Check]]:
    """The checks of pairs, by network and test."""
    found: t.Dict[t.Tuple[str, str], t.Dict[t.Tuple[str, ...], Check]] = {}
    for check in checks:
        if check.pair:
            found.setdefault((check.network, check.check), {})[check.pair] = check
    return found


def breaks(check: Check, network: str) -> bool:
    """Whether a failed check of a node explains failed paths to it."""
    return check.network == network or check.check in CUT_OFF


def blamed(
    name: str, pairs: t.Mapping[t.Tuple[str, ...], Check], suspects: t.Set[str]
) -> t.Iterator[t.Tuple[Check, t.List[str]]]:
    """The failed pairs of one test on one network, each with the nodes at fault: none if they point to no node.

    suspects: nodes that failed on their own.
    """
    good = {pair: check.status == PASSED for pair, check in pairs.items() if check.status in (PASSED, FAILED)}
    if name in BOTH_WAYS:
        good.update({(pair[1], pair[0]): fine for pair, fine in list(good.items())})
    blame, bad = attribute(good), [pair for pair, fine in good.items() if not fine]
    common = set.intersection(*map(set, bad)) if bad else set()
    peers = {key for pair in bad for key in pair} - common
    if len(common) != 1 or len(peers) < PEERS:
        common = set()
    for pair, check in pairs.items():
        if check.status == FAILED:
            ends = sorted(set(map(node_of, pair)))
            guilty = sorted({node_of(key) for key in blame.guilty(pair)})
            alone = ends if len(ends) == 1 else []  # two pods on one node
            yield check, guilty or [node for node in ends if node in suspects] or sorted(map(node_of, common)) or alone


def verdict(mine: t.Sequence[Check], at_fault: t.Sequence[Check], unclear: t.Sequence[Check]) -> t.Optional[Verdict]:
    """The verdict on a node; None if nothing on it was tested."""
    waiting = [check for check in mine if check.status == UNPROVEN]
    if at_fault:
        return Verdict(FALSE, "PathFailed" if at_fault[0].pair else "CheckFailed", tell(at_fault))
    if unclear:
        return Verdict(UNKNOWN, "PathUnclear", f"It is unclear which end is at fault: {tell(unclear)}")
    if waiting:
        return Verdict(UNKNOWN, "Unproven", f"Not tested: {tell(waiting)}")
    if not any(check.status == PASSED for check in mine):
        return None
    return Verdict(TRUE, "Proved", "All checks of this node passed.")


def cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3].rstrip()}..."


def tell(checks: t.Sequence[Check]) -> str:
    """The first check with its next step, and the number of others."""
    check = checks[0]
    place = " ".join(filter(None, [check.network, " - ".join(check.pair), check.subject]))
    more = f" ({len(checks) - 1} more in report.html)" if len(checks) > 1 else ""
    title = CHECK_TYPES[check.check].title
    return f"{title}{f' ({place})' if place else ''}: {cut(check.seen)}{more}. Next: {cut(check.next)}"


def plan_verdicts(plan: Plan) -> t.Dict[str, Verdict]:
    """Verdicts by node, for hosts with errors in the plan: the run ends there, so no proof shows their state."""
    found: t.Dict[str, t.List[Finding]] = {}
    for finding in plan.get("findings", []):
        for host in finding["hosts"] if finding["level"] == "error" else ():
            if host in plan["hosts"]:
                found.setdefault(plan["hosts"][host]["node"], []).append(finding)
    return {node: plan_verdict(errors) for node, errors in sorted(found.items())}


def plan_verdict(errors: t.Sequence[Finding]) -> Verdict:
    """The verdict on a host with errors: no answer counts as not tested, anything else as a failure of the node."""
    known = [error for error in errors if error["check"] != UNOBSERVED]
    first = (known or errors)[0]
    more = f" ({len(errors) - 1} more in plan.html)" if len(errors) > 1 else ""
    told = f"{first['check']}: {cut(first['what'])} Seen: {cut(first['seen'])}{more}. Next: {cut(first['next'])}"
    return Verdict(UNKNOWN, PLAN_ERROR if known else "Unproven", f"The plan has errors. {told} Then {PROVES}")


# The nodes' present state


def nic_parts(plan: Plan) -> t.Dict[str, t.Dict[str, str]]:
    """Digests, by fabric node, of what the hosts reported about their fabric NICs, and of the planned releases."""
    found = {}
    planned = plan.get("releases", {})
    releases = [*(planned.get(name) or "" for name in RELEASES), planned.get("components") or {}]
    for target in targets(plan):
        links = [link for _name, link in sorted(plan["hosts"][target.host]["links"].items())]
        parts = {
            "nics": [[link["pci"], link["mac"], link["device"]] for link in links],
            "drivers": [link["driver"] for link in links],
            "firmware": [link["firmware"] for link in links if link.get("firmware")],
            "guids": [link["guid"] for link in links if link.get("guid")],
            "driver_versions": [link["driver_version"] for link in links if link.get("driver_version")],
            "releases": releases if any(releases) else [],
        }
        found[target.node] = {name: fingerprint(values) for name, values in parts.items() if values}
    return found


def read_record(text: t.Optional[str]) -> t.Optional[Record]:
    """The record in an annotation; None if it is invalid, so that the node counts as not proved."""
    try:
        kept = json.loads(text or "")
        return Record(str(kept["time"]), str(kept["report"]), {str(k): str(v) for k, v in kept["parts"].items()})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def see_node(node: Object, nics: Parts) -> NodeSeen:
    condition = query(f"status.conditions[?type=='{CONDITION}'] | [0]", node) or {}
    taints = query("spec.taints", node) or []
    others = [taint for taint in taints if taint["key"] != TAINT["key"] and taint["effect"] != "PreferNoSchedule"]
    about = query("status.nodeInfo", node) or {}
    machine = {
        "machine": about.get("machineID"),
        "boot": about.get("bootID"),
        "kernel": about.get("kernelVersion"),
        "kubelet": [about[name] for name in ("kubeletVersion", "containerRuntimeVersion") if about.get(name)],
    }
    return NodeSeen(
        node["metadata"]["name"],
        condition.get("status", ""),
        condition.get("reason", ""),
        condition.get("message", ""),
        read_record(query(f"metadata.annotations.{quoted(RECORD)}", node)),
        any(taint["key"] == TAINT["key"] and taint["effect"] == TAINT["effect"] for taint in taints),
        not others and not query("spec.unschedulable", node),
        {**{name: fingerprint(value) for name, value in machine.items() if value}, **nics},
    )


def changed_parts(node: NodeSeen) -> t.List[str]:
    """What has changed since the node was proved, limited to what was known then and is known now."""
    before = node.record.parts if node.record else {}
    return [part for part in PARTS if part in before and part in node.parts and before[part] != node.parts[part]]


def is_another(node: NodeSeen) -> bool:
    """Whether the node itself has changed since it was proved."""
    return any(part not in OF_ALL for part in changed_parts(node))


# The marks on nodes


def decide(
    mode: str, wanted: t.Union[int, str], nodes: t.Sequence[NodeSeen], members: t.Collection[str], proof: Proof
) -> t.Dict[str, NodeProof]:
    """The marks by node, for all nodes of the cluster. members: the fabric's nodes; only they get marks, unless off.

    With enforce, a node is closed if it was never proved or has changed since. A proved node that now fails, or whose
    host has errors in the plan, is closed only while fewer than fabric_max_unproved nodes are closed that were once
    open. Only a proof opens a node. The last node that takes ordinary pods stays open.
    """
    found = {
        node.name: judge(node, proof) if mode != "off" and node.name in members else NodeProof()
        for node in sorted(nodes, key=lambda node: natural(node.name))
    }
    if mode == ENFORCE:
        return close(found, {node.name: node for node in nodes}, wanted, proof)
    return {name: one._replace(message=base_of(one.message)) for name, one in found.items()}


def base_of(message: str) -> str:
    """The message without the reason why the node was left open."""
    return message.partition(LEFT_OPEN)[0]


def judge(node: NodeSeen, proof: Proof) -> NodeProof:
    """The condition of one node. Whether the node is closed depends on the others."""
    said, record, moved = proof.verdicts.get(node.name), node.record, changed_parts(node)
    if said and (proof.report or node.status != FALSE):  # a proof has seen more than a plan
        source = f"Report of {proof.time}, sha256:{proof.report[:12]}." if proof.report else f"Plan of {proof.time}."
        told = f"{said.text} {source}"
        kept = Record(proof.time, proof.report, node.parts) if said.status == TRUE else record
        return NodeProof(said.status, said.reason, told, kept, time=proof.time)
    if record and moved and node.status == TRUE:
        reason, what = PARTS[moved[0]]
        return NodeProof(UNKNOWN, reason, f"{what} since the proof of {record.time}. {PROVE}", record)
    if node.status in (FALSE, UNKNOWN) or (node.status == TRUE and record):
        return NodeProof(node.status, node.reason, node.message, record)
    return NodeProof(UNKNOWN, NEW, f"Not proved yet. {PROVE}")


def fails(one: NodeProof, proof: Proof) -> bool:
    return one.status == FALSE if proof.report else one.reason == PLAN_ERROR


def close(
    found: t.Mapping[str, NodeProof], nodes: t.Mapping[str, NodeSeen], wanted: t.Union[int, str], proof: Proof
) -> t.Dict[str, NodeProof]:
    """Add the taints. The last ordinary node is never closed, and failures close no more nodes than `wanted` allows."""
    unproved = [name for name, one in found.items() if one.status not in ("", TRUE)]
    served = {name for name in unproved if nodes[name].record and not is_another(nodes[name])}
    failed = [name for name in unproved if name in served and name in proof.verdicts and fails(found[name], proof)]
    shut = {name for name in unproved if nodes[name].tainted or name not in served}
    limit = at_most(wanted, sum(one.status != "" for one in found.values()))
    taken = sum(1 for name in shut if nodes[name].record)
    why = {}
    for name in failed:
        if name not in shut and taken < limit:
            shut.add(name)
            taken += 1
        elif name not in shut:
            why[name] = f"fabric_max_unproved ({wanted}) allows no more closed nodes than {limit}."
    if not any(node.ordinary and name not in shut for name, node in nodes.items()):
        last = [name for name in unproved if name in shut and nodes[name].ordinary]
        keys = {name: (nodes[name].tainted, found[name].status == FALSE, name not in served) for name in last}
        for name in sorted(last, key=lambda name: keys[name])[:1]:
            shut.remove(name)
            why[name] = "no other node takes ordinary pods."
    told = {name: f"{base_of(found[name].message)}{LEFT_OPEN}{reason}" for name, reason in why.items()}
    told.update({name: base_of(found[name].message) for name in shut})
    return {
        name: one._replace(tainted=name in shut, message=told.get(name, one.message)) for name, one in found.items()
    }


# Summary


def summary(before: t.Mapping[str, NodeSeen], after: t.Mapping[str, NodeProof]) -> t.List[str]:
    """Lines for a terminal: how many nodes are proved, which are not and why, and which this run closed or opened."""
    shown = {name: one for name, one in after.items() if one.status}
    counts = {status: sum(one.status == status for one in shown.values()) for status in (TRUE, FALSE, UNKNOWN)}
    lines = [f"{CONDITION}: " + ", ".join(f"{number} {status}" for status, number in counts.items())] if shown else []
    groups = {
        "closed to new pods": [name for name, one in shown.items() if one.tainted],
        "closed by this run": [name for name, one in shown.items() if one.tainted and not before[name].tainted],
        "opened by this run": [name for name, node in before.items() if node.tainted and not after[name].tainted],
    }
    lines += [f"{what}: {shorten_list(names, 10)}" for what, names in groups.items() if names]
    told = [f"{name}, {one.status}, {one.reason}: {one.message}" for name, one in shown.items() if one.status != TRUE]
    return [*lines, *told[:10], *([f"and {len(told) - 10} more: kubectl describe node"] if len(told) > 10 else [])]
