# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in the inventory that nothing reads: a misspelt group leaves its hosts out, a misspelt variable its value."""

from __future__ import annotations

import difflib
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._model.observation import Observations

GROUPS = ("kube_control_plane", "kube_node", "ipu_node")
PREFIX = "fabric_"
# How alike two names have to be, by difflib; 1 is the same. The group gpu_node, at 0.88, is no misspelt ipu_node.
ALIKE_GROUPS, ALIKE_VARIABLES, ALIKE_KEYS = 0.9, 0.8, 0.6


def nearest(name: str, known: t.Iterable[str], alike: float) -> str:
    """The known name that is meant, perhaps; empty when none is like it."""
    return next(iter(difflib.get_close_matches(name, list(known), 1, alike)), "")


def check_groups(groups: t.Mapping[str, t.Sequence[str]], findings: Findings) -> None:
    """Hosts that are in a group with a name like one of ours, and not in that one."""
    for group, hosts in sorted(groups.items()):
        meant = "" if group in GROUPS else nearest(group.replace("-", "_"), GROUPS, ALIKE_GROUPS)
        left_out = sorted(set(hosts) - set(groups.get(meant, ())))
        if meant and left_out:
            findings.error(
                "unknown-group",
                left_out,
                "A host is in a group that nothing reads.",
                f"group {group}",
                f"Did you mean {meant}?",
            )


def check_variables(observations: Observations, known: t.Collection[str], findings: Findings) -> None:
    """Variables with our prefix that are none of ours."""
    hosts_of: t.Dict[str, t.List[str]] = {}
    for host, observation in observations.items():
        for name in observation.get("variables", ()):
            if name not in known:
                hosts_of.setdefault(name, []).append(host)
    words = {name[len(PREFIX) :]: name for name in known}
    for name, hosts in sorted(hosts_of.items()):
        meant = words.get(nearest(name[len(PREFIX) :], words, ALIKE_VARIABLES))
        note = findings.error if meant else findings.warning
        note(
            "unknown-variable",
            [] if len(hosts) == len(observations) else hosts,
            f"The collection has no variable {name}, so nothing reads it.",
            name,
            f"Did you mean {meant}?" if meant else f"Name what is the site's own without {PREFIX}.",
        )
