#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_snapshot
short_description: Take a snapshot of a control plane's etcd
version_added: 0.1.0
description:
  - Runs on a control plane that kubeadm made. It asks the etcd there, and needs neither C(etcdctl) nor the API server.
  - A snapshot is kept only if its digest proves that it is whole.
  - The file is for root alone, as it has all secrets of the cluster in it.
  - Works without a majority of the members, with what this one knows.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
attributes:
  check_mode:
    support: full
    details: Asks etcd, and checks that there is room.
  diff_mode:
    support: full
  idempotent:
    support: none
    details: Every run takes a new snapshot, and refuses a path that exists.
options:
  path:
    description: File to write. There must be none of that name, and its directory must be there.
    type: path
    required: true
  timeout:
    description: Seconds that it may take.
    type: int
    default: 600
"""

EXAMPLES = r"""
- name: Take a snapshot of etcd
  ipu.fabric.etcd_snapshot:
    path: /var/lib/ipu-fabric/etcd-20261123T004500Z.db
  register: snapshot
"""

RETURN = r"""
path:
  description: The snapshot.
  returned: always
  type: str
bytes:
  description: Its size. In check mode, about the size that it would have.
  returned: always
  type: int
sha256:
  description: Its digest, as C(sha256sum) prints it. Empty in check mode.
  returned: always
  type: str
etcd_version:
  description: Version of the etcd that it is of.
  returned: always
  type: str
cluster_id:
  description: ID of the etcd cluster, as C(etcdctl) prints it.
  returned: always
  type: str
revision:
  description: Revision of etcd when the snapshot began. It has at least this one.
  returned: always
  type: int
database_bytes:
  description: Size of the database in etcd.
  returned: always
  type: int
members:
  description: Members of the etcd cluster.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Name, empty while the member has not started.
      type: str
    id:
      description: ID, as C(etcdctl) prints it.
      type: str
    peer_urls:
      description: Where its peers reach it.
      type: list
      elements: str
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.snapshot import take_snapshot


def main() -> None:
    run_module(
        {
            "path": {"type": "path", "required": True},
            "timeout": {"type": "int", "default": 600},
        },
        take_snapshot,
    )


if __name__ == "__main__":
    main()
