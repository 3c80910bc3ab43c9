#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rejoining_nodes
short_description: Prepare the nodes of reinstalled hosts, that join again, for it
version_added: 0.1.0
description:
  - The cluster still has the node of a host that was reinstalled. C(kubeadm join) refuses while that node is Ready,
    which it is for about a minute after its kubelet has gone.
  - Refuses a node with another address than the host that would join under its name.
  - Waits until none of the nodes is Ready. One that stays Ready is the node of another host with the same name.
  - Then takes the label of control planes off. It says that a control plane has joined, and these have not yet. Other
    labels, annotations and taints stay.
  - Runs on a control plane that is in the cluster. Check mode does not wait.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  names:
    description: Names of nodes whose hosts have nothing of Kubernetes. The cluster need not have them.
    type: list
    elements: str
    required: true
  addresses:
    description: The addresses of the hosts that join, by the name of the node. Where none is given, none is compared.
    type: dict
    default: {}
  timeout:
    description: Seconds to wait. An API server takes a node for Ready until 50 seconds after its kubelet's last report.
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: Prepare for a reinstalled control plane to join
  ipu.fabric.rejoining_nodes:
    names: [cp1]
  delegate_to: cp2
"""

RETURN = r"""
nodes:
  description: Those of the nodes that the cluster has.
  returned: success
  type: list
  elements: str
  sample: [cp1]
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.rejoin import prepare_nodes


def main() -> None:
    run_module(
        {
            "names": {"type": "list", "elements": "str", "required": True},
            "addresses": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 120},
        },
        prepare_nodes,
    )


if __name__ == "__main__":
    main()
