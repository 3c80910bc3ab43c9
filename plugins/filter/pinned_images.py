# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ..plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: pinned_images
short_description: Add digests from a table to images
version_added: 0.1.0
description:
  - Adds the digest from the table to each image that the table has. The tag stays, for people.
  - Images that have a digest already, or that the table does not have, stay as they are.
author: ipu.fabric contributors (@ipu-fabric)
positional: digests
options:
  _input:
    description: An image, a list of images, or Kubernetes objects, whose containers' images get digests.
    type: raw
    required: true
  digests:
    description: The digest of each image, V(sha256:) and 64 digits, by its name with the tag.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the image that is pulled
  ansible.builtin.debug:
    msg: "{{ 'ghcr.io/flannel-io/flannel:v0.28.4' | ipu.fabric.pinned_images(fabric_plan.image_digests) }}"
"""

RETURN = r"""
_value:
  description: The input, with digests.
  type: raw
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"pinned_images": on_first_use("module_utils._common.digests", "pin_images")}
