#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubeadm
short_description: Initialise a cluster, join hosts to it, upgrade them, create join tokens and clients for kubelets
version_added: 0.1.0
description:
  - Runs C(kubeadm init) or C(kubeadm join) once. These never change a host that is already a member.
  - A marker file is on the host while kubeadm runs. If one is found, an earlier run was interrupted. The module then
    finishes a first control plane whose API answers, and resets a host that never became a member and runs kubeadm
    again.
  - If no API answers, a host that may be a member is left as it is, and the module fails.
  - A host with parts of a node but without that marker may belong to another cluster, so the module fails.
  - Waits for a kubeadm that is still running after its run was killed.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
attributes:
  diff_mode:
    support: partial
    details: V(token) and V(client) have no difference to show.
  idempotent:
    support: partial
    details: Each V(token) and each V(client) is a new one. Create one only when a host is about to use it.
options:
  command:
    description:
      - V(init) makes the host the first control plane, V(join) joins it to a cluster.
      - V(upgrade) upgrades the pods of a control plane, and the configuration of the node's kubelet, to O(version),
        with the C(kubeadm) of that version. The kubelet itself is upgraded with its package. A node whose kubelet runs
        O(version) is done.
      - V(images) only pulls O(images), with containerd's C(ctr) or with C(docker), so that a later V(init) or V(join)
        finds them.
      - V(token) creates a short-lived bootstrap token on a control plane. The result is secret, so use C(no_log).
        With O(state=absent) it deletes the token of O(discovery).
      - V(rejoin), on a control plane, prepares the nodes of reinstalled hosts for V(join), which refuses while such a
        node is Ready, as it is for about a minute after its kubelet has gone. It waits for O(timeout) until none of
        O(names) is. A node that stays Ready, or has another address than the host, belongs to another host. Then it
        removes the label of control planes, which says that one has joined. Everything else on the node stays.
      - V(client) signs a client certificate for the kubelet of O(node_name), with the CA's key on a control plane and
        without the API. The result is secret, so use C(no_log).
    type: str
    choices: [init, join, upgrade, images, token, rejoin, client]
    required: true
  node_name:
    description: Name of the node. Empty for the host name in lower case.
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
    description:
      - How a host finds and trusts the cluster, as O(command=token) returns it in RV(discovery).
      - Needed with O(command=join), and to delete the token.
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
    description: Images to pull for O(command=images).
    type: list
    elements: str
    default: []
  runtime:
    description: The runtime for which O(command=images) pulls images.
    type: str
    choices: [containerd, docker]
    default: containerd
  state:
    description: Whether O(command=token) creates a token or deletes one.
    type: str
    choices: [present, absent]
    default: present
  ttl:
    description: How long a token is valid, as Go writes durations.
    type: str
    default: 30m0s
  certificates:
    description:
      - With O(command=token), also upload the control plane's certificates, for control planes that join.
      - They are kept for two hours, encrypted.
    type: bool
    default: false
  version:
    description:
      - Kubernetes version of the cluster, for O(command=token), or the one to upgrade to, for O(command=upgrade).
    type: str
  first:
    description:
      - Whether O(command=upgrade) also upgrades the cluster (C(kubeadm upgrade apply)). Set it on the first control
        plane. The others, and workers, follow (C(kubeadm upgrade node)).
    type: bool
    default: false
  names:
    description:
      - With O(command=rejoin), names of nodes whose hosts have nothing of Kubernetes. The cluster need not have them.
    type: list
    elements: str
    default: []
  addresses:
    description:
      - With O(command=rejoin), the addresses of the hosts that join, by the name of the node. The address of a node
        without an entry is not compared.
    type: dict
    default: {}
  lock_timeout:
    description: Seconds to wait for another kubeadm.
    type: int
    default: 600
  timeout:
    description:
      - Seconds after which a kubeadm command is killed. It includes the images that kubeadm pulls.
      - Set it higher than all of kubeadm's own timeouts together.
    type: int
    default: 1800
"""

EXAMPLES = r"""
- name: Initialise the first control plane
  ipu.fabric.kubeadm:
    command: init
    control_plane: true
    documents:
      - apiVersion: kubeadm.k8s.io/v1beta4
        kind: ClusterConfiguration
        kubernetesVersion: v1.35.4

