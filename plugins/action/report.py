# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show a text as it is, whatever the stdout callback makes of results."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display


class ActionModule(ActionBase):
    """Runs on the controller; there is no module behind it."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        super().run(tmp, task_vars)
        _valid, arguments = self.validate_argument_spec(argument_spec={"text": {"type": "str", "required": True}})
        display = Display()
        for line in arguments["text"].rstrip("\n").split("\n"):
            display.display(line)
        return {"changed": False}
