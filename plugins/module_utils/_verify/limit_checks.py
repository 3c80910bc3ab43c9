# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the locked-memory limits of root and an ordinary user in a pod. Pure functions."""

from __future__ import annotations

import typing as t

from .._common.memlock_limits import limit_bytes, readable
from .._model.checks import Check, Expect
from .._model.probe import Probe
from .catalog import NODE_POD, result, skip, unproven


def check_limits(probe: Probe, expect: Expect) -> t.Iterator[Check]:
    note = "" if readable(expect.memlock) == "unlimited" else " (expectation lowered from unlimited)"
    expected = readable(expect.memlock) + note
    for node, pod in sorted(probe["pods"].items()):
        users = (("memlock_root", 0, pod.get("root")), ("memlock_user", 1000, pod.get("user")))
        for check, uid, facts in users:
            if pod["state"] != "running":
                yield unproven(check, *NODE_POD, node=node)
                continue
            limit, who, error = (facts["memlock"], facts["uid"], facts["error"]) if facts else (None, None, "")
            if limit is None or who != uid:
                seen = error or f"no limit was read as uid {uid} (the container runs as uid {who})"
                yield result(check, False, expected, seen, node=node)
                continue
            if limit_bytes(expect.memlock) == 0:
                yield skip(check, f"{readable(limit['soft'])}; verify_memlock expects nothing", node=node)
                continue
            good = limit_bytes(limit["soft"]) >= limit_bytes(expect.memlock)
            yield result(check, good, expected, readable(limit["soft"]) + (note if good else ""), node=node)
