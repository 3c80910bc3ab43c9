# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the IPU operator, and of the path from pods to V-IPU. Pure functions."""

from __future__ import annotations

import typing as t

from .._common.text import join_endpoint
from .._host.ipu_operator import CONTROLLERS
from .._model.checks import Check, Expect
from .._model.plan import Plan
from .._model.probe import NodeFacts, Probe
from .catalog import NO_NODE, NODE_POD, need_image, result, skip, unproven
from .pods import IPU_DEPLOYMENTS, Pods, own_controllers

CERTIFICATE_DAYS = 14
UNREAD = (
    "the operator's ConfigMap of V-IPU controllers could not be read",
    f"Let this user read the ConfigMap {CONTROLLERS}; the playbook ipu.fabric.fabric writes it.",
)
NOT_READ = "the account of a scheduled proof may not read what is in Secrets"
OWN_NIC = "V-IPU is on this node's own NIC, which pods don't reach: workers need the host's network"


def check_ipu(plan: Plan, probe: Probe, expect: Expect) -> t.Iterator[Check]:
    if not expect.ipu:
        return
    yield from vipu_checks(plan, probe["pods"])
    yield from label_checks(plan, probe["nodes"])
    if not probe["ipu"]:
        yield from (skip(check, NOT_READ) for check in ("ipu_operator", "webhook", "vipu_proxy", "ipu_certificate"))
        return
    yield from controller_checks(plan, probe["nodes"], probe["ipu"].get("controllers"))
    deployments, proxy = probe["ipu"]["deployments"], probe["ipu"]["proxy"]
    late = [f"{d['name']} {d['ready']} of {d['wanted']} ready" for d in deployments if d["ready"] < d["wanted"]]
    seen = "; ".join(late) or ", ".join(d["name"] for d in deployments) or "no Deployment"
    good = len(deployments) >= len(IPU_DEPLOYMENTS) and not late
    yield result("ipu_operator", good, " and ".join(IPU_DEPLOYMENTS) + " ready", seen)
    webhook, ignored = probe["webhook"] or {"passed": False, "seen": "not asked"}, probe["ipu"].get("ignored")
    seen = f"a killed run has left failurePolicy Ignore in {', '.join(ignored)}" if ignored else webhook["seen"]
    yield result("webhook", webhook["passed"] and not ignored, "a dry-run IPUJob is accepted", seen)
    yield result("vipu_proxy", proxy["healthy"], "GET /health: 200", proxy["seen"])
    end, days = probe["ipu"]["certificate"]["end"], probe["ipu"]["certificate"]["days"] or 0
    seen = f"{days} days, until {end}" if end else "no certificate in the Secret ipu-operator-admission"
    yield result("ipu_certificate", bool(end) and days >= CERTIFICATE_DAYS, f"{CERTIFICATE_DAYS} days at least", seen)


def vipu_checks(plan: Plan, pods: Pods) -> t.Iterator[Check]:
    asked = False
    for node, pod in sorted(pods.items()):
        for address, port in own_controllers(plan, pod["host"]):  # an error of the plan, unless it is intended
            asked = True
            yield skip("vipu", OWN_NIC, node=node, subject=join_endpoint(address, port))
        for seen in pod["root"]["vipu"] if "root" in pod else ():
            asked = True
            where = f"{seen['host']}:{seen['port']}"
            if seen["rc"] == 127:
                yield unproven(
                    "vipu", "the image has neither nc nor bash", need_image("nc or bash"), node=node, subject=where
                )
            else:
                good = seen["rc"] == 0
                text = "open" if good else f"not open: {seen['seen']}" if seen["seen"] else "no answer within 3 s"
                yield result("vipu", good, "open", text, node=node, subject=where)
    if not plan["vipu"]["controllers"]:
        yield skip("vipu", "no V-IPU controller in the plan")
    elif not asked:
        yield unproven("vipu", "no probe pod that could try the port", NODE_POD[1])


def label_checks(plan: Plan, nodes: t.Mapping[str, NodeFacts]) -> t.Iterator[Check]:
    """Check the plan's labels on its nodes."""
    planned = plan["vipu"]["node_labels"]
    if not planned:
        yield skip("ipu_labels", "the plan has no node labels")
    for host, labels in sorted(planned.items()):
        if host not in plan["hosts"]:  # only some nodes are proved
            continue
        node = plan["hosts"][host]["node"]
        have = nodes[node]["labels"] if node in nodes else {}
        wrong = [f"{key}={have.get(key, '(none)')}" for key, value in sorted(labels.items()) if have.get(key) != value]
        expected = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
        seen = ", ".join(wrong) or expected
        yield result("ipu_labels", not wrong, expected, seen if node in nodes else NO_NODE[0], node=node)


def controller_checks(
    plan: Plan, nodes: t.Mapping[str, NodeFacts], controllers: t.Optional[t.Sequence[str]]
) -> t.Iterator[Check]:
    """Compare the planned labels, and those of nodes, with the labels by which the operator places workers."""
    given = {f"{key}={value}" for labels in plan["vipu"]["node_labels"].values() for key, value in labels.items()}
    if controllers is None and given:
        yield unproven("ipu_labels", UNREAD[0], UNREAD[1], subject=CONTROLLERS)
    elif controllers or given:
        yield operator_labels_check(given, nodes, controllers or ())


def operator_labels_check(given: t.Set[str], nodes: t.Mapping[str, NodeFacts], controllers: t.Sequence[str]) -> Check:
    """Check this since a worker stays Pending if no node has the label of its controller."""
    served = {each.rpartition(":")[2] for each in controllers}
    present = {f"{key}={value}" for node in nodes.values() for key, value in node["labels"].items()}
    faults = [
        *(f"no controller has {label}" for label in sorted(given - served)),
        *(f"no node has {label}" for label in sorted(served - given - present)),
    ]
    expected = ", ".join(sorted(given)) or "a node for each controller"
    seen = "; ".join([", ".join(controllers) or "empty", *faults])
    return result("ipu_labels", not faults, expected, seen, subject=CONTROLLERS)
