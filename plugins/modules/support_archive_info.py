#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: support_archive_info
short_description: Say what an archive shows to be wrong at its site
version_added: 0.1.0
description:
  - Reads an archive of M(ipu.fabric.support_archive). It asks no host and extracts nothing to a disk.
  - Findings of the plan are taken as they are. The proof is made again from C(probe.json) with the checks of this
    release, and with what C(report.json) says that the site expected.
  - Runs on the controller, whatever host the task is for.
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - jmespath
  - netaddr
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  path:
    description:
      - The archive, on the controller.
      - A relative path starts at the folder of the playbook.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Read what is wrong
  ipu.fabric.support_archive_info:
    path: support-20261124T230646Z.tar.gz
  register: judged

- name: Show it
  ansible.builtin.debug:
    msg: "{{ judged.text }}"
"""

RETURN = r"""
problems:
  description:
    - What is wrong, errors first. C(source) is V(plan), V(proof), V(node), V(pod), V(event) or V(archive), C(level) is
      V(error), V(unproven) or V(warning), C(check) is a check of the collection or a reason of Kubernetes.
    - Each also says C(where), what was C(seen), what was C(expected) and what to do C(next). A finding of the plan has
      C(what) it is about, and nothing expected.
  returned: success
  type: list
  elements: dict
  sample:
    - source: proof
      level: error
      check: memlock
      where: w1 uid 1000
      seen: 64 KiB
      expected: unlimited
      next: Raise the limit of the container runtime with the role memlock.
text:
  description: The same for a person, in lines.
  returned: success
  type: list
  elements: str
  sample: ["Archive of 2026-11-24T23:06:46Z: ipu.fabric 0.1.0", "Nothing is wrong in it."]
"""
