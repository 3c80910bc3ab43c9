#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: journal_info
short_description: The last lines that services of a host wrote
version_added: 0.1.0
description:
  - Reads the journal of some units of systemd, without the secrets in it, as M(ipu.fabric.support_archive) keeps it.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  units:
    description: Names of the units.
    type: list
    elements: str
    default: [kubelet, containerd]
  lines:
    description: How many lines of each.
    type: int
    default: 200
  size:
    description: How many characters of each at most, counted from the end.
    type: int
    default: 32768
"""

EXAMPLES = r"""
- name: Read what the kubelet says
  ipu.fabric.journal_info:
    units: [kubelet]
  register: journal
"""

RETURN = r"""
logs:
  description: What the units wrote, by name. Those that wrote nothing are not there.
  returned: success
  type: dict
  sample:
    kubelet: "2026-11-24T23:06:46+0000 w1 kubelet[714]: node is ready"
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._host.journal import read_journal


def main() -> None:
    run_module(
        {
            "units": {"type": "list", "elements": "str", "default": ["kubelet", "containerd"]},
            "lines": {"type": "int", "default": 200},
            "size": {"type": "int", "default": 32768},
        },
        read_journal,
    )


if __name__ == "__main__":
    main()
