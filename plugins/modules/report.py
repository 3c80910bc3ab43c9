#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Show a text as it is
version_added: 0.1.0
author: ipu.fabric contributors (@ipu-fabric)
description:
  - Prints a text line by line, without the quotes of M(ansible.builtin.debug), whatever the callback.
  - Runs on the controller and touches no host.
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  text:
    description: What to show.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show the plan
  ipu.fabric.report:
    text: "{{ __plan.text }}"
  run_once: true
"""

RETURN = r""" # """
