#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_kubelets
short_description: Configure future kubelets, and approve the certificate requests of planned nodes
version_added: 0.1.0
description:
  - Sets O(settings) in the ConfigMap C(kube-system/kubelet-config), and leaves all other settings as they are. kubeadm
    writes this configuration to hosts that join, and to all nodes in an upgrade. To change existing nodes, use
    M(ipu.fabric.kubelet_config).
  - A kubelet with C(serverTLSBootstrap) requests its serving certificate from the cluster, and a new one before that
    expires. Kubernetes approves none of these requests by itself.
  - Approves a request if the kubelet of a node in O(nodes) made it for exactly the name and addresses of that node, as
    a server of the group C(system:nodes).
  - All other requests stay pending. A warning and RV(left) name them.
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
    description: The addresses of each node, by its name. If empty, requests are left alone.
    type: dict
    required: true
  awaited:
    description: Nodes to wait for until their kubelets answer the API server.
    type: list
    elements: str
    default: []
  requested:
    description: Nodes to wait for until this call has approved a request of each.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds to wait for O(awaited) and O(requested).
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: Approve the certificate requests of two nodes
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
  description: Requests that were not approved, each with the reason. They stay pending.
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
