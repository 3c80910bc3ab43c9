#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bundle_files
short_description: Copy files of a bundle to a host
version_added: 0.1.0
description:
  - Compares a directory of the host with a part of a bundle by digest, copies what is missing or differs, and removes
    files of a former bundle.
  - Each file is compared again when it has arrived, and takes its place in one step.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  bundle:
    description: The bundle, a directory on the controller.
    type: path
  part:
    description: Directory in the bundle.
    type: str
  directory:
    description: Directory on the host. It belongs to this module, which removes other files from it.
    type: path
    required: true
  files:
    description: Size and digest of each file, by its name. The action reads them from the list of the bundle.
    type: dict
    default: {}
  incoming:
    description: Where the action has put files on the host, by their names.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Copy the packages for this host
  ipu.fabric.bundle_files:
    bundle: /media/bundle
    part: apt/debian-bookworm-amd64
    directory: /var/lib/ipu-fabric/bundle/apt
"""

RETURN = r"""
missing:
  description: Files that are missing, or differ.
  returned: success
  type: list
  elements: str
  sample: []
copied:
  description: Files that were copied.
  returned: when files were copied
  type: list
  elements: str
  sample: [kubelet_1.35.4-1.1_amd64.deb]
removed:
  description: Files of a former bundle that were removed.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._host.bundle import apply_files


def main() -> None:
    run_module(
        {
            "bundle": {"type": "path"},
            "part": {"type": "str"},
            "directory": {"type": "path", "required": True},
            "files": {"type": "dict", "default": {}},
            "incoming": {"type": "dict", "default": {}},
        },
        apply_files,
    )


if __name__ == "__main__":
    main()
