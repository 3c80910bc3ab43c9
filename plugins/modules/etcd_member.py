#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_member
short_description: Remove etcd members of control planes that were reinstalled or will leave the cluster
version_added: 0.1.0
description:
  - A control plane that lost its disk is still a member of etcd, and kubeadm lets no other control plane join while a
    member is down.
  - Removes the members at O(addresses). Runs on a control plane of the cluster, in its etcd pod.
  - Refuses, and changes nothing, while an etcd answers at one of the addresses, unless O(alive) is set.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  state:
    description: Members can only be removed; C(kubeadm join) adds them.
    type: str
    choices: [absent]
    required: true
  addresses:
    description: Addresses of control planes whose members to remove. If empty, the members are only read.
    type: list
    elements: str
    required: true
  alive:
    description: Also remove members that still answer. Use it for hosts that will leave the cluster next.
    type: bool
    default: false
  node_name:
    description: Name of the node that the module runs on. Empty for the host's.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Remove the stale member of a reinstalled control plane
  ipu.fabric.etcd_member:
    state: absent
    addresses: [10.88.0.11]
  delegate_to: cp2
"""

RETURN = r"""
members:
  description: The members that stay. C(alive) says whether an etcd accepts connections at one of the C(addresses).
  returned: success
  type: list
  elements: dict
  sample:
    - name: cp1
      id: 8e9e05c52164694d
      addresses: [10.88.0.11]
      alive: true
"""

from ..module_utils._common.result import run_module
from ..module_utils._kubeadm.etcd import remove_members


def main() -> None:
    run_module(
        {
            "state": {"type": "str", "choices": ["absent"], "required": True},
            "addresses": {"type": "list", "elements": "str", "required": True},
            "alive": {"type": "bool", "default": False},
            "node_name": {"type": "str", "default": ""},
        },
        remove_members,
    )


if __name__ == "__main__":
    main()
