#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_reset
short_description: Take a host out of Kubernetes, with all that was installed for it, or files that pods left
version_added: 0.1.0
description:
  - Runs C(kubeadm reset), which ends the node's containers, and removes what that leaves behind - data of the kubelet
    and of etcd, rules, links and routes of kube-proxy, Calico and flannel, and files of CNI plugins.
  - What others have stays, even where its path is one of Kubernetes or of this collection. Data of etcd go only if the
    static pod of C(kubeadm) has them, files only if they look as this collection writes them, and Docker and containerd
    with their data only while nobody else has a container, also a stopped one, or a volume in them. Nothing that is
    mounted is removed. RV(kept) names what stays.
  - Keys and data of the cluster go, also those that restores, backups and upgrades have left in C(/var/lib/ipu-fabric).
  - Rules are removed one by one, by the names of their chains. Nothing is flushed. Links, files and packages of others
    stay.
  - Members of etcd are not removed; use M(ipu.fabric.etcd_member) before, while the cluster stays.
  - What runs is not set back before the next boot - sysctls, kernel modules, MTU, names of NICs. Swap stays off.
  - Finishes what an interrupted run has begun. In check mode RV(removed) is the list of what would go.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  files:
    description:
      - Only remove these files and directories, which programs have left on the host; an empty list removes nothing.
        Directories go with everything in them.
      - Absolute paths, at least three directories deep. One that a Debian package owns stays. Nothing goes where
        C(dpkg) does not know the owner of each path.
      - Left out, the host is taken out of Kubernetes.
    type: list
    elements: str
  ca:
    description:
      - Digest of the cluster's CA, as M(ipu.fabric.host_info) has it in C(kubelet). A host that trusts another one is
        refused. Empty takes any.
    type: str
    default: ""
  installed:
    description:
      - Also remove packages, apt sources and files of this collection.
      - Only packages that M(ipu.fabric.apt_packages) has recorded on the host as new go, and only while nothing else
        needs them. They are not purged.
    type: bool
    default: false
  lock_timeout:
    description: Seconds to wait for another kubeadm, and for the locks of apt.
    type: int
    default: 600
  timeout:
    description:
      - Seconds that C(kubeadm reset), or one command of apt, may take. It is ended then.
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

- name: Take the host out of Kubernetes
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
    - The cluster that the host was in, by its own files, and what tells the host. Parts that are not known are empty.
  returned: success, without O(files)
  type: dict
  contains:
    name:
      description: What kubeadm calls it. Where that is kubeadm's default, the host and port of its API server.
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
      description: Its machine ID.
      type: str
    serves:
      description: Whether its API server runs.
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
