#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: unowned_files
short_description: Remove files and directories that no package owns
version_added: 0.1.0
description:
  - Removes what programs have left on a host, in one call. A path that a Debian package owns stays.
  - Removes nothing where C(dpkg) does not say of each path whose it is.
  - Directories are removed with everything in them.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  state:
    description: Unowned files can only be removed.
    type: str
    choices: [absent]
    required: true
  paths:
    description: Absolute paths, at least three directories deep.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Remove what multus left on the host
  ipu.fabric.unowned_files:
    state: absent
    paths:
      - /etc/cni/net.d/00-multus.conf
      - /etc/cni/net.d/multus.d
      - /opt/cni/bin/multus
"""

RETURN = r"""
removed:
  description: The paths that were removed, or would be.
  returned: success
  type: list
  elements: str
  sample: [/etc/cni/net.d/multus.d]
kept:
  description: The paths that stay, each with the package that owns it.
  returned: success
  type: list
  elements: str
  sample: [/opt/cni/bin/bridge (kubernetes-cni)]
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._host.unowned_files import remove_unowned_files


def main() -> None:
    run_module(
        {
            "state": {"type": "str", "choices": ["absent"], "required": True},
            "paths": {"type": "list", "elements": "str", "required": True},
        },
        remove_unowned_files,
    )


if __name__ == "__main__":
    main()
