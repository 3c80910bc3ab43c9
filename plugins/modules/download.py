#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: download
short_description: Download a file, and check what it is
version_added: 0.1.0
description:
  - The file gets its name when it is whole and has the digest that it should have.
  - Unlike C(ansible.builtin.get_url) it takes a proxy whose password stays secret.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.proxy
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  url:
    description: Where it is, with V(http://), V(https://) or V(file://).
    type: str
    required: true
  checksum:
    description:
      - V(sha256:DIGEST), or V(sha256:URL) of a list of digests, as C(sha256sum) writes it.
      - Empty takes any file, and downloads it each time.
    type: str
    default: ""
  dest:
    description: Where it goes. The directory has to be there.
    type: path
    required: true
  mode:
    description: Its permissions, in octal digits with a leading zero.
    type: str
    default: "0644"
  timeout:
    description: Seconds in which the server has to answer.
    type: int
    default: 30
"""

EXAMPLES = r"""
- name: Download Helm
  ipu.fabric.download:
    url: https://get.helm.sh/helm-v3.22.0-linux-amd64.tar.gz
    checksum: sha256:https://get.helm.sh/helm-v3.22.0-linux-amd64.tar.gz.sha256sum
    dest: /root/helm.tar.gz
"""

RETURN = r"""
sha256:
  description: SHA-256 of the file. In check mode the one that it should have, if that is known.
  returned: success
  type: str
  sample: 7f9e1b4d0c0a5c2f9f6b1f7f1c3f7a0d5b8e6c4a2d9e8f7b6a5c4d3e2f1a0b9c
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.proxy import PROXY
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._host.download import download


def main() -> None:
    run_module(
        {
            "url": {"type": "str", "required": True},
            "checksum": {"type": "str", "default": ""},
            "dest": {"type": "path", "required": True},
            "mode": {"type": "str", "default": "0644"},
            "timeout": {"type": "int", "default": 30},
            "download_proxy": PROXY,
        },
        download,
        hidden=("download_proxy",),
    )


if __name__ == "__main__":
    main()
