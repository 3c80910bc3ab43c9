# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import readable
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.mpijob import mpi_job

DOCUMENTATION = r"""
name: mpi_job
short_description: An MPIJob on a fabric network, over RoCE or TCP
version_added: 0.1.0
description:
  - Returns an MPIJob of C(kubeflow.org/v2beta1) for Open MPI with UCX. With C(transport) V(roce) each rank finds device
    and GID index by the address that its pod has on the network. With V(tcp) the same program runs on the same network.
  - Open MPI 4.1 and 5 both work, and find the workers.
  - Only the first fabric network of a pod, C(net1), is used, with IPv4 addresses.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description:
      - The job. C(name), C(image), C(transport) (V(roce) or V(tcp)) and C(command), the program as a list, are needed.
      - C(workers) (V(2)), C(slots_per_worker) (V(1)) and C(mpirun_options), a list, say how it is started.
      - C(clean_pod_policy) (V(Running)), C(ttl), C(deadline) (both seconds), C(backoff_limit) (V(0)) and C(suspend) are
        its run policy.
      - C(namespace), C(network), C(rdma_resource), C(user), C(group), C(env), C(vipu), C(volumes), C(shm),
        C(resources), C(check_memlock), C(node_selector), C(tolerations) and C(pull_secrets) are as in the filter
        P(ipu.fabric.native_workload#filter). The variables reach the ranks too.
      - C(launcher_resources) are the launcher's requests and limits.
      - Images for a C(user) other than 0 follow those of the MPI operator, with sshd's settings in C(/home/mpiuser).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Run the same program over RoCE and over TCP
  ipu.fabric.kube_apply:
    kubeconfig: artifacts/admin.conf
    objects:
      - "{{ job | combine({'name': 'allreduce-roce', 'transport': 'roce'}) | ipu.fabric.mpi_job }}"
      - "{{ job | combine({'name': 'allreduce-tcp', 'transport': 'tcp'}) | ipu.fabric.mpi_job }}"
  vars:
    job:
      image: registry.site/osu-benchmarks:7.4
      command: [osu_allreduce]
      network: rdma-net
      rdma_resource: rdma/rdma_shared_device_a
"""

RETURN = r"""
_value:
  description: The MPIJob.
  type: dict
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"mpi_job": readable(mpi_job)}
