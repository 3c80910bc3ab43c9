#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_proxy
short_description: Tell apt and containerd of a proxy
version_added: 0.1.0
description:
  - Writes the proxy of apt, and a file of variables for containerd's unit. Without a proxy it removes both.
  - The URL may have a password in it. It is in no output, and only root reads files that have it.
  - A drop-in of containerd's unit has to name its file; the role P(ipu.fabric.kubernetes#role) writes that.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  http:
    description: URL of the proxy for C(http://). Empty is none.
    type: str
    default: ""
  https:
    description: URL of the proxy for C(https://). Empty is none.
    type: str
    default: ""
  no_proxy:
    description: Names, addresses, domains and CIDRs that are reached without it. apt takes names and addresses only.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Download through a proxy
  ipu.fabric.host_proxy:
    http: http://proxy.site:3128
    https: http://proxy.site:3128
    no_proxy: [localhost, 127.0.0.1, .svc, .cluster.local, 10.96.0.0/12, registry.site]
"""

RETURN = r"""
files:
  description: Files that were written or removed, or would be.
  returned: success
  type: list
  elements: str
  sample: [/etc/apt/apt.conf.d/90-ipu-fabric-proxy]
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._host.proxy import apply_proxy


def main() -> None:
    run_module(
        {
            "http": {"type": "str", "default": "", "no_log": True},
            "https": {"type": "str", "default": "", "no_log": True},
            "no_proxy": {"type": "list", "elements": "str", "default": []},
        },
        apply_proxy,
    )


if __name__ == "__main__":
    main()
