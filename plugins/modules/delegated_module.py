#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: delegated_module
short_description: Run a module on many hosts outside the play at a time
version_added: 0.1.0
author: ipu.fabric contributors (@ipu-fabric)
description:
  - Delegates a module to each of O(hosts), as a loop with C(delegate_to) does. Such a loop runs on one host after
    another; this action runs on as many at a time as Ansible has forks.
  - Meant for modules that only read, since a run with C(--limit) still needs the facts of the other hosts.
  - Does not fail when the module fails on a host. RV(hosts) has the result of each host.
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  module:
    description: Full name of the module.
    type: str
    required: true
  hosts:
    description: Hosts of the inventory, each with the options of the module for it.
    type: dict
    required: true
  timeout:
    description: Seconds within which each host must answer. V(0) sets no limit.
    type: int
    default: 0
  also:
    description: More options for some of O(hosts).
    type: list
    elements: dict
    default: []
    suboptions:
      hosts:
        description: Names of the hosts. Hosts that are not in the option O(hosts) are left out.
        type: list
        elements: str
        required: true
      options:
        description: Options of the module.
        type: dict
        required: true
"""

EXAMPLES = r"""
- name: Read the facts of the other hosts
  ipu.fabric.delegated_module:
    module: ipu.fabric.host_info
    hosts: "{{ dict.fromkeys(groups['all'] | difference(ansible_play_hosts_all), {'ports': [6443]}) }}"
  run_once: true
  register: others
"""

RETURN = r"""
hosts:
  description:
    - What the module returned on each host.
    - V(unreachable) and V(msg) of a host that could not be reached, V(failed) and V(msg) if the module failed.
  returned: success
  type: dict
  sample: {w1: {changed: false, host: {hostname: w1}}, w2: {unreachable: true, msg: Connection timed out}}
"""
