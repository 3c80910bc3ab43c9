#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipujob_info
short_description: IPUJobs with their state, pods and partitions, and free IPUs
version_added: 0.1.0
description:
  - Reads the IPUJobs of a cluster, or some of them, with the state that M(ipu.fabric.ipujob) returns.
  - If O(usage) or O(partition_sizes) is set, asks the IPU operator's V-IPU proxy how many IPUs are free. The request
    goes through the API server, since the proxy can't be reached from outside the cluster.
  - A cluster that does not know the kind has no jobs. In check mode, a cluster or an operator that does not exist yet
    has no IPUs. Neither is an error.
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
    description: Namespace of the jobs. If not set, the jobs of all namespaces.
    type: str
  label_selectors:
    description: Label selectors, as in kubectl. A job must match all of them.
    type: list
    elements: str
    default: []
  usage:
    description:
      - Whether to ask how many IPUs are used and free.
      - The proxy knows the partitions of IPUJobs. It may not count other uses of the IPUs.
    type: bool
    default: false
  partition_sizes:
    description: Sizes of partitions in IPUs. The module asks how many more of each are possible. Implies O(usage).
    type: list
    elements: int
    default: []
  vipu_proxy:
    description: The Service of the V-IPU proxy.
    type: dict
    default: {}
    suboptions:
      namespace:
        description: Namespace of the IPU operator.
        type: str
        default: ipu-operator
      service:
        description: Name of the Service. It depends on the name of the Helm release.
        type: str
        default: ipu-operator-vipu-proxy
      port:
        description: Port of the Service.
        type: int
        default: 80
"""

EXAMPLES = r"""
- name: Read the jobs of a team
  ipu.fabric.ipujob_info:
    kubeconfig: artifacts/admin.conf
    namespace: vision
    label_selectors: [team=vision]
  delegate_to: localhost
  run_once: true
  register: vision

- name: Show which of them wait for IPUs
  ansible.builtin.debug:
    msg: "{{ vision.jobs | selectattr('state', 'eq', 'Pending') | map(attribute='name') }}"

- name: Check that there is room for a job with 16 IPUs
  ipu.fabric.ipujob_info:
    kubeconfig: artifacts/admin.conf
    partition_sizes: [16]
  delegate_to: localhost
  run_once: true
  register: ipus
  failed_when: not ipus.usage.sizes[0].fits
"""

RETURN = r"""
jobs:
  description:
    - The jobs, by namespace and name, each with the keys of RV(ipu.fabric.ipujob#module:job).
  returned: success
  type: list
  elements: dict
  sample: [{name: mnist, namespace: default, state: Running, instances: 1, ipus: 2, partitions:
    [p-mnist-default-0]}]
usage:
  description: The answers of the V-IPU proxy. Empty unless O(usage) or O(partition_sizes) is set.
  returned: success
  type: dict
  contains:
    total:
      description: IPUs of the cluster, C(used), C(available), and C(ipus), both together.
      returned: with O(usage) or O(partition_sizes)
      type: dict
      sample: {used: 4, available: 28, ipus: 32}
    namespaces:
      description: C(used), C(available) and C(ipus) of each namespace that the proxy names.
      returned: with O(usage) or O(partition_sizes)
      type: dict
      sample: {default: {used: 4, available: 28, ipus: 32}}
    sizes:
      description:
        - An answer for each of O(partition_sizes), with C(size), C(partitions) (how many more of that size are
          possible), C(fits) (whether at least one is possible), and the proxy's C(message).
        - The proxy's own C(available) is left out, as it is true with 0 partitions too.
      returned: with O(usage) or O(partition_sizes)
      type: list
      elements: dict
      sample: [{size: 2, partitions: 14, fits: true, message: ""}, {size: 64, partitions: 0, fits: false, message: ""}]
"""

from ..module_utils._common.result import Runner, run_module
from ..module_utils._ipu.job_info import read_job_info
from ..module_utils._kube.client import arguments

PROXY = {
    "namespace": {"type": "str", "default": "ipu-operator"},
    "service": {"type": "str", "default": "ipu-operator-vipu-proxy"},
    "port": {"type": "int", "default": 80},
}


def main(run: Runner = run_module) -> None:
    spec = arguments(
        name={"type": "str"},
        namespace={"type": "str"},
        label_selectors={"type": "list", "elements": "str", "default": []},
        usage={"type": "bool", "default": False},
        partition_sizes={"type": "list", "elements": "int", "default": []},
        vipu_proxy={"type": "dict", "default": {}, "options": PROXY},
    )
    run(spec, read_job_info, libraries=("jmespath",))


if __name__ == "__main__":
    main()
