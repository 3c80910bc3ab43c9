# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: spiderpool_values
short_description: The chart values of Spiderpool
version_added: 0.1.0
description:
  - Renders the values of Spiderpool's chart. What is not set stays the chart's own.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description:
      - C(rdma_resources), the C(configList) of the RDMA shared device plugin, which is left out when it is empty.
      - C(multus) and C(cni_plugins), whether the chart installs multus and the standard CNI plugins.
      - C(cni_bin_directory) and C(cni_network_directory), where the container runtime looks for CNI plugins and
        configurations.
      - C(ipv6), whether Spiderpool gives out IPv6 addresses; true if it is not there. Hosts then forward IPv6.
      - C(detect_gateway) and C(detect_ip_conflict), whether a pod starts only if the gateways of its networks answer,
        and if nobody else has its addresses.
      - C(inject), whether pods with the annotation get networks and resources by a webhook, in the namespaces
        C(inject_namespaces) (all when it is empty), but not in C(inject_namespaces_exclude).
      - C(metrics), C(service_monitors) and C(dashboards), what there is for Prometheus and Grafana.
      - C(registry), in place of the images' own; C(pull_secrets), names of image pull secrets.
      - C(values), further values, which win over all others.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the values
  ansible.builtin.debug:
    msg: "{{ {'multus': true, 'cni_plugins': true} | ipu.fabric.spiderpool_values }}"
"""

RETURN = r"""
_value:
  description: The values.
  type: dict
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"spiderpool_values": on_first_use("module_utils._network.spiderpool", "values")}
