# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import typing as t

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..module_utils._common.secrets import NOT_SHOWN

DOCUMENTATION = r"""
name: settings_problems
short_description: Variables of a site that have another type than they should, or a value that there is not
version_added: 0.1.0
description:
  - Looks at those of a host's variables that the role P(ipu.fabric.fabric#role) takes, by its argument specification.
  - The role itself checks the same, on every host, and prints all of its specification each time.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description: The variables of a host, from V(hostvars).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Check the settings of the site
  ansible.builtin.assert:
    that: not hostvars[groups.kube_control_plane.0] | ipu.fabric.settings_problems
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
_value:
  description: One line for each variable that is wrong.
  type: list
  elements: str
  sample: ['fabric_gpu is "perhaps": not of type bool']
"""

LONGEST = 60  # of a value that is shown


def has_secret(option: t.Mapping[str, t.Any]) -> bool:
    """Whether no log may have what is in it."""
    return bool(option.get("no_log")) or any(map(has_secret, (option.get("options") or {}).values()))


def problem_of(name: str, option: t.Mapping[str, t.Any], value: object) -> str:
    """What is wrong with a value; empty if nothing is."""
    from ..module_utils._common.redaction import redact_text

    plain = json.loads(json.dumps(value, default=str))
    result = ArgumentSpecValidator({name: option}).validate({name: plain})
    if not result.error_messages:
        return ""
    said = result.error_messages[0]
    if any(message.startswith(f"argument '{name}' is of type") for message in result.error_messages):
        said = f"not of type {option['type']}"
    elif said.startswith("Elements value"):
        said = f"not a list of type {option['elements']}"
    shown = NOT_SHOWN if has_secret(option) else redact_text(json.dumps(plain))
    return f"{name} is {shown if len(shown) <= LONGEST else shown[:LONGEST] + '...'}: {said}"


def settings_problems(variables: t.Mapping[str, t.Any]) -> t.List[str]:
    from ..plugin_utils._site_variables import site_options

    found = []
    for name, option in sorted(site_options().items()):
        try:
            value = variables.get(name)
        except AnsibleError:  # a template that needs what is not known before the hosts have answered
            continue
        if value is not None:
            found.append(problem_of(name, option, value))
    return [problem for problem in found if problem]


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"settings_problems": settings_problems}
