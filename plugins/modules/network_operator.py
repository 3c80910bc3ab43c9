#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: network_operator
short_description: What the network operator serves, removed in a safe order or rendered again
version_added: 0.1.0
description:
  - Removes networks, address pools of nv-ipam and the NicClusterPolicy that this collection has applied, as
    C(metadata.managedFields) says. Each is gone, with what the operator created for it, before the next is deleted.
  - What others made stays. While they have networks, pools or policies, or a NetworkAttachmentDefinition and no other
    multus, the NicClusterPolicy stays as well; RV(needed_by) and a warning name them.
  - Fails while pods use the networks, and names them. Their addresses would be lost with the pools.
  - The operator itself has to run meanwhile; M(ipu.fabric.helm_release) removes it afterwards.
  - With O(state=rendered) it compares what the operator has made of the NicClusterPolicy with that policy.
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
      - With V(absent) what this collection has the operator serve is gone. M(ipu.fabric.helm_release) and
        M(ipu.fabric.kube_apply) install.
      - With V(rendered) the images of the operator's workloads and the configuration of its device plugin are those of
        the NicClusterPolicy that this collection has applied. The operator never repairs what somebody has edited; here
        its note is taken off such an object, so that it renders that again. Nothing else is touched.
    type: str
    choices: [absent, rendered]
    required: true
  namespace:
    description: Namespace of the operator, for O(state=rendered).
    type: str
    default: nvidia-network-operator
  force:
    description: Whether to delete the pods that use the networks. Their controllers may create them again.
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
- name: Say what would be removed
  ipu.fabric.network_operator:
    kubeconfig: artifacts/admin.conf
    state: absent
    force: true
  check_mode: true
  register: found
  delegate_to: localhost
  run_once: true

- name: Have the operator render again what somebody has edited
  ipu.fabric.network_operator:
    kubeconfig: artifacts/admin.conf
    state: rendered
  delegate_to: localhost
  run_once: true

- name: Remove networks, pools and the policy
  ipu.fabric.network_operator:
    kubeconfig: artifacts/admin.conf
    state: absent
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
objects:
  description: Kind, namespace and name of each object that was removed or rendered again, or would be.
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
  description: Namespace and name of the pods that used the networks.
  returned: success
  type: list
  elements: str
  sample: []
other_pods:
  description: Namespace and name of the pods on networks that others had the operator make. They stay.
  returned: success
  type: list
  elements: str
  sample: []
attachments:
  description: Namespace and name of the NetworkAttachmentDefinitions of other owners. They stay.
  returned: success
  type: list
  elements: str
  sample: []
needed_by:
  description: What others made and needs the operator or its multus, by kind, namespace and name. The policy stays.
  returned: success
  type: list
  elements: str
  sample: [MacvlanNetwork storage]
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import Runner, run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments
from ansible_collections.ipu.fabric.plugins.module_utils._network.operator_removal import remove_networks
from ansible_collections.ipu.fabric.plugins.module_utils._network.rendered import render_again


def serve(module: AnsibleModule) -> t.Dict[str, t.Any]:
    return render_again(module) if module.params["state"] == "rendered" else remove_networks(module)


def main(run: Runner = run_module) -> None:
    spec = arguments(
        state={"type": "str", "choices": ["absent", "rendered"], "required": True},
        namespace={"type": "str", "default": "nvidia-network-operator"},
        force={"type": "bool", "default": False},
        timeout={"type": "int", "default": 300},
    )
    run(spec, serve, libraries=("jmespath", "netaddr"))


if __name__ == "__main__":
    main()
