#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: The nodes of a cluster, and which operators and add-ons it has
version_added: 0.1.0
description:
  - Reads version, nodes, API groups, and installations of Node Feature Discovery, multus, whereabouts and the network
    operator. With O(parts) also what an installation, upgrade or removal of another operator depends on.
  - In check mode, a cluster that does not exist yet is no error.
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - cryptography
  - jmespath
  - netaddr
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  parts:
    description:
      - What else to read, V(gpu) for the GPU operator and what uses it, V(ipu) for the IPU operator, V(mpi) for
        MPIJobs, V(objects) to keep objects with a backup and compare them after a restore. V(objects) returns networks,
        pools and the addresses of pods in full, and a fingerprint of every other lasting object. Events, leases, nodes,
        pods and objects owned by others are left out, as they change by themselves. So are join tokens.
      - V(rights) must be the only part. It returns only what this user may not do.
      - V(plan) must be the only part too. It reads networks, pools, device plugins and nodes, whoever made them, for a
        plan to prove. It fails if this user lacks rights for the proof, and names all of them.
    type: list
    elements: str
    choices: [gpu, ipu, mpi, objects, plan, rights]
    default: []
  networks:
    description:
      - With V(plan) in O(parts), namespace and name of the NetworkAttachmentDefinitions to limit it to. A name without
        a namespace is in V(default).
      - Empty for all.
    type: list
    elements: str
    default: []
  expected:
    description:
      - RV(saved) of an earlier call. V(objects) are compared with it, and the missing and different ones are returned
        instead. Newer objects are no difference.
    type: dict
  wait:
    description: With O(expected), seconds within which pods that have just started must get their addresses.
    type: int
    default: 0
  namespace:
    description: Namespace of the IPU operator.
    type: str
    default: ipu-operator
  labels:
    description: Labels as C(key=value), to look for on nodes in addition to those of the V-IPU controllers that the IPU
      operator knows.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Read the nodes, operators and add-ons of the cluster
  ipu.fabric.cluster_info:
    kubeconfig: artifacts/admin.conf
  delegate_to: localhost
  run_once: true

- name: Read the state of the IPU operator too
  ipu.fabric.cluster_info:
    kubeconfig: artifacts/admin.conf
    parts: [ipu]
  register: cluster
  delegate_to: localhost
  run_once: true

- name: Compare the objects of the cluster with those of an earlier call
  ipu.fabric.cluster_info:
    kubeconfig: artifacts/admin.conf
    parts: [objects]
    expected: "{{ before.saved }}"
  delegate_to: localhost
  run_once: true

- name: Show when the webhook's certificate expires
  ansible.builtin.debug:
    var: cluster.ipu.certificate_end
"""

RETURN = r"""
present:
  description: Whether a cluster answered. It is false in check mode only.
  returned: success
  type: bool
  sample: true
version:
  description: Version of the API server. Empty when there is no cluster.
  returned: success
  type: str
  sample: 1.36.3
ca:
  description:
    - Digest of the cluster's CA, as M(ipu.fabric.host_info) returns it in C(kubelet).
    - Empty if the API does not tell.
  returned: success
  type: str
  sample: 0123456789abcdef
nodes:
  description:
    - The nodes, each with C(name), C(machine_id), C(ready), C(schedulable), C(control_plane), its C(addresses), the
      C(version) of the kubelet, C(components), the releases of the static pods of a control plane, and C(own_labels),
      the labels that this collection has set.
  returned: success
  type: list
  elements: dict
  sample:
    - name: w1
      machine_id: 9f86d081884c7d659a2feaa0c55ad015
      ready: true
      schedulable: true
      control_plane: false
      addresses: [10.88.0.12]
      version: 1.36.3
      components: {}
      own_labels: []
nfd:
  description: Namespace and name of each DaemonSet of Node Feature Discovery.
  returned: success
  type: list
  elements: str
  sample: []
