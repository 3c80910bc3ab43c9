#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubelet_config_map
short_description: Change the kubelet's configuration that kubeadm gives to nodes
version_added: 0.1.0
description:
  - Sets these keys in the ConfigMap C(kube-system/kubelet-config), and leaves all others as they are. kubeadm writes it
    to hosts that join, and to all nodes in an upgrade.
  - Nodes that are there are changed by M(ipu.fabric.kubelet_config).
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - PyYAML
  - jmespath
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  settings:
    description: Fields of a KubeletConfiguration. Mappings are merged, everything else is replaced.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Limit the processes of each pod on nodes that join
  ipu.fabric.kubelet_config_map:
    kubeconfig: artifacts/admin.conf
    settings:
      podPidsLimit: 16384
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
found:
  description: Whether there is such a ConfigMap. Clusters that kubeadm has not made have none.
  type: bool
  returned: success
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import Runner, run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments
from ansible_collections.ipu.fabric.plugins.module_utils._kube.kubelet_config_map import apply_config_map


def main(run: Runner = run_module) -> None:
    run(
        arguments(settings={"type": "dict", "required": True}),
        apply_config_map,
        libraries=("yaml", "jmespath"),
    )


if __name__ == "__main__":
    main()
