# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._render.prometheus import files

DOCUMENTATION = r"""
name: metrics_files
short_description: What a Prometheus without its operator, and the exporters, are configured with
version_added: 0.1.0
description:
  - Gives files by name, each of them YAML. C(scrape.yml), C(rules.yml), and those of the exporters that the site has.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description: The settings, as P(ipu.fabric.metrics_objects#filter) takes them.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the rules
  ansible.builtin.debug:
    msg: "{{ ({'namespace': 'ipu-operator', 'sources': ['apiserver']} | ipu.fabric.metrics_files)['rules.yml'] }}"
"""

RETURN = r"""
_value:
  description: The files, by name.
  type: dict
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"metrics_files": files}
