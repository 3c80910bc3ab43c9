#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_labels
short_description: Set labels, annotations and taints of many nodes in one call
version_added: 0.1.0
description:
  - Reads all nodes in one request, and patches nodes that differ, several at a time.
  - Keys that are not named stay as they are.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  nodes:
    description: The nodes. A node that is named twice gets both entries.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the node, as the cluster knows it.
        type: str
        required: true
      labels:
        description: Labels by key. A value of null removes the label.
        type: dict
        default: {}
      annotations:
        description: Annotations by key. A value of null removes the annotation.
        type: dict
        default: {}
      taints:
        description: Taints, each identified by its key and effect.
        type: list
        elements: dict
        default: []
        suboptions:
          key:
            description: Key of the taint.
            type: str
            required: true
          effect:
            description: Effect of the taint.
            type: str
            choices: [NoSchedule, PreferNoSchedule, NoExecute]
            required: true
          value:
            description: Value of the taint.
            type: str
            default: ""
          state:
            description: Whether the taint should exist.
            type: str
            choices: [present, absent]
            default: present
  concurrency:
    description: How many nodes are patched at a time.
    type: int
    default: 10
"""

EXAMPLES = r"""
- name: Label the nodes with the V-IPU controller that serves them
  ipu.fabric.node_labels:
    kubeconfig: artifacts/admin.conf
    nodes:
      - name: poplar-01
        labels:
          vipu-ctrl: vctl1
          retired-label: null
      - name: poplar-02
        labels:
          vipu-ctrl: vctl1
        taints:
          - key: node-role.kubernetes.io/control-plane
            effect: NoSchedule
            state: absent
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
nodes:
  description: Names of the nodes that were, or would be, changed.
  returned: success
  type: list
  elements: str
  sample: [poplar-01]
"""

from ..module_utils._common.result import Runner, run_module
from ..module_utils._kube.client import arguments
from ..module_utils._kube.node_labels import patch_nodes

TAINT = {
    "key": {"type": "str", "required": True, "no_log": False},
    "effect": {"type": "str", "required": True, "choices": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
    "value": {"type": "str", "default": ""},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
NODE = {
    "name": {"type": "str", "required": True},
    "labels": {"type": "dict", "default": {}},
    "annotations": {"type": "dict", "default": {}},
    "taints": {"type": "list", "elements": "dict", "default": [], "options": TAINT},
}


def main(run: Runner = run_module) -> None:
    spec = arguments(
        nodes={"type": "list", "elements": "dict", "required": True, "options": NODE},
        concurrency={"type": "int", "default": 10},
    )
    run(spec, patch_nodes, libraries=("jmespath",))


if __name__ == "__main__":
    main()
