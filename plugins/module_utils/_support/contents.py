# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of an archive. All of them pass redact() here, whatever was removed before. Pure functions."""

from __future__ import annotations

import json
import typing as t

from .._common.redaction import redact
from .._model.support import About, ClusterPart, Gap
from .archive import Files, file_name

FORMAT = 1
ABOUT, OBJECTS = "about.json", "cluster/objects.json"
ARTIFACTS = ("plan.json", "report.json", "probe.json", "observations.json")
Result = t.Mapping[str, t.Any]  # of a module


class Collected(t.NamedTuple):
    """What the controller has read, and the results of hosts and API."""

    artifacts: t.Mapping[str, str]  # text of the existing files
    artifacts_dir: str
    cluster: Result  # of support_info
    journals: t.Mapping[str, Result]  # of host_info, by host


def gap_of(what: str, where: str, result: Result) -> Gap:
    said = (result.get("error", {}).get("seen") or result.get("msg") or "no answer", result.get("module_stderr"))
    seen = ": ".join(str(text).strip() for text in said if text)
    return Gap(what=what, where=where, seen=f"unreachable: {seen}" if result.get("unreachable") else seen)


def contents(collected: Collected, time: str, versions: t.Mapping[str, str]) -> Files:
    """The files of the archive, without secrets."""
    data: t.Dict[str, object] = {}
    gaps: t.List[Gap] = []
    for name in ARTIFACTS:
        text = collected.artifacts.get(name, "")
        try:
            data[name] = json.loads(text)
        except (ValueError, RecursionError) as error:
            seen = str(error) if text else "there is no such file"
            gaps.append(Gap(what=name, where=collected.artifacts_dir, seen=seen))
    if "cluster" in collected.cluster:
        part: ClusterPart = collected.cluster["cluster"]
        data[OBJECTS] = part["objects"]
        data.update({f"cluster/logs/{name}.log": text for name, text in part["logs"].items()})
        gaps += part["gaps"]
    else:
        gaps.append(gap_of("the cluster", "its API", collected.cluster))
    for host, result in collected.journals.items():
        if not result.get("logs"):
            gaps.append(gap_of("the journal", host, result if "logs" not in result else {"msg": "nothing is in it"}))
        data.update({f"hosts/{host}/{unit}.log": text for unit, text in result.get("logs", {}).items()})
    about: About = {"format": FORMAT, "time": time, "versions": dict(versions), "gaps": gaps}
    cleaned = t.cast(t.Dict[str, object], redact({ABOUT: about, **data}))
    return {
        file_name(*name.split("/")): item if isinstance(item, str) else json.dumps(item, indent=1) + "\n"
        for name, item in cleaned.items()
    }
