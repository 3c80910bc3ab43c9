#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_certificates
short_description: Renew the certificates of a node that kubeadm has set up
version_added: 0.1.0
description:
  - Renews certificates that are about to expire or have expired, using only files and programs of the host, so that it
    can repair a cluster whose API is no longer trusted.
  - On a control plane, runs C(kubeadm certs renew all) if one of its certificates is due. Then restarts the kubelet and
    the static pods, one after another, and waits for the API server of this host.
  - Signs the kubelet's client certificate again if the kubelet has not renewed it in time. Replaces a serving
    certificate that the kubelet has made itself.
  - Does not renew CAs. A kubelet's serving certificate that the cluster signs needs an approval, which
    M(ipu.fabric.cluster_kubelets) gives.
  - The next call completes an interrupted renewal.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  days:
    description:
      - How many days before it expires a certificate is due for renewal.
      - A short-lived certificate is due in the last third of its lifetime. The kubelet's own are due in the last tenth
        at the earliest, since the kubelet renews them itself before.
    type: int
    default: 30
  force:
    description: Whether kubeadm renews its certificates regardless of how long they are valid.
    type: bool
    default: false
  node_name:
    description: Name of the node. Empty for the host name in lower case.
    type: str
    default: ""
  client:
    description:
      - What M(ipu.fabric.kubeadm) with the command V(client) returned on a control plane for this node. Secret.
      - Needed to renew the kubelet's client certificate on a host without the key of the CA.
    type: str
    default: ""
  wait:
    description:
      - Whether to wait until the API server of this host is ready and the kubelet can read its node.
      - If the certificates of a majority of the control planes have expired, none becomes ready before the others. Then
        call the module on all of them without waiting, and a second time with waiting, which completes the renewal.
    type: bool
    default: true
  ready_timeout:
    description: Seconds to wait for the static pods, the API server and the kubelet.
    type: int
    default: 600
  lock_timeout:
    description: Seconds to wait for another kubeadm.
    type: int
    default: 600
  timeout:
    description: Seconds that one command of kubeadm may take.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Renew the certificates of a control plane
  ipu.fabric.node_certificates:

- name: Show what would be renewed on a worker
  ipu.fabric.node_certificates:
  check_mode: true
  register: result
"""

RETURN = r"""
node:
  description: Name of the node. Without O(node_name), it is only what the host reports.
  type: str
  returned: success
signed:
  description: Whether the cluster has signed the kubelet's serving certificate.
  type: bool
  returned: success
requested:
  description: Whether that certificate is about to expire or has expired, so that the cluster must sign a new one.
  type: bool
  returned: success
needed:
  description: Whether there was something to do, even if only to complete an interrupted run.
  type: bool
  returned: success
interrupted:
  description: Whether a renewal on this host had begun and was incomplete.
  type: bool
  returned: success
renewed:
  description: Names of the certificates that were renewed, as M(ipu.fabric.host_info) returns them.
  type: list
  elements: str
  returned: success
restarted:
  description: Static pods that were restarted.
  type: list
  elements: str
  returned: success
expired:
  description: Names of kubeadm's certificates that had expired before.
  type: list
  elements: str
  returned: success
table:
  description: A line for each certificate, with when it expired or would have expired, and what was done about it.
  type: list
  elements: str
  returned: success
"""

from ..module_utils._common.result import run_module
from ..module_utils._kubeadm.renewal import Renewal


def main() -> None:
    run_module(
        {
            "days": {"type": "int", "default": 30},
            "force": {"type": "bool", "default": False},
            "node_name": {"type": "str", "default": ""},
            "client": {"type": "str", "default": "", "no_log": True},
            "wait": {"type": "bool", "default": True},
            "ready_timeout": {"type": "int", "default": 600},
            "lock_timeout": {"type": "int", "default": 600},
            "timeout": {"type": "int", "default": 300},
        },
        lambda module: Renewal(module).apply(),
    )


if __name__ == "__main__":
    main()
