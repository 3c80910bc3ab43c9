# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import readable

if t.TYPE_CHECKING:
    from ansible_collections.ipu.fabric.plugins.module_utils._ipu.chart_values import OperatorSettings, Values

DOCUMENTATION = r"""
name: ipu_operator_values
short_description: The chart values of an IPU operator release
version_added: 0.1.0
description:
  - Renders the values of the IPU operator's chart. What is not set stays the chart's own; what a release does not know
    is left out.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description:
      - C(release), the release of the chart.
      - C(vipu_controllers), a list of C(host), C(port) (8090) and C(label), a key=value.
      - C(images), with C(controller), C(proxy), C(launcher) and C(certgen), each a whole reference;
        C(image_pull_policy) of all of them, and C(pull_secrets), names of image pull secrets.
      - C(worker_host_network), whether workers use the host's network.
      - C(controller), C(proxy), C(webhook), C(launcher) and C(certgen), with the options of the variables of these
        names of the role P(ipu.fabric.ipu_operator#role).
      - C(values), further values, which win over all others.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the values
  vars:
    settings:
      release: 1.2.0
      vipu_controllers: [{host: 10.5.212.116, label: ipunode=true}]
  ansible.builtin.debug:
    msg: "{{ settings | ipu.fabric.ipu_operator_values }}"
"""

RETURN = r"""
_value:
  description: The values.
  type: dict
"""


def all_values(settings: OperatorSettings) -> Values:
    from ansible_collections.ipu.fabric.plugins.module_utils._ipu.chart_values import ipu_operator_values
    from ansible_collections.ipu.fabric.plugins.module_utils._kube.merge_values import merge_values

    return merge_values(ipu_operator_values(settings), settings.get("values") or {})


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"ipu_operator_values": readable(all_values)}
