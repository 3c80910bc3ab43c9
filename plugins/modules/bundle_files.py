#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bundle_files
short_description: Copy files of a bundle to a host, or import its images into containerd
version_added: 0.1.0
description:
  - Compares a directory on the host with a part of a bundle by digest, copies files that are missing or differ, and
    removes files of a former bundle.
  - Each file is verified after the transfer, and then moved into place in one step.
  - With O(architecture), it imports the images that containerd lacks, compared by digest, under their own names, and
    pins them so that the kubelet does not remove what could not be pulled again.
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
  architecture:
    description: Import the images for this architecture, such as V(amd64).
    type: str
  control_plane:
    description: Whether the host is a control plane and needs those images too.
    type: bool
    default: false
  files:
    description:
      - Size and digest of each file by name, and of an image in O(incoming). The action plugin reads them from the list
        of the bundle.
    type: dict
    default: {}
  images:
    description: The images of this host. The action plugin reads them from the list of the bundle.
    type: list
    elements: dict
    default: []
  incoming:
    description: Paths on the host to which the action plugin has copied files, or an image, by name.
    type: dict
    default: {}
  timeout:
    description: Seconds that an import may take.
    type: int
    default: 1800
"""

EXAMPLES = r"""
- name: Copy the packages for this host
  ipu.fabric.bundle_files:
    bundle: /media/bundle
    part: apt/debian-bookworm-amd64
    directory: /var/lib/ipu-fabric/bundle/apt

- name: Import the images for this host
  ipu.fabric.bundle_files:
    bundle: /media/bundle
    architecture: amd64
    control_plane: true
"""

RETURN = r"""
missing:
  description: Files or images that are missing, or differ.
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
  returned: with O(directory)
  type: list
  elements: str
  sample: []
imported:
  description: Images that were imported.
  returned: with O(architecture), when not in check mode
  type: list
  elements: str
  sample: [registry.k8s.io/pause:3.10.1]
pinned:
  description: Images that were only pinned.
  returned: with O(architecture)
  type: list
  elements: str
  sample: []
"""

from ..module_utils._common.result import run_module
from ..module_utils._host.bundle import apply_bundle


def main() -> None:
    run_module(
        {
            "bundle": {"type": "path"},
            "part": {"type": "str"},
            "directory": {"type": "path"},
            "architecture": {"type": "str"},
            "control_plane": {"type": "bool", "default": False},
            "files": {"type": "dict", "default": {}},
            "images": {"type": "list", "elements": "dict", "default": []},
            "incoming": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 1800},
        },
        apply_bundle,
        required_one_of=[("directory", "architecture")],
    )


if __name__ == "__main__":
    main()