multus:
  description: Namespace and name of each DaemonSet of multus.
  returned: success
  type: list
  elements: str
  sample: [nvidia-network-operator/kube-multus-ds]
api_groups:
  description: Names of the served API groups, which show what else is installed.
  returned: success
  type: list
  elements: str
  sample: [apps, monitoring.coreos.com]
whereabouts:
  description: Namespace and name of each DaemonSet of whereabouts.
  returned: success
  type: list
  elements: str
  sample: []
whereabouts_networks:
  description:
    - Namespace and name of each NetworkAttachmentDefinition that takes addresses from whereabouts and was not made for
      a network of this collection.
  returned: success
  type: list
  elements: str
  sample: []
nv_ipam:
  description: Namespace and name of each DaemonSet and Deployment of nv-ipam.
  returned: success
  type: list
  elements: str
  sample: [nvidia-network-operator/nv-ipam-node]
network_operators:
  description: The network operators, each with C(namespace), C(name), C(version), and C(release), its Helm release.
  returned: success
  type: list
  elements: dict
  sample: [{namespace: nvidia-network-operator, name: network-operator, version: 26.7.1, release: network-operator}]
own:
  description:
    - Namespace and name of those in RV(network_operators) and RV(whereabouts) that this collection installed, as their
      Helm release or its NicClusterPolicy shows.
  returned: success
  type: list
  elements: str
  sample: [nvidia-network-operator/network-operator]
policy_ipam:
  description: The IPAM that the NicClusterPolicy is for, V(nv-ipam) or V(whereabouts). Empty without a policy.
  returned: success
  type: str
  sample: nv-ipam
device_plugin:
  description:
    - Which policy of this collection has the RDMA device plugin, V(cluster) for the NicClusterPolicy or V(node) for
      NicNodePolicies. Empty if none has.
  returned: success
  type: str
  sample: cluster
node_policies:
  description: The NicNodePolicies of this collection.
  returned: success
  type: list
  elements: str
  sample: [fabric-1b0f8d2c]
policy_in_chart:
  description: Whether the NicClusterPolicy belongs to the chart, so that an upgrade without it would delete it.
  returned: success
  type: bool
  sample: false
gpu:
  description: With V(gpu) in O(parts).
  returned: success
  type: dict
  contains:
    operators:
      description:
        - The GPU operators, each with C(namespace), C(name), C(version), C(release), its Helm release, and C(ours),
          whether this collection installed it.
      returned: success
      type: list
      elements: dict
      sample: [{namespace: gpu-operator, name: gpu-operator, version: 26.7.0, release: gpu-operator, ours: true}]
    pods:
      description:
        - Namespace and name of each running pod that requests a resource of C(nvidia.com), outside the operators'
          namespaces.
      returned: success
      type: list
      elements: str
      sample: [training/resnet-0]
    drivers:
      description: Names of the NVIDIADriver objects.
      returned: success
      type: list
      elements: str
      sample: []
    labelled:
      description:
        - Nodes with labels of the operator, each with C(name), and C(labels) in the form with which
          M(ipu.fabric.node_labels) removes them.
      returned: success
      type: list
      elements: dict
      sample: [{name: w1, labels: {nvidia.com/gpu.present: null}}]
