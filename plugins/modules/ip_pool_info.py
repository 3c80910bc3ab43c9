#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ip_pool_info
short_description: Address pools of pods' secondary networks, and what leaked from them
version_added: 0.1.0
description:
  - Reads the pools of whereabouts (C(IPPool) and C(OverlappingRangeIPReservation)), of nv-ipam (C(IPPool)) and of a
    stack with its own IPAM (C(SpiderIPPool)), compares them with the running pods, and changes nothing.
  - An address is leaked if its pod no longer exists or has other addresses, or if two pods have it. If any address is
    leaked, the pools are read again after O(settle) seconds, so that pods that come and go meanwhile do not count.
  - whereabouts keeps the bounds and excludes of a range in the networks only; they are read from the
    NetworkAttachmentDefinitions of the same CIDR.
  - nv-ipam tells the API which block a node has, but not which pod has which address. The module counts the addresses
    that multus wrote on the pods, so it does not see a leak in a node's own store C(/var/lib/cni/nv-ipam/store).
  - In check mode, a cluster that does not exist yet has no pools.
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - netaddr
  - jmespath
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  cidrs:
    description: Only pools of these subnets. Empty for all.
    type: list
    elements: str
    default: []
  settle:
    description: Seconds after which the pools are read again if an address seems to be leaked.
    type: int
    default: 5
"""

EXAMPLES = r"""
- name: Audit the address pools
  ipu.fabric.ip_pool_info:
    kubeconfig: artifacts/admin.conf
  delegate_to: localhost
  run_once: true
  register: pools

- name: Fail if there are leaks
  ansible.builtin.assert:
    that: pools.leaks == 0
    fail_msg: "{{ pools.pools | map(attribute='leaked') | flatten }}"
  run_once: true
"""

RETURN = r"""
leaks:
  description: How many addresses are leaked or held twice, over all pools.
  returned: success
  type: int
  sample: 1
pools:
  description: Every pool.
  returned: success
  type: list
  elements: dict
  sample:
    - name: 10.5.0.0-24
      ipam: whereabouts
      cidr: 10.5.0.0/24
      usable: 127
      excluded: 3
      capacity: 124
      allocated: 12
      free: 112
      leaked: [{address: 10.5.0.131, pod: default/worker-3, why: no such pod runs}]
      nodes: [{node: w1, range: "", capacity: null, allocated: 6, free: null}]
  contains:
    name:
      description: Name of the pool's object.
      type: str
    ipam:
      description: V(whereabouts), V(nv-ipam), or the name of the stack whose own IPAM it is.
      type: str
    cidr:
      description: The subnet.
      type: str
    usable:
      description: Addresses between the bounds of the pool; with nv-ipam, those in blocks that nodes have.
      type: int
    excluded:
      description: Usable addresses that no pod may have.
      type: int
    capacity:
      description: Addresses that pods may have, usable less excluded.
      type: int
    allocated:
      description: Allocated addresses, including leaked ones.
      type: int
    free:
      description: Capacity less allocated.
      type: int
    leaked:
      description: Leaked addresses or blocks, which others can't get, each with C(address), C(pod) and C(why).
      type: list
      elements: dict
    nodes:
      description:
        - Each node that has a block or a pod with an address, as C(node), C(range), C(capacity), C(allocated), C(free).
        - Only nv-ipam gives a node a block of its own; otherwise C(range) is empty, C(capacity) and C(free) are null.
      type: list
      elements: dict
"""

from ..module_utils._common.result import Runner, run_module
from ..module_utils._ipam.pool_audit import report_pools
from ..module_utils._kube.client import arguments


def main(run: Runner = run_module) -> None:
    spec = arguments(
        cidrs={"type": "list", "elements": "str", "default": []},
        settle={"type": "int", "default": 5},
    )
    run(spec, report_pools, libraries=("jmespath", "netaddr"))


if __name__ == "__main__":
    main()
