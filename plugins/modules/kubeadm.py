#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubeadm
short_description: Make a host the first control plane, or have it join a cluster
version_added: 0.1.0
description:
  - Runs C(kubeadm init) or C(kubeadm join), once. A host that is a member is never touched.
  - A mark is left on the host while kubeadm works. Where one is found, an earlier run was interrupted. A first control
    plane whose API answers is then finished; a host that never became a member is reset and made again.
  - A host with parts of a node but without that mark may be somebody's, and is an error.
  - A kubeadm that a killed run left at work is waited for.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  state:
    description:
      - V(init) makes the first control plane, V(join) has the host join.
      - V(images) only pulls O(images) with containerd's C(ctr), so that what comes later finds them there.
    type: str
    choices: [init, join, images]
    required: true
  node_name:
    description: Name of the node. Empty is the host name in lower case.
    type: str
    default: ""
  control_plane:
    description: Whether the host is, or becomes, a control plane.
    type: bool
    default: false
  documents:
    description:
      - Configuration documents of C(kubeadm.k8s.io/v1beta4), the kubelet and kube-proxy.
      - They are validated before anything changes.
    type: list
    elements: dict
    default: []
  discovery:
    description: How a host finds and trusts the cluster; what M(ipu.fabric.kubeadm_token) returns.
    type: dict
    suboptions:
      endpoint:
        description: Address and port of the API server.
        type: str
        required: true
      token:
        description: Bootstrap token.
        type: str
        required: true
      ca_hashes:
        description: Pins of the cluster's certificate authority.
        type: list
        elements: str
        required: true
      certificate_key:
        description: Key of the uploaded certificates, for control planes.
        type: str
        default: ""
  images:
    description: Images to pull for O(state=images).
    type: list
    elements: str
    default: []
  lock_timeout:
    description: Seconds to wait for another kubeadm.
    type: int
    default: 600
"""

EXAMPLES = r"""
- name: Initialise the first control plane
  ipu.fabric.kubeadm:
    state: init
    control_plane: true
    documents:
      - apiVersion: kubeadm.k8s.io/v1beta4
        kind: ClusterConfiguration
        kubernetesVersion: v1.35.4

- name: Join a worker
  ipu.fabric.kubeadm:
    state: join
    documents:
      - apiVersion: kubeadm.k8s.io/v1beta4
        kind: JoinConfiguration
    discovery: "{{ result.discovery }}"
"""

RETURN = r"""
action:
  description: V(nothing), V(start), V(settle), V(continue) or V(restart).
  type: str
  returned: for O(state=init) and O(state=join)
  sample: nothing
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.bootstrap import run

DISCOVERY_OPTIONS = {
    "endpoint": {"type": "str", "required": True},
    "token": {"type": "str", "required": True, "no_log": True},
    "ca_hashes": {"type": "list", "elements": "str", "required": True},
    "certificate_key": {"type": "str", "default": "", "no_log": True},
}


def main() -> None:
    run_module(
        {
            "state": {"type": "str", "choices": ["init", "join", "images"], "required": True},
            "node_name": {"type": "str", "default": ""},
            "control_plane": {"type": "bool", "default": False},
            "documents": {"type": "list", "elements": "dict", "default": []},
            "discovery": {"type": "dict", "options": DISCOVERY_OPTIONS},
            "images": {"type": "list", "elements": "str", "default": []},
            "lock_timeout": {"type": "int", "default": 600},
        },
        run,
        required_if=[("state", "join", ["discovery"])],
    )


if __name__ == "__main__":
    main()
