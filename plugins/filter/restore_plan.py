# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from ansible_collections.ipu.fabric.plugins.module_utils._model.observation import HostFacts
    from ansible_collections.ipu.fabric.plugins.module_utils._model.plan import Plan
    from ansible_collections.ipu.fabric.plugins.module_utils._plan.restoring import Backup, PlaneState, RestorePlan

DOCUMENTATION = r"""
name: restore_plan
short_description: Whether a backup may be restored on these hosts, and what is to be done for it
version_added: 0.1.0
description:
  - Compares a backup with the plan and with what the hosts reported.
  - A cluster that answers is a problem, unless it is named, or an interrupted restore of this backup has begun it and
    nothing of it is taken away by going on.
author: ipu.fabric contributors (@ipu-fabric)
positional: plan, hosts, planes, named, now
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
  planes:
    description:
      - By name of the host, in the order of the group, what M(ipu.fabric.control_plane_restore) read on each control
        plane. Of one that was not reached, its result says so.
    type: dict
    required: true
  named:
    description: The cluster that may be replaced, by its endpoint.
    type: str
    default: ""
  now:
    description: The time, which becomes part of the name of a restore that begins.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Stop if the backup does not fit
  ansible.builtin.fail:
    msg: "{{ restore.problems | join(' ') }}"
  when: restore.problems | length > 0
  vars:
    restore: "{{ backup.about | ipu.fabric.restore_plan(fabric_plan, {'cp1': preflight_host.host}, {'cp1': state}) }}"
"""

RETURN = r"""
_value:
  description:
    - V(problems), a sentence each, is empty if the backup can be restored. V(restore) is the name of the restore,
      V(aside) the control planes that are set aside for it, V(puts_back) whether the first one still gets keys and
      data.
  type: dict
"""


def restore_plan(
    about: Backup,
    plan: Plan,
    hosts: t.Mapping[str, HostFacts],
    planes: t.Mapping[str, t.Any],
    named: str = "",
    now: str = "",
) -> RestorePlan:
    from ansible_collections.ipu.fabric.plugins.module_utils._plan.restoring import plan_restore

    states: t.Dict[str, t.Optional[PlaneState]] = {
        name: state if "restoring" in state else None for name, state in planes.items()
    }
    return plan_restore(about, plan, hosts, states, (named, now))


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"restore_plan": restore_plan}
