# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide for a role: pass its settings and what it has read to the pure function of its component."""

from __future__ import annotations

import dataclasses
import importlib
import typing as t
from pathlib import Path

from ansible.template import Templar

from ..module_utils._component.settings import pick
from ..modules import wish
from ..plugin_utils._controller_action import ControllerAction, Result, argument_spec, plain
from ..plugin_utils._role_settings import role_settings
from ..plugin_utils._site_variables import OF_PLAYBOOKS

COMPONENTS = "ansible_collections.ipu.fabric.plugins.module_utils._component."
# Imported here since Ansible loads actions in its main process: otherwise each task would compile its component.
for path in sorted((Path(__file__).parents[1] / "module_utils/_component").glob("*.py")):
    if "\ndef decide(" in path.read_text(encoding="utf-8"):
        importlib.import_module(COMPONENTS + path.stem)


class ActionModule(ControllerAction):
    """See the module of the same name. It changes nothing, in check mode or not."""

    spec = argument_spec(wish)

    def run(self, tmp: t.Any = None, task_vars: t.Optional[Result] = None) -> Result:
        self.variables = task_vars or {}
        return super().run(tmp, task_vars)

    def variables_for(self, host: str) -> Result:
        """The variables of this task as if it ran for another host, which may be outside the run."""
        known = self.variables["hostvars"]
        kept = {name: self.variables[name] for name in OF_PLAYBOOKS if name in self.variables}
        own = known._variable_manager.get_vars(
            play=self._task.play, host=known._inventory.get_host(host), task=self._task
        )
        return {**kept, **own}

    def act(self, options: Result) -> Result:
        role = options["role"] or options["component"]
        component = importlib.import_module(COMPONENTS + options["component"])
        if options["host"] in ("", self.variables.get("inventory_hostname")):
            settings = role_settings(component.Settings, role, self.variables, self._templar.template)
        else:
            variables = self.variables_for(options["host"])
            settings = role_settings(component.Settings, role, variables, Templar(self._loader, variables).template)
        decided = component.decide(settings, pick(component.Seen, options["seen"]))
        wanted = decided if isinstance(decided, dict) else dataclasses.asdict(decided)
        # Values of charts may contain passwords. Errors are still shown.
        return {"changed": False, **plain(wanted), "_ansible_no_log": True}
