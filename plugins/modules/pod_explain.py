#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pod_explain
short_description: Show which RDMA devices and networks a pod has, and what it lacks to use RDMA
version_added: 0.1.0
description:
  - Works for any pod on any cluster. Needs neither a plan nor anything that this collection installs.
  - Reads the pod, its networks, its node and its events, and runs a script in one of its containers. The script only
    reads, and needs only C(sh). RV(unread) lists what can't be read.
  - The MTU of the node's NIC is read in the same way in a pod on that node's host network, such as that of multus. If
    none shows it, that of O(plan) counts.
  - Changes nothing.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  pod:
    description: The pod, as C(NAMESPACE/NAME). The default namespace is C(default).
    type: str
    required: true
  container:
    description: The container to inspect. By default the first one that requests an RDMA resource, or the first one.
    type: str
    default: ""
  plan:
    description: The plan of the cluster, if there is one, as in C(plan.json).
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Find out why a pod has no RDMA
  ipu.fabric.pod_explain:
    kubeconfig: artifacts/admin.conf
    pod: training/resnet-worker-0
  register: explained
  delegate_to: localhost
  run_once: true

- name: Show it
  ansible.builtin.debug:
    msg: "{{ explained.text }}"
  run_once: true
"""

RETURN = r"""
has:
  description: Networks, resources, devices, GIDs, limits and routes that the pod has, a line for each.
  returned: success
  type: list
  elements: str
  sample: ["network default/rdma-net: net1 10.5.0.131, MTU 9000, macvlan on ens1f0"]
lacks:
  description: What the pod lacks. Empty if it has all that RDMA needs.
  returned: success
  type: list
  elements: dict
  sample:
    - what: no RDMA resource
      why: no container asks for one; node w1 has rdma/rdma_shared_device_a
      next: "Add rdma/rdma_shared_device_a: 1 to resources.limits of the container, and the capability IPC_LOCK."
  contains:
    what:
      description: What is missing, or not as RDMA requires it.
      type: str
    why:
      description: What was seen instead.
      type: str
    next:
      description: What to do.
      type: str
unread:
  description: What could not be read, and why. It may hide something that the pod lacks.
  returned: success
  type: list
  elements: str
  sample: ["networks: this user may not list them"]
text:
  description: All results for a person, in lines of at most 78 columns.
  returned: success
  type: list
  elements: str
  sample: ["Pod default/a has all that RDMA needs."]
"""

from ..module_utils._common.result import Runner, run_module
from ..module_utils._kube.client import arguments
from ..module_utils._verify.pod_facts import explain_pod


def main(run: Runner = run_module) -> None:
    spec = arguments(
        pod={"type": "str", "required": True},
        container={"type": "str", "default": ""},
        plan={"type": "dict", "default": {}},
    )
    run(spec, explain_pod, libraries=("jmespath",))


if __name__ == "__main__":
    main()
