# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of a look at the hosts, for a plan while one of them is down."""

from __future__ import annotations

import json
import typing as t

PARTS = ("host", "rdma", "vipu")
Hosts = t.Mapping[str, t.Mapping[str, t.Any]]
Kept = t.Dict[str, t.Dict[str, t.Any]]


def read(text: str) -> Kept:
    """What the last plan kept; nothing if the text is something else."""
    try:
        kept = json.loads(text)
        return {name: entry for name, entry in kept.items() if entry["when"] and entry["host"]}
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}


def keep(hosts: Hosts, last: Kept, now: str) -> Kept:
    """The answers of each host, with the time of those that are new."""
    kept: Kept = {}
    for name, host in hosts.items():
        if host.get("host"):
            kept[name] = {"when": now, **{part: host[part] for part in PARTS if part in host}}
        elif name in last:
            kept[name] = last[name]
    return kept


def recall(hosts: Hosts, last: Kept) -> Kept:
    """The hosts, and those that could not be looked at as they were seen the last time, their errors besides.

    A plan without them would take them out of the pools, and give their addresses to pods.
    """
    return {
        name: {**host}
        if host.get("host") or name not in last
        else {
            **host,
            **{part: last[name][part] for part in PARTS if part in last[name]},
            "recalled": last[name]["when"],
        }
        for name, host in hosts.items()
    }
