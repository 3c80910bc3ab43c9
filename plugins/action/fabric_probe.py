# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hand the script that runs in pods to the module fabric_probe: a module is copied without files beside its code."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.ipu.fabric.plugins.plugin_utils._api_action import ApiAction

SCRIPT = Path(__file__).parents[1] / "plugin_utils/_probe/pod.sh"


def without_comments(script: str) -> str:
    """The lines of a shell script that do something: it travels in the URL of each exec."""
    lines = script.splitlines()
    return "\n".join([lines[0], *(line for line in lines[1:] if line.strip() and not line.lstrip().startswith("#"))])


class ActionModule(ApiAction):
    """All other options go to the module as they are."""

    def options(self) -> t.Dict[str, t.Any]:
        return {**super().options(), "script": without_comments(SCRIPT.read_text(encoding="utf-8"))}
