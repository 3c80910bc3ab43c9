#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_member_absent
short_description: Forget etcd members of control planes that were made anew
version_added: 0.1.0
description:
  - A control plane that lost its disk is still a member of etcd, and kubeadm lets none join while a member is down.
  - Removes the members at these addresses. Runs on a control plane that is in the cluster, in its etcd pod.
  - Refuses while an etcd answers at one of the addresses. Changes nothing then.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  addresses:
    description: Addresses of control planes that are in no cluster, and are to join this one.
    type: list
    elements: str
    required: true
  node_name:
    description: Name of the node that this runs on. Empty takes the host's.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Forget what the new control plane was before
  ipu.fabric.etcd_member_absent:
    addresses: [10.88.0.11]
  delegate_to: cp2
"""

RETURN = r"""#"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.etcd import run


def main() -> None:
    run_module(
        {
            "addresses": {"type": "list", "elements": "str", "required": True},
            "node_name": {"type": "str", "default": ""},
        },
        run,
    )


if __name__ == "__main__":
    main()
