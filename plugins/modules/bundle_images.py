#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bundle_images
short_description: Give containerd of a host the images of a bundle
version_added: 0.1.0
description:
  - Imports the images that containerd does not have, by the digest of each, under their own names.
  - Pins them, so that the kubelet does not remove what could not be pulled again.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  bundle:
    description: The bundle, a directory on the controller.
    type: path
  architecture:
    description: Images are made for it, such as V(amd64).
    type: str
  control_plane:
    description: Whether the host is a control plane, and needs its images too.
    type: bool
    default: false
  images:
    description: The images of this host. The action reads them from the list of the bundle.
    type: list
    elements: dict
    default: []
  name:
    description: The image in O(archive).
    type: str
    default: ""
  archive:
    description: Where the action has put an image on the host.
    type: path
  file:
    description: Size and digest that O(archive) must have.
    type: dict
    default: {}
  timeout:
    description: Seconds that an import may take.
    type: int
    default: 1800
"""

EXAMPLES = r"""
- name: Import the images for this host
  ipu.fabric.bundle_images:
    bundle: /media/bundle
    architecture: amd64
    control_plane: true
"""

RETURN = r"""
missing:
  description: Images that containerd does not have.
  returned: success
  type: list
  elements: str
  sample: []
imported:
  description: Images that were imported.
  returned: when not in check mode
  type: list
  elements: str
  sample: [registry.k8s.io/pause:3.10.1]
pinned:
  description: Images that were only pinned.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._host.bundle import apply_images


def main() -> None:
    run_module(
        {
            "bundle": {"type": "path"},
            "architecture": {"type": "str"},
            "control_plane": {"type": "bool", "default": False},
            "images": {"type": "list", "elements": "dict", "default": []},
            "name": {"type": "str", "default": ""},
            "archive": {"type": "path"},
            "file": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 1800},
        },
        apply_images,
    )


if __name__ == "__main__":
    main()
