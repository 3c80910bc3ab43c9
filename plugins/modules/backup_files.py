#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: backup_files
short_description: Seal a backup with checksums, prune old ones, or prove that one is whole
version_added: 0.1.0
description:
  - V(begun) makes the directory O(path) with C(.part) at its end, for its owner alone, and fails if it is there.
  - V(present) takes the directory O(path) with C(.part) at its end, writes C(SHA256SUMS) into it and renames it to
    O(path). Its files and it are then for its owner alone. Older backups beside it are removed, down to O(keep). A
    directory that has no C(backup.json) is none, and stays, and so does one with a later time as its name.
  - V(verified) compares every file with C(SHA256SUMS), and fails if one is missing, changed or added.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Shows the names of backups, and nothing that is in them.
  idempotent:
    support: partial
    details: V(verified) changes nothing. Every backup is begun and sealed once.
options:
  state:
    description: What to do.
    type: str
    choices: [begun, present, verified]
    default: present
  path:
    description: A backup. For V(begun) and V(present) its name is the time in UTC, as in C(20261123T004500Z).
    type: path
    required: true
  keep:
    description: How many backups stay, the new one included.
    type: int
    default: 7
  expected:
    description: SHA-256 of files by name, from where they were fetched.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Prove that a backup is whole
  ipu.fabric.backup_files:
    state: verified
    path: artifacts/backups/20261123T004500Z
  delegate_to: localhost
"""

RETURN = r"""
path:
  description: The backup.
  returned: always
  type: str
pruned:
  description: Names of backups that were removed.
  returned: with O(state=present)
  type: list
  elements: str
later:
  description:
    - Names of backups that are later than this one. The clock was ahead when they were taken, or is behind now. They
      are not removed, and not counted.
  returned: with O(state=present)
  type: list
  elements: str
sums:
  description: SHA-256 of its files by name.
  returned: with O(state=verified)
  type: dict
about:
  description: What the backup says about itself, the content of its C(backup.json).
  returned: with O(state=verified)
  type: dict
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._host.backups import run


def main() -> None:
    run_module(
        {
            "state": {"type": "str", "choices": ["begun", "present", "verified"], "default": "present"},
            "path": {"type": "path", "required": True},
            "keep": {"type": "int", "default": 7},
            "expected": {"type": "dict", "default": {}},
        },
        run,
    )


if __name__ == "__main__":
    main()
