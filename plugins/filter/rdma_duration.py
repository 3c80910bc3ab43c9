# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ..plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: rdma_duration
short_description: Estimate how long the RDMA tests of a proof load the fabric
version_added: 0.1.0
description:
  - Says how many pairs M(ipu.fabric.fabric_probe) will test, in how many rounds, and about how many minutes that takes.
author: ipu.fabric contributors (@ipu-fabric)
positional: rdma_seconds, forks, nodes, checks, gpu
options:
  _input:
    description: The plan.
    type: dict
    required: true
  rdma_seconds:
    description: The option of this name of M(ipu.fabric.fabric_probe).
    type: int
    required: true
  forks:
    description: Likewise.
    type: int
    required: true
  nodes:
    description: Likewise.
    type: list
    elements: str
    default: []
  checks:
    description: Likewise.
    type: list
    elements: str
    default: []
  gpu:
    description: Likewise.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show how long a proof will load the fabric
  ansible.builtin.debug:
    msg: "{{ fabric_plan | ipu.fabric.rdma_duration(300, 32) }}"
"""

RETURN = r"""
_value:
  description: A sentence; empty if no RDMA test runs.
  type: str
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"rdma_duration": on_first_use("module_utils._verify.duration", "say_duration")}
