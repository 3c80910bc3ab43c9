#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: embedded_containerd
short_description: Set up the containerd embedded in k3s and RKE2
version_added: 0.1.0
description:
  - Gives the containerd of k3s or RKE2 a registry mirror (C(registries.yaml)), and tables of its configuration.
  - The tables are written to a drop-in if the distribution imports drop-ins, otherwise to a template that extends the
    distribution's own.
  - Files that somebody else wrote are left as they are; if they lack a requested setting, the module fails and says so.
  - k3s and RKE2 read these files when they start. If they do not start with the new files, the module restores the
    former ones and fails.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  registry_mirror:
    description:
      - URL of the mirror that is asked first for images of every registry. Empty removes what this module wrote.
    type: str
    default: ""
  config:
    description:
      - Tables for containerd's configuration, named as the containerd version in use names them. They may contain
        passwords, so they appear in neither logs nor results.
      - Empty removes what this module wrote.
    type: dict
    default: {}
  restart:
    description:
      - Restart the service if it runs with old files. Its containers keep running meanwhile, but not the API server and
        etcd of a server. The module returns when the host's API server and the pods that were ready before are ready
        again.
      - Otherwise RV(stale) only names the service.
    type: bool
    default: false
  node_name:
    description: Name of the host's node. Empty for the host name in lower case.
    type: str
    default: ""
  timeout:
    description: Seconds to wait for the service, for its API server, and for pods.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Pull images from a mirror
  ipu.fabric.embedded_containerd:
    registry_mirror: https://mirror.example.com:5000
"""

RETURN = r"""
distribution:
  description: V(k3s) or V(rke2).
  type: str
  returned: success
server:
  description: Whether the service includes the API server.
  type: bool
  returned: success
stale:
  description: The service, if it ran with old files when the module started.
  type: list
  elements: str
  returned: success
  sample: [k3s-agent]
node:
  description: Name of the host's node, O(node_name) or what the kubelet calls it by default.
  type: str
  returned: success
  sample: w1
"""

from ..module_utils._common.result import run_module
from ..module_utils._host.embedded_containerd import set_embedded_containerd


def main() -> None:
    run_module(
        {
            "registry_mirror": {"type": "str", "default": ""},
            "config": {"type": "dict", "default": {}},
            "restart": {"type": "bool", "default": False},
            "node_name": {"type": "str", "default": ""},
            "timeout": {"type": "int", "default": 300},
        },
        set_embedded_containerd,
        hidden=("config",),
    )


if __name__ == "__main__":
    main()
