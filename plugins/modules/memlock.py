#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: memlock
short_description: Set the locked-memory limit of container runtimes
version_added: 0.1.0
description:
  - Gives the installed container runtimes a locked-memory limit through systemd drop-ins. RDMA needs it for users other
    than root.
  - Docker's C(daemon.json) gets a default ulimit as well, unless a flag of its unit sets it. Everything else in it is
    kept, and the old file is backed up.
  - Restarts a runtime only if it has been running since before its limit was set, and then waits for the pods of the
    node. Docker is restarted only if it keeps its containers or O(restart_docker) is set.
  - If a runtime does not answer after its restart, the module restores its former files and fails.
  - k3s and RKE2 include containerd, and their servers the API. They are restarted only with O(restart_kubernetes).
  - Containers that were started before keep their old limit until they are restarted.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  limit:
    description: The limit in systemd's notation, V(infinity) or bytes, also with K, M, G or T.
    type: str
    default: infinity
  units:
    description: Services that start containers, without C(.service). Those that are not installed are left out.
    type: list
    elements: str
    default: [containerd, docker, k3s, k3s-agent, rke2-server, rke2-agent, crio]
  restart:
    description: Restart runtimes that run with an old limit. If V(false), RV(stale) only names them.
    type: bool
    default: true
  restart_docker:
    description: Restart Docker even if its containers stop with it, as they do without C(live-restore).
    type: bool
    default: false
  restart_kubernetes:
    description:
      - Restart k3s and RKE2. Their containers keep running meanwhile, but not the API server and etcd of a server.
      - Call it on one server after another. It returns when the API server of the host is ready again.
    type: bool
    default: false
  node_name:
    description: Name of the host's node. Empty for the host name in lower case.
    type: str
    default: ""
  timeout:
    description: Seconds to wait for pods after a restart, and for a service of k3s or RKE2 and its API server.
    type: int
    default: 180
"""

EXAMPLES = r"""
- name: Allow containers to lock memory
  ipu.fabric.memlock:
    limit: infinity
  throttle: 1
"""

RETURN = r"""
stale:
  description: Runtimes that ran with an old limit when the module started.
  type: list
  elements: str
  returned: success
  sample: [containerd]
restartable:
  description: Those of RV(stale) that may be restarted. Somebody else must restart the others.
  type: list
  elements: str
  returned: success
  sample: [containerd]
server:
  description: Whether one of RV(restartable) includes the API server.
  type: bool
  returned: success
node:
  description: Name of the host's node, O(node_name) or what the kubelet calls it by default.
  type: str
  returned: success
  sample: w1
units:
  description: Runtimes that are installed.
  type: list
  elements: str
  returned: success
  sample: [containerd]
"""

from ..module_utils._common.result import run_module
from ..module_utils._host.memlock import set_memlock

RUNTIMES = ["containerd", "docker", "k3s", "k3s-agent", "rke2-server", "rke2-agent", "crio"]


def main() -> None:
    run_module(
        {
            "limit": {"type": "str", "default": "infinity"},
            "units": {"type": "list", "elements": "str", "default": RUNTIMES},
            "restart": {"type": "bool", "default": True},
            "restart_docker": {"type": "bool", "default": False},
            "restart_kubernetes": {"type": "bool", "default": False},
            "node_name": {"type": "str", "default": ""},
            "timeout": {"type": "int", "default": 180},
        },
        set_memlock,
    )


if __name__ == "__main__":
    main()
