# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ..plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: missing_packages
short_description: Python packages and collections that Ansible's own Python lacks
version_added: 0.1.0
description:
  - A run that needs a package on the controller can end before it has changed a host.
positional: core
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description: Names of packages, as they are imported, and of collections, such as C(kubernetes.core).
    type: list
    elements: str
    required: true
  core:
    description: Release that ansible-core has to be, or a later one. Empty takes any.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Check that the controller has what the plan needs
  ansible.builtin.assert:
    that: not ['netaddr', 'jmespath'] | ipu.fabric.missing_packages
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
_value:
  description: Those that can't be imported, and before them an ansible-core that is older, as pip takes it.
  type: list
  elements: str
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"missing_packages": on_first_use("plugin_utils._controller_action", "missing_packages")}
