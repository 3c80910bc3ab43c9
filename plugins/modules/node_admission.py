#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_admission
short_description: Mark which nodes are proved, and close unproved nodes to new pods
version_added: 0.1.0
description:
  - Reads all nodes in one request, and patches nodes that differ, several at a time.
  - Each node of the plan gets the condition C(FabricProved) with its reason and the next step. On a node that passed,
    the annotation C(ipu.fabric/proof) has the time of that proof, the digest of its report, and digests of what the
    node was then (machine, boot, kernel, NICs).
  - A node that was never proved, or has changed since, is V(Unknown). With O(mode=enforce), it gets the taint
    C(ipu.fabric/unproved:NoSchedule), which only a proof removes.
  - A node that was proved and fails now gets the taint too, unless O(max_unproved) nodes that were once open already
    have it.
  - An error of the plan sets the nodes of the hosts that it names to V(Unknown), and closes them in the same way. Nodes
    that no earlier run has marked then stay as they are.
  - The last node that accepts ordinary pods stays open.
  - Conditions, annotations and taints of others stay as they are.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  mode:
    description:
      - V(warn) sets the condition, V(enforce) the taint too. V(off) removes condition, annotation and taint from all
        nodes.
    type: str
    choices: ["off", warn, enforce]
    default: "off"
  max_unproved:
    description: How many nodes failed proofs may close, a number or a percentage of the nodes of the fabric.
    type: raw
    default: 10%
  plan:
    description: The plan, which has the nodes of the fabric and their NICs. Needed unless O(mode=off).
    type: dict
    default: {}
  proofs:
    description: RV(ipu.fabric.fabric_report#module:proofs). If empty, only nodes that have changed become V(Unknown).
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the node.
        type: str
        required: true
      status:
        description: Whether the node is proved.
        type: str
        choices: ["True", "False", Unknown]
        required: true
      reason:
        description: Reason, in one word.
        type: str
        required: true
      text:
        description: What was seen, and the next step.
        type: str
        required: true
  time:
    description: When the proof was made, UTC in ISO 8601.
    type: str
    default: ""
  report:
    description: SHA-256 of the proof's C(report.json).
    type: str
    default: ""
  concurrency:
    description: How many nodes are patched at a time.
    type: int
    default: 10
"""

EXAMPLES = r"""
- name: Mark which nodes are proved
  ipu.fabric.node_admission:
    kubeconfig: artifacts/admin.conf
    mode: enforce
    plan: "{{ fabric_plan }}"
    proofs: "{{ report.proofs }}"
    time: "{{ report.time }}"
    report: "{{ report.sha256 }}"
  run_once: true

- name: Remove conditions, annotations and taints
  ipu.fabric.node_admission:
    kubeconfig: artifacts/admin.conf
    mode: "off"
  run_once: true
"""

RETURN = r"""
nodes:
  description: Names of the nodes whose condition or taint was, or would be, changed. A later time alone is no change.
  returned: success
  type: list
  elements: str
  sample: [poplar-01]
lines:
  description: How many nodes are proved, which are not and why, and which are closed, for a terminal.
  returned: success
  type: list
  elements: str
"""

from ..module_utils._common.result import Runner, run_module
from ..module_utils._kube.client import arguments
from ..module_utils._verify.node_admission import admit

PROOF = {
    "name": {"type": "str", "required": True},
    "status": {"type": "str", "required": True, "choices": ["True", "False", "Unknown"]},
    "reason": {"type": "str", "required": True},
    "text": {"type": "str", "required": True},
}


def main(run: Runner = run_module) -> None:
    spec = arguments(
        mode={"type": "str", "choices": ["off", "warn", "enforce"], "default": "off"},
        max_unproved={"type": "raw", "default": "10%"},
        plan={"type": "dict", "default": {}},
        proofs={"type": "list", "elements": "dict", "default": [], "options": PROOF},
        time={"type": "str", "default": ""},
        report={"type": "str", "default": ""},
        concurrency={"type": "int", "default": 10},
    )
    run(spec, admit, libraries=("jmespath",))


if __name__ == "__main__":
    main()
