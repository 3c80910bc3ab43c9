#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nodes_ready
short_description: Wait until nodes are Ready
version_added: 0.1.0
description:
  - Waits for all the nodes in one call. When the time is up, the error names each one that is not Ready, and why.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  names:
    description: Names of nodes. Empty is every node that the cluster has.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds to wait. Check mode does not wait.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Wait for the cluster
  ipu.fabric.nodes_ready:
    kubeconfig: artifacts/admin.conf
    names: [cp1, w1]
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
waited:
  description: Seconds that it took.
  type: float
  returned: success
  sample: 12.5
not_ready:
  description: In check mode, reasons by name of those that are not Ready now.
  type: dict
  returned: success
  sample: {}
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments
from ansible_collections.ipu.fabric.plugins.module_utils._kube.nodes_ready import run


def main() -> None:
    run_module(
        arguments(names={"type": "list", "elements": "str", "default": []}, timeout={"type": "int", "default": 300}),
        run,
    )


if __name__ == "__main__":
    main()
