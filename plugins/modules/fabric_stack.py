#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_stack
short_description: Remove in a safe order what the network operator or Spiderpool serves, prune it, or render it again
version_added: 0.1.0
description:
  - Removes the networks and address pools that this collection has applied, as C(metadata.managedFields) says, and the
    NicClusterPolicy. Each object, with what the stack's controller created for it, must be gone before the next one is
    deleted.
  - Objects made by others stay. While others have objects of the stack, or a NetworkAttachmentDefinition and no other
    multus, the stack must stay as well, and the NicClusterPolicy does; RV(needed_by) and a warning name these objects.
  - Fails while pods use the networks, and names these pods. Their addresses would be lost with the pools.
  - The stack's controller must run meanwhile; M(ipu.fabric.helm_release) removes it afterwards. For Spiderpool, call
    this module once more after that. It then removes what Spiderpool has made for itself, since nobody else would
    remove its finalizers.
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - netaddr
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  stack:
    description: The stack that serves the networks.
    type: str
    choices: [network_operator, spiderpool]
    required: true
  state:
    description:
      - V(absent) removes what this collection has the stack serve. To install, use M(ipu.fabric.helm_release) and
        M(ipu.fabric.kube_apply).
      - V(pruned), for Spiderpool, removes each network (SpiderMultusConfig) and pool (SpiderIPPool) that this
        collection has applied and that is not among O(planned). While pods use one of them, it fails and removes
        nothing. M(ipu.fabric.macvlan_network) does the same for the network operator.
      - V(rendered), for the network operator, restores the images of its workloads and the configuration of its device
        plugin to those of the NicClusterPolicy that this collection has applied. The operator never repairs what
        somebody has edited. The module removes the operator's annotation from such an object, so that the operator
        renders it again. Nothing else is touched.
    type: str
    choices: [absent, pruned, rendered]
    required: true
  planned:
    description:
      - For O(state=pruned), the objects of the plan, each with C(kind) and C(metadata), as the role
        P(ipu.fabric.spiderpool#role) applies them.
    type: list
    elements: dict
  unplanned:
    description:
      - What O(state=pruned) does with networks and pools that are not among O(planned).
      - V(check) removes nothing and warns about them.
    type: str
    choices: [remove, check]
    default: remove
  namespace:
    description: Namespace of the network operator, for O(state=rendered).
    type: str
    default: nvidia-network-operator
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
  - module: ipu.fabric.macvlan_network
"""

EXAMPLES = r"""
- name: Show what would be removed
  ipu.fabric.fabric_stack:
    kubeconfig: artifacts/admin.conf
    stack: network_operator
    state: absent
    force: true
  check_mode: true
  register: found
  delegate_to: localhost
  run_once: true

- name: Have the operator render edited objects again
  ipu.fabric.fabric_stack:
    kubeconfig: artifacts/admin.conf
    stack: network_operator
    state: rendered
  delegate_to: localhost
  run_once: true

- name: Remove networks, pools and the policy
  ipu.fabric.fabric_stack:
    kubeconfig: artifacts/admin.conf
    stack: network_operator
    state: absent
  delegate_to: localhost
  run_once: true

- name: Remove what is no longer planned
  ipu.fabric.fabric_stack:
    kubeconfig: artifacts/admin.conf
    stack: spiderpool
    state: pruned
    planned:
      - {kind: SpiderMultusConfig, metadata: {namespace: training, name: rail-0}}
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
objects:
  description:
    - Kind, namespace and name of each object that was, or would be, removed or rendered again.
    - With O(unplanned=check), those that O(unplanned=remove) would remove.
  returned: success
  type: list
  elements: str
  sample: [MacvlanNetwork rdma-net, IPPool nvidia-network-operator/rdma-net, NicClusterPolicy nic-cluster-policy]
behind:
  description: Whether a pod of the device plugin is older than its configuration, which some releases read only once.
  returned: with O(state=rendered)
  type: bool
  sample: false
pods:
  description: Namespace and name of the pods that used the networks, with what creates them again.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: [default/train-x7k2p of Job train]
other_pods:
  description: Namespace and name of the pods on networks that others had the operator create. They stay.
  returned: with O(state=absent) of the network operator
  type: list
  elements: str
  sample: []
attachments:
  description: Namespace and name of the NetworkAttachmentDefinitions of other owners. They stay.
  returned: with O(state=absent) of the network operator
  type: list
  elements: str
  sample: []
needed_by:
  description: Objects made by others that need the stack or its multus, by kind, namespace and name.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: [MacvlanNetwork storage]
installations:
  description:
    - The installations of Spiderpool, each with C(namespace), C(name), C(version), C(release), its Helm release, and
      C(ours), whether this collection installed it.
  returned: with O(state=absent) of Spiderpool
  type: list
  elements: dict
  sample: [{namespace: spiderpool, name: spiderpool-controller, version: 1.2.2, release: spiderpool, ours: true}]
definitions:
  description:
    - The CustomResourceDefinitions that nobody else needs once Spiderpool is gone, each with C(apiVersion), C(kind) and
      C(metadata.name), as M(ipu.fabric.kube_apply) takes them.
  returned: with O(state=absent) of Spiderpool
  type: list
  elements: dict
  sample: []
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.result import FabricError, Runner, run_module
from ..module_utils._kube.client import arguments
from ..module_utils._network import operator_removal, rendered, spiderpool_removal

BODIES = {
    ("network_operator", "absent"): operator_removal.remove_networks,
    ("network_operator", "rendered"): rendered.render_again,
    ("spiderpool", "absent"): spiderpool_removal.remove_networks,
    ("spiderpool", "pruned"): spiderpool_removal.prune_networks,
}


def serve(module: AnsibleModule) -> t.Dict[str, t.Any]:
    stack, state = module.params["stack"], module.params["state"]
    if (stack, state) not in BODIES:
        states = ", ".join(known for of, known in BODIES if of == stack)
        raise FabricError(
            "This stack does not have this state.",
            "options stack and state",
            f"{stack} can't be {state}",
            f"Use one of its states: {states}.",
            code="invalid-input",
        )
    return BODIES[stack, state](module)


def main(run: Runner = run_module) -> None:
    spec = arguments(
        stack={"type": "str", "choices": ["network_operator", "spiderpool"], "required": True},
        state={"type": "str", "choices": ["absent", "pruned", "rendered"], "required": True},
        planned={"type": "list", "elements": "dict"},
        unplanned={"type": "str", "choices": ["remove", "check"], "default": "remove"},
        namespace={"type": "str", "default": "nvidia-network-operator"},
        force={"type": "bool", "default": False},
        timeout={"type": "int", "default": 300},
    )
    run(spec, serve, libraries=("jmespath", "netaddr"), required_if=[("state", "pruned", ("planned",))])


if __name__ == "__main__":
    main()
