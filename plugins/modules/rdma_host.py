#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_host
short_description: Prepare a host's fabric NICs for RDMA in pods
version_added: 0.1.0
description:
  - Sets in one call, immediately and for each boot, kernel modules, the RDMA network namespace mode, alternative names
    and MTU of the fabric NICs, RoCE v2, PFC, trust and ECN, and the link type of ports.
  - An alternative name is kept by a systemd C(.link) file. Only one such file applies to a NIC, so it contains all
    settings of the one that applied before.
  - Never reboots. RV(reboot) and a warning name what needs a reboot.
author:
  - ipu.fabric contributors (@ipu-fabric)
requirements:
  - iproute2 5.5 or later on the host, for alternative names.
  - mlnx_qos, or dcb of iproute2 5.11, for PFC; mlxconfig or mstconfig for the link type. Without them it says so.
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  links:
    description:
      - The fabric NICs of this host, as the plan has them. Only V(netdev), V(altname), V(rdma_netdevs) and V(pci) are
        read. All are optional.
    type: list
    elements: dict
    default: []
  rdma:
    description: Whether the NICs get RDMA. If V(false), only names and MTU are set.
    type: bool
    default: true
  modules:
    description: Kernel modules to load. Those of the NICs' drivers are added.
    type: list
    elements: str
    default: [ib_uverbs, ib_umad, rdma_cm, rdma_ucm]
  mtu:
    description: MTU of the fabric NICs and of the devices below them. V(0) leaves it as it is.
    type: int
    default: 0
  qos:
    description: Quality of service of the fabric NICs. Settings that are left out stay as they are.
    type: dict
    default: {}
    suboptions:
      pfc:
        description: Priorities with priority flow control, V(0) to V(7).
        type: list
        elements: int
      trust:
        description: What the NIC takes a packet's priority from.
        type: str
        choices: [dscp, pcp]
      ecn:
        description: Priorities with congestion control by ECN, V(0) to V(7).
        type: list
        elements: int
  link_type:
    description: Link type of the ports at the V(pci) of O(links), from the next boot on. If not set, it is not read.
    type: str
    choices: [ethernet, infiniband]
  node_name:
    description: Name of the host's node. Empty for the host name in lower case.
    type: str
    default: ""
seealso:
  - module: ipu.fabric.host_info
"""

EXAMPLES = r"""
- name: Prepare the fabric NICs for RDMA
  ipu.fabric.rdma_host:
    links: "{{ fabric_plan.hosts[inventory_hostname].links.values() | list }}"
    mtu: 9000
    qos:
      pfc: [3]
      trust: dscp
      ecn: [3]
"""

RETURN = r"""
reboot:
  description: Why the host must be rebooted. Empty if it need not be.
  type: list
  elements: str
  returned: success
  sample: ["0000:81:00.0 runs as InfiniBand until the host is rebooted."]
node:
  description: Name of the host's node. Empty when the host has no kubelet.
  returned: success
  type: str
  sample: w1
machine_id:
  description: Machine ID, which distinguishes the host from those of other clusters whose nodes may have the same name.
  returned: success
  type: str
  sample: 0123456789abcdef0123456789abcdef
notes:
  description: Settings that are not possible on this host.
  type: list
  elements: str
  returned: success
  sample: ["eth1: PFC and trust stay as they are: neither mlnx_qos nor dcb can set them."]
"""

from ..module_utils._common.result import run_module
from ..module_utils._host.rdma_apply import prepare_host

QOS_OPTIONS = {
    "pfc": {"type": "list", "elements": "int"},
    "trust": {"type": "str", "choices": ["dscp", "pcp"]},
    "ecn": {"type": "list", "elements": "int"},
}


def main() -> None:
    run_module(
        {
            "links": {"type": "list", "elements": "dict", "default": []},
            "rdma": {"type": "bool", "default": True},
            "modules": {
                "type": "list",
                "elements": "str",
                "default": ["ib_uverbs", "ib_umad", "rdma_cm", "rdma_ucm"],
            },
            "mtu": {"type": "int", "default": 0},
            "qos": {"type": "dict", "default": {}, "options": QOS_OPTIONS},
            "link_type": {"type": "str", "choices": ["ethernet", "infiniband"]},
            "node_name": {"type": "str", "default": ""},
        },
        prepare_host,
    )


if __name__ == "__main__":
    main()
