# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import readable

if t.TYPE_CHECKING:
    from ansible_collections.ipu.fabric.plugins.module_utils._network import spiderpool

DOCUMENTATION = r"""
name: spiderpool_networks
short_description: The Spiderpool objects of planned networks
version_added: 0.1.0
description:
  - Renders for each network its SpiderIPPool and its SpiderMultusConfig, and the namespaces that no cluster has by
    itself.
  - Says what Spiderpool's NetworkAttachmentDefinitions have to say then.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description:
      - The networks of a plan. Read are C(name), C(namespace), C(master), C(mode), C(mtu), C(vlan), C(rdma),
        C(resource), and of C(subnet) C(cidr), C(range_start), C(range_end), C(exclude) and C(gateway).
    type: list
    elements: dict
    required: true
  coordinator:
    description: The coordinator's fields in the SpiderMultusConfigs.
    type: dict
    default: {}
  inject:
    description: Value of the annotation by which pods get all networks and resources. Empty for none.
    type: str
    default: ""
  labels:
    description: Labels of the namespaces.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show the objects of the plan's networks
  ansible.builtin.debug:
    msg: "{{ (fabric_plan.networks | ipu.fabric.spiderpool_networks).objects }}"
"""

RETURN = r"""
_value:
  description:
    - C(objects), in the order in which they have to be applied.
    - C(attachments), as O(ipu.fabric.kube_wait#module:attachments) takes them.
  type: dict
"""


def render(
    networks: t.Sequence[spiderpool.SpiderpoolNetwork],
    coordinator: t.Optional[t.Mapping[str, t.Any]] = None,
    inject: str = "",
    labels: t.Optional[t.Mapping[str, str]] = None,
) -> spiderpool.SpiderpoolObjects:
    from ansible_collections.ipu.fabric.plugins.module_utils._network import spiderpool

    return spiderpool.networks(networks, coordinator or {}, inject, labels or {})


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"spiderpool_networks": readable(render)}
