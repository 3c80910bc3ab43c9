# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with --limit, of which Ansible only warns: names that match nothing, and a cluster without a start."""

from __future__ import annotations

import re
import typing as t

from .._common.findings import Findings
from .._model.settings import Settings
from .hosts import Hosts, PlacedHost, with_role
from .names import with_meant

CHECK = "limit"


def unknown_names(limit: str, groups: t.Mapping[str, t.Sequence[str]]) -> t.List[str]:
    """Names in --limit that are neither hosts nor groups. Ranges, regular expressions and files are not taken apart."""
    if re.search(r"[~\[@]", limit):
        return []
    known = {"localhost", *groups, *(host for hosts in groups.values() for host in hosts)}
    names = (part.strip().lstrip("!&") for part in re.split(r"[,:]", limit))
    return [name for name in names if name and not re.search(r"[*?]", name) and name not in known]


def check_limit(settings: Settings, hosts: Hosts, findings: Findings) -> None:
    unknown = unknown_names(settings.limit, settings.inventory_groups)
    if unknown:
        findings.error(
            CHECK,
            [],
            "A name in --limit is neither a host nor a group of the inventory: this run would leave it out.",
            with_meant(unknown, [*hosts, *settings.inventory_groups]),
            "Correct --limit.",
        )
    planes = with_role(hosts, "control_plane") if settings.limit and settings.manage_kubernetes else []
    if planes and planes[0] not in settings.run_hosts and all(_is_bare(hosts[name]) for name in planes):
        findings.error(
            CHECK,
            planes[:1],
            "There is no cluster yet, and this run leaves out the control plane that begins it.",
            f"--limit {settings.limit}",
            f"Run without --limit, or with {planes[0]} in it.",
        )


def _is_bare(host: PlacedHost) -> bool:
    """Whether a host was seen in this run, and has nothing of a control plane."""
    recalled = host.observation.get("recalled")
    return host.facts is not None and not recalled and not host.facts["cluster"]["present"]
