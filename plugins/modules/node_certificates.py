#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_certificates
short_description: Renew the certificates of a node that kubeadm has made
version_added: 0.1.0
description:
  - Renews what is about to end or has ended, by files and programs of the host alone, so that a cluster can be healed
    whose API is not believed any more.
  - On a control plane C(kubeadm certs renew all) is run if one of its certificates is to be renewed. Then the kubelet
    and the static pods are restarted, one after another, and the API server of this host is waited for.
  - The kubelet's client certificate is signed again where the kubelet has not renewed it in time. The one that it has
    made itself for its server is replaced.
  - CAs are not renewed. A certificate of the kubelet's server that the cluster has signed takes an approval, which
    M(ipu.fabric.cluster_kubelets) makes.
  - A renewal that was interrupted is completed by the next call.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  days:
    description:
      - Days before its end from which on a certificate is renewed.
      - Where certificates are valid for a short time only, the last third of it counts. The kubelet's own are renewed
        in the last tenth, since it renews them itself before.
    type: int
    default: 30
  force:
    description: Whether kubeadm renews its certificates, however long they are valid.
    type: bool
    default: false
  node_name:
    description: Name of the node. Empty is the host name in lower case.
    type: str
    default: ""
  client:
    description:
      - What M(ipu.fabric.kubeadm) returned for this node with its command V(client) on a control plane. Secret.
      - Needed where the kubelet's client certificate is to be renewed on a host without the key of the CA.
    type: str
    default: ""
  wait:
    description:
      - Whether to wait until the API server of this host is ready and the kubelet can read its node.
      - Where a majority of the control planes has expired, none of them gets ready before the others. The module is
        then called without waiting on all of them, and a second time with it, which completes the renewal.
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

- name: See what would be renewed on a worker
  ipu.fabric.node_certificates:
  check_mode: true
  register: result
"""

RETURN = r"""
node:
  description: Name of the node. Without O(node_name) it is only what the host says.
  type: str
  returned: success
signed:
  description: Whether the cluster has signed the kubelet's serving certificate.
  type: bool
  returned: success
requested:
  description: Whether that certificate is about to end or has ended, so that the cluster has to sign a new one.
  type: bool
  returned: success
needed:
  description: Whether there was something to do, be it only to complete what an interrupted run had begun.
  type: bool
  returned: success
interrupted:
  description: Whether a renewal had begun on this host and was not complete.
  type: bool
  returned: success
renewed:
  description: Names of the certificates that were renewed, as M(ipu.fabric.host_info) has them.
  type: list
  elements: str
  returned: success
restarted:
  description: Static pods that were restarted.
  type: list
  elements: str
  returned: success
expired:
  description: Names of those of kubeadm that had ended before.
  type: list
  elements: str
  returned: success
table:
  description: A line for each certificate. It says when it ended or would have ended, and what was done about it.
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
