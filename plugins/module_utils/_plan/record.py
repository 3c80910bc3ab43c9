# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as a record: who made it, how it differs from an earlier plan, and the drift that was seen. Pure."""

from __future__ import annotations

import json
import posixpath
import re
import typing as t

from .._model.plan import Drift, Finding, Made, Plan, Since
from .approved import Content, hosts_of, since
from .changes import Drifted, summarize
from .report import split_drift

OF_HOSTS = ("kubernetes_", "memlock_", "rdma_host_")  # roles whose variables the playbook fabric does not apply


class Earlier(t.NamedTuple):
    """Plans of earlier runs. None: there was none."""

    last: t.Optional[Content]  # plan.json of the last run
    applied: t.Optional[Content]  # the one that site applied


def parse_plan(text: str) -> t.Optional[Content]:
    """The plan in a file's text; None if it is not a plan."""
    try:
        content = json.loads(text)
    except ValueError:
        return None
    return content if hosts_of(content if isinstance(content, dict) else {}) else None


def name_site(sources: t.Sequence[str], cluster_config: t.Mapping[str, object]) -> str:
    """The cluster's name if the site sets one, otherwise the folder of its inventory."""
    given = cluster_config.get("clusterName")
    if given:
        return str(given)
    path = next((source for source in sources if "/" in source), "")
    return posixpath.basename(path.rstrip("/") if "." not in posixpath.basename(path) else posixpath.dirname(path))


def record(plan: Plan, made: Made, earlier: Earlier) -> Plan:
    """The plan with details of this run, and the drift seen since site last ran."""
    before = earlier.last if earlier.applied is None else earlier.applied
    if before is not None and not set(hosts_of(before)) & set(plan["hosts"]):
        before = None  # a plan of another site
    compared: t.Optional[Since] = None
    if before is not None:
        applied = earlier.applied is not None
        compared = {"time": time_of(before), "applied": applied, "moved": since(before, json.loads(json.dumps(plan)))}
    found: Plan = {**plan, "made": made, "since": compared}
    last = earlier.last or {}
    drift, seen = last.get("drift"), last.get("drift_time")
    if isinstance(drift, list) and isinstance(seen, str) and seen and not _is_gone(drift, found):
        found = {**found, "drift": drift, "drift_time": seen}
    return _summed(found)


def _is_gone(drift: t.Sequence[Drift], plan: Plan) -> bool:
    """Whether the cluster or fabric whose drift was seen no longer exists: a reset removes them."""
    names, lacking = {network["name"] for network in plan["networks"]}, set(_lacking(plan))
    seen_so = any(one["change"] == "create" and re.split("[ /]", one["object"])[-1] in names for one in drift)
    return plan["summary"]["bare"] or (bool(names) and lacking == names and not seen_so)


def _lacking(plan: Plan) -> t.List[str]:
    """Planned networks that the existing cluster lacks, as far as known."""
    running = plan["cluster"]["running"]
    there = running.get("fabric_networks") if running else None
    return [] if there is None else [each["name"] for each in plan["networks"] if each["name"] not in there]


def with_drift(plan: Plan, drift: t.Sequence[Drift], now: str) -> Plan:
    """The plan with the drift that the playbook drift saw at that time."""
    return _summed({**plan, "drift": [*drift], "drift_time": now})


def without_drift(plan: Plan) -> Plan:
    """The plan after site has run: drift that was seen earlier is outdated."""
    return _summed({**plan, "drift": None, "drift_time": ""})


def with_fabric(applied: t.Optional[Content], plan: Plan) -> t.Optional[Content]:
    """The applied plan after a run of the fabric alone: of Kubernetes and the hosts it says what it said before.

    None: Kubernetes is the site's, and no plan of it was applied.
    """
    if applied is None:
        return plan if plan["hardening"] is None else None
    before, now = applied.get("role_variables"), plan.get("role_variables", {})
    stay = before.items() if isinstance(before, dict) else ()
    variables = {
        **{name: value for name, value in now.items() if not name.startswith(OF_HOSTS)},
        **{name: value for name, value in stay if name.startswith(OF_HOSTS)},
    }
    kept = {key: applied[key] for key in ("cluster", "hardening") if key in applied}
    return {**plan, **kept, **({"role_variables": variables} if variables else {})}


def known_findings(last: t.Optional[Content]) -> t.List[Finding]:
    found = (last or {}).get("findings")
    return t.cast("t.List[Finding]", found) if isinstance(found, list) else []


def time_of(plan: Content) -> str:
    made = plan.get("made")
    return str(made.get("time", "")) if isinstance(made, dict) else ""


def _summed(plan: Plan) -> Plan:
    drifted = None
    if plan["drift"] is not None:
        objects = dict.fromkeys(one["object"] for one in split_drift(plan["drift"])[0])
        drifted = Drifted(list(objects), plan["drift_time"])
    summary = summarize(plan["summary"]["hosts"], plan["findings"], plan["since"], drifted, _lacking(plan))
    return {**plan, "summary": summary}
