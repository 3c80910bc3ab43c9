#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kube_wait
short_description: Wait for nodes, operators, network attachments, pods and jobs
version_added: 0.1.0
description:
  - Waits in one call for everything that the options name. At least one of O(nodes), O(objects), O(crds), O(accepted),
    O(attachments), O(pods) and O(job) is needed.
  - Stops early if waiting can't help, and says why. Examples are an image that can't be pulled, a container that keeps
    crashing, a DaemonSet that no node is to run, with the label or taint behind it, and a job that failed or was
    removed.
  - Keeps waiting while an API server restarts. Check mode does not wait.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  nodes:
    description: Names of nodes that must be Ready. An empty list means all nodes of the cluster.
    type: list
    elements: str
  objects:
    description: Objects that must be ready.
    type: list
    elements: dict
    suboptions:
      api_version:
        description: API version of the object.
        type: str
        default: apps/v1
      kind:
        description:
          - Kind of the object.
          - A C(Deployment), C(DaemonSet) or C(StatefulSet) is ready when every pod runs its newest revision and is
            available; any other kind if O(objects[].field) has O(objects[].value).
        type: str
        required: true
      name:
        description: Name of the object.
        type: str
        required: true
      namespace:
        description: Namespace of the object. Empty for kinds that have none.
        type: str
        default: ""
      field:
        description: Where a custom resource reports its state, as a JMESPath expression.
        type: str
        default: status.state
      value:
        description: Required value of O(objects[].field). If empty, the object only has to exist.
        type: str
        default: ""
      reason:
        description: Reason that the condition C(Ready) of a custom resource must also have. Empty for any.
        type: str
        default: ""
      required:
        description: Whether the object must exist. If V(false), a missing object counts as ready.
        type: bool
        default: true
  crds:
    description: Names of CustomResourceDefinitions that must be Established.
    type: list
    elements: str
  accepted:
    description: New objects that the API server, with all its webhooks, must accept in a dry run. Nothing is stored.
    type: list
    elements: dict
  watch:
    description: Namespaces whose DaemonSets and Deployments explain why a custom resource of O(objects) is not ready.
    type: list
    elements: str
    default: []
  idle_faults:
    description:
      - Whether a DaemonSet in O(watch) that no node is to run is a fault.
      - Set it to V(false) for an operator with DaemonSets for hardware that possibly no node has.
    type: bool
    default: true
  attachments:
    description:
      - NetworkAttachmentDefinitions (NAD), and what they must contain.
      - The macvlan plugin is compared, also if the NAD is a chain of plugins.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the NAD.
        type: str
        required: true
      namespace:
        description: Namespace of the NAD.
        type: str
        default: default
      master:
        description: The network interface of the hosts that pods join.
        type: str
        required: true
      mode:
        description: How pods on the same host reach each other.
        type: str
        choices: [bridge, private, vepa, passthru]
        default: bridge
      mtu:
        description: MTU of the pods' interface in bytes. V(0) takes the master's.
        type: int
        default: 0
      ipam:
        description: Configuration of the IPAM plugin.
        type: dict
        required: true
  pods:
    description:
      - Pods that must start, one for each entry, as a test of the CNI plugins. The module creates them, and removes
        them when the wait ends.
      - Such a pod counts as started when it has its addresses. It has no image, so nothing runs in it and nothing is
        pulled.
      - It is placed on a Ready node, whatever the taints of that node. Its namespace may have the Pod Security level
        C(restricted).
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the NAD that the pod requests. Empty for the cluster's own network only.
        type: str
        default: ""
      namespace:
        description: Namespace of the pod and of the NAD.
        type: str
        default: default
      hosts:
        description: Names of the nodes that have the network. Any node will do if the cluster has none of them.
        type: list
        elements: str
        default: []
  job:
    description:
      - A job that must succeed.
      - A failed job is an error with its last message and the end of the failed pod's log.
      - A worker that fails before its launcher exists, or an MPIJob that its operator refuses, ends the wait.
      - A job with the annotation C(fabric.ipu/record) V(true) is inspected while it runs. RV(record) and its annotation
        C(fabric.ipu/moved) then say how it moved its data.
    type: dict
    suboptions:
      name:
        description: Name of the job.
        type: str
        required: true
      namespace:
        description: Namespace of the job.
        type: str
        default: default
      kind:
        description: Kind of the job. For an C(MPIJob), the logs of the launcher and of failed workers are read.
        type: str
        choices: [Job, MPIJob]
        default: Job
      log_lines:
        description: How many lines of each container's log to return.
        type: int
        default: 50
  what:
    description: What the error message calls the awaited things. By default derived from the options.
    type: str
    default: ""
  timeout:
    description: Seconds to wait in all.
    type: int
    default: 300
  patience:
    description: Seconds that a fault must last before the wait is given up.
    type: int
    default: 20
  settle:
    description: Seconds that everything must stay ready, since a custom resource may still show its former state.
    type: int
    default: 0
  sleep:
    description: Seconds between two requests.
    type: float
    default: 1
