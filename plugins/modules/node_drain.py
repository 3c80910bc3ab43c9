#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_drain
short_description: Drain a node, put it back into service, or remove it
version_added: 0.1.0
description:
  - Cordons a node and evicts its pods within a time limit, as their disruption budgets allow. The error names each
    remaining pod and what blocks its eviction, such as a PodDisruptionBudget.
  - A label on the node, C(ipu.fabric/cordoned), says that it was cordoned by this module, and what for. A node that
    somebody else has cordoned stays cordoned.
  - Pods of DaemonSets, static pods, and pods that have ended stay.
  - With O(state=absent), deletes the node, and its remaining pods without waiting for a kubelet. Drain the node first,
    and make sure that its kubelet has stopped. It then waits until the controllers of nv-ipam and Calico have reclaimed
    the blocks of the node.
  - O(state=absent) also releases the addresses that whereabouts keeps for pods that do not exist or have other
    addresses. Nothing tells on which node such a pod ran, so all leaked addresses are released. Each is checked twice
    before.
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
  name:
    description:
      - Name of the node, as the cluster knows it.
      - If empty, O(state=uncordoned) is for all nodes that were cordoned for O(owner). The other states need it.
    type: str
    default: ""
  state:
    description:
      - V(drained) cordons the node and waits until its pods are gone.
      - V(uncordoned) uncordons the node if it was cordoned for O(owner). A node that is gone counts as done.
      - V(absent) removes the node from the cluster. A node that the cluster does not have is no error.
    type: str
    choices: [drained, uncordoned, absent]
    default: drained
  owner:
    description: What the node is drained for, as a label value. Needed unless O(state=absent).
    type: str
  timeout:
    description:
      - Seconds after which the drain is given up. The node then stays cordoned, for the caller to uncordon.
      - With O(state=absent), seconds to wait for the blocks of the node.
    type: int
    default: 300
  force:
    description:
      - Whether to also evict pods that no controller recreates, and pods with data in an emptyDir.
      - If V(false), such a pod is an error before the node is touched. Disruption budgets always apply.
    type: bool
    default: false
  wait:
    description: Whether to wait until evicted pods are gone. Nothing confirms that for a dead node.
    type: bool
    default: true
  settle:
    description:
      - With O(state=absent), seconds after which the pools are read again if an address seems to be leaked.
    type: int
    default: 5
"""

EXAMPLES = r"""
- name: Work on a node without its pods
  delegate_to: localhost
  block:
    - name: Drain it
      ipu.fabric.node_drain:
        kubeconfig: artifacts/admin.conf
        name: w1
        owner: firmware

    - name: Work on it
      ansible.builtin.include_tasks: firmware.yml
  always:
    - name: Put it back into service
      ipu.fabric.node_drain:
        kubeconfig: artifacts/admin.conf
        name: w1
        owner: firmware
        state: uncordoned

- name: Remove a node whose host is gone
  ipu.fabric.node_drain:
    kubeconfig: artifacts/admin.conf
    name: w2
    state: absent
"""

RETURN = r"""
foreign:
  description: Whether somebody else has cordoned the node, which then stays cordoned.
  returned: with O(state=drained)
  type: bool
pods:
  description: Pods that were, or would be, evicted.
  returned: with O(state=drained)
  type: list
  elements: str
  sample: [jobs/train-0]
blocked:
  description: In check mode, pods that can't be evicted now, and why.
  returned: with O(state=drained)
  type: list
  elements: str
nodes:
  description: Nodes that were, or would be, put back into service.
  returned: with O(state=uncordoned)
  type: list
  elements: str
left:
  description: Blocks that the controllers of nv-ipam and Calico had not reclaimed in time. They will do so later.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: [nv-ipam pool 10.5.0.1-10.5.0.16 (w2)]
"""

from ..module_utils._common.result import Runner, run_module
from ..module_utils._ipam.departed_nodes import remove_node
from ..module_utils._kube.client import arguments
from ..module_utils._kube.drain import drain_node, uncordon_nodes

BODIES = {"drained": drain_node, "uncordoned": uncordon_nodes, "absent": remove_node}


def main(run: Runner = run_module) -> None:
    spec = arguments(
        name={"type": "str", "default": ""},
        state={"type": "str", "choices": [*BODIES], "default": "drained"},
        owner={"type": "str"},
        timeout={"type": "int", "default": 300},
        force={"type": "bool", "default": False},
        wait={"type": "bool", "default": True},
        settle={"type": "int", "default": 5},
    )
    run(
        spec,
        lambda module: BODIES[module.params["state"]](module),
        libraries=("jmespath", "netaddr"),
        required_if=[("state", "drained", ("owner",)), ("state", "uncordoned", ("owner",))],
    )


if __name__ == "__main__":
    main()
