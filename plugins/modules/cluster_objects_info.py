#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_objects_info
short_description: The objects of a cluster, to keep beside a backup and to compare after a restore
version_added: 0.1.0
description:
  - Reads networks, pools and the addresses of pods as they are, and a fingerprint of every other object that lasts.
  - Events, leases, nodes, pods, and what others own are left out, as they change by themselves. So are join tokens.
  - With O(expected) it returns what is missing or different instead. What came since is no difference.
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - jmespath
  - netaddr
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  expected:
    description: RV(saved) of an earlier call.
    type: dict
  wait:
    description: With O(expected), seconds until pods that have just started must have their addresses.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Read the objects of the cluster
  ipu.fabric.cluster_objects_info:
    kubeconfig: artifacts/admin.conf
  delegate_to: localhost
  run_once: true
  register: before

- name: Compare them
  ipu.fabric.cluster_objects_info:
    kubeconfig: artifacts/admin.conf
    expected: "{{ before.saved }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
saved:
  description:
    - C(objects) of the fabric, as the API has them, C(digests) of all objects by kind and name, and C(addresses), which
      pod has which address on which network.
  returned: without O(expected)
  type: dict
count:
  description: How many objects were compared.
  returned: with O(expected)
  type: int
missing:
  description: Kind and name of the objects that are gone.
  returned: with O(expected)
  type: list
  elements: str
  sample: ["MacvlanNetwork.mellanox.com rdma-net"]
different:
  description: Kind and name of the objects that have changed.
  returned: with O(expected)
  type: list
  elements: str
  sample: ["ConfigMap default/settings"]
moved:
  description: Pods that have other addresses than they had, or none. Pods that have ended do not count.
  returned: with O(expected)
  type: list
  elements: str
  sample: ["default/worker-0 net1: 10.5.0.130 became 10.5.0.131"]
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import Runner, run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments
from ansible_collections.ipu.fabric.plugins.module_utils._network.saved_objects import report_objects


def main(run: Runner = run_module) -> None:
    run(
        arguments(expected={"type": "dict"}, wait={"type": "int", "default": 0}),
        report_objects,
        libraries=("jmespath", "netaddr"),
    )


if __name__ == "__main__":
    main()
