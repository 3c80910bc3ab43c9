#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: macvlan_network
short_description: Manage networks of the NVIDIA Network Operator
version_added: 0.1.0
description:
  - Creates MacvlanNetworks, or networks of another type, waits for the NetworkAttachmentDefinition (NAD) that the
    operator creates for each, and checks that it matches the plan. The status V(ready) alone proves nothing; a network
    with broken IPAM has it too.
  - Treats a NAD that somebody has edited as a difference, since the operator leaves it as it is. If it belongs to a
    network that this collection has applied, the module deletes it, and the operator creates it again.
  - Compares the spec, with the IPAM configuration as data. The operator replaces annotations, so nothing is kept in
    them.
  - With O(state=pruned), removes networks and address pools of nv-ipam that are no longer planned.
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - netaddr
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  name:
    description: Name of the network and of its NAD. Set this or O(networks). Not with O(state=pruned).
    type: str
  namespace:
    description: Namespace of the NAD. It must exist.
    type: str
    default: default
  master:
    description: The network interface of the hosts that pods join. Needed by macvlan and IPoIB unless O(state=absent).
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
  cni:
    description:
      - The CNI plugin of the network. V(macvlan) makes a MacvlanNetwork, V(ipoib) an IPoIBNetwork, V(host-device) a
        HostDeviceNetwork, V(sriov) a SriovNetwork and V(ib-sriov) a SriovIBNetwork.
      - O(mode) and O(mtu) apply to macvlan only.
    type: str
    choices: [macvlan, ipoib, host-device, sriov, ib-sriov]
    default: macvlan
  resource:
    description: The resource whose devices pods get, such as V(nvidia.com/sriov_a). For networks without a master.
    type: str
    default: ""
  meta_plugins:
    description:
      - CNI plugins that follow the main one in each pod, in this order, each with its C(type) as in a CNI
        configuration. For networks of VFs.
    type: list
    elements: dict
    default: []
  networks:
    description: Several networks in one call, instead of O(name) and the options that describe it.
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
      cni:
        description: As O(cni).
        type: str
        choices: [macvlan, ipoib, host-device, sriov, ib-sriov]
        default: macvlan
      resource:
        description: As O(resource).
        type: str
        default: ""
      meta_plugins:
        description: As O(meta_plugins).
        type: list
        elements: dict
        default: []
      pools:
        description: Name and spec of each IPPool that provides the network's addresses. O(state=pruned) reads them.
        type: list
        elements: dict
        default: []
      pool:
        description: A single pool, instead of O(networks[].pools).
        type: dict
  state:
    description:
      - V(present) makes the networks as given, and their NADs as planned.
      - V(absent) removes the networks and their NADs. A cluster that no longer knows the kind is no error.
      - V(pruned) removes, in any namespace, each network and each address pool of nv-ipam that this collection has
        applied and that is not among O(networks), and the NADs that the operator created for them. Objects of others,
        as C(metadata.managedFields) shows, are never touched.
      - V(pruned) fails, and changes nothing, while pods that have not ended use one of them. It waits for pods that are
        being deleted. It also fails, whatever O(unplanned) says, while pods have addresses of blocks that nv-ipam would
        take from their nodes because a pool of O(networks) has another block size, subnet or node selector than the
        existing one. Addresses that whereabouts keeps for pods that are gone are released in the ranges of removed
        networks.
    type: str
    choices: [present, absent, pruned]
    default: present
  unplanned:
    description:
      - What O(state=pruned) does with networks and pools that are not among O(networks).
      - V(check) removes nothing. It fails if one of them shares addresses with a network of O(networks), since two pods
        could get the same address, and warns about one that does not.
    type: str
    choices: [remove, check]
    default: remove
  pool_namespace:
    description: Namespace of the network operator, which has the planned address pools and networks of VFs.
    type: str
    default: nvidia-network-operator
  timeout:
    description: Seconds to wait for NADs to appear or disappear, and that each step of O(state=pruned) may take.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: Create the RDMA network
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

- name: Remove the rail networks
  ipu.fabric.macvlan_network:
    kubeconfig: artifacts/admin.conf
    networks:
      - name: rail-0
      - name: rail-1
    state: absent
  delegate_to: localhost
  run_once: true

- name: Fail if a former network has addresses of a planned one
  ipu.fabric.macvlan_network:
    kubeconfig: artifacts/admin.conf
    networks:
      - name: rail-0
        ipam: {type: whereabouts, range: 10.5.0.0/24}
    state: pruned
    unplanned: check
  delegate_to: localhost
  run_once: true

- name: Remove the networks that are no longer planned
  ipu.fabric.macvlan_network:
    kubeconfig: artifacts/admin.conf
    networks:
      - name: rail-0
        ipam: {type: nv-ipam, poolName: rail-0}
        pools:
          - {name: rail-0, subnet: 10.5.0.0/24, perNodeBlockSize: 16}
    state: pruned
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
networks:
  description: Names of the networks that were, or would be, changed.
  returned: success
  type: list
  elements: str
  sample: [rdma-net]
unplanned:
  description: Kind, namespace and name of each MacvlanNetwork and pool that is no longer planned.
  returned: with O(state=pruned)
  type: list
  elements: str
  sample: [MacvlanNetwork rail-7, IPPool nvidia-network-operator/rail-7]
others:
  description: Networks and pools with addresses that this collection did not make. In check mode only.
  returned: with O(state=pruned)
  type: list
  elements: str
  sample: []
removed:
  description: Kind, namespace and name of each object that was, or would be, removed.
  returned: with O(state=pruned)
  type: list
  elements: str
  sample: [MacvlanNetwork rail-7, NetworkAttachmentDefinition default/rail-7, IPPool nvidia-network-operator/rail-7]
"""

from ..module_utils._common.result import Runner, run_module
from ..module_utils._kube.client import arguments
from ..module_utils._network.macvlan_network import manage_networks

SETTINGS = {
    "namespace": {"type": "str", "default": "default"},
    "master": {"type": "str", "default": ""},
    "mode": {"type": "str", "choices": ["bridge", "private", "vepa", "passthru"], "default": "bridge"},
    "mtu": {"type": "int", "default": 0},
    "ipam": {"type": "dict", "default": {}},
    "cni": {"type": "str", "choices": ["macvlan", "ipoib", "host-device", "sriov", "ib-sriov"], "default": "macvlan"},
    "resource": {"type": "str", "default": ""},
    "meta_plugins": {"type": "list", "elements": "dict", "default": []},
}
POOLS = {"pools": {"type": "list", "elements": "dict", "default": []}, "pool": {"type": "dict"}}


def main(run: Runner = run_module) -> None:
    network = {"name": {"type": "str", "required": True}, **SETTINGS, **POOLS}
    spec = arguments(
        name={"type": "str"},
        networks={"type": "list", "elements": "dict", "options": network},
        state={"type": "str", "choices": ["present", "absent", "pruned"], "default": "present"},
        unplanned={"type": "str", "choices": ["remove", "check"], "default": "remove"},
        pool_namespace={"type": "str", "default": "nvidia-network-operator"},
        timeout={"type": "int", "default": 60},
        **SETTINGS,
    )
    run(
        spec,
        manage_networks,
        libraries=("jmespath", "netaddr"),
        required_one_of=[("name", "networks")],
        mutually_exclusive=[("name", "networks")],
        required_if=[("state", "pruned", ("networks",))],
    )


if __name__ == "__main__":
    main()