seealso:
  - module: ipu.fabric.kube_apply
"""

EXAMPLES = r"""
- name: Wait until all nodes are Ready
  ipu.fabric.kube_wait:
    kubeconfig: artifacts/admin.conf
    nodes: []
  delegate_to: localhost
  run_once: true

- name: Wait for the network operator
  ipu.fabric.kube_wait:
    kubeconfig: artifacts/admin.conf
    what: the network operator
    objects:
      - kind: Deployment
        name: network-operator
        namespace: nvidia-network-operator
      - api_version: mellanox.com/v1alpha1
        kind: NicClusterPolicy
        name: nic-cluster-policy
        value: ready
    crds: [macvlannetworks.mellanox.com]
    watch: [nvidia-network-operator]
    timeout: 600
  delegate_to: localhost
  run_once: true

- name: Wait until the stack has created a network
  ipu.fabric.kube_wait:
    kubeconfig: artifacts/admin.conf
    attachments:
      - name: rail-0
        master: ens1f0
        mtu: 9000
        ipam:
          type: nv-ipam
          poolName: rail-0
    timeout: 60
  delegate_to: localhost
  run_once: true

- name: Check that a pod on the network can start
  ipu.fabric.kube_wait:
    kubeconfig: artifacts/admin.conf
    pods:
      - name: rail-0
        namespace: training
    timeout: 60
  delegate_to: localhost
  run_once: true

- name: Wait until the training job has succeeded, and get its log
  ipu.fabric.kube_wait:
    kubeconfig: artifacts/admin.conf
    job:
      name: mnist
      namespace: training
    timeout: 7200
  register: training
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
waited:
  description: Seconds until everything was ready.
  returned: success
  type: float
  sample: 4.2
pending:
  description: What is not ready yet. Always empty outside check mode, which does not wait.
  returned: success
  type: list
  elements: str
  sample: []
status:
  description: The job's status, as the cluster reports it. Empty without O(job), and in check mode.
  returned: success
  type: dict
  sample: {"succeeded": 1}
logs:
  description: The end of each container's log, by pod and container.
  returned: success
  type: dict
  sample: {"mnist-x7k2p/main": "accuracy 0.98"}
record:
  description:
    - How the job moved its data. Empty for a job that does not request the record.
    - C(verdict) is V(rdma), V(tcp), V(both), V(nothing), V(unseen), or V(earlier) for one that was recorded before.
      C(text) is the verdict for a person, C(why) the reason why it was not RDMA, C(next) what to do, C(note) what the
      counters do not show, and C(ranks) what each pod showed.
  returned: success, and when a wait has failed
  type: dict
  sample: {verdict: rdma, text: "moved 41 GB over RDMA on mlx5_0, mlx5_1", why: "", next: "", note: "", ranks: []}
"""

import functools

from ..module_utils._common.result import Runner, run_module
from ..module_utils._kube.client import arguments
from ..module_utils._kube.wait import wait_for
from ..module_utils._verify.recorder import Recorder

OBJECT = {
    "api_version": {"type": "str", "default": "apps/v1"},
    "kind": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "default": ""},
    "field": {"type": "str", "default": "status.state"},
    "value": {"type": "str", "default": ""},
    "reason": {"type": "str", "default": ""},
    "required": {"type": "bool", "default": True},
}
ATTACHMENT = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "default": "default"},
    "master": {"type": "str", "required": True},
    "mode": {"type": "str", "choices": ["bridge", "private", "vepa", "passthru"], "default": "bridge"},
    "mtu": {"type": "int", "default": 0},
    "ipam": {"type": "dict", "required": True},
}
POD = {
    "name": {"type": "str", "default": ""},
    "namespace": {"type": "str", "default": "default"},
    "hosts": {"type": "list", "elements": "str", "default": []},
}
JOB = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "default": "default"},
    "kind": {"type": "str", "choices": ["Job", "MPIJob"], "default": "Job"},
    "log_lines": {"type": "int", "default": 50},
}


def main(run: Runner = run_module) -> None:
    spec = arguments(
        nodes={"type": "list", "elements": "str"},
        objects={"type": "list", "elements": "dict", "options": OBJECT},
        crds={"type": "list", "elements": "str"},
        accepted={"type": "list", "elements": "dict"},
        watch={"type": "list", "elements": "str", "default": []},
        idle_faults={"type": "bool", "default": True},
        attachments={"type": "list", "elements": "dict", "options": ATTACHMENT},
        pods={"type": "list", "elements": "dict", "options": POD},
        job={"type": "dict", "options": JOB},
        what={"type": "str", "default": ""},
        timeout={"type": "int", "default": 300},
        patience={"type": "int", "default": 20},
        settle={"type": "int", "default": 0},
        sleep={"type": "float", "default": 1},
    )
    wanted = ("nodes", "objects", "crds", "accepted", "attachments", "pods", "job")
    run(spec, functools.partial(wait_for, recorders=Recorder), libraries=("jmespath",), required_one_of=[wanted])


if __name__ == "__main__":
    main()
