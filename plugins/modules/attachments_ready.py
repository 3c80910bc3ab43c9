#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: attachments_ready
short_description: Wait until network attachments say what was planned
version_added: 0.1.0
description:
  - Waits until every NetworkAttachmentDefinition (NAD) is there and its macvlan plugin has the planned master, mode,
    MTU and IPAM. Of a chain of plugins, the macvlan is compared.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  networks:
    description: What the NADs have to say.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the NAD.
        type: str
        required: true
      namespace:
        description: Namespace of the NAD.
        type: str
        default: default
      master:
        description: The network interface of the hosts that pods join.
        type: str
        required: true
      mode:
        description: How pods on the same host reach each other.
        type: str
        choices: [bridge, private, vepa, passthru]
        default: bridge
      mtu:
        description: MTU of the pods' interface in bytes. V(0) is the master's.
        type: int
        default: 0
      ipam:
        description: Configuration of the IPAM plugin.
        type: dict
        required: true
  what:
    description: Who makes the NADs, as the error message calls it.
    type: str
    default: A controller
  timeout:
    description: Seconds to wait.
    type: int
    default: 60
seealso:
  - module: ipu.fabric.macvlan_network
"""

EXAMPLES = r"""
- name: Wait for Spiderpool
  ipu.fabric.attachments_ready:
    kubeconfig: artifacts/admin.conf
    what: Spiderpool
    networks:
      - name: rail-0
        master: ens1f0
        mtu: 9000
        ipam:
          type: spiderpool
          default_ipv4_ippool: [rail-0-v4]
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
pending:
  description: What is not as planned yet. Only check mode ends with anything in it, since it does not wait.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments
from ansible_collections.ipu.fabric.plugins.module_utils._network.attachments import run

NETWORK = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "default": "default"},
    "master": {"type": "str", "required": True},
    "mode": {"type": "str", "choices": ["bridge", "private", "vepa", "passthru"], "default": "bridge"},
    "mtu": {"type": "int", "default": 0},
    "ipam": {"type": "dict", "required": True},
}


def main() -> None:
    spec = arguments(
        networks={"type": "list", "elements": "dict", "required": True, "options": NETWORK},
        what={"type": "str", "default": "A controller"},
        timeout={"type": "int", "default": 60},
    )
    run_module(spec, run)


if __name__ == "__main__":
    main()
