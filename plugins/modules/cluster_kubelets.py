#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_kubelets
short_description: Configure kubelets to come, and approve the certificates that those of planned hosts ask for
version_added: 0.1.0
description:
  - Sets O(settings) in the ConfigMap C(kube-system/kubelet-config), and leaves all others as they are. kubeadm writes
    it to hosts that join, and to all nodes in an upgrade. Existing nodes are changed by
    M(ipu.fabric.kubelet_config).
  - A kubelet with C(serverTLSBootstrap) has its serving certificate signed by the cluster, and asks again before that
    ends. Kubernetes approves none of these requests by itself.
  - Approved is a request that the kubelet of a node in O(nodes) has made, for the name of that node and its addresses,
    no more and no less, as a server of the group C(system:nodes).
  - All others stay pending, and are named in a warning and in RV(left).
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - cryptography
  - jmespath
  - PyYAML
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  settings:
    description: Fields of a KubeletConfiguration. Mappings are merged, everything else is replaced.
    type: dict
    default: {}
  nodes:
    description: The addresses of each node, by its name. Without any, requests are left alone.
    type: dict
    required: true
  awaited:
    description: Nodes to wait for, until their kubelets answer the API server.
    type: list
    elements: str
    default: []
  requested:
    description: Nodes to wait for, until a request of each has been approved in this call.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds to wait for them.
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: Approve what the kubelets of two hosts ask for
  ipu.fabric.cluster_kubelets:
    kubeconfig: artifacts/admin.conf
    nodes:
      cp1: [10.88.0.11]
      w1: [10.88.0.21]
    awaited: [w1]
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
approved:
  description: Requests that were approved, or would be in check mode.
  type: list
  elements: str
  returned: success
  sample: ["csr-7x2vl of system:node:w1"]
left:
  description: Requests that do not fit, each with the reason. They stay pending.
  type: list
  elements: str
  returned: success
  sample: ["csr-9fk2d of system:node:x: no host of the inventory is the node x"]
"""

from ..module_utils._common.result import Runner, run_module
from ..module_utils._kube.client import arguments
from ..module_utils._kube.kubelets import manage_kubelets


def main(run: Runner = run_module) -> None:
    run(
        arguments(
            settings={"type": "dict", "default": {}},
            nodes={"type": "dict", "required": True},
            awaited={"type": "list", "elements": "str", "default": []},
            requested={"type": "list", "elements": "str", "default": []},
            timeout={"type": "int", "default": 120},
        ),
        manage_kubelets,
        libraries=("cryptography", "jmespath", "yaml"),
    )


if __name__ == "__main__":
    main()
