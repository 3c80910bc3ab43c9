#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_drain
short_description: Drain a node, and put it back into service
version_added: 0.1.0
description:
  - Cordons a node and evicts its pods within a time limit, as their disruption budgets allow. The error names each
    remaining pod and what blocks its eviction, such as a PodDisruptionBudget.
  - A label on the node, C(ipu.fabric/cordoned), says that it was cordoned by this module, and what for. A node that
    somebody else has cordoned stays cordoned.
  - Pods of DaemonSets, static pods, and pods that have ended stay.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  name:
    description:
      - Name of the node, as the cluster knows it.
      - Needed with O(state=drained). If empty, O(state=uncordoned) is for all nodes that were cordoned for O(owner).
    type: str
    default: ""
  state:
    description:
      - V(drained) cordons the node and waits until its pods are gone.
      - V(uncordoned) uncordons the node if it was cordoned for O(owner). A node that is gone counts as done.
    type: str
    choices: [drained, uncordoned]
    default: drained
  owner:
    description: What the node is drained for, as a label value.
    type: str
    required: true
  timeout:
    description: Seconds after which the drain is given up. The node then stays cordoned, for the caller to uncordon.
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
"""

from ..module_utils._common.result import Runner, run_module
from ..module_utils._kube.client import arguments
from ..module_utils._kube.drain import drain_node, uncordon_nodes


def main(run: Runner = run_module) -> None:
    spec = arguments(
        name={"type": "str", "default": ""},
        state={"type": "str", "choices": ["drained", "uncordoned"], "default": "drained"},
        owner={"type": "str", "required": True},
        timeout={"type": "int", "default": 300},
        force={"type": "bool", "default": False},
        wait={"type": "bool", "default": True},
    )
    run(
        spec,
        lambda module: (drain_node if module.params["state"] == "drained" else uncordon_nodes)(module),
        libraries=("jmespath",),
    )


if __name__ == "__main__":
    main()
