#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_operator_info
short_description: The GPU operators of a cluster, and what uses them
version_added: 0.1.0
description:
  - Reads which GPU operators there are and who installed them, which pods use GPUs, and what the operator has made.
  - In check mode a cluster that is not there yet is no error.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
"""

EXAMPLES = r"""
- name: Read which pods use GPUs
  ipu.fabric.gpu_operator_info:
    kubeconfig: artifacts/admin.conf
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
operators:
  description:
    - The GPU operators, each with C(namespace), C(name), C(version), C(release), its name in helm, and C(ours), whether
      this collection installed it.
  returned: success
  type: list
  elements: dict
  sample: [{namespace: gpu-operator, name: gpu-operator, version: 26.7.0, release: gpu-operator, ours: true}]
pods:
  description:
    - Namespace and name of each running pod that asks for a resource of C(nvidia.com), outside the operators'
      namespaces.
  returned: success
  type: list
  elements: str
  sample: [training/resnet-0]
drivers:
  description: Names of the NVIDIADriver objects.
  returned: success
  type: list
  elements: str
  sample: []
labelled:
  description:
    - Nodes with labels of the operator, each with C(name), and C(labels) as M(ipu.fabric.node_labels) takes them to
      remove them.
  returned: success
  type: list
  elements: dict
  sample: [{name: w1, labels: {nvidia.com/gpu.present: null}}]
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import Runner, run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments
from ansible_collections.ipu.fabric.plugins.module_utils._network.gpu_operator import read_gpu_operator


def main(run: Runner = run_module) -> None:
    run(arguments(), read_gpu_operator, libraries=("jmespath",))


if __name__ == "__main__":
    main()
