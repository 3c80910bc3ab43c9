# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy of modules that download."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  download_proxy:
    description:
      - A proxy for what is downloaded. Its URLs may have a password in them. Neither output nor logs have them.
      - C(environment) of a task is no place for such a URL, since it is shown with C(-vvv) and in lists of processes.
    type: dict
    default: {}
    suboptions:
      http:
        description: URL of the proxy for C(http://). Empty is none.
        type: str
        default: ""
      https:
        description: URL of the proxy for C(https://). Empty is none.
        type: str
        default: ""
      no_proxy:
        description: Names, addresses, domains and CIDRs that are reached without it.
        type: list
        elements: str
        default: []
"""
