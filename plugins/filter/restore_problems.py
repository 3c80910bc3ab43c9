# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from ansible_collections.ipu.fabric.plugins.module_utils._model.observation import HostFacts
    from ansible_collections.ipu.fabric.plugins.module_utils._model.plan import Plan
    from ansible_collections.ipu.fabric.plugins.module_utils._plan.restoring import Backup

DOCUMENTATION = r"""
name: restore_problems
short_description: Why a backup must not be restored on these hosts
version_added: 0.1.0
description:
  - Compares a backup with the plan and with what the hosts reported.
  - A cluster that answers is a problem, unless it is named, or an interrupted restore of this backup has begun it.
author: ipu.fabric contributors (@ipu-fabric)
positional: plan, hosts, named, restoring
options:
  _input:
    description: RV(ipu.fabric.backup_files#module:about) of the backup.
    type: dict
    required: true
  plan:
    description: The plan, as M(ipu.fabric.fabric_plan) returns it.
    type: dict
    required: true
  hosts:
    description: By name of the host what M(ipu.fabric.host_info) returned as C(host).
    type: dict
    required: true
  named:
    description: The cluster that may be replaced, by its endpoint.
    type: str
    default: ""
  restoring:
    description: Name of the backup whose restore was interrupted.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Stop if the backup does not fit
  ansible.builtin.fail:
    msg: "{{ problems | join(' ') }}"
  when: problems | length > 0
  vars:
    problems: "{{ backup.about | ipu.fabric.restore_problems(fabric_plan, {'cp1': preflight_host.host}) }}"
"""

RETURN = r"""
_value:
  description: A sentence each. Empty if the backup can be restored.
  type: list
  elements: str
"""


def problems(
    about: Backup, plan: Plan, hosts: t.Mapping[str, HostFacts], named: str = "", restoring: str = ""
) -> t.List[str]:
    from ansible_collections.ipu.fabric.plugins.module_utils._plan.restoring import restore_problems

    return restore_problems(about, plan, hosts, named, restoring)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"restore_problems": problems}
