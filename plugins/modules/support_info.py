#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: support_info
short_description: Read what a maintainer needs to see of a cluster
version_added: 0.1.0
description:
  - Reads nodes, networks, pools and jobs of the fabric, pods with their owners, events and logs of some namespaces.
  - Takes from objects only fields that are known to be harmless, which excludes commands, arguments, environments,
    volumes and annotations.
  - Reads neither Secrets nor ConfigMaps, and removes what looks like a secret elsewhere.
  - A cluster that does not answer is no error; RV(cluster) says so under C(gaps).
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  namespaces:
    description:
      - Namespaces of components, whose pods, owners, events and logs are read. Those that do not exist are left out.
      - Logs of Jobs are not read, and in C(kube-system) only those of Kubernetes and pod networks.
    type: list
    elements: str
    required: true
  other_namespaces:
    description:
      - Namespaces of workloads, whose pods, owners and events are read, but not their logs.
    type: list
    elements: str
    default: []
  lines:
    description: How many lines of each log.
    type: int
    default: 200
  size:
    description: The maximum number of characters of each log, counted from the end.
    type: int
    default: 32768
"""

EXAMPLES = r"""
- name: Read what a maintainer needs to see
  ipu.fabric.support_info:
    kubeconfig: artifacts/admin.conf
    namespaces: [kube-system, nvidia-network-operator]
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
cluster:
  description:
    - C(objects) by kind, C(logs) by namespace, pod and container, and C(gaps), what could not be read, each with
      C(what), C(where) and what was C(seen) instead.
    - Logs are those of pods with problems first, and of three other pods of each owner.
  returned: success
  type: dict
  sample:
    objects: {Node: [], Pod: []}
    logs: {kube-system/coredns-0/coredns: "2026-11-24T23:06:46Z ready"}
    gaps: []
"""

from ..module_utils._common.result import Runner, run_module
from ..module_utils._kube.client import arguments
from ..module_utils._support.cluster import read_cluster


def main(run: Runner = run_module) -> None:
    run(
        arguments(
            namespaces={"type": "list", "elements": "str", "required": True},
            other_namespaces={"type": "list", "elements": "str", "default": []},
            lines={"type": "int", "default": 200},
            size={"type": "int", "default": 32768},
        ),
        read_cluster,
        libraries=("jmespath",),
    )


if __name__ == "__main__":
    main()
