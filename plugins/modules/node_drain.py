#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_drain
short_description: Take the pods off a node, and put the node back into service
version_added: 0.1.0
description:
  - Cordons a node and evicts its pods within a time, as their disruption budgets allow. The error names each pod that
    is left and what holds it, such as the PodDisruptionBudget.
  - A label on the node, C(ipu.fabric/cordoned), says that it was cordoned by this module, and what for. A node that
    somebody else has cordoned stays cordoned.
  - Pods of DaemonSets, the kubelet's own and those that have ended stay.
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
      - Needed with O(state=drained). Without it O(state=uncordoned) is for all nodes that were cordoned for O(owner).
    type: str
    default: ""
  state:
    description:
      - V(drained) cordons the node and waits until its pods are gone.
      - V(uncordoned) puts it back into service if it was cordoned for O(owner). A node that is gone counts as done.
    type: str
    choices: [drained, uncordoned]
    default: drained
  owner:
    description: What the node is drained for, as a label value.
    type: str
    required: true
  timeout:
    description: Seconds until a drain is given up. The node then stays cordoned, for the caller to uncordon.
    type: int
    default: 300
  force:
    description:
      - Whether to evict pods too that nothing brings back, and pods with data in an emptyDir.
      - Without it such a pod is an error before the node is touched. Disruption budgets still hold.
    type: bool
    default: false
  wait:
    description: Whether to wait until evicted pods are gone. Of a dead node nothing confirms that.
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
  description: Whether somebody else has cordoned the node. It stays so.
  returned: with O(state=drained)
  type: bool
pods:
  description: Pods that were evicted, or would be.
  returned: with O(state=drained)
  type: list
  elements: str
  sample: [jobs/train-0]
blocked:
  description: In check mode, pods that could not be evicted now, and why.
  returned: with O(state=drained)
  type: list
  elements: str
nodes:
  description: Nodes that were put back into service, or would be.
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
