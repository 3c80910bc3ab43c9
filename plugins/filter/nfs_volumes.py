# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: nfs_volumes
short_description: PersistentVolumes for directories of NFS servers, and their claims
version_added: 0.1.0
description:
  - Returns a PersistentVolume and a claim that is bound to it for each directory.
  - Everything that is wrong with the entries is an error before anything reaches the cluster.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description: The directories, as the role P(ipu.fabric.datasets#role) takes them.
    type: list
    elements: dict
    required: true
  bound:
    description:
      - Return what M(ipu.fabric.kube_wait) takes as its C(objects), to wait until all are bound.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show a volume and its claim
  ansible.builtin.debug:
    msg: "{{ [{'name': 'imagenet', 'server': '10.1.0.5', 'path': '/export/imagenet'}] | ipu.fabric.nfs_volumes }}"
"""

RETURN = r"""
_value:
  description: The objects, in the order in which they have to be applied.
  type: list
  elements: dict
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"nfs_volumes": on_first_use("plugin_utils._render.nfs", "nfs_volumes")}
