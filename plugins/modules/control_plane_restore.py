#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: control_plane_restore
short_description: Restore the keys and etcd's data of a backup on a control plane
version_added: 0.1.0
description:
  - Runs on a host that becomes the first control plane again, before C(kubeadm init), and on the other control planes.
  - V(aside) stops a control plane and moves its configuration, keys and etcd's data to a directory
    C(/var/lib/ipu-fabric/before-restore) with the time in its name, and what is on another disk to a directory
    C(ipu-fabric-before-restore) beside it. Nothing is copied. Other files in C(/etc/kubernetes) stay, and containers of
    pods keep running.
  - V(restored) first creates etcd's new data from C(/var/lib/ipu-fabric/restore/control-plane.tar.gz), which the caller
    has copied there, if there is enough space. C(etcdutl) of etcd's own image makes this member the only one of the
    etcd cluster. Then it does what V(aside) does, and moves keys and data into place.
  - V(verified) creates this data and removes it again. It checks archive, image and free space while every control
    plane still runs.
  - Until V(done), C(/var/lib/ipu-fabric/restore-unfinished) on the first control plane names the restore. On the others
    C(/var/lib/ipu-fabric/set-aside-for-restore) does, so that no host is set aside twice for the same restore.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Shows the names of files, but not their content.
  idempotent:
    support: partial
    details: V(restored) starts over every time.
options:
  state:
    description: What to do. V(read) only reports whether a restore was interrupted here.
    type: str
    choices: [read, verified, aside, restored, done]
    required: true
  backup:
    description: Name of the backup. For V(restored) and V(verified).
    type: str
  restore:
    description:
      - Name of this restore, which differs from that of any other restore of the same backup. For V(aside) and
        V(restored).
    type: str
  sha256:
    description: Digest that the archive must have. For V(restored) and V(verified).
    type: str
  image:
    description: The image of etcd, which containerd must have. For V(restored) and V(verified).
    type: str
  node_name:
    description: Name of the node. For V(restored) and V(verified).
    type: str
  address:
    description: Address at which the other members reach the etcd of this node. For V(restored) and V(verified).
    type: str
  timeout:
    description: Seconds to wait for a C(kubeadm) that an interrupted run left running.
    type: int
    default: 600
"""

EXAMPLES = r"""
- name: Set aside the remains of a control plane
  ipu.fabric.control_plane_restore:
    state: aside
    restore: 20261123T004500Z begun 20261126T101500Z
"""

RETURN = r"""
restoring:
  description: Name of the unfinished restore that has put a backup back on this host. Empty if there is none.
  returned: with O(state=read)
  type: str
going_on:
  description: Whether that restore got so far that C(kubeadm init) has ended or the API server answers.
  returned: with O(state=read)
  type: bool
aside:
  description: Name of the restore for which this host was set aside. Empty if there is none.
  returned: with O(state=read)
  type: str
files:
  description: Whether the host has files of a control plane.
  returned: with O(state=read)
  type: bool
set_aside:
  description: Directory with what was there before, unless that was on another disk. Empty if there was nothing.
  returned: with another O(state)
  type: str
"""

from ..module_utils._common.result import run_module
from ..module_utils._kubeadm.restore import restore


def main() -> None:
    run_module(
        {
            "state": {"type": "str", "choices": ["read", "verified", "aside", "restored", "done"], "required": True},
            "backup": {"type": "str"},
            "restore": {"type": "str"},
            "sha256": {"type": "str"},
            "image": {"type": "str"},
            "node_name": {"type": "str"},
            "address": {"type": "str"},
            "timeout": {"type": "int", "default": 600},
        },
        restore,
        required_if=[
            ("state", "aside", ("restore",)),
            ("state", "restored", ("backup", "restore", "sha256", "image", "node_name", "address")),
            ("state", "verified", ("backup", "sha256", "image", "node_name", "address")),
        ],
    )


if __name__ == "__main__":
    main()
