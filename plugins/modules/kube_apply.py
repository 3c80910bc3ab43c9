#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kube_apply
short_description: Apply many Kubernetes objects in one call, strictly
version_added: 0.1.0
description:
  - Applies objects of any kind by server-side apply with strict field validation. A field that the server does not know
    is an error, whereas M(kubernetes.core.k8s) would drop it silently.
  - Objects are applied in their order and removed in the reverse order, all in one call.
  - In check mode the server validates the objects in a dry run. A cluster, namespace or kind that does not exist yet
    counts as missing.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  objects:
    description: The objects, each with C(apiVersion), C(kind) and C(metadata.name).
    type: list
    elements: dict
    required: true
  state:
    description:
      - V(present) applies what is in O(objects). Fields that others own are left alone.
      - V(absent) deletes the objects and waits until they are gone. An unknown kind is no error.
    type: str
    choices: [present, absent]
    default: present
  only_ours:
    description:
      - With V(absent), delete only what this collection has applied, as C(metadata.managedFields) says. The rest stays.
        RV(kept) and a warning name it.
      - A namespace stays as well if somebody else has changed it or put something into it. If somebody else has changed
        it, it only loses the labels that this collection alone has set.
    type: bool
    default: false
  adopt:
    description:
      - With V(present), whether existing objects that this collection has not applied are taken over.
      - V(false) makes such objects an error that names them, and changes nothing. A namespace may exist.
    type: bool
    default: true
  exact:
    description:
      - With V(present), whether fields of C(spec) that others have added are removed. Fields outside C(spec) stay, and
        so do all fields of an object that has no C(spec) in O(objects).
    type: bool
    default: false
  validation:
    description: What the server does with unknown and duplicate fields. V(Warn) is for manifests written by others.
    type: str
    choices: [Strict, Warn]
    default: Strict
  timeout:
    description:
      - Seconds to wait for new kinds to be served, and for deleted objects to disappear.
      - The API server may need minutes to remove a CustomResourceDefinition that was changed a moment before.
    type: int
    default: 300
seealso:
  - module: ipu.fabric.kube_wait
"""

EXAMPLES = r"""
- name: Create an address pool and a namespace
  ipu.fabric.kube_apply:
    kubeconfig: artifacts/admin.conf
    objects:
      - apiVersion: v1
        kind: Namespace
        metadata:
          name: training
      - apiVersion: nv-ipam.nvidia.com/v1alpha1
        kind: IPPool
        metadata:
          name: rdma-net
          namespace: nvidia-network-operator
        spec:
          subnet: 10.5.0.0/24
          perNodeBlockSize: 16
          gateway: 10.5.0.1
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
objects:
  description: Kind, namespace and name of each object that was, or would be, changed.
  returned: success
  type: list
  elements: str
  sample: ["IPPool nvidia-network-operator/rdma-net"]
updated:
  description: Those of RV(objects) that existed before and still exist.
  returned: success
  type: list
  elements: str
  sample: []
others:
  description: Those of O(objects) that exist already and that this collection has not applied. In check mode only.
  returned: success
  type: list
  elements: str
  sample: []
kept:
  description: Objects that O(only_ours) kept, each with the reason.
  returned: success
  type: list
  elements: str
  sample: ["Namespace jobs: it contains somebody else's Secret jobs/registry"]
"""

from ..module_utils._common.result import Runner, run_module
from ..module_utils._kube.apply import apply_objects
from ..module_utils._kube.client import arguments


def main(run: Runner = run_module) -> None:
    spec = arguments(
        objects={"type": "list", "elements": "dict", "required": True},
        state={"type": "str", "choices": ["present", "absent"], "default": "present"},
        only_ours={"type": "bool", "default": False},
        adopt={"type": "bool", "default": True},
        exact={"type": "bool", "default": False},
        validation={"type": "str", "choices": ["Strict", "Warn"], "default": "Strict"},
        timeout={"type": "int", "default": 300},
    )
    run(spec, apply_objects, libraries=("jmespath",), hidden=("objects",))


if __name__ == "__main__":
    main()
