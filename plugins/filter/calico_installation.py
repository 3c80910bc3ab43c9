# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: calico_installation
short_description: The spec of Calico's Installation
version_added: 0.1.0
description:
  - Writes the defaults of Calico's operator into each pool, so that a second run changes nothing.
  - The address of a node, between which VXLAN runs, is the one that the kubelet reports.
author: ipu.fabric contributors (@ipu-fabric)
positional: settings
options:
  _input:
    description: Addresses of pods, one range of each family.
    type: list
    elements: str
    required: true
  settings:
    description:
      - Settings of an Installation, which win.
      - Pools in C(calicoNetwork.ipPools) and ways in C(nodeAddressAutodetectionV4) and C(nodeAddressAutodetectionV6)
        replace the role's own.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show the Installation of a cluster with both families
  ansible.builtin.debug:
    msg: "{{ ['10.244.0.0/16', 'fd00::/56'] | ipu.fabric.calico_installation({'calicoNetwork': {'mtu': 8950}}) }}"
"""

RETURN = r"""
_value:
  description: The spec.
  type: dict
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"calico_installation": on_first_use("plugin_utils._render.calico", "calico_installation")}
