#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipu_operator_info
short_description: The IPU operator of a cluster, its V-IPU controllers, certificate and jobs
version_added: 0.1.0
description:
  - Reads what an installation, upgrade or removal of the IPU operator depends on.
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - cryptography
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  namespace:
    description: Namespace of the operator.
    type: str
    default: ipu-operator
  labels:
    description: Labels as C(key=value), to look for on nodes in addition to those of the controllers that the operator
      knows.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Read the state of the IPU operator
  ipu.fabric.ipu_operator_info:
    kubeconfig: artifacts/admin.conf
  register: ipu_operator
  delegate_to: localhost
  run_once: true

- name: Show when the webhook's certificate expires
  ansible.builtin.debug:
    var: ipu_operator.certificate_end
"""

RETURN = r"""
operators:
  description:
    - The IPU operators, each with C(namespace), C(name), C(version), C(release), its name in helm, and C(available),
      whether its controller is available.
  returned: success
  type: list
  elements: dict
  sample:
    - namespace: ipu-operator
      name: ipu-operator-controller-manager
      version: 1.2.0
      release: ipu-operator
      available: true
own:
  description: Those of RV(operators), as namespace and name, whose helm release this collection installed.
  returned: success
  type: list
  elements: str
  sample: [ipu-operator/ipu-operator-controller-manager]
vipu_controllers:
  description: The V-IPU controllers that the operator knows, each with C(host), C(port) and C(label).
  returned: success
  type: list
  elements: dict
  sample: [{host: 10.5.212.116, port: 8090, label: ipunode=true}]
labelled:
  description: The nodes with a label of a controller, each with C(name) and C(labels), those of its labels.
  returned: success
  type: list
  elements: dict
  sample: [{name: ipu1, labels: {ipunode: "true"}}]
certificate_end:
  description: When the webhook's certificate expires. Empty when there is none.
  returned: success
  type: str
  sample: "2027-11-21T10:00:00+00:00"
certificate_days:
  description: Whole days until then.
  returned: success
  type: int
  sample: 364
tracker:
  description: Whether the ConfigMap exists in which the operator keeps its partitions.
  returned: success
  type: bool
  sample: true
jobs:
  description: Namespace and name of each IPUJob.
  returned: success
  type: list
  elements: str
  sample: [training/resnet]
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import Runner, run_module
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.operator import read_operator_info
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments


def main(run: Runner = run_module) -> None:
    spec = arguments(
        namespace={"type": "str", "default": "ipu-operator"},
        labels={"type": "list", "elements": "str", "default": []},
    )
    run(spec, read_operator_info, libraries=("cryptography", "jmespath"))


if __name__ == "__main__":
    main()
