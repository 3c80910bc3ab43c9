#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: What a cluster is and has that matters to its fabric
version_added: 0.1.0
description:
  - Reads version, nodes, and installations of Node Feature Discovery, multus and the Prometheus operator.
  - In check mode a cluster that is not there yet is no error.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
requirements:
  - kubernetes >= 24.2.0
  - PyYAML >= 3.11
"""

EXAMPLES = r"""
- name: Look at the cluster
  ipu.fabric.cluster_info:
    kubeconfig: artifacts/admin.conf
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
present:
  description: Whether a cluster answered. It is false in check mode only.
  returned: success
  type: bool
  sample: true
version:
  description: Version of the API server. Empty when there is no cluster.
  returned: success
  type: str
  sample: 1.35.4
nodes:
  description: The nodes, each with C(name), C(ready), C(schedulable), and the kubelet's C(version).
  returned: success
  type: list
  elements: dict
  sample: [{name: w1, ready: true, schedulable: true, version: 1.35.4}]
nfd:
  description: Namespace and name of each DaemonSet of Node Feature Discovery.
  returned: success
  type: list
  elements: str
  sample: []
multus:
  description: Namespace and name of each DaemonSet of multus.
  returned: success
  type: list
  elements: str
  sample: [nvidia-network-operator/kube-multus-ds]
prometheus_operator:
  description: Whether the cluster knows ServiceMonitors.
  returned: success
  type: bool
  sample: false
"""

from ansible_collections.ipu.fabric.plugins.module_utils._cluster import run
from ansible_collections.ipu.fabric.plugins.module_utils._kube import arguments
from ansible_collections.ipu.fabric.plugins.module_utils._result import run_module


def main() -> None:
    run_module(arguments(), run)


if __name__ == "__main__":
    main()