- name: Create a token on the first control plane
  ipu.fabric.kubeadm:
    command: token
    version: 1.35.4
  delegate_to: "{{ groups['kube_control_plane'][0] }}"
  run_once: true
  no_log: true
  register: result

- name: Join a worker
  ipu.fabric.kubeadm:
    command: join
    documents:
      - apiVersion: kubeadm.k8s.io/v1beta4
        kind: JoinConfiguration
    discovery: "{{ result.discovery }}"

- name: Upgrade the first control plane
  ipu.fabric.kubeadm:
    command: upgrade
    control_plane: true
    first: true
    version: 1.36.3
    documents:
      - apiVersion: kubeadm.k8s.io/v1beta4
        kind: UpgradeConfiguration

- name: Delete the token when the workers have joined
  ipu.fabric.kubeadm:
    command: token
    state: absent
    discovery: "{{ result.discovery }}"
  delegate_to: "{{ groups['kube_control_plane'][0] }}"
  run_once: true
"""

RETURN = r"""
action:
  description: V(nothing), V(start), V(settle), V(continue) or V(restart).
  type: str
  returned: for O(command=init) and O(command=join)
  sample: nothing
discovery:
  description: Values for O(discovery). All empty in check mode.
  type: dict
  returned: for O(command=token) with O(state=present)
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
nodes:
  description: Those of O(names) that the cluster has.
  type: list
  elements: str
  returned: for O(command=rejoin)
client:
  description:
    - A kubeconfig with the certificate and its key, as M(ipu.fabric.node_certificates) takes it. Empty in check mode.
  type: str
  returned: for O(command=client)
"""

from ..module_utils._common.result import run_module
from ..module_utils._kubeadm.images import pull_images
from ..module_utils._kubeadm.init import Init
from ..module_utils._kubeadm.join import Join
from ..module_utils._kubeadm.kubelet_client import manage_client
from ..module_utils._kubeadm.rejoin import prepare_nodes
from ..module_utils._kubeadm.tokens import manage_token
from ..module_utils._kubeadm.upgrade import upgrade_host

COMMANDS = {
    "init": lambda module: Init(module).apply(),
    "join": lambda module: Join(module).apply(),
    "upgrade": upgrade_host,
    "images": pull_images,
    "token": manage_token,
    "rejoin": prepare_nodes,
    "client": manage_client,
}
DISCOVERY_OPTIONS = {
    "endpoint": {"type": "str", "required": True},
    "token": {"type": "str", "required": True, "no_log": True},
    "ca_hashes": {"type": "list", "elements": "str", "required": True},
    "certificate_key": {"type": "str", "default": "", "no_log": True},
}


def main() -> None:
    run_module(
        {
            "command": {
                "type": "str",
                "choices": ["init", "join", "upgrade", "images", "token", "rejoin", "client"],
                "required": True,
            },
            "node_name": {"type": "str", "default": ""},
            "control_plane": {"type": "bool", "default": False},
            "documents": {"type": "list", "elements": "dict", "default": []},
            "discovery": {"type": "dict", "options": DISCOVERY_OPTIONS},
            "images": {"type": "list", "elements": "str", "default": []},
            "runtime": {"type": "str", "choices": ["containerd", "docker"], "default": "containerd"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "ttl": {"type": "str", "default": "30m0s"},
            "certificates": {"type": "bool", "default": False},
            "version": {"type": "str"},
            "first": {"type": "bool", "default": False},
            "names": {"type": "list", "elements": "str", "default": []},
            "addresses": {"type": "dict", "default": {}},
            "lock_timeout": {"type": "int", "default": 600},
            "timeout": {"type": "int", "default": 1800},
        },
        lambda module: COMMANDS[module.params["command"]](module),
        required_if=[
            ("command", "join", ["discovery"]),
            ("command", "upgrade", ["version"]),
            ("command", "token", ["version", "discovery"], True),
            ("state", "absent", ["discovery"]),
        ],
    )


if __name__ == "__main__":
    main()
