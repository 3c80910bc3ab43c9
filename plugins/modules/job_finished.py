#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: job_finished
short_description: Wait until a Job or an MPIJob has ended, and read its logs
version_added: 0.1.0
description:
  - Waits until a job has succeeded, and returns the end of its logs.
  - A job that failed is an error with its last message and the end of the log of the pod that failed.
  - Stops early when waiting can't help, and says why. An image that can't be pulled, a job that somebody removed, a
    worker that failed before its launcher came, an MPIJob that its operator refuses.
  - An API server that restarts during the wait is waited for. Check mode does not wait.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  name:
    description: Name of the job.
    type: str
    required: true
  namespace:
    description: Namespace of the job.
    type: str
    default: default
  kind:
    description: Kind of the job. Of an C(MPIJob) the logs of the launcher and of workers that failed are read.
    type: str
    choices: [Job, MPIJob]
    default: Job
  log_lines:
    description: Lines of each container's log.
    type: int
    default: 50
  timeout:
    description: Seconds to wait in all.
    type: int
    default: 3600
  patience:
    description: Seconds that a fault has to stay before the wait is given up.
    type: int
    default: 60
  sleep:
    description: Seconds between two looks.
    type: float
    default: 2
seealso:
  - module: ipu.fabric.kube_apply
  - module: ipu.fabric.operator_ready
"""

EXAMPLES = r"""
- name: Wait for the training job
  ipu.fabric.job_finished:
    kubeconfig: artifacts/admin.conf
    name: mnist
    timeout: 7200
  register: training
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
waited:
  description: Seconds until the job had ended.
  returned: success
  type: float
  sample: 312.4
status:
  description: The job's status, as the cluster says it. Empty in check mode.
  returned: success
  type: dict
  sample: {"succeeded": 1}
logs:
  description: The end of each container's log, by pod and container.
  returned: success
  type: dict
  sample: {"mnist-x7k2p/main": "accuracy 0.98"}
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments
from ansible_collections.ipu.fabric.plugins.module_utils._kube.jobs import run


def main() -> None:
    spec = arguments(
        name={"type": "str", "required": True},
        namespace={"type": "str", "default": "default"},
        kind={"type": "str", "choices": ["Job", "MPIJob"], "default": "Job"},
        log_lines={"type": "int", "default": 50},
        timeout={"type": "int", "default": 3600},
        patience={"type": "int", "default": 60},
        sleep={"type": "float", "default": 2},
    )
    run_module(spec, run)


if __name__ == "__main__":
    main()
