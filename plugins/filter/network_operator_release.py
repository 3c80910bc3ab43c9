# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: network_operator_release
short_description: Which Kubernetes a network operator release supports, and the upgrade path to it
version_added: 0.1.0
description:
  - Gives the range of Kubernetes that the vendor supports, the features of the release, and the upgrade path to it.
  - The vendor supports an upgrade within a line of releases, and to the next line.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description: The network operator release.
    type: str
    required: true
  installed:
    description: The release that is installed. Empty when there is none.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Show the upgrade path from one release to another
  ansible.builtin.debug:
    msg: "{{ ('26.7.1' | ipu.fabric.network_operator_release('25.10.0')).steps }}"  # [26.1.2, 26.4.2, 26.7.1]
"""

RETURN = r"""
_value:
  description:
    - C(oldest) and C(newest), the minor releases of Kubernetes.
    - C(features), what the release can do, each true or false.
    - C(change), one of V(install), V(keep), V(upgrade), V(skip) (lines would be left out), V(downgrade).
    - C(steps), the releases to install one after the other.
  type: dict
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {
            "network_operator_release": on_first_use(
                "module_utils._network.nic_cluster_policy", "network_operator_release"
            )
        }
