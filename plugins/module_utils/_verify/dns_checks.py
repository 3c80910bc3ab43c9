# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether pods can resolve services of the cluster by name. Pure functions."""

from __future__ import annotations

import typing as t

from .._common.dns import LOOP, LOOPED_STEP
from .._common.text import shorten_list
from .._model.checks import Check
from .._model.probe import PodFacts
from .catalog import need_image, result, unproven
from .parsers import MISSING_TOOL


def dns_check(pod: PodFacts, problems: t.Sequence[str], node: str) -> Check:
    """The check of a running pod's answer; `problems` are those of the pods that serve DNS."""
    root = pod["root"]
    answer = root.get("dns")
    if answer is None or not answer["name"]:
        return result("dns", False, "an answer from the pod", root["error"] or "no output", node=node)
    if answer["rc"] == MISSING_TOOL:
        missing = need_image("getent or nslookup")
        return unproven("dns", "the image has neither getent nor nslookup", missing, node=node)
    if answer["rc"] == 0 and answer["address"]:
        return result("dns", True, f"{answer['name']} resolves", answer["address"], node=node)
    asked = ", ".join(answer["servers"]) or "no server in /etc/resolv.conf"
    seen = "; ".join(filter(None, [f"{answer['seen']} ({asked})", shorten_list(problems, 3, "; ")]))
    check = result("dns", False, f"{answer['name']} resolves", seen, node=node)
    return check._replace(next=LOOPED_STEP) if any(map(LOOP.search, problems)) else check
