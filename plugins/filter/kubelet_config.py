# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import plain, readable

DOCUMENTATION = r"""
name: kubelet_config
short_description: The kubelet's configuration with these settings
version_added: 0.1.0
description:
  - Sets keys of a KubeletConfiguration, and leaves all others as they are.
  - A text that has them all is returned as it is, down to its comments.
author: ipu.fabric contributors (@ipu-fabric)
positional: settings
options:
  _input:
    description: The text of C(/var/lib/kubelet/config.yaml). Empty stays empty.
    type: str
    required: true
  settings:
    description: Fields of a KubeletConfiguration. Mappings are merged, everything else is replaced.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what the file becomes
  ansible.builtin.debug:
    msg: "{{ 'kind: KubeletConfiguration' | ipu.fabric.kubelet_config({'podPidsLimit': 16384}) }}"
"""

RETURN = r"""
_value:
  description: The text of the file.
  type: str
"""


@readable
def with_settings(text: str, settings: t.Dict[str, t.Any]) -> str:
    from ansible_collections.ipu.fabric.plugins.module_utils._kube.kubelet_config import kubelet_config

    return kubelet_config(text, plain(settings))


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"kubelet_config": with_settings}
