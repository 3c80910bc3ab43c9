#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipu_stats_info
short_description: How many IPUs are used and free
version_added: 0.1.0
description:
  - Asks the IPU operator's V-IPU proxy, through the API server, since the proxy can't be reached from outside
    the cluster.
  - The proxy knows of partitions that IPUJobs have. What else uses the IPUs it may not count.
  - In check mode a cluster or an operator that is not there yet has no IPUs. That is no error.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  namespace:
    description: Namespace of the IPU operator.
    type: str
    default: ipu-operator
  service:
    description: Name of the proxy's Service. A Helm release of another name makes another one.
    type: str
    default: ipu-operator-vipu-proxy
  port:
    description: Port of that Service.
    type: int
    default: 80
  sizes:
    description: Sizes of partitions in IPUs. For each it is asked how many more would fit.
    type: list
    elements: int
    default: []
"""

EXAMPLES = r"""
- name: Is there room for a job with 16 IPUs
  ipu.fabric.ipu_stats_info:
    kubeconfig: artifacts/admin.conf
    sizes: [16]
  delegate_to: localhost
  run_once: true
  register: ipus
  failed_when: not ipus.sizes[0].fits
"""

RETURN = r"""
total:
  description: IPUs of the cluster, C(used), C(available), and C(ipus), both together.
  returned: success
  type: dict
  sample: {used: 4, available: 28, ipus: 32}
namespaces:
  description: The same for each namespace that the proxy names.
  returned: success
  type: dict
  sample: {default: {used: 4, available: 28, ipus: 32}}
sizes:
  description:
    - An answer for each of O(sizes), with C(size), C(partitions) (how many more of that size are possible),
      C(fits) (whether
      that is any), and the proxy's C(message). Its own word C(available) is left out, as it is true with 0
      partitions too.
  returned: success
  type: list
  elements: dict
  sample: [{size: 2, partitions: 14, fits: true, message: ""}, {size: 64, partitions: 0, fits: false, message: ""}]
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_info import run_stats
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments


def main() -> None:
    spec = arguments(
        namespace={"type": "str", "default": "ipu-operator"},
        service={"type": "str", "default": "ipu-operator-vipu-proxy"},
        port={"type": "int", "default": 80},
        sizes={"type": "list", "elements": "int", "default": []},
    )
    run_module(spec, run_stats)


if __name__ == "__main__":
    main()
