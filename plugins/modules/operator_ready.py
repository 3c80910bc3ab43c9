#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: operator_ready
short_description: Wait until an operator and what it runs is ready
version_added: 0.1.0
description:
  - Waits in one call for workloads, CustomResourceDefinitions, states of custom resources, and admission webhooks.
  - Stops early when waiting can't help, and says why. An image that can't be pulled, a container that crashes again and
    again, a DaemonSet that no node is to run and the label or taint behind it.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  what:
    description: What is waited for, as the error message calls it.
    type: str
    default: the objects
  objects:
    description: Objects that have to be ready.
    type: list
    elements: dict
    default: []
    suboptions:
      api_version:
        description: API version of the object.
        type: str
        default: apps/v1
      kind:
        description:
          - Kind of the object.
          - A C(Deployment), C(DaemonSet) or C(StatefulSet) is ready when every pod runs its newest revision and is
            available; any other kind when O(objects[].field) has O(objects[].value).
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
        description: Where a custom resource says how it is.
        type: str
        default: status.state
      value:
        description: What O(objects[].field) has to say. When it is empty, the object only has to be there.
        type: str
        default: ""
      reason:
        description: The reason that the condition C(Ready) of a custom resource has to give too. Empty for any.
        type: str
        default: ""
  crds:
    description: Names of CustomResourceDefinitions that have to be Established.
    type: list
    elements: str
    default: []
  accepted:
    description: New objects that the API server, with all its webhooks, has to take in a dry run. Nothing is stored.
    type: list
    elements: dict
    default: []
  watch:
    description: Namespaces whose DaemonSets and Deployments explain why a custom resource is not ready.
    type: list
    elements: str
    default: []
  idle_faults:
    description:
      - Whether a DaemonSet in O(watch) that no node is to run is a fault.
      - Set it to V(false) for an operator that has DaemonSets for hardware that no node may have.
    type: bool
    default: true
  timeout:
    description: Seconds to wait in all.
    type: int
    default: 300
  patience:
    description: Seconds that a fault has to stay before the wait is given up.
    type: int
    default: 20
  settle:
    description: Seconds that everything has to stay ready. A custom resource may still show its former state.
    type: int
    default: 0
  sleep:
    description: Seconds between two looks.
    type: float
    default: 1
"""

EXAMPLES = r"""
- name: Wait for the network operator
  ipu.fabric.operator_ready:
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
"""

RETURN = r"""
waited:
  description: Seconds until everything was ready.
  returned: success
  type: float
  sample: 4.2
pending:
  description: What is not ready yet. Only check mode ends with anything in it, since it does not wait.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import arguments
from ansible_collections.ipu.fabric.plugins.module_utils._kube.readiness import run

OBJECT = {
    "api_version": {"type": "str", "default": "apps/v1"},
    "kind": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "default": ""},
    "field": {"type": "str", "default": "status.state"},
    "value": {"type": "str", "default": ""},
    "reason": {"type": "str", "default": ""},
}


def main() -> None:
    spec = arguments(
        what={"type": "str", "default": "the objects"},
        objects={"type": "list", "elements": "dict", "default": [], "options": OBJECT},
        crds={"type": "list", "elements": "str", "default": []},
        accepted={"type": "list", "elements": "dict", "default": []},
        watch={"type": "list", "elements": "str", "default": []},
        idle_faults={"type": "bool", "default": True},
        timeout={"type": "int", "default": 300},
        patience={"type": "int", "default": 20},
        settle={"type": "int", "default": 0},
        sleep={"type": "float", "default": 1},
    )
    run_module(spec, run)


if __name__ == "__main__":
    main()
