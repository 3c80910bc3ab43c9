#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubelet_config
short_description: Change the kubelet's configuration on a node, and roll it back if the kubelet does not come up
version_added: 0.1.0
description:
  - Writes C(/var/lib/kubelet/config.yaml) if it differs, restarts the kubelet, and waits until the kubelet has reported
    to its cluster. If it does not, the module restores the earlier file and fails.
  - If a run is killed in between, the next one completes it.
  - Makes that file, the kubelet's kubeconfig and its unit accessible to root only.
  - Does nothing on a host that is not a node.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  content:
    description: The whole text of the file, as the role C(kubernetes) decides it. Empty leaves the file as it is.
    type: str
    default: ""
  node_name:
    description: Name of the node. Empty for the host name in lower case.
    type: str
    default: ""
  ready_timeout:
    description: Seconds to wait for the kubelet.
    type: int
    default: 300
  lock_timeout:
    description: Seconds to wait for a running kubeadm.
    type: int
    default: 600
"""

EXAMPLES = r"""
- name: Read the configuration
  ipu.fabric.kubelet_config:
  check_mode: true
  register: kubelet

- name: Limit the processes of each pod
  ipu.fabric.kubelet_config:
    content: "{{ kubelet.content | regex_replace('(?m)^podPidsLimit: .*$', 'podPidsLimit: 16384') }}"
  throttle: 1
"""

RETURN = r"""
needed:
  description: Whether there was something to do.
  type: bool
  returned: success
serves:
  description: Whether the kubelet has a valid serving certificate from the cluster.
  type: bool
  returned: success
content:
  description: The text that the file has now, or would have in check mode.
  type: str
  returned: success
"""

from ..module_utils._common.result import run_module
from ..module_utils._kubeadm.kubelet_config import KubeletConfig


def main() -> None:
    run_module(
        {
            "content": {"type": "str", "default": ""},
            "node_name": {"type": "str", "default": ""},
            "ready_timeout": {"type": "int", "default": 300},
            "lock_timeout": {"type": "int", "default": 600},
        },
        lambda module: KubeletConfig(module).apply(),
    )


if __name__ == "__main__":
    main()
