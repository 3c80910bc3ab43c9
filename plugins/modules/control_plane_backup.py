#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: control_plane_backup
short_description: Pack what only a control plane has into an archive
version_added: 0.1.0
description:
  - Runs on a control plane that kubeadm made. Takes a snapshot of etcd, and packs it with
    C(/etc/kubernetes/pki) and the file that has the keys for secrets in etcd, if there is one.
  - It asks the etcd there, and needs neither C(etcdctl) nor the API server, nor a majority of the members. A snapshot
    is kept only if its digest proves that it is whole.
  - Writes an archive in C(/var/lib/ipu-fabric/backup), for root alone, with a name of its own. Whoever fetches it
    removes it; one that is older than a day is removed by the next backup.
  - Waits for another backup, and for C(kubeadm), on the same host.
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
    details: Shows the names of the files, and nothing that is in them.
  idempotent:
    support: none
    details: Every run makes a new archive.
options:
  snapshot:
    description:
      - Write the snapshot of etcd alone, for root alone, into this file. There must be none of that name, and its
        directory must be there.
    type: path
  timeout:
    description: Seconds that the snapshot may take, and to wait for another backup or C(kubeadm).
    type: int
    default: 600
"""

EXAMPLES = r"""
- name: Pack a control plane
  ipu.fabric.control_plane_backup:
  register: packed
"""

RETURN = r"""
path:
  description: The archive, or the snapshot.
  returned: always
  type: str
sha256:
  description: Its digest, as C(sha256sum) prints it. Empty in check mode.
  returned: always
  type: str
files:
  description: What is in it, C(etcd.db) and the files of the host.
  returned: without O(snapshot)
  type: list
  elements: str
etcd:
  description:
    - C(etcd_version), C(cluster_id) and C(members) of etcd, its C(revision) when the snapshot began, and
      C(database_bytes).
  returned: without O(snapshot), which has them beside C(path)
  type: dict
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.backup import back_up
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.snapshot import take_snapshot


def main() -> None:
    run_module(
        {"snapshot": {"type": "path"}, "timeout": {"type": "int", "default": 600}},
        lambda module: take_snapshot(module) if module.params["snapshot"] else back_up(module),
    )


if __name__ == "__main__":
    main()
