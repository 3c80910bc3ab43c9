# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._render.prometheus import metrics_objects

DOCUMENTATION = r"""
name: metrics_objects
short_description: The objects that let Prometheus and Grafana see a fabric
version_added: 0.1.0
description:
  - Gives the binding for Prometheus, a ServiceMonitor, Probes and a PrometheusRule, or a ConfigMap in their place, and
    a dashboard.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description:
      - C(namespace) of the IPU operator, C(monitoring_namespace), C(service_account) of Prometheus, and
        C(prometheus_operator), a boolean.
      - C(sources), C(networks), C(renew_days), C(labels), C(dashboard_labels), C(json_exporter), C(blackbox) and
        C(blackbox_module) are as the role P(ipu.fabric.metrics#role) documents them.
      - C(target) and C(token_file) are where the controller's metrics are for a Prometheus outside the cluster, and its
        token.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the objects
  ansible.builtin.debug:
    msg: "{{ {'namespace': 'ipu-operator', 'monitoring_namespace': 'monitoring', 'service_account': 'prometheus'}
      | ipu.fabric.metrics_objects }}"
"""

RETURN = r"""
_value:
  description: The objects, in the order in which they have to be applied.
  type: list
  elements: dict
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"metrics_objects": metrics_objects}
