# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from ansible_collections.ipu.fabric.plugins.module_utils._model.plan import PlannedNetwork

DOCUMENTATION = r"""
name: macvlan_objects
short_description: The objects that macvlan networks stand on
version_added: 0.1.0
description:
  - Gives the namespaces of the networks, but for those that every cluster has, and the address pools of nv-ipam.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description: The networks of a plan. C(namespace) and C(pools), or else C(pool), are read.
    type: list
    elements: dict
    required: true
  pool_namespace:
    description: Namespace of the address pools, that of the network operator.
    type: str
    default: nvidia-network-operator
  labels:
    description: Labels of the namespaces.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show the objects of the plan's networks
  ansible.builtin.debug:
    msg: "{{ fabric_plan.networks | ipu.fabric.macvlan_objects }}"
"""

RETURN = r"""
_value:
  description: The objects, in the order in which they have to be applied.
  type: list
  elements: dict
"""


def render(
    networks: t.Sequence[PlannedNetwork],
    pool_namespace: str = "nvidia-network-operator",
    labels: t.Optional[t.Mapping[str, str]] = None,
) -> t.List[t.Dict[str, t.Any]]:
    from ansible_collections.ipu.fabric.plugins.module_utils._network.macvlan_objects import macvlan_objects

    return macvlan_objects(networks, pool_namespace, labels or {})


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"macvlan_objects": render}
