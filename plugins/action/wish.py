# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a role decides: its settings and what it has read go to the pure function of its component."""

from __future__ import annotations

import dataclasses
import importlib
import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..module_utils._component.settings import pick
from ..modules import wish
from ..plugin_utils._controller_action import ControllerAction, Result, argument_spec, option_spec, plain
from ..plugin_utils._site_variables import role_options

try:
    from ansible.template import trust_as_template
except ImportError:  # before ansible-core 2.19 every text is a template

    def trust_as_template(value: str) -> str:
        return value


COMPONENTS = "ansible_collections.ipu.fabric.plugins.module_utils._component."
# Ansible loads an action in its main process. Otherwise each task would compile its component again.
for path in sorted((Path(__file__).parents[1] / "module_utils/_component").glob("*.py")):
    if "\ndef decide(" in path.read_text(encoding="utf-8"):
        importlib.import_module(COMPONENTS + path.stem)


def own_options(role: str, names: t.Collection[str]) -> t.Dict[str, Result]:
    """How the role documents these of its variables, without its name before them."""
    known = role_options(role) if names else {}  # what only a playbook asks for has no role
    return {name: known[f"{role}_{name}"] for name in names if f"{role}_{name}" in known}


def default(option: Result) -> t.Any:
    """Of a role whose own tasks don't run: it has its defaults in its documentation, too."""
    value = option.get("default")
    return trust_as_template(value) if isinstance(value, str) else value


def validated(role: str, names: t.Collection[str], given: Result) -> Result:
    """These variables of the role, without its name before them, of the types that it documents."""
    valid = ArgumentSpecValidator(option_spec(own_options(role, names))).validate(plain(given))
    if valid.error_messages:
        raise AnsibleActionFail("; ".join(valid.error_messages))
    return dict(valid.validated_parameters)


class ActionModule(ControllerAction):
    """See the module of the same name. It changes nothing, in check mode or not."""

    spec = argument_spec(wish)

    def run(self, tmp: t.Any = None, task_vars: t.Optional[Result] = None) -> Result:
        self.variables = task_vars or {}
        return super().run(tmp, task_vars)

    def act(self, options: Result) -> Result:
        role = options["role"] or options["component"]
        component = importlib.import_module(COMPONENTS + options["component"])
        names = [field.name for field in dataclasses.fields(component.Settings)]
        own = {
            name: self.variables.get(f"{role}_{name}", default(option))
            for name, option in own_options(role, names).items()
        }
        settings = pick(component.Settings, validated(role, names, self._templar.template(own)))
        decided = component.decide(settings, pick(component.Seen, options["seen"]))
        wanted = decided if isinstance(decided, dict) else dataclasses.asdict(decided)
        # Values of charts may have passwords in them; what is refused is said.
        return {"changed": False, **plain(wanted), "_ansible_no_log": True}
