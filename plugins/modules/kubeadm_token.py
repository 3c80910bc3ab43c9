#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubeadm_token
short_description: Make a token that hosts join a cluster with
version_added: 0.1.0
description:
  - Makes a short-lived bootstrap token on a control plane, and returns it with the endpoint and the pin of the
    certificate authority.
  - The result is secret. Use C(no_log) on the task.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
attributes:
  diff_mode:
    support: none
  idempotent:
    support: none
    details: Every call makes a token. Call it only when a host is to join.
options:
  ttl:
    description: How long the token is good for, as Go writes durations.
    type: str
    default: 30m0s
  certificates:
    description: Upload the control plane's certificates too, for control planes that join. They stay two hours, sealed.
    type: bool
    default: false
  version:
    description: Kubernetes version of the cluster.
    type: str
    required: true
  lock_timeout:
    description: Seconds to wait for another kubeadm.
    type: int
    default: 600
"""

EXAMPLES = r"""
- name: Make a token
  ipu.fabric.kubeadm_token:
    version: 1.35.4
  register: result
  no_log: true
"""

RETURN = r"""
discovery:
  description: What O(ipu.fabric.kubeadm#module:discovery) takes. All empty in check mode.
  type: dict
  returned: success
  contains:
    endpoint:
      description: Address and port of the API server.
      type: str
    token:
      description: The token.
      type: str
    ca_hashes:
      description: Pins of the certificate authority.
      type: list
      elements: str
    certificate_key:
      description: Key of the uploaded certificates; empty without O(certificates).
      type: str
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.bootstrap import make_discovery


def main() -> None:
    run_module(
        {
            "ttl": {"type": "str", "default": "30m0s"},
            "certificates": {"type": "bool", "default": False},
            "version": {"type": "str", "required": True},
            "lock_timeout": {"type": "int", "default": 600},
        },
        make_discovery,
    )


if __name__ == "__main__":
    main()
