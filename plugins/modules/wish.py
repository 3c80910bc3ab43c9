#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wish
short_description: Decide what a role of this collection does
version_added: 0.1.0
description:
  - Internal. Roles of this collection call it between reading and changing.
  - Takes the variables of a role and O(seen), and returns what follows from them. Refuses what is impossible, before
    anything is changed.
  - Runs on the controller and contacts no host.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  component:
    description: What is decided, as the name of the file with its C(decide()).
    type: str
    required: true
  role:
    description:
      - The role whose variables decide. Empty for the role named like O(component). Without such a role, only O(seen)
        decides.
    type: str
    default: ""
  host:
    description: The host whose variables decide what is the cluster's. Empty for the one that the task runs for.
    type: str
    default: ""
  seen:
    description: What the role has read.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Decide what to install of whereabouts
  ipu.fabric.wish:
    component: whereabouts
    seen: "{{ __whereabouts_cluster }}"
  register: __whereabouts_wish
"""

RETURN = r"""
release:
  description:
    - The Helm release, with C(name), C(namespace), C(chart), C(repo), C(version), C(sha256), C(values) and C(images).
  returned: success
  type: dict
objects:
  description: Objects to apply in addition to the release.
  returned: success
  type: list
  elements: dict
networks:
  description: Networks, in the form of the module that creates them or waits for them.
  returned: for roles that make networks
  type: list
  elements: dict
pods:
  description: Pods that must start, as O(ipu.fabric.kube_wait#module:pods) takes them.
  returned: for roles that make networks
  type: list
  elements: dict
ready:
  description: What must be ready, as O(ipu.fabric.kube_wait#module:objects) takes it.
  returned: success
  type: list
  elements: dict
crds:
  description: CustomResourceDefinitions that must be established.
  returned: success
  type: list
  elements: str
accepted:
  description: Objects that the API must accept in a dry run.
  returned: success
  type: list
  elements: dict
jobs:
  description: Jobs of others that a removal deletes before the operator.
  returned: for mpi_operator
  type: list
  elements: dict
former:
  description: Objects of an earlier installation, which are removed once this one works.
  returned: success
  type: list
  elements: dict
leftovers:
  description: Objects made by the operator itself, which a removal deletes after the release.
  returned: success
  type: list
  elements: dict
namespace_labels:
  description: Labels of the release's namespace.
  returned: success
  type: dict
renew:
  description: The certificate to renew in time, as O(ipu.fabric.helm_release#module:renew) takes it.
  returned: success
  type: dict
remnants:
  description: Objects that a removal deletes after the release, if they are this collection's.
  returned: success
  type: list
  elements: dict
nodes:
  description: Labels that nodes get or lose, as O(ipu.fabric.node_labels#module:nodes) takes them.
  returned: success
  type: list
  elements: dict
paths:
  description: Files and directories that a removal deletes on hosts.
  returned: success
  type: list
  elements: str
"""
