#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: support_archive
short_description: Write what a maintainer needs to see of a site to an archive, or evaluate such an archive
version_added: 0.1.0
description:
  - Writes C(support-TIME.tar.gz), readable by its owner only, to a directory on the controller. Older archives stay.
  - Secrets are removed from everything that goes into it. The packed archive is then searched for secrets with other
    patterns. If one is found, the module fails and writes nothing.
  - The archive and RV(gaps) name what could not be collected.
  - With O(path), reports what an archive shows to be wrong at its site. Contacts no host, extracts nothing to disk and
    changes nothing. Takes findings of the plan as they are. Runs the checks of this release again on C(probe.json),
    with what the site expected according to C(report.json).
  - Runs on the controller, whatever host the task is for.
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - jmespath, for O(path)
  - netaddr, for O(path)
extends_documentation_fragment:
  - ipu.fabric.attributes
attributes:
  check_mode:
    support: full
    details: Returns where the archive would be, and writes nothing.
  diff_mode:
    support: full
    details: Shows the names of the files in the archive.
  idempotent:
    support: none
    details: Every run writes an archive.
options:
  artifacts_dir:
    description:
      - Directory on the controller for the archive. C(plan.json), C(report.json), C(probe.json) and
        C(observations.json) are taken from it.
      - A relative path is relative to the folder of the playbook.
    type: path
    default: artifacts
  path:
    description:
      - An archive on the controller to evaluate. Empty to write one.
      - A relative path is relative to the folder of the playbook.
    type: path
    default: ""
  cluster:
    description: The result of M(ipu.fabric.support_info), or its failure.
    type: dict
    default: {}
  journals:
    description: Results of M(ipu.fabric.host_info) by host, with C(logs), or their failures.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Write the archive
  ipu.fabric.support_archive:
    artifacts_dir: "{{ playbook_dir }}/artifacts"
    cluster: "{{ cluster }}"
    journals: "{{ journals.hosts }}"
  run_once: true

- name: Show what is wrong
  ipu.fabric.support_archive:
    path: support-20261124T230646Z.tar.gz
  register: judged
"""

RETURN = r"""
path:
  description: The archive, on the controller.
  returned: without O(path)
  type: str
  sample: artifacts/support-20261124T230646Z.tar.gz
gaps:
  description: What could not be collected, each with C(what), C(where) and what was C(seen) instead.
  returned: without O(path)
  type: list
  elements: dict
  sample:
    - what: the journal
      where: w1
      seen: "unreachable: connection timed out"
problems:
  description:
    - What is wrong, errors first. C(source) is V(plan), V(proof), V(node), V(pod), V(event) or V(archive), C(level) is
      V(error), V(unproven) or V(warning), C(check) is a check of the collection or a reason of Kubernetes.
    - Each also says C(where), what was C(seen), what was C(expected) and what to do C(next). A finding of the plan has
      C(what) it is about, but no C(expected).
  returned: with O(path)
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
  returned: with O(path)
  type: list
  elements: str
  sample: ["Archive of 2026-11-24T23:06:46Z: ipu.fabric 0.1.0", "Nothing wrong was found."]
"""
