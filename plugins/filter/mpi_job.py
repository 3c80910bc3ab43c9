# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ..plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: mpi_job
short_description: Build an MPIJob on a fabric network, over RoCE or TCP
version_added: 0.1.0
description:
  - Returns an MPIJob of C(kubeflow.org/v2beta1) for Open MPI. The same program runs with C(transport) V(roce) and
    V(tcp) on the same networks; only variables differ.
  - Works with Open MPI 4.1 and 5; both find the workers.
  - Each rank gets C(NCCL_SOCKET_IFNAME), C(NCCL_IB_DISABLE), C(UCX_TLS) and C(HOROVOD_MPI_THREADS_DISABLE). With
    V(roce) it also looks for the RoCE v2 GIDs of its pod's own addresses, IPv4 before IPv6, and gets C(NCCL_IB_HCA) and
    C(UCX_NET_DEVICES) with the ports of all rails, C(NCCL_IB_GID_INDEX) and C(UCX_IB_GID_INDEX). Variables that the job
    or the image sets are kept.
  - NCCL and UCX take one GID index for all rails. If the rails of a pod have different ones, NCCL and UCX choose by
    themselves, with C(NCCL_IB_ADDR_FAMILY) and C(NCCL_IB_ROCE_VERSION_NUM) (NCCL 2.21 or later, in containers 2.26),
    provided that they choose the pod's own GID on each rail. Otherwise the rank ends with a message, and the job fails.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description:
      - The job. C(name), C(image), C(transport) (V(roce) or V(tcp)) and C(command), the program as a list, are needed.
      - C(network) and C(rdma_resource) name the rails, separated by commas. The interfaces are those that multus
        creates for them; C(interfaces), a list, names others, or only some of them.
      - C(pml) is how MPI itself sends, V(ucx) (default), or V(ob1) for TCP on the same interfaces while NCCL uses RoCE.
      - C(privileged) makes the workers of V(roce) privileged, with the node's C(/dev/infiniband), for NICs without a
        device plugin such as VMware's PVRDMA. Without C(network) they use the node's GIDs; C(interfaces) then names
        the node's.
      - With C(show_environment) each rank prints its variables of NCCL, UCX, Horovod and IPUs. With C(count) it
        prints by how much counters of devices and interfaces grew; the filter
        P(ipu.fabric.transport_comparison#filter) reads that.
      - C(workers) (V(2)), C(slots_per_worker) (V(1)) and C(mpirun_options), a list, set how the program is started.
        With C(one_per_node) no two workers run on one node.
      - C(clean_pod_policy) (V(Running)), C(ttl), C(deadline) (both seconds), C(backoff_limit) (V(0)) and C(suspend) are
        its run policy.
      - C(namespace), C(user), C(group), C(env), C(vipu), C(volumes), C(shm),
        C(resources), C(check_memlock), C(node_selector), C(tolerations) and C(pull_secrets) are as in the role
        P(ipu.fabric.native_workload#role). The variables reach the ranks too.
      - With C(plan), the plan or only its C(networks), V(roce) is refused if a network is planned without RDMA, unless
        workers are privileged. From a whole plan, the job also gets V-IPU.
      - With C(record) the module M(ipu.fabric.kube_wait) records, while it waits for the job, how the job moves its
        data.
      - C(launcher_resources) are the launcher's requests and limits.
      - Images for a C(user) other than 0 must be like those of the MPI operator, with sshd's settings in
        C(/home/mpiuser).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Train with Horovod on two rails, NCCL over RoCE and MPI's own messages over TCP
  ipu.fabric.kube_apply:
    kubeconfig: artifacts/admin.conf
    objects: ["{{ job | ipu.fabric.mpi_job }}"]
  vars:
    job:
      name: resnet
      image: registry.site/tensorflow-benchmarks:1
      command: [python3, scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py, --variable_update=horovod]
      transport: roce
      pml: ob1
      network: rail-a,rail-b
      rdma_resource: rdma/rail_a,rdma/rail_b
      resources: {limits: {nvidia.com/gpu: 1}}
      env: {NCCL_DEBUG: INFO}
      show_environment: true

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
        return {"mpi_job": on_first_use("plugin_utils._render.mpijob", "mpi_job")}
