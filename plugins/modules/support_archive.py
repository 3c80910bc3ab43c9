#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: support_archive
short_description: Write what a maintainer has to see of a site into one archive
version_added: 0.1.0
description:
  - Writes C(support-TIME.tar.gz), for its owner alone, to a directory on the controller. Older archives stay.
  - Secrets are taken out of all that goes into it. The packed archive is then searched for them by other patterns. If
    one is found, the module fails and writes nothing.
  - What could not be collected is named in it, and in RV(gaps).
  - Runs on the controller, whatever host the task is for.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
attributes:
  check_mode:
    support: full
    details: Says where the archive would be, and writes nothing.
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
      - A relative path starts at the folder of the playbook.
    type: path
    required: true
  cluster:
    description: The result of M(ipu.fabric.support_info), or its failure.
    type: dict
    default: {}
  journals:
    description: Results of M(ipu.fabric.journal_info) by host, or their failures.
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
"""

RETURN = r"""
path:
  description: The archive, on the controller.
  returned: success
  type: str
  sample: artifacts/support-20261124T230646Z.tar.gz
gaps:
  description: What could not be collected, each with C(what), C(where) and what was C(seen) instead.
  returned: success
  type: list
  elements: dict
  sample:
    - what: the journal
      where: w1
      seen: "unreachable: connection timed out"
"""
