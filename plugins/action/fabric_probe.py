# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do what only the controller can do for the module fabric_probe: pass it the script for pods, and store the facts."""

from __future__ import annotations

import json
import os
import typing as t
from pathlib import Path

from ..module_utils._common.result import FabricError
from ..plugin_utils._api_action import ApiAction
from ..plugin_utils._artifacts import write_files
from ..plugin_utils._controller_action import Result, failure

SCRIPT = Path(__file__).parents[1] / "plugin_utils/_probe/pod.sh"


def without_comments(script: str) -> str:
    """A shell script without comments and blank lines, since it travels in the URL of each exec."""
    lines = script.splitlines()
    return "\n".join([lines[0], *(line for line in lines[1:] if line.strip() and not line.lstrip().startswith("#"))])


class ActionModule(ApiAction):
    """Passes the script as an option, since a module is copied without the files beside its code."""

    def options(self) -> Result:
        return {**super().options(), "script": without_comments(SCRIPT.read_text(encoding="utf-8"))}

    def run(self, tmp: t.Any = None, task_vars: t.Optional[Result] = None) -> Result:
        result = super().run(tmp, task_vars)
        dest = self._task.args.get("dest")
        if not dest or "probe" not in result or self._task.check_mode:
            return result
        folder, name = os.path.split(os.path.join(self._loader.get_basedir(), os.path.expanduser(dest)))
        try:
            (path,) = write_files(folder, {name: json.dumps(result.pop("probe"))}, "dest")
        except FabricError as error:
            return {**result, **failure(error)}
        return {**result, "probe_file": path}