ipu:
  description: With V(ipu) in O(parts).
  returned: success
  type: dict
  contains:
    operators:
      description:
        - The IPU operators, each with C(namespace), C(name), C(version), C(release), its Helm release, and
          C(available), whether its controller is available.
      returned: success
      type: list
      elements: dict
      sample:
        - namespace: ipu-operator
          name: ipu-operator-controller-manager
          version: 1.2.0
          release: ipu-operator
          available: true
    own:
      description: Namespace and name of those in RV(ipu.operators) whose Helm release this collection installed.
      returned: success
      type: list
      elements: str
      sample: [ipu-operator/ipu-operator-controller-manager]
    vipu_controllers:
      description: The V-IPU controllers that the operator knows, each with C(host), C(port) and C(label).
      returned: success
      type: list
      elements: dict
      sample: [{host: 10.5.212.116, port: 8090, label: ipunode=true}]
    labelled:
      description: The nodes with a label of a controller, each with C(name) and these C(labels).
      returned: success
      type: list
      elements: dict
      sample: [{name: ipu1, labels: {ipunode: "true"}}]
    certificate_end:
      description: When the webhook's certificate expires. Empty when there is none.
      returned: success
      type: str
      sample: "2027-11-21T10:00:00+00:00"
    certificate_days:
      description: Whole days until RV(ipu.certificate_end).
      returned: success
      type: int
      sample: 364
    tracker:
      description: Whether the ConfigMap in which the operator keeps its partitions exists.
      returned: success
      type: bool
      sample: true
    definition:
      description: Whether the cluster knows the kind IPUJob.
      returned: success
      type: bool
      sample: true
    jobs:
      description: Namespace and name of each IPUJob.
      returned: success
      type: list
      elements: str
      sample: [training/resnet]
mpi:
  description: With V(mpi) in O(parts).
  returned: success
  type: dict
  contains:
    ours:
      description: Whether this collection applied the definition of MPIJobs.
      returned: success
      type: bool
      sample: true
    jobs:
      description: Namespace and name of each MPIJob.
      returned: success
      type: list
      elements: str
      sample: [training/resnet]
rights:
  description: The rights that C(ipu.fabric.site) needs and this user lacks, each a verb and a resource.
  returned: with V(rights) in O(parts), when only RV(present), RV(silence) and RV(user) are returned besides
  type: list
  elements: str
  sample: [create namespaces, patch nodes]
silence:
  description: In check mode, why the API gave no answer, or refused the kubeconfig. Empty if it answered.
  returned: with V(rights) in O(parts)
  type: str
  sample: HTTP 401, Unauthorized
user:
  description: The user that lacks RV(rights), as the API names it. Empty if it lacks none or the API does not say.
  returned: with V(rights) in O(parts)
  type: str
  sample: system:serviceaccount:default:viewer
plan:
  description:
    - What the cluster has, as a plan for M(ipu.fabric.fabric_probe) and M(ipu.fabric.fabric_report). C(not_proved) says
      what could not be derived or is not proved, and why.
  returned: with V(plan) in O(parts), when only RV(present) is returned besides
  type: dict
saved:
  description:
    - C(objects) of the fabric as the API has them, C(digests) of all objects by kind and name, and C(addresses), the
      address of each pod on each network.
  returned: with V(objects) in O(parts) and without O(expected)
  type: dict
count:
  description: How many objects were compared.
  returned: with O(expected)
  type: int
missing:
  description: Kind and name of the objects that are gone.
  returned: with O(expected)
  type: list
  elements: str
  sample: ["MacvlanNetwork.mellanox.com rdma-net"]
different:
  description: Kind and name of the objects that have changed.
  returned: with O(expected)
  type: list
  elements: str
  sample: ["ConfigMap default/settings"]
moved:
  description: Pods whose addresses have changed or are gone. Pods that have ended do not count.
  returned: with O(expected)
  type: list
  elements: str
  sample: ["default/worker-0 net1: 10.5.0.130 became 10.5.0.131"]
"""

from ..module_utils._common.result import Runner, run_module
from ..module_utils._component.cluster import PARTS, read
from ..module_utils._kube.client import arguments


def main(run: Runner = run_module) -> None:
    spec = arguments(
        parts={"type": "list", "elements": "str", "choices": list(PARTS), "default": []},
        namespace={"type": "str", "default": "ipu-operator"},
        labels={"type": "list", "elements": "str", "default": []},
        networks={"type": "list", "elements": "str", "default": []},
        expected={"type": "dict"},
        wait={"type": "int", "default": 0},
    )
    run(spec, read, libraries=("cryptography", "jmespath", "netaddr"))


if __name__ == "__main__":
    main()
