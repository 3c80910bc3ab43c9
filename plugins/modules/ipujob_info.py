#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipujob_info
short_description: IPUJobs with their state, pods and partitions
version_added: 0.1.0
description:
  - Reads the IPUJobs of a cluster, or some of them, and judges their state as M(ipu.fabric.ipujob) does.
  - A cluster that does not know the kind has no jobs. That is no error.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  name:
    description: Name of one job.
    type: str
  namespace:
    description: Namespace of the jobs. Without it the jobs of all namespaces.
    type: str
  label_selectors:
    description: Labels that the jobs have, as in kubectl. All of them have to match.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Look at the jobs of a team
  ipu.fabric.ipujob_info:
    kubeconfig: artifacts/admin.conf
    namespace: vision
    label_selectors: [team=vision]
  delegate_to: localhost
  run_once: true
  register: vision

- name: Say which of them wait for IPUs
  ansible.builtin.debug:
    msg: "{{ vision.jobs | selectattr('state', 'eq', 'Pending') | map(attribute='name') }}"
"""

RETURN = r"""
jobs:
  description:
    - The jobs, by namespace and name.
    - C(name), C(namespace), C(labels), C(uid), C(created), C(started), C(ended), C(deleting). Times as in the API.
    - C(state) is V(Pending), V(Running), V(Restarting), V(Completed), V(Failed) or V(Deleting), judged from
      the status and
      the pods; C(status) is the operator's own word for it, empty until it has taken the job up.
    - C(instances) and C(instances_wanted), C(workers_active), C(workers_succeeded), C(workers_failed),
      C(restarts), and
      C(message), the operator's last one. C(awaited) lists what the job waits for.
    - C(ipus) of all instances, and the names of their C(partitions). C(held) says that the operator's
      finalizer is set.
    - C(pods), the launcher first, each with C(name), C(role), C(phase), C(node), C(ip), C(problems), and
      C(exits), the
      containers that have ended with C(exit_code) and C(reason).
    - C(spec) as the API has it.
  returned: success
  type: list
  elements: dict
  sample: [{name: mnist, namespace: default, state: Running, instances: 1, ipus: 2, partitions:
    [p-mnist-default-0]}]
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_info import run_info
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments


def main() -> None:
    spec = arguments(
        name={"type": "str"},
        namespace={"type": "str"},
        label_selectors={"type": "list", "elements": "str", "default": []},
    )
    run_module(spec, run_info)


if __name__ == "__main__":
    main()
