# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from ansible_collections.ipu.fabric.plugins.module_utils._plan.cluster_reset import (
        ClusterAnswer,
        FoundOnHost,
        ResetPlan,
    )

DOCUMENTATION = r"""
name: cluster_reset
short_description: What taking a cluster away removes from its hosts, or why it must not
version_added: 0.1.0
description:
  - The cluster has to be named, to be the one of all of these hosts, and to have no other nodes.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description: C(hostvars) of a play in which M(ipu.fabric.host_reset) has registered C(__reset_host) in check mode.
    type: dict
    required: true
  hosts:
    description: Names of the hosts.
    type: list
    elements: str
    required: true
  answer:
    description:
      - What M(ipu.fabric.cluster_info) returned. C(present) may only be false where no API server runs.
    type: dict
    required: true
  jobs:
    description: IPUJobs that hold IPUs.
    type: list
    elements: str
    required: true
  name:
    description: The name that was given for the cluster.
    type: str
    required: true
  force:
    description: Whether IPUJobs may go with the cluster.
    type: bool
    required: true
"""

EXAMPLES = r"""
- name: Show what would go
  ansible.builtin.debug:
    msg: "{{ (hostvars | ipu.fabric.cluster_reset(ansible_play_hosts_all, cluster, [], '', false)).table }}"
"""

RETURN = r"""
_value:
  description:
    - C(name) and C(ca) of the cluster, C(table), a list of lines, and C(refusal), why nothing may be removed, empty if
      all may go.
  type: dict
"""


def cluster_reset(
    hostvars: t.Mapping[str, t.Mapping[str, FoundOnHost]],
    hosts: t.Sequence[str],
    answer: ClusterAnswer,
    jobs: t.Sequence[str],
    name: str,
    force: bool,
) -> ResetPlan:
    """What the play removes, or why it stops."""
    from ansible_collections.ipu.fabric.plugins.module_utils._plan.cluster_reset import (
        Confirmation,
        FoundOnHost,
        plan_reset,
    )

    found = {host: hostvars[host].get("__reset_host") or FoundOnHost() for host in hosts}
    return plan_reset(found, answer, jobs, Confirmation(str(name), force))


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"cluster_reset": cluster_reset}
