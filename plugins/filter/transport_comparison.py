# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ..plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: transport_comparison
short_description: Compare RoCE with TCP, from the logs of MPI benchmarks
version_added: 0.1.0
description:
  - Reads tables of latency and bandwidth as OSU's benchmarks print them, and counters that ranks print with C(count)
    of the filter P(ipu.fabric.mpi_job#filter). Returns them with ratios, and as a report in Markdown and in HTML.
  - The data of RoCE must show in the counters of an RDMA device, and that of TCP in those of an interface, with at
    least one message of each size.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description:
      - C(logs) is needed. It has V(roce) and V(tcp), each the log of a job, or those of several jobs in a list.
      - C(title) is the title of the report, C(about) a dictionary of further lines for its head.
      - C(interfaces) are those of the fabric in the pods, such as V(net1). TCP over another interface is a problem.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Write a report
  ansible.builtin.copy:
    content: "{{ (measured | ipu.fabric.transport_comparison).markdown }}"
    dest: artifacts/transports.md
    mode: "0644"
  vars:
    measured:
      logs: {roce: "{{ roce.logs.values() | list }}", tcp: "{{ tcp.logs.values() | list }}"}
      about: {network: rdma-net}
      interfaces: [net1]
"""

RETURN = r"""
_value:
  description:
    - C(summary), sentences on the smallest message for latency and the largest for bandwidth.
    - C(tables), each with C(title), C(unit), C(less_is_better) and C(rows) of C(size), C(roce), C(tcp) and C(ratio),
      which is above 1 if RoCE is better.
    - C(moved), by how much counters of each pod's devices and interfaces grew, and C(ways), the way that the data of
      each transport took. C(problems) lists transports whose data took another way.
    - C(markdown) and C(html), the report.
  type: dict
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"transport_comparison": on_first_use("plugin_utils._render.transports", "transport_comparison")}
