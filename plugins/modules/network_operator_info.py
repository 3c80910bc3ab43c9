#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: network_operator_info
short_description: The network operator of a cluster, and what else is there that matters to it
version_added: 0.1.0
description:
  - Reads version, nodes, API groups, and installations of Node Feature Discovery, multus, whereabouts and the network
    operator.
  - In check mode a cluster that is not there yet is no error.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
"""

EXAMPLES = r"""
- name: Read what the cluster has
  ipu.fabric.network_operator_info:
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
  sample: 1.36.3
ca:
  description:
    - Digest of the cluster's CA, as M(ipu.fabric.host_info) has it in C(kubelet).
    - Empty where the API does not tell.
  returned: success
  type: str
  sample: 0123456789abcdef
nodes:
  description:
    - The nodes, each with C(name), C(machine_id), C(ready), C(schedulable), C(control_plane), its C(addresses), the
      C(version) of the kubelet, C(components), the releases of the static pods of a control plane, and C(own_labels),
      the labels that this collection has set.
  returned: success
  type: list
  elements: dict
  sample:
    - name: w1
      machine_id: 9f86d081884c7d659a2feaa0c55ad015
      ready: true
      schedulable: true
      control_plane: false
      addresses: [10.88.0.12]
      version: 1.36.3
      components: {}
      own_labels: []
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
api_groups:
  description: Names of the API groups that are served. They say what else is installed.
  returned: success
  type: list
  elements: str
  sample: [apps, monitoring.coreos.com]
whereabouts:
  description: Namespace and name of each DaemonSet of whereabouts.
  returned: success
  type: list
  elements: str
  sample: []
whereabouts_networks:
  description:
    - Namespace and name of each NetworkAttachmentDefinition that takes addresses from whereabouts and was not made for
      a network of this collection.
  returned: success
  type: list
  elements: str
  sample: []
nv_ipam:
  description: Namespace and name of each DaemonSet and Deployment of nv-ipam.
  returned: success
  type: list
  elements: str
  sample: [nvidia-network-operator/nv-ipam-node]
network_operators:
  description: The network operators, each with C(namespace), C(name), C(version), and C(release), its name in helm.
  returned: success
  type: list
  elements: dict
  sample: [{namespace: nvidia-network-operator, name: network-operator, version: 26.7.1, release: network-operator}]
own:
  description:
    - Those of RV(network_operators) and RV(whereabouts), as namespace and name, that this collection installed, by
      their helm release or by its NicClusterPolicy.
  returned: success
  type: list
  elements: str
  sample: [nvidia-network-operator/network-operator]
policy_ipam:
  description: The IPAM that the NicClusterPolicy is for, V(nv-ipam) or V(whereabouts). Empty without a policy.
  returned: success
  type: str
  sample: nv-ipam
policy_in_chart:
  description: Whether the NicClusterPolicy belongs to the chart, and an upgrade without it would delete it.
  returned: success
  type: bool
  sample: false
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import Runner, run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments
from ansible_collections.ipu.fabric.plugins.module_utils._network.cluster_info import read_cluster


def main(run: Runner = run_module) -> None:
    run(arguments(), read_cluster, libraries=("jmespath",))


if __name__ == "__main__":
    main()
