# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: gpu_operator_values
short_description: The chart values of the NVIDIA GPU operator
version_added: 0.1.0
description:
  - Renders the values of the GPU operator's chart, from 25.10 on. What is not set stays the chart's own.
  - Refuses what the operator would accept and never do, such as gdrcopy beside a driver that is not its own.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description:
      - C(driver), whether the operator installs the driver; C(driver_repository), C(driver_image) and
        C(driver_version), where it is not the chart's.
      - C(rdma), whether nvidia-peermem is loaded, and C(host_mofed), whether hosts have MLNX_OFED or DOCA themselves.
      - C(gdrcopy), whether gdrdrv is loaded.
      - C(toolkit), whether the operator installs the container toolkit; C(containerd_config), C(containerd_socket) and
        C(toolkit_env), its environment.
      - C(license_secret), the Secret with the licence of vGPU, and C(license_nls), whether it is of the NLS kind.
      - C(nfd), whether the chart installs Node Feature Discovery.
      - C(registry), in place of nvcr.io; C(pull_secrets), names of image pull secrets.
      - C(values), further values, which win over all others.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the values
  ansible.builtin.debug:
    msg: "{{ {'driver': true, 'toolkit': true, 'rdma': true} | ipu.fabric.gpu_operator_values }}"
"""

RETURN = r"""
_value:
  description: The values.
  type: dict
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"gpu_operator_values": on_first_use("plugin_utils._render.gpu_operator", "gpu_operator_values")}
