# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.ipu.fabric.plugins.module_utils._nic_policy import network_operator_range
from ansible_collections.ipu.fabric.plugins.module_utils._result import FabricError

DOCUMENTATION = r"""
name: network_operator_range
short_description: The Kubernetes releases that a network operator release is made for
version_added: 0.1.0
description:
  - Gives the range that the vendor supports, as minor releases.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description: The network operator release.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show the range of a release
  ansible.builtin.debug:
    msg: "{{ '26.4.1' | ipu.fabric.network_operator_range }}"
"""

RETURN = r"""
_value:
  description: The minor releases C(oldest) and C(newest).
  type: dict
"""


def render(release: str) -> t.Dict[str, str]:
    try:
        return network_operator_range(release)
    except FabricError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"network_operator_range": render}
