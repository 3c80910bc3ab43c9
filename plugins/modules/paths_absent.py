#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: paths_absent
short_description: Remove files and directories in one call, but for those of packages
version_added: 0.1.0
description:
  - Removes what programs have left behind on a host. A path that a Debian package owns stays.
  - Directories go with all that is in them.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  paths:
    description: Absolute paths, at least three directories deep.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Remove what multus left behind
  ipu.fabric.paths_absent:
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
from ansible_collections.ipu.fabric.plugins.module_utils._host.paths import run


def main() -> None:
    run_module({"paths": {"type": "list", "elements": "str", "required": True}}, run)


if __name__ == "__main__":
    main()
