#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipu_jobs_absent
short_description: Remove all IPUJobs of a cluster, before their operator goes
version_added: 0.1.0
description:
  - An IPUJob has a finalizer, and only the IPU operator takes it off, after it gave back the job's IPUs. Without the
    operator a deletion hangs for ever.
  - Fails while there are IPUJobs, and names them, unless it may delete them.
  - M(ipu.fabric.helm_release) removes the operator afterwards.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  delete:
    description: Whether to delete IPUJobs, running ones too, and to wait until the operator let them go.
    type: bool
    default: false
  force:
    description:
      - Whether to take the finalizer off IPUJobs that the operator does not let go, because it is not there or does not
        answer within O(timeout). Implies O(delete).
      - The operator's webhooks are removed then, as the API server would ask them. Partitions may stay in V-IPU.
    type: bool
    default: false
  timeout:
    description: Seconds that the operator has for all jobs.
    type: int
    default: 300
seealso:
  - module: ipu.fabric.ipu_operator_info
"""

EXAMPLES = r"""
- name: Delete all IPUJobs
  ipu.fabric.ipu_jobs_absent:
    kubeconfig: artifacts/admin.conf
    delete: true
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
jobs:
  description: Namespace and name of each IPUJob that was removed, or would be.
  returned: success
  type: list
  elements: str
  sample: [training/resnet]
partitions:
  description: Names of the partitions in V-IPU that nobody gave back, because a finalizer was taken off.
  returned: success
  type: list
  elements: str
  sample: [p-resnet-training-0]
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.purge import run
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments


def main() -> None:
    spec = arguments(
        delete={"type": "bool", "default": False},
        force={"type": "bool", "default": False},
        timeout={"type": "int", "default": 300},
    )
    run_module(spec, run)


if __name__ == "__main__":
    main()
