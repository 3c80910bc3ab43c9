# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: nic_cluster_policy
short_description: The NicClusterPolicy of a network operator release
version_added: 0.1.0
description:
  - Renders one set of settings for any release from 1.3.0 on. Fields that a release does not know are left out.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description:
      - C(release), the network operator release.
      - C(ipam), V(nv-ipam) or V(whereabouts).
      - C(rdma_resources), the C(configList) of the shared device plugin; when it is empty, the plugin is left out.
      - C(multus), whether multus is one of its components; it is without this key.
      - C(ofed_driver), the driver container in the policy's own field names; without it the host's driver serves.
      - C(images), C(repository), C(image) and C(version) by component, to replace those of the release.
      - C(pull_secrets), names of image pull secrets.
      - C(tolerations) and C(node_affinity) of the operator's DaemonSets.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the policy of a release
  ansible.builtin.debug:
    msg: "{{ {'release': '26.7.1', 'ipam': 'nv-ipam'} | ipu.fabric.nic_cluster_policy }}"
"""

RETURN = r"""
_value:
  description: The object.
  type: dict
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"nic_cluster_policy": on_first_use("module_utils._network.nic_cluster_policy", "nic_cluster_policy")}
