#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: control_plane_backup
short_description: Pack what only a control plane has into an archive, and look after backups
version_added: 0.1.0
description:
  - Runs on a control plane that kubeadm made. Takes a snapshot of etcd, and packs it with
    C(/etc/kubernetes/pki) and the file that has the keys for secrets in etcd, if there is one.
  - It asks the etcd there, and needs neither C(etcdctl) nor the API server, nor a majority of the members. A snapshot
    is kept only if its digest proves that it is whole.
  - Writes an archive in C(/var/lib/ipu-fabric/backup), for root alone, with a name of its own. Whoever fetches it
    removes it; one that is older than a day is removed by the next backup.
  - Waits for another backup, and for C(kubeadm), on the same host.
  - With O(path) it looks after a directory of backups instead, on the controller.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
attributes:
  check_mode:
    support: full
    details: Asks etcd, finds the files, and checks that there is room.
  diff_mode:
    support: full
    details: Shows the names of files and backups, and nothing that is in them.
  idempotent:
    support: partial
    details: V(verified) changes nothing. Every run makes a new archive, and each backup is begun and sealed once.
options:
  snapshot:
    description:
      - Write the snapshot of etcd alone, for root alone, into this file. There must be none of that name, and its
        directory must be there.
    type: path
  state:
    description:
      - V(begun) makes the directory O(path) with C(.part) at its end, for its owner alone, and fails if it is there.
      - V(present) takes the directory O(path) with C(.part) at its end, writes C(SHA256SUMS) into it and renames it to
        O(path). Its files and it are then for its owner alone. Older backups beside it are removed, down to O(keep). A
        directory that has no C(backup.json) is none, and stays, and so does one with a later time as its name.
      - V(verified) compares every file with C(SHA256SUMS), and fails if one is missing, changed or added.
    type: str
    choices: [begun, present, verified]
    default: present
  path:
    description: A backup. For V(begun) and V(present) its name is the time in UTC, as in C(20261123T004500Z).
    type: path
  keep:
    description: How many backups stay, the new one included.
    type: int
    default: 7
  expected:
    description: SHA-256 of files by name, from where they were fetched.
    type: dict
    default: {}
  timeout:
    description: Seconds that the snapshot may take, and to wait for another backup or C(kubeadm).
    type: int
    default: 600
"""

EXAMPLES = r"""
- name: Pack a control plane
  ipu.fabric.control_plane_backup:
  register: packed

- name: Prove that a backup is whole
  ipu.fabric.control_plane_backup:
    state: verified
    path: artifacts/backups/20261123T004500Z
  delegate_to: localhost
"""

RETURN = r"""
path:
  description: The archive, the snapshot or the backup.
  returned: always
  type: str
sha256:
  description: Its digest, as C(sha256sum) prints it. Empty in check mode.
  returned: without O(path)
  type: str
files:
  description: What is in it, C(etcd.db) and the files of the host.
  returned: without O(snapshot) and O(path)
  type: list
  elements: str
etcd:
  description:
    - C(etcd_version), C(cluster_id) and C(members) of etcd, its C(revision) when the snapshot began, and
      C(database_bytes).
  returned: without O(snapshot), which has them beside C(path), and without O(path)
  type: dict
pruned:
  description: Names of backups that were removed.
  returned: with O(path) and O(state=present)
  type: list
  elements: str
later:
  description:
    - Names of backups that are later than this one. The clock was ahead when they were taken, or is behind now. They
      are not removed, and not counted.
  returned: with O(path) and O(state=present)
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

from ..module_utils._common.result import run_module
from ..module_utils._kubeadm.backup import run


def main() -> None:
    run_module(
        {
            "snapshot": {"type": "path"},
            "state": {"type": "str", "choices": ["begun", "present", "verified"], "default": "present"},
            "path": {"type": "path"},
            "keep": {"type": "int", "default": 7},
            "expected": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 600},
        },
        run,
        required_if=[("state", "begun", ["path"]), ("state", "verified", ["path"])],
        mutually_exclusive=[("snapshot", "path")],
    )


if __name__ == "__main__":
    main()
