#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: control_plane
short_description: Change the settings of a running control plane
version_added: 0.1.0
description:
  - Has kubeadm render the manifests of the static pods, and replaces those whose arguments differ. Files that the
    manifests name are written first. Then it waits for the pods and for C(/readyz) of this host's API server.
  - If that does not come up, the module restores the earlier manifests and files, and fails. A change that was killed
    meanwhile is completed or rolled back by the next call.
  - Refuses if a manifest has something that kubeadm's configuration lacks, since that would be lost.
  - Call it on one control plane after another.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  state:
    description:
      - V(present) applies the settings.
      - V(files) only writes O(files), on a host that will become a control plane.
      - V(settled) completes or rolls back an interrupted change, and does nothing else.
      - V(uploaded) writes O(configuration) into the ConfigMap kubeadm-config. V(read) only reads it, and the names of
        this host's encryption keys for Secrets.
    type: str
    choices: [present, files, settled, uploaded, read]
    default: present
  documents:
    description:
      - Configuration for kubeadm, an InitConfiguration with this host's C(localAPIEndpoint), and the cluster's
        ClusterConfiguration.
      - The role C(kubernetes) decides the latter. Only arguments of its table are compared.
    type: list
    elements: dict
    default: []
  files:
    description: Files that arguments name. Only root may read them.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Path of the file.
        type: path
        required: true
      content:
        description: Content of the file.
        type: str
        required: true
  private:
    description: Whether manifests, kubeconfigs, keys and the data of etcd are made readable by root only.
    type: bool
    default: true
  super_admin:
    description:
      - Whether C(super-admin.conf) stays. Otherwise it is removed once C(admin.conf) works, if kubeadm can regenerate
        it.
    type: bool
    default: true
  configuration:
    description: The ClusterConfiguration as YAML, with O(state=uploaded).
    type: str
    default: ""
  ready_timeout:
    description: Seconds to wait for the static pods and the API server, and again after a rollback.
    type: int
    default: 300
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
- name: Complete or roll back an interrupted change
  ipu.fabric.control_plane:
    state: settled
"""

RETURN = r"""
action:
  description: What was done, V(nothing), V(completed) or V(restored).
  type: str
  returned: with O(state=settled)
configuration:
  description: The ClusterConfiguration, as YAML. Empty if the ConfigMap has none.
  type: str
  returned: with O(state=read)
encryption:
  description:
    - Names and digests of the encryption keys for Secrets, as M(ipu.fabric.secrets_encryption) reads them on this host.
  type: dict
  returned: with O(state=read)
"""

from ..module_utils._common.result import run_module
from ..module_utils._kubeadm.control_plane import run

STATES = ["present", "files", "settled", "uploaded", "read"]
FILE = {"path": {"type": "path", "required": True}, "content": {"type": "str", "required": True}}


def main() -> None:
    run_module(
        {
            "state": {"type": "str", "choices": STATES, "default": "present"},
            "documents": {"type": "list", "elements": "dict", "default": []},
            "files": {"type": "list", "elements": "dict", "options": FILE, "default": []},
            "private": {"type": "bool", "default": True},
            "super_admin": {"type": "bool", "default": True},
            "configuration": {"type": "str", "default": ""},
            "ready_timeout": {"type": "int", "default": 300},
            "lock_timeout": {"type": "int", "default": 600},
            "timeout": {"type": "int", "default": 300},
        },
        run,
        required_if=[("state", "uploaded", ["configuration"])],
    )


if __name__ == "__main__":
    main()
