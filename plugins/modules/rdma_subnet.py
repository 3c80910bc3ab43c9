#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_subnet
short_description: Plan the pod addresses of a fabric network
version_added: 0.1.0
description:
  - Computes from the nodes' own fabric addresses which addresses of their subnet pods may get, for one of two IPAMs.
  - Pods never get the network address, the broadcast address, or the address of the gateway or of a node, or a reserved
    one.
  - Needs no host and changes nothing. Supports IPv4 and IPv6.
  - In larger subnets, such as an IPv6 /64, pods get a part of the first 2^53 addresses, since IPAMs cannot count
    further.
author:
  - ipu.fabric contributors (@ipu-fabric)
requirements:
  - netaddr
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  nodes:
    description: Every node of the network. All must be in one subnet.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The node's name, for messages.
        type: str
        required: true
      address:
        description: Address of the node on the fabric.
        type: str
        required: true
      prefix:
        description: The prefix length of that address.
        type: int
        required: true
      mtu:
        description: MTU of the node's fabric NIC; V(0) if not known.
        type: int
        default: 0
  gateway:
    description: The subnet's gateway, if it has one.
    type: str
    default: ""
  reserved:
    description:
      - Other addresses that pods must not get, such as those of the V-IPU controller or the IPU-Machines.
      - Addresses, CIDRs and C(a-b) ranges. Addresses outside the subnet are ignored.
    type: list
    elements: str
    default: []
  share:
    description:
      - The part of the subnet that is for pods.
      - V(upper_half), V(all), a CIDR or an C(a-b) range inside the subnet.
    type: str
    default: upper_half
  avoid:
    description: CIDRs that the subnet must not overlap, such as those of pods and services.
    type: list
    elements: str
    default: []
  pods:
    description:
      - How many pod addresses the network must have in total. Fewer are an error.
      - With nv-ipam each node must get its equal share of them, rounded up.
      - V(0) asks for at least one address; nv-ipam then gets the largest blocks that all nodes can have.
    type: int
    default: 0
  ipam:
    description: The IPAM that hands out the addresses.
    type: str
    choices: [whereabouts, nv-ipam]
    default: whereabouts
  ipam_release:
    description:
      - Release of the network operator that nv-ipam belongs to. Empty for the newest.
      - Before 24.7, pools do not support exclusions. Before 26.1, nodes also get blocks in which all addresses are
        excluded.
    type: str
    default: ""
  pool_name:
    description: Name of the IPPool for RV(ipam). If empty, nv-ipam takes the pool with the name of the network.
    type: str
    default: ""
seealso:
  - module: ipu.fabric.host_info
"""

EXAMPLES = r"""
- name: Plan the pod addresses of two nodes
  ipu.fabric.rdma_subnet:
    nodes:
      - {name: w1, address: 10.5.0.11, prefix: 24, mtu: 9000}
      - {name: w2, address: 10.5.0.12, prefix: 24, mtu: 9000}
    gateway: 10.5.0.1
    reserved: [10.5.0.20, 10.5.0.64/26]
    avoid: [10.244.0.0/16, 10.96.0.0/12]
    pods: 16
  delegate_to: localhost
  register: subnet

- name: Plan blocks for nv-ipam in a part of the subnet
  ipu.fabric.rdma_subnet:
    nodes: "{{ fabric_nodes }}"
    share: 10.5.0.128-10.5.0.239
    pods: 16
    ipam: nv-ipam
    pool_name: rdma-net
  delegate_to: localhost
"""

RETURN = r"""
cidr:
  description: The nodes' subnet.
  returned: success
  type: str
  sample: 10.5.0.0/24
prefix:
  description: Prefix length of the subnet.
  returned: success
  type: int
  sample: 24
gateway:
  description: The gateway, empty when there is none.
  returned: success
  type: str
  sample: 10.5.0.1
range_start:
  description: The first address that a pod may get.
  returned: success
  type: str
  sample: 10.5.0.128
range_end:
  description: The last address that a pod may get.
  returned: success
  type: str
  sample: 10.5.0.254
exclude:
  description: All addresses of the subnet that no pod may get, as the fewest CIDRs, sorted.
  returned: success
  type: list
  elements: str
  sample: [10.5.0.0/25]
capacity:
  description:
    - The number of addresses that pods can really get.
    - With nv-ipam, those in the blocks of the given nodes.
  returned: success
  type: int
  sample: 127
mtu:
  description: The lowest MTU of the nodes; V(0) if none is known.
  returned: success
  type: int
  sample: 9000
ipam:
  description: The IPAM configuration for the network's custom resource.
  returned: success
  type: dict
  sample:
    type: whereabouts
    range: 10.5.0.0/24
    range_start: 10.5.0.128
    range_end: 10.5.0.254
    exclude: [10.5.0.0/25]
pool:
  description: Spec of the nv-ipam IPPool; null for whereabouts.
  returned: success
  type: dict
  sample:
    subnet: 10.5.0.0/24
    perNodeBlockSize: 8
    gateway: 10.5.0.1
    exclusions:
      - {startIP: 10.5.0.1, endIP: 10.5.0.128}
warnings:
  description: What is worth knowing but not an error, such as different MTUs.
  returned: success
  type: list
  elements: str
  sample: []
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.result import run_module
from ..module_utils._ipam.subnet import FabricNode, SubnetRequest, plan_subnet


def plan_addresses(module: AnsibleModule) -> t.Dict[str, t.Any]:
    nodes = [FabricNode(**node) for node in module.params["nodes"]]
    plan = plan_subnet(SubnetRequest(**{**module.params, "nodes": nodes}))
    for warning in plan["warnings"]:
        module.warn(warning)
    return {key: value for key, value in plan.items() if key != "warnings"}


def main() -> None:
    node = {
        "name": {"type": "str", "required": True},
        "address": {"type": "str", "required": True},
        "prefix": {"type": "int", "required": True},
        "mtu": {"type": "int", "default": 0},
    }
    run_module(
        {
            "nodes": {"type": "list", "elements": "dict", "required": True, "options": node},
            "gateway": {"type": "str", "default": ""},
            "reserved": {"type": "list", "elements": "str", "default": []},
            "share": {"type": "str", "default": "upper_half"},
            "avoid": {"type": "list", "elements": "str", "default": []},
            "pods": {"type": "int", "default": 0},
            "ipam": {"type": "str", "choices": ["whereabouts", "nv-ipam"], "default": "whereabouts"},
            "ipam_release": {"type": "str", "default": ""},
            "pool_name": {"type": "str", "default": ""},
        },
        plan_addresses,
        libraries=("netaddr",),
    )


if __name__ == "__main__":
    main()
