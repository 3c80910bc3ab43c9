#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_settings
short_description: Load kernel modules, set sysctls and disable swap, now and after a reboot
version_added: 0.1.0
description:
  - Loads modules, sets sysctls and turns swap off in one call, and writes the files that keep these settings.
  - A module that is built in, or whose feature the kernel already has (in a container), counts as loaded.
  - Comments out the swap lines of C(/etc/fstab), and masks other systemd units that turn swap on, including those of
    zram. Keeps copies of changed files beside them.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  name:
    description: Name of the files in C(/etc/modules-load.d) and C(/etc/sysctl.d).
    type: str
    required: true
  modules:
    description: Kernel modules to load.
    type: list
    elements: str
    default: []
  sysctl:
    description:
      - Values by key.
      - For C(fs.inotify.) and neighbour limits such as C(net.ipv4.neigh.default.gc_thresh3), the host's value stays if
        it is higher. A key that the kernel does not have is left out.
    type: dict
    default: {}
  disable_swap:
    description: Turn swap off permanently.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Prepare the kernel for Kubernetes
  ipu.fabric.kernel_settings:
    name: kubernetes
    modules: [overlay, br_netfilter]
    sysctl:
      net.ipv4.ip_forward: 1
    disable_swap: true
"""

RETURN = r"""
"""

from ..module_utils._common.result import run_module
from ..module_utils._host.kernel import apply_kernel_settings


def main() -> None:
    run_module(
        {
            "name": {"type": "str", "required": True},
            "modules": {"type": "list", "elements": "str", "default": []},
            "sysctl": {"type": "dict", "default": {}},
            "disable_swap": {"type": "bool", "default": False},
        },
        apply_kernel_settings,
    )


if __name__ == "__main__":
    main()
