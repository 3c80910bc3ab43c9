#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: spiderpool
short_description: Remove what Spiderpool serves, in a safe order
version_added: 0.1.0
description:
  - Removes networks (SpiderMultusConfig) and address pools (SpiderIPPool) that this collection has applied, as
    C(metadata.managedFields) says. Each is gone, with what Spiderpool created for it, before the next is deleted.
  - What others made stays. While they have networks, pools, subnets or reserved addresses, or a
    NetworkAttachmentDefinition and no other multus, Spiderpool has to stay; RV(needed_by) and a warning name them.
  - Fails while pods use the networks, and names them. Their addresses would be lost with the pools.
  - Spiderpool itself has to run meanwhile; M(ipu.fabric.helm_release) removes it afterwards. Called once more, this
    module then removes what Spiderpool has made for itself. Nobody else would remove its finalizers.
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - netaddr
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  state:
    description:
      - With V(absent) nothing is left of what this collection has applied.
      - With V(pruned) no network and no pool is left that this collection has applied and that is not among O(planned).
        It fails while pods use one of them, and removes nothing then.
      - M(ipu.fabric.helm_release) and M(ipu.fabric.kube_apply) install.
    type: str
    choices: [absent, pruned]
    required: true
  planned:
    description:
      - The objects of the plan, each with C(kind) and C(metadata), as P(ipu.fabric.spiderpool#role) applies them.
    type: list
    elements: dict
  unplanned:
    description:
      - What O(state=pruned) does with networks and pools that are not among O(planned).
      - V(check) removes nothing, and warns of them.
    type: str
    choices: [remove, check]
    default: remove
  force:
    description:
      - Whether O(state=absent) deletes the pods that use the networks. Their controllers may create them again.
    type: bool
    default: false
  timeout:
    description: Seconds that each step may take.
    type: int
    default: 300
seealso:
  - module: ipu.fabric.helm_release
  - module: ipu.fabric.network_operator
"""

EXAMPLES = r"""
- name: Say what would be removed
  ipu.fabric.spiderpool:
    kubeconfig: artifacts/admin.conf
    state: absent
    force: true
  check_mode: true
  register: found
  delegate_to: localhost
  run_once: true

- name: Remove networks and pools
  ipu.fabric.spiderpool:
    kubeconfig: artifacts/admin.conf
    state: absent
  delegate_to: localhost
  run_once: true

- name: Remove what is not planned any more
  ipu.fabric.spiderpool:
    kubeconfig: artifacts/admin.conf
    state: pruned
    planned:
      - {kind: SpiderMultusConfig, metadata: {namespace: training, name: rail-0}}
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
objects:
  description:
    - Kind, namespace and name of each object that was removed, or would be.
    - With O(unplanned=check) of those that O(unplanned=remove) would remove.
  returned: success
  type: list
  elements: str
  sample: [SpiderMultusConfig training/rail-0, SpiderIPPool rail-0-v4]
pods:
  description: Namespace and name of the pods that used the networks.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: []
needed_by:
  description: What others made and needs Spiderpool or its multus, by kind, namespace and name.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: [SpiderIPPool storage]
installations:
  description:
    - The installations of Spiderpool, each with C(namespace), C(name), C(version), C(release), its name in helm, and
      C(ours), whether this collection installed it.
  returned: with O(state=absent)
  type: list
  elements: dict
  sample: [{namespace: spiderpool, name: spiderpool-controller, version: 1.2.2, release: spiderpool, ours: true}]
definitions:
  description:
    - The CustomResourceDefinitions that nobody else needs once Spiderpool is gone, each with C(apiVersion), C(kind) and
      C(metadata.name), as M(ipu.fabric.kube_apply) takes them.
  returned: with O(state=absent)
  type: list
  elements: dict
  sample: []
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import Runner, run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments
from ansible_collections.ipu.fabric.plugins.module_utils._network.spiderpool_removal import remove_networks


def main(run: Runner = run_module) -> None:
    spec = arguments(
        state={"type": "str", "choices": ["absent", "pruned"], "required": True},
        planned={"type": "list", "elements": "dict"},
        unplanned={"type": "str", "choices": ["remove", "check"], "default": "remove"},
        force={"type": "bool", "default": False},
        timeout={"type": "int", "default": 300},
    )
    run(
        spec,
        remove_networks,
        libraries=("jmespath", "netaddr"),
        required_if=[("state", "pruned", ("planned",))],
    )


if __name__ == "__main__":
    main()
