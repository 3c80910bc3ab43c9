#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: macvlan_prune
short_description: Find and remove macvlan networks that are not planned any more
version_added: 0.1.0
description:
  - Finds MacvlanNetworks and address pools of nv-ipam that this collection has applied, in any namespace, and that are
    not among O(networks). What others made is never touched; C(metadata.managedFields) says who made it.
  - Two pools with the same addresses give one address to two pods. With O(prune=false) the module fails when a
    left-over shares addresses with a network of O(networks), and warns of one that does not.
  - With O(prune=true) left-overs are removed, with the NetworkAttachmentDefinitions (NAD) that the operator made of
    them. While pods that have not ended use them the module fails, and changes nothing; those that are being deleted
    are waited for.
  - whereabouts keeps addresses of pods that are gone until its reconciler runs; those in the ranges of removed networks
    are freed.
  - A cluster that does not know the kinds yet has no left-overs.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
  - ipu.fabric.api
options:
  networks:
    description:
      - All planned networks. C(name), C(ipam), and C(pools), name and spec of its IPPools, or else C(pool), a single
        one, are read.
    type: list
    elements: dict
    required: true
  pool_namespace:
    description: Namespace of the planned address pools, that of the network operator.
    type: str
    default: nvidia-network-operator
  prune:
    description: Whether to remove what is left over.
    type: bool
    default: false
  timeout:
    description: Seconds that each step of a removal may take.
    type: int
    default: 60
seealso:
  - module: ipu.fabric.macvlan_network
  - module: ipu.fabric.network_operator_absent
"""

EXAMPLES = r"""
- name: Stop when a former network deals addresses of a planned one
  ipu.fabric.macvlan_prune:
    kubeconfig: artifacts/admin.conf
    networks: "{{ fabric_plan.networks }}"
  delegate_to: localhost
  run_once: true

- name: Remove the networks that are not planned any more
  ipu.fabric.macvlan_prune:
    kubeconfig: artifacts/admin.conf
    networks: "{{ fabric_plan.networks }}"
    prune: true
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
left_over:
  description: Kind, namespace and name of each MacvlanNetwork and pool that is not planned any more.
  returned: success
  type: list
  elements: str
  sample: [MacvlanNetwork rail-7, IPPool nvidia-network-operator/rail-7]
removed:
  description: Kind, namespace and name of each object that was removed, or would be.
  returned: success
  type: list
  elements: str
  sample: [MacvlanNetwork rail-7, NetworkAttachmentDefinition default/rail-7, IPPool nvidia-network-operator/rail-7]
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments
from ansible_collections.ipu.fabric.plugins.module_utils._network.prune import run


def main() -> None:
    spec = arguments(
        networks={"type": "list", "elements": "dict", "required": True},
        pool_namespace={"type": "str", "default": "nvidia-network-operator"},
        prune={"type": "bool", "default": False},
        timeout={"type": "int", "default": 60},
    )
    run_module(spec, run, libraries=("jmespath", "netaddr"))


if __name__ == "__main__":
    main()
