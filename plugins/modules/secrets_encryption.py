#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: secrets_encryption
short_description: Manage the keys with which Secrets are encrypted in etcd
version_added: 0.1.0
description:
  - Keeps the EncryptionConfiguration of a control plane, with keys for secretbox. All control planes need the same
    keys.
  - The role C(kubernetes) decides in which steps a key is added and another one removed. Each step is taken on all
    control planes, one after another, before the next step.
  - If the API server uses the file, the module restarts it and waits for it. If it does not come up, the module
    restores the earlier file and fails.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  state:
    description:
      - V(read) returns the names of the keys.
      - V(present) takes O(step). A control plane that is already further stays there.
      - V(copied) writes the file of another control plane, before this host becomes one.
      - V(rewritten) rewrites all Secrets that are not stored in etcd with O(key). Call it once, on any control plane.
    type: str
    choices: [read, present, copied, rewritten]
    required: true
  steps:
    description:
      - Lists of key names in order, including V(identity). The first key of a list encrypts, all of them decrypt.
    type: list
    elements: list
    default: []
  step:
    description: Which of O(steps) to take, counted from 0.
    type: int
    default: 0
  generate:
    description: Whether to generate a key that neither this host nor O(keys) has. On one control plane only.
    type: bool
    default: false
  keys:
    description: Keys of another control plane by name, as in RV(keys). Secret.
    type: dict
    default: {}
  key:
    description: Name of the key with which to encrypt Secrets.
    type: str
    default: ""
  secrets:
    description: Whether RV(keys) is returned. Needs C(no_log).
    type: bool
    default: false
  ready_timeout:
    description: Seconds to wait for the API server, and again after a rollback.
    type: int
    default: 300
  lock_timeout:
    description: Seconds to wait for kubeadm or another change to finish.
    type: int
    default: 600
  timeout:
    description: Seconds that one command of kubectl may take.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Show with which keys Secrets are encrypted
  ipu.fabric.secrets_encryption:
    state: read
  register: result
"""

RETURN = r"""
order:
  description: Names of the providers, beginning with the one that encrypts. Empty without a file.
  type: list
  elements: str
  returned: with O(state=read)
digests:
  description: A digest of each key by name, which only serves to tell keys apart.
  type: dict
  returned: with O(state=read)
foreign:
  description:
    - Lines of the file that this module did not write, without keys. The module does not change a file that has any.
  type: list
  elements: str
  returned: with O(state=read)
used:
  description: Whether the API server of this host is configured to use the file.
  type: bool
  returned: with O(state=read)
keys:
  description: The keys by name. Secret.
  type: dict
  returned: with O(secrets=true)
"""

from ..module_utils._common.result import run_module
from ..module_utils._kubeadm.encryption import run


def main() -> None:
    run_module(
        {
            "state": {"type": "str", "choices": ["read", "present", "copied", "rewritten"], "required": True},
            "steps": {"type": "list", "elements": "list", "default": []},
            "step": {"type": "int", "default": 0},
            "generate": {"type": "bool", "default": False},
            "keys": {"type": "dict", "default": {}, "no_log": True},
            "key": {"type": "str", "default": "", "no_log": False},
            "secrets": {"type": "bool", "default": False, "no_log": False},
            "ready_timeout": {"type": "int", "default": 300},
            "lock_timeout": {"type": "int", "default": 600},
            "timeout": {"type": "int", "default": 300},
        },
        run,
        required_if=[("state", "present", ["steps"]), ("state", "rewritten", ["key"])],
    )


if __name__ == "__main__":
    main()
