# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an archive shows to be wrong at its site, by the checks of this release. Pure; does not trust its contents."""

from __future__ import annotations

import collections
import itertools
import json
import textwrap
import typing as t

from .._common.text import printable, shorten_list
from .._kube.nodes import why_not_ready
from .._kube.pod_problems import container_statuses, pod_problems
from .._kube.query import Object, query
from .._model.checks import Check, Expect
from .._model.support import Problem
from .._verify.baseline import NOISE, key_of
from .._verify.catalog import FAILED, UNPROVEN
from .._verify.checks import check_fabric
from .._verify.narrow import about_nodes, narrow_plan
from .._verify.report import as_dict, subject
from .contents import ABOUT, OBJECTS

Files = t.Mapping[str, str]
LEVELS = ("error", "unproven", "warning")
WIDTH = 100
FEW = 10  # problems of a kind that are shown one by one
EVENTS = 30


class Archive:
    """The archive's files as data. Unreadable data is a problem like any other."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.problems: t.List[Problem] = []

    def read(self, name: str) -> t.Dict[str, t.Any]:
        try:
            data = json.loads(self.files.get(name) or "{}")
            if isinstance(data, dict):
                return data
            self.odd(name, f"a {type(data).__name__} in place of an object")
        except (ValueError, RecursionError) as error:
            self.odd(name, str(error))
        return {}

    def odd(self, name: str, seen: str) -> None:
        self.problems.append(Problem("archive", "warning", "unreadable", name, seen))

    def ask(self, name: str, judge: t.Callable[[], t.Iterable[Problem]]) -> None:
        """Add the problems that one part of the archive shows."""
        try:
            self.problems += judge()
        except Exception as error:  # whatever a part from another release, or a forged one, causes in these functions
            self.odd(name, f"{type(error).__name__}: {error}")


def judge(files: Files) -> t.List[Problem]:
    """Problems: errors first, then in the order in which a site is built."""
    archive = Archive(files)
    plan, report, probe = (archive.read(name) for name in ("plan.json", "report.json", "probe.json"))
    objects, about = archive.read(OBJECTS), archive.read(ABOUT)
    archive.ask("plan.json", lambda: [*of_plan(plan)])
    if plan and probe:
        archive.ask("probe.json", lambda: [*of_proof(judged_again(plan, probe, report))])
    if not plan or not probe or any(problem.where == "probe.json" for problem in archive.problems):
        archive.ask("report.json", lambda: [*of_proof(report.get("checks") or [])])
    archive.ask(OBJECTS, lambda: [*of_nodes(objects.get("Node") or [])])
    archive.ask(OBJECTS, lambda: [*of_pods(objects.get("Pod") or [])])
    archive.ask(OBJECTS, lambda: [*of_events(objects.get("Event") or [])])
    archive.ask(ABOUT, lambda: [*of_gaps(about.get("gaps") or [])])
    shown = (Problem(*(printable(str(part)) for part in problem)) for problem in archive.problems)
    return sorted(shown, key=lambda problem: LEVELS.index(problem.level) if problem.level in LEVELS else len(LEVELS))


def of_plan(plan: t.Mapping[str, t.Any]) -> t.Iterator[Problem]:
    for found in plan.get("findings") or []:
        where = shorten_list(found["hosts"], FEW) or "all hosts"
        yield Problem(
            "plan", found["level"], found["check"], where, found["seen"], what=found["what"], next=found["next"]
        )


def judged_again(plan: t.Any, probe: t.Any, report: t.Mapping[str, t.Any]) -> t.List[t.Mapping[str, t.Any]]:
    """The checks as this release makes them, with the settings that the site had when it made its report.

    Only the report itself knows what got worse since earlier proofs.
    """
    given = report.get("expect") or {}
    expect = Expect(**{name: given[name] for name in Expect._fields if name in given})
    nodes = [str(name) for name in report.get("nodes") or ()]
    checks: t.List[Check] = about_nodes(check_fabric(narrow_plan(plan, nodes), probe, expect), nodes)
    found = {key_of(check): check for check in map(as_dict, checks)}
    worse = [check for check in report.get("checks") or () if check["check"] in ("regression", *NOISE)]
    return list({**found, **{key_of(check): check for check in worse if check["status"] == FAILED}}.values())


def of_proof(checks: t.Sequence[t.Mapping[str, t.Any]]) -> t.Iterator[Problem]:
    for found in checks:
        level = {FAILED: "error", UNPROVEN: "unproven"}.get(found["status"])
        if level:
            check = Check(**{name: found[name] for name in Check._fields if name in found})
            where = " ".join(filter(None, [check.network, subject(check)])) or "the cluster"
            yield Problem("proof", level, check.check, where, check.seen, check.expected, check.next)


def of_nodes(nodes: t.Sequence[Object]) -> t.Iterator[Problem]:
    for node in nodes:
        name, why = node["metadata"]["name"], why_not_ready(node)
        if why:
            yield Problem("node", "error", "NotReady", name, why)
        for condition in query("status.conditions[?type!='Ready' && status=='True']", node) or []:
            yield Problem("node", "warning", condition["type"], name, str(condition.get("message", "")))


def of_pods(pods: t.Sequence[Object]) -> t.Iterator[Problem]:
    for pod in pods:
        where = "/".join(query("metadata.[namespace, name]", pod))
        found = pod_problems(pod)
        for each in found:
            yield Problem("pod", "error", "not running", where, each.text)
        if found or query("status.phase", pod) == "Succeeded":
            continue
        waiting = [each["name"] for each in container_statuses(pod) if not _is_done(each)]
        if query("status.phase", pod) != "Running" or waiting:
            seen = query("status.[reason, message]", pod) or []
            text = ", ".join([query("status.phase", pod) or "no phase", *(f"container {name}" for name in waiting)])
            yield Problem("pod", "error", "not ready", where, ": ".join([text, *filter(None, seen)]))


def _is_done(container: Object) -> bool:
    """Whether a container is ready, or has ended successfully."""
    return bool(container.get("ready")) or query("state.terminated.exitCode", container) == 0


def of_events(events: t.Sequence[Object]) -> t.Iterator[Problem]:
    """Warnings, each once with its count; newest first."""
    found: t.Dict[t.Tuple[str, str, str], t.List[Object]] = collections.defaultdict(list)
    for event in events:
        if event.get("type") == "Warning":
            place = "/".join(filter(None, query("involvedObject.[kind, namespace, name]", event) or []))
            found[event.get("reason", ""), place, event.get("message", "")].append(event)
    newest = sorted(found.items(), key=lambda item: max(map(_when, item[1])), reverse=True)
    for (reason, place, message), same in newest[:EVENTS]:
        times = sum(query("series.count", event) or event.get("count") or 1 for event in same)
        yield Problem("event", "warning", reason, place, f"{message} ({times} times, last {max(map(_when, same))})")


def _when(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or query("metadata.creationTimestamp", event) or "")


def of_gaps(gaps: t.Sequence[t.Mapping[str, str]]) -> t.Iterator[Problem]:
    for gap in gaps:
        yield Problem("archive", "warning", "not collected", f"{gap['what']} ({gap['where']})", gap["seen"])


def as_text(files: Files, problems: t.Sequence[Problem]) -> t.List[str]:
    """For a terminal: what the archive is, and its problems; of many similar ones only a few."""
    about = Archive(files).read(ABOUT)
    versions = about.get("versions")
    parts = [f"{name} {version}" for name, version in versions.items()] if isinstance(versions, dict) else []
    lines = [printable(f"Archive of {about.get('time', 'an unknown time')}: {', '.join(parts)}")]
    number = collections.Counter(problem.level for problem in problems)
    lines.append(", ".join(f"{number[level]} {level}" for level in LEVELS) if problems else "Nothing wrong was found.")
    for _key, alike in itertools.groupby(problems, key=lambda problem: (problem.level, problem.source, problem.check)):
        same = list(alike)
        for problem in same[:FEW]:
            lines += ["", f"{problem.level.upper()} {problem.source}, {problem.check}: {problem.where}"]
            for label in ("what", "expected", "seen", "next"):
                told = getattr(problem, label)
                text = told if label == "what" else f"{label}: {told}"
                lines += textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ") if told else []
        if len(same) > FEW:
            lines += ["", f"And {len(same) - FEW} more of {same[0].source}, {same[0].check}."]
    return lines
