#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: registry_images_info
short_description: Find images that a host can get neither from a mirror nor from their own registry
version_added: 0.1.0
description:
  - Asks a mirror for the manifest of each image, as containerd does. For those that it does not have it tries to reach
    the registry in the image's name. It pulls nothing.
  - An image is lacking if the mirror answers with 404 and its own registry does not answer at all. Other answers of a
    mirror prove nothing, and count as if it had the image.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.proxy
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  mirror:
    description: URL of the mirror, with V(http://) or V(https://).
    type: str
    required: true
  images:
    description: Names of images. Without a registry they are Docker Hub's, as for containerd.
    type: list
    elements: str
    required: true
  login:
    description: The login at the mirror, sent with each request (Basic).
    type: dict
    default: {}
    suboptions:
      username:
        description: Name of the user.
        type: str
        default: ""
      password:
        description: Password of the user.
        type: str
        default: ""
  timeout:
    description: Seconds in which a server has to answer.
    type: int
    default: 10
"""

EXAMPLES = r"""
- name: Ask the mirror for the images of Calico
  ipu.fabric.registry_images_info:
    mirror: https://registry.site:5000
    images:
      - quay.io/calico/node:v3.32.1
      - quay.io/calico/cni:v3.32.1
  register: images
  failed_when: images.lacking | length > 0
"""

RETURN = r"""
lacking:
  description: The images that this host can't get, in the order of O(images).
  returned: success
  type: list
  elements: dict
  contains:
    image:
      description: Its name.
      type: str
    seen:
      description: How the registry in its name could not be reached.
      type: str
  sample:
    - image: quay.io/calico/node:v3.32.1
      seen: "quay.io: [Errno -2] Name or service not known"
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.proxy import PROXY
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._host.registry import read_lacking


def main() -> None:
    run_module(
        {
            "mirror": {"type": "str", "required": True},
            "images": {"type": "list", "elements": "str", "required": True},
            "login": {
                "type": "dict",
                "default": {},
                "options": {
                    "username": {"type": "str", "default": ""},
                    "password": {"type": "str", "default": "", "no_log": True},
                },
            },
            "timeout": {"type": "int", "default": 10},
            "download_proxy": PROXY,
        },
        read_lacking,
        hidden=("login", "download_proxy"),
    )


if __name__ == "__main__":
    main()
