# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ..plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: known_digest
short_description: Return the SHA-256 of what upstream publishes for a release
version_added: 0.1.0
description:
  - Looks a file up in the table of releases of this collection.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description:
      - A chart and its release joined by a hyphen, V(calico-RELEASE/FILE) for a manifest of Calico, or the file name of
        an archive of Helm.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show the digest that the archive of Helm must have
  ansible.builtin.debug:
    msg: "{{ 'helm-v3.22.0-linux-amd64.tar.gz' | ipu.fabric.known_digest }}"
"""

RETURN = r"""
_value:
  description: 64 hexadecimal digits. Empty if the file is not in the table.
  type: str
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"known_digest": on_first_use("module_utils._network.digests", "known_digest")}
