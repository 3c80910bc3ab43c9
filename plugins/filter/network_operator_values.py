# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: network_operator_values
short_description: The chart values of a network operator release
version_added: 0.1.0
description:
  - Renders one set of settings for any release from 1.3.0 on. Values that a release does not know are left out.
  - The NicClusterPolicy is never left to the chart.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description:
      - C(release), the network operator release.
      - C(nfd), whether the chart installs Node Feature Discovery.
      - C(cni_bin_directory) and C(cni_network_directory), where the container runtime looks for CNI plugins and
        configurations.
      - C(pull_secrets), names of image pull secrets.
      - C(values), further values, which win over all others.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the values of a release
  ansible.builtin.debug:
    msg: "{{ {'release': '26.7.1', 'nfd': false} | ipu.fabric.network_operator_values }}"
"""

RETURN = r"""
_value:
  description: The values.
  type: dict
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {
            "network_operator_values": on_first_use(
                "module_utils._network.nic_cluster_policy", "network_operator_values"
            )
        }
