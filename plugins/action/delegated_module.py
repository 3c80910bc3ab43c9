# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Delegate a module to many hosts at a time."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleActionFail

from ..modules import delegated_module
from ..plugin_utils._controller_action import argument_spec, plain_result
from ..plugin_utils._delegation import NO_ANSWER, DelegatingAction, Result

__all__ = ["NO_ANSWER", "ActionModule"]


class ActionModule(DelegatingAction):
    """See the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result: Result = super().run(tmp, task_vars)
        try:
            self.validate_argument_spec(argument_spec=argument_spec(delegated_module))
        except AnsibleActionFail as error:
            return {**result, **plain_result(str(error), "invalid-input")}
        given = self._task.args
        hosts = {host: dict(options) for host, options in given["hosts"].items()}
        for more in given.get("also", []):
            for host in hosts.keys() & set(more["hosts"]):
                hosts[host].update(more["options"])
        answers = self.delegate_all(given["module"], hosts, int(given.get("timeout", 0)), task_vars or {})
        return {"changed": False, **result, "hosts": answers}
