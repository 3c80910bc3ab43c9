#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: program
short_description: Download a file, or a program in an archive, and verify it
version_added: 0.1.0
description:
  - The file gets its name only when it is complete and has the expected digest.
  - Unlike C(ansible.builtin.get_url), it supports a proxy whose password stays secret.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.proxy
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  url:
    description: URL of the file or archive, with V(http://), V(https://) or V(file://).
    type: str
    required: true
  checksum:
    description:
      - V(sha256:DIGEST), or V(sha256:URL) of a list of digests, as C(sha256sum) writes it. V(sha256:) may be left out.
      - Empty accepts any file, and downloads it each time.
    type: str
    default: ""
  path:
    description: Destination of the file or program.
    type: path
    required: true
  member:
    description: The program's file name in a tar archive. Empty if the file itself is wanted.
    type: str
    default: ""
  record:
    description:
      - File that keeps the digests of a program and of its archive. If they are not those of O(path) and O(checksum),
        the program is installed again. Needed with O(member).
    type: path
  sha256:
    description: SHA-256 that the program in the archive must have. Empty accepts any.
    type: str
    default: ""
  version:
    description:
      - Arguments with which the program prints its release. If set, the program is a tool of the run, which check mode
        does without, and an installed program is left alone. It must match O(record) or O(sha256). With neither, it
        must report the release in the file name of O(url), and there is a warning.
    type: list
    elements: str
    default: []
  mode:
    description: Permissions of O(path), in octal digits with a leading zero.
    type: str
    default: "0755"
  setting:
    description: The variable that has O(url), for error messages.
    type: str
    default: ""
  timeout:
    description: Seconds within which the server must answer.
    type: int
    default: 30
"""

EXAMPLES = r"""
- name: Install Helm
  ipu.fabric.program:
    url: https://get.helm.sh/helm-v3.22.0-linux-amd64.tar.gz
    checksum: sha256:https://get.helm.sh/helm-v3.22.0-linux-amd64.tar.gz.sha256sum
    path: /usr/local/bin/helm
    member: helm
    record: /usr/local/bin/helm.sha256
"""

RETURN = r"""
sha256:
  description: SHA-256 of O(path). In check mode, the expected one, if known.
  returned: success
  type: str
  sample: 7f9e1b4d0c0a5c2f9f6b1f7f1c3f7a0d5b8e6c4a2d9e8f7b6a5c4d3e2f1a0b9c
"""

from ..module_utils._common.proxy import PROXY
from ..module_utils._common.result import run_module
from ..module_utils._host.download import install


def main() -> None:
    run_module(
        {
            "url": {"type": "str", "required": True},
            "checksum": {"type": "str", "default": ""},
            "path": {"type": "path", "required": True},
            "member": {"type": "str", "default": ""},
            "record": {"type": "path"},
            "sha256": {"type": "str", "default": ""},
            "version": {"type": "list", "elements": "str", "default": []},
            "mode": {"type": "str", "default": "0755"},
            "setting": {"type": "str", "default": ""},
            "timeout": {"type": "int", "default": 30},
            "download_proxy": PROXY,
        },
        install,
        hidden=("download_proxy",),
    )


if __name__ == "__main__":
    main()
