#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: control_plane_info
short_description: Read kubeadm's configuration of a cluster on a control plane
version_added: 0.1.0
description:
  - Reads the ConfigMap kubeadm-config, from which control planes join and are upgraded.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options: {}
"""

EXAMPLES = r"""
- name: Read the configuration of the cluster
  ipu.fabric.control_plane_info:
  register: result
"""

RETURN = r"""
configuration:
  description: The ClusterConfiguration, as YAML. Empty where the ConfigMap has none.
  type: str
  returned: success
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.control_plane import read_info


def main() -> None:
    run_module({}, read_info)


if __name__ == "__main__":
    main()
