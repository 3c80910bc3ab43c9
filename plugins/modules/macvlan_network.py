#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: macvlan_network
short_description: Macvlan networks of the NVIDIA Network Operator
version_added: 0.1.0
description:
  - Makes MacvlanNetworks, waits for the NetworkAttachmentDefinition (NAD) that the operator makes of each, and checks
    that it says what was planned. The status V(ready) alone proves nothing; a network with broken IPAM has it too.
  - Compares the spec, with the IPAM as data. The operator replaces annotations, so nothing is kept in them.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  name:
    description: Name of the network and of its NAD. Give this, or O(networks).
    type: str
  namespace:
    description: Namespace of the NAD. It must exist.
    type: str
    default: default
  master:
    description: The network interface of the hosts that pods join. Needed unless O(state=absent).
    type: str
    default: ""
  mode:
    description: How pods on the same host reach each other.
    type: str
    choices: [bridge, private, vepa, passthru]
    default: bridge
  mtu:
    description: MTU of the pods' interface in bytes. V(0) takes the master's.
    type: int
    default: 0
  ipam:
    description: Configuration of the IPAM plugin, as in a CNI configuration.
    type: dict
    default: {}
  networks:
    description: Several networks in one call, in place of O(name) and the options beside it.
    type: list
    elements: dict
    suboptions:
      name:
        description: As O(name).
        type: str
        required: true
      namespace:
        description: As O(namespace).
        type: str
        default: default
      master:
        description: As O(master).
        type: str
        default: ""
      mode:
        description: As O(mode).
        type: str
        choices: [bridge, private, vepa, passthru]
        default: bridge
      mtu:
        description: As O(mtu).
        type: int
        default: 0
      ipam:
        description: As O(ipam).
        type: dict
        default: {}
  state:
    description:
      - With V(present) the networks are as given, and their NADs as planned.
      - With V(absent) the networks and their NADs are gone. A cluster that does not know the kind any more is no error.
    type: str
    choices: [present, absent]
    default: present
  timeout:
    description: Seconds to wait for the NADs to come or go.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: The RDMA network
  ipu.fabric.macvlan_network:
    kubeconfig: artifacts/admin.conf
    name: rdma-net
    master: ens1f0
    mtu: 9000
    ipam:
      type: nv-ipam
      poolName: rdma-net
  delegate_to: localhost
  run_once: true

- name: No rail networks any more
  ipu.fabric.macvlan_network:
    kubeconfig: artifacts/admin.conf
    networks:
      - name: rail-0
      - name: rail-1
    state: absent
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
networks:
  description: Names of the networks that were changed, or would be.
  returned: success
  type: list
  elements: str
  sample: [rdma-net]
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments
from ansible_collections.ipu.fabric.plugins.module_utils._network.macvlan import run

SETTINGS = {
    "namespace": {"type": "str", "default": "default"},
    "master": {"type": "str", "default": ""},
    "mode": {"type": "str", "choices": ["bridge", "private", "vepa", "passthru"], "default": "bridge"},
    "mtu": {"type": "int", "default": 0},
    "ipam": {"type": "dict", "default": {}},
}


def main() -> None:
    spec = arguments(
        name={"type": "str"},
        networks={
            "type": "list",
            "elements": "dict",
            "options": {"name": {"type": "str", "required": True}, **SETTINGS},
        },
        state={"type": "str", "choices": ["present", "absent"], "default": "present"},
        timeout={"type": "int", "default": 60},
        **SETTINGS,
    )
    run_module(spec, run, required_one_of=[("name", "networks")], mutually_exclusive=[("name", "networks")])


if __name__ == "__main__":
    main()
