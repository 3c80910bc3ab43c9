#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: control_plane_backup
short_description: Archive the state of a control plane, and manage backups
version_added: 0.1.0
description:
  - Runs on a control plane that kubeadm set up. Takes a snapshot of etcd, and packs it with C(/etc/kubernetes/pki) and
    the file with the encryption keys for Secrets, if there is one.
  - It queries the etcd on that host, and needs neither C(etcdctl) nor the API server nor a quorum. A snapshot is kept
    only if its digest proves that it is complete.
  - Writes an archive with a unique name to C(/var/lib/ipu-fabric/backup), for root alone. Whoever fetches it must
    remove it; the next backup removes archives that are older than a day.
  - Waits while another backup or C(kubeadm) runs on the same host.
  - With O(path), it manages backups in a directory on the controller instead.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
attributes:
  check_mode:
    support: full
    details: Queries etcd, finds the files, and checks that there is enough space.
  diff_mode:
    support: full
    details: Shows the names of files and backups, but not their content.
  idempotent:
    support: partial
    details: V(verified) changes nothing. Every run makes a new archive, and each backup is begun and sealed once.
options:
  snapshot:
    description:
      - Write only the snapshot of etcd to this file, for root alone. The file must not exist yet; its directory must.
    type: path
  state:
    description:
      - V(begun) creates the directory O(path) with the suffix C(.part), for its owner alone, and fails if it exists.
      - V(present) takes the directory O(path) with the suffix C(.part), writes C(SHA256SUMS) into it and renames it to
        O(path). Only the owner may then read it and its files. Removes older backups of O(cluster) beside it until
        O(keep) are left. A directory without C(backup.json) is not a backup and stays, and so does a backup of another
        cluster or whose name is a later time.
      - V(verified) compares every file with C(SHA256SUMS), and fails if one is missing, changed or added.
    type: str
    choices: [begun, present, verified]
    default: present
  path:
    description: A backup. For V(begun) and V(present) its name is the time in UTC, as in C(20261123T004500Z).
    type: path
  keep:
    description: How many backups of O(cluster) to keep, including the new one.
    type: int
    default: 7
  cluster:
    description:
      - The cluster as C(backup.json) records it. Backups are of the same cluster if their C(ca) is the same, or their
        C(name) where one has no C(ca).
      - If not set, no finished backup is removed.
    type: dict
    default: {}
  expected:
    description: SHA-256 of files by name, as computed on the hosts that they were fetched from.
    type: dict
    default: {}
  timeout:
    description: Seconds that the snapshot may take, and to wait for another backup or C(kubeadm).
    type: int
    default: 600
"""

EXAMPLES = r"""
- name: Archive the state of a control plane
  ipu.fabric.control_plane_backup:
  register: packed

- name: Verify that a backup is complete
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
  description: Digest of the file, as C(sha256sum) prints it. Empty in check mode.
  returned: without O(path)
  type: str
files:
  description: Content of the archive, C(etcd.db) and the files of the host.
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
      are neither removed nor counted.
  returned: with O(path) and O(state=present)
  type: list
  elements: str
sums:
  description: SHA-256 of the backup's files by name.
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
            "cluster": {"type": "dict", "default": {}},
            "expected": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 600},
        },
        run,
        required_if=[("state", "begun", ["path"]), ("state", "verified", ["path"])],
        mutually_exclusive=[("snapshot", "path")],
    )


if __name__ == "__main__":
    main()
