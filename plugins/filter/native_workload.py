# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: native_workload
short_description: The objects of a workload on a fabric network, without an operator
version_added: 0.1.0
description:
  - Returns a Job, or a Deployment and its Service, whose pods are on a fabric network and may lock memory.
  - Invalid names, volumes without a source and a V-IPU on C(localhost) are errors before anything reaches the cluster.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description:
      - The workload. C(name) and C(image) are needed; the role P(ipu.fabric.native_workload#role) documents every key,
        without its prefix, but for C(vipu) with C(controller), C(host), C(port) and C(partition).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show a training job
  ansible.builtin.debug:
    msg: "{{ workload | ipu.fabric.native_workload }}"
  vars:
    workload:
      name: mnist
      image: graphcore/pytorch-tutorials
      command: [python3, train.py]
      network: rdma-net
      rdma_resource: rdma/rdma_shared_device_a
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
        return {"native_workload": on_first_use("plugin_utils._render.workload", "native_workload")}
