#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_node_info
short_description: Return the state of a host in its Kubernetes cluster
version_added: 0.1.0
description:
  - Returns in one call everything on which the role C(kubernetes) bases its decisions.
  - Queries the API about this host only, with the kubelet's own credentials, or with the administrator's on a control
    plane whose kubelet gets no answer.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  node_name:
    description: Name of the node. Empty for the host name in lower case, like kubeadm.
    type: str
    default: ""
  control_plane:
    description: Whether the host should be a control plane.
    type: bool
    default: false
  address:
    description: Address of the node. Empty for the source address of the default route.
    type: str
    default: ""
  version:
    description: Kubernetes version whose images are listed.
    type: str
    required: true
  image_repository:
    description: Registry and path of those images. Empty for kubeadm's default.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Read the state of the node
  ipu.fabric.kubernetes_node_info:
    version: 1.35.4
  register: result
"""

RETURN = r"""
node:
  description: The state of the node.
  type: dict
  returned: success
  contains:
    name:
      description: Name of the node.
      type: str
    address:
      description: Address of the node.
      type: str
    interface:
      description: The network device that has the address. Empty if none has.
      type: str
    distribution:
      description: V(debian), V(ubuntu) or what the system calls itself.
      type: str
    release:
      description: Code name of its release, such as V(bookworm).
      type: str
    architecture:
      description: Processor architecture as the kernel calls it, such as V(x86_64).
      type: str
    kubelet:
      description: Version of the kubelet; empty when it is not installed.
      type: str
    containerd:
      description: Version of containerd; empty when it is not installed.
      type: str
    containerd_files:
      description: containerd's main file, and drop-ins that were not made by the role kubernetes.
      type: list
      elements: str
    cri_dockerd:
      description:
        - Whether cri-dockerd was installed by others (C(others)), and if so its C(program), its C(release) and what it
          returned instead of an answer (C(silence)).
      type: dict
    keepalived:
      description: Whose configuration keepalived has, V(ours) or V(others); empty if there is none.
      type: str
    images:
      description: Images that kubeadm lists for the version; empty when kubeadm is not installed.
      type: list
      elements: str
    unsettled:
      description:
        - Whether a change of this control plane was interrupted. M(ipu.fabric.control_plane) completes it or rolls it
          back.
      type: bool
    kubeconfig_sha256:
      description: Digest of the administrator's kubeconfig; empty when there is none.
      type: str
    membership:
      description:
        - V(none) for a host that never was in a cluster, V(member) for one that is.
        - V(unfinished) if an init or join of this collection is under way or was interrupted.
        - V(broken) if there are traces of a node that the cluster does not confirm.
        - V(expired) if no API server answers because certificates have expired. Nothing is lost then.
      type: str
    seen:
      description: Why the membership is broken. Names certificates of this host that have expired.
      type: str
    next_step:
      description: What to do about it.
      type: str
    answered:
      description: Whether an API server said if the cluster has this node.
      type: bool
    registered:
      description: Whether the cluster has this node.
      type: bool
    is_control_plane:
      description: Whether the node is a control plane for the cluster.
      type: bool
    taints:
      description: Keys of the node's taints.
      type: list
      elements: str
  sample:
    name: w1
    address: 192.0.2.11
    interface: eno1
    distribution: debian
    release: bookworm
    architecture: x86_64
    kubelet: 1.35.4
    containerd: 2.2.1
    containerd_files: [/etc/containerd/config.toml]
    cri_dockerd: {others: false, program: /usr/local/bin/cri-dockerd, release: "", silence: ""}
    keepalived: ""
    images: ["registry.k8s.io/pause:3.10.1"]
    unsettled: false
    kubeconfig_sha256: ""
    membership: member
    seen: ""
    next_step: ""
    answered: true
    registered: true
    is_control_plane: false
    taints: []
"""

from ..module_utils._common.result import run_module
from ..module_utils._kubeadm.node_info import read_node_info


def main() -> None:
    run_module(
        {
            "node_name": {"type": "str", "default": ""},
            "control_plane": {"type": "bool", "default": False},
            "address": {"type": "str", "default": ""},
            "version": {"type": "str", "required": True},
            "image_repository": {"type": "str", "default": ""},
        },
        read_node_info,
    )


if __name__ == "__main__":
    main()
