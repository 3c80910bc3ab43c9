#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_info
short_description: Return the RDMA links of a host
version_added: 0.1.0
description:
  - Returns the network devices that a fabric may use, with RDMA, addresses, and the devices below bonds and VLANs.
  - Also returns GPUs, routes, the RDMA network namespace mode, limits of locked memory, and kernel modules.
  - Reads sysfs and runs C(ip), C(rdma) and C(systemctl). The last two may be missing. Changes nothing.
author:
  - ipu.fabric contributors (@ipu-fabric)
requirements:
  - iproute2 4.14 or later on the host.
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  routes_to:
    description: IP addresses whose routes to look up, such as that of the V-IPU controller.
    type: list
    elements: str
    default: []
seealso:
  - module: ipu.fabric.vipu_info
  - module: ipu.fabric.rdma_subnet
"""

EXAMPLES = r"""
- name: Read the RDMA links and the route to V-IPU
  ipu.fabric.rdma_info:
    routes_to: ["{{ vipu.address }}"]
  register: host
"""

RETURN = r"""
rdma:
  description: The same as M(ipu.fabric.host_info) returns.
  returned: success
  type: dict
  sample: {links: [], gpus: [], netns_mode: shared, routes: {}, memlock: {}, modules: [], rdma_subsystem: true}
"""

from ..module_utils._common.result import run_module
from ..module_utils._host.links import read_rdma


def main() -> None:
    run_module(
        {"routes_to": {"type": "list", "elements": "str", "default": []}},
        lambda module: {"rdma": read_rdma(module.params["routes_to"])},
    )


if __name__ == "__main__":
    main()
