#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_reset
short_description: Remove Kubernetes from a host, with all that was installed for it, or remove files that pods left
version_added: 0.1.0
description:
  - Runs C(kubeadm reset), which stops the node's containers, and removes what that leaves behind - data of the kubelet
    and etcd, rules, links and routes of kube-proxy, Calico and flannel, and files of CNI plugins.
  - What others own stays, even at a path of Kubernetes or of this collection. Removes etcd data only if it belongs to
    the static pod of C(kubeadm), files only if they look as this collection writes them, and Docker and containerd with
    their data only if nobody else has a container, even a stopped one, or a volume in them. Nothing that is mounted is
    removed. RV(kept) names what stays.
  - Removes keys and data of the cluster, also those that restores, backups and upgrades have left in
    C(/var/lib/ipu-fabric).
  - Rules are removed one by one, by the names of their chains. Nothing is flushed. Links, files and packages of others
    stay.
  - Members of etcd are not removed; if the cluster stays, use M(ipu.fabric.etcd_member) first.
  - Settings in effect stay until the next boot - sysctls, kernel modules, MTU, names of NICs. Swap stays off.
  - Finishes what an interrupted run has begun. In check mode, RV(removed) lists what would be removed.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  files:
    description:
      - Only remove these files and directories, which programs have left on the host; an empty list removes nothing.
        Directories go with everything in them.
      - Absolute paths, at least three directories deep. A path that a Debian package owns stays. Nothing is removed if
        C(dpkg) can't tell the owner of each path.
      - If not set, Kubernetes is removed from the host.
    type: list
    elements: str
  ca:
    description:
      - Digest of the cluster's CA, as M(ipu.fabric.host_info) returns it in C(kubelet). A host that trusts another CA
        is refused. Empty accepts any.
    type: str
    default: ""
  installed:
    description:
      - Also remove packages, apt sources and files of this collection.
      - Removes only packages that M(ipu.fabric.apt_packages) has recorded on the host as new, and only if nothing else
        needs them. They are not purged.
    type: bool
    default: false
  lock_timeout:
    description: Seconds to wait for another kubeadm, and for the locks of apt.
    type: int
    default: 600
  timeout:
    description:
      - Seconds after which C(kubeadm reset), or a command of apt, is killed.
      - kubeadm tries each pod for ten seconds at most.
    type: int
    default: 1800
"""

EXAMPLES = r"""
- name: Find what would be removed
  ipu.fabric.host_reset:
    installed: true
  check_mode: true
  register: found

- name: Remove Kubernetes from the host
  ipu.fabric.host_reset:
    ca: "{{ found.cluster.ca }}"

- name: Remove what multus left on the host
  ipu.fabric.host_reset:
    files:
      - /etc/cni/net.d/00-multus.conf
      - /etc/cni/net.d/multus.d
      - /opt/cni/bin/multus
"""

RETURN = r"""
cluster:
  description:
    - The cluster that the host was in, by its own files, and what identifies the host. Unknown parts are empty.
  returned: success, without O(files)
  type: dict
  contains:
    name:
      description: kubeadm's name of the cluster, or the host and port of its API server if that name is the default.
      type: str
    server:
      description: Host and port of its API server.
      type: str
    ca:
      description: Digest of its CA.
      type: str
    hostname:
      description: Name of the host.
      type: str
    machine_id:
      description: Machine ID of the host.
      type: str
    serves:
      description: Whether the API server of the host runs.
      type: bool
  sample:
    name: 10.88.0.11:6443
    server: 10.88.0.11:6443
    ca: 0123456789abcdef
    hostname: w1
    machine_id: 9f86d081884c7d659a2feaa0c55ad015
    serves: false
removed:
  description: What was removed, or would be, by kind.
  returned: success
  type: dict
  sample: {links: [cni0, flannel.1], packages: [kubelet]}
kept:
  description: Packages, data and files that stay, each with the reason.
  returned: success
  type: list
  elements: str
  sample: [containerd.io (containers in moby)]
"""

from ..module_utils._common.result import run_module
from ..module_utils._kubeadm.host_reset import reset_host


def main() -> None:
    run_module(
        {
            "files": {"type": "list", "elements": "str"},
            "ca": {"type": "str", "default": ""},
            "installed": {"type": "bool", "default": False},
            "lock_timeout": {"type": "int", "default": 600},
            "timeout": {"type": "int", "default": 1800},
        },
        reset_host,
    )


if __name__ == "__main__":
    main()
