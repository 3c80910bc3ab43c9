#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_node
short_description: Remove nodes from a cluster, and release the addresses of their pods
version_added: 0.1.0
description:
  - Deletes the nodes, and their remaining pods without waiting for a kubelet. Drain a node first, and make sure that
    its kubelet has stopped.
  - Waits until the controllers of nv-ipam and Calico have reclaimed the blocks of these nodes.
  - Releases the addresses that whereabouts keeps for pods that do not exist or have other addresses. Nothing tells on
    which node such a pod ran, so all leaked addresses are released. Each is checked twice before.
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - netaddr
  - jmespath
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  state:
    description: Nodes can only be removed; C(kubeadm join) adds them.
    type: str
    choices: [absent]
    required: true
  names:
    description: Names of the nodes. A node that the cluster does not have is no error.
    type: list
    elements: str
    required: true
  timeout:
    description: Seconds to wait for the blocks of these nodes.
    type: int
    default: 60
  settle:
    description: Seconds after which the pools are read again if an address seems to be leaked.
    type: int
    default: 5
"""

EXAMPLES = r"""
- name: Remove a node whose host is gone
  ipu.fabric.cluster_node:
    state: absent
    names: [w2]
    kubeconfig: artifacts/admin.conf
"""

RETURN = r"""
left:
  description: Blocks that the controllers of nv-ipam and Calico had not reclaimed in time. They will do so later.
  returned: success
  type: list
  elements: str
  sample: [nv-ipam pool 10.5.0.1-10.5.0.16 (w2)]
"""

from ..module_utils._common.result import Runner, run_module
from ..module_utils._ipam.departed_nodes import remove_nodes
from ..module_utils._kube.client import arguments


def main(run: Runner = run_module) -> None:
    run(
        arguments(
            state={"type": "str", "choices": ["absent"], "required": True},
            names={"type": "list", "elements": "str", "required": True},
            timeout={"type": "int", "default": 60},
            settle={"type": "int", "default": 5},
        ),
        remove_nodes,
        libraries=("netaddr", "jmespath"),
    )


if __name__ == "__main__":
    main()
