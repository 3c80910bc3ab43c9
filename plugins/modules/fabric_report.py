#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_report
short_description: Check what pods saw of the fabric, and write the reports
version_added: 0.1.0
description:
  - Compares the facts of M(ipu.fabric.fabric_probe) with the plan. Connects to no host.
  - Runs on the controller, whatever host the task is for, so the reports are written there.
  - Writes C(report.json), C(report.html) (one file that loads nothing else) and C(junit.xml) to O(artifacts_dir).
    They are a log of this run, so writing them is no change. Check mode writes nothing.
  - RDMA tests of pairs are shown as matrices, one for each network and test; clients are rows, servers are columns.
    A terminal gets the worst pairs where a matrix is too wide. C(report.json) has the figures under C(matrices).
  - A failed check does not fail the module; RV(failed_checks) says how many there are.
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - jmespath
  - netaddr
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  plan:
    description: The plan that the facts are compared with.
    type: dict
    required: true
  probe:
    description: RV(ipu.fabric.fabric_probe#module:probe).
    type: dict
    required: true
  artifacts_dir:
    description:
      - Directory on the controller for the reports. Empty writes none.
      - A relative path starts at the folder of the playbook.
    type: path
    default: ""
  memlock:
    description:
      - The least limit of locked memory in a pod, V(unlimited) or bytes.
      - The report says so when less than V(unlimited) is asked for.
    type: str
    default: unlimited
  rdma_bandwidth:
    description: The least average of C(ib_write_bw) between two pods in Gb/s.
    type: float
    default: 0
  rdma_latency:
    description:
      - The most that C(ib_read_lat) may typically take between two pods in microseconds. V(0) takes any figure.
    type: float
    default: 0
  host_traffic:
    description: The least of C(gc-hosttraffictest) in its slowest direction in Gb/s.
    type: float
    default: 0
  ipu:
    description: Whether the IPU checks count.
    type: bool
    default: true
  ipu_partition:
    description: The partition that M(ipu.fabric.fabric_probe) used for C(gc-hosttraffictest), if any.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Compare what the pods saw with the plan
  ipu.fabric.fabric_report:
    plan: "{{ fabric_plan }}"
    probe: "{{ probe.probe }}"
    artifacts_dir: artifacts
    rdma_bandwidth: 90
  run_once: true
  register: report

- name: Fail when a check failed
  ansible.builtin.assert:
    that: report.failed_checks == 0
    fail_msg: "{{ report.table }}"
  run_once: true
"""

RETURN = r"""
checks:
  description: Every check.
  returned: success
  type: list
  elements: dict
  contains:
    check:
      description: Name of the check.
      type: str
    status:
      description: V(passed), V(failed), or V(skipped).
      type: str
    node:
      description: The node that it is about, or empty.
      type: str
    pair:
      description: The two nodes that it is about, or empty.
      type: list
      elements: str
    network:
      description: The network that it is about, or empty.
      type: str
    expected:
      description: What should be.
      type: str
    seen:
      description: What is; for a skipped check, why it was skipped.
      type: str
    next:
      description: What to do about a failure.
      type: str
  sample:
    - check: mtu
      status: passed
      node: poplar-01
      network: rdma-net
      expected: "9000"
      seen: "9000"
failed_checks:
  description: How many checks failed.
  returned: success
  type: int
summary:
  description: The counts in one line.
  returned: success
  type: str
  sample: 41 passed, 0 failed, 9 skipped
table:
  description: The checks for a terminal; the summary is its last line.
  returned: success
  type: str
reports:
  description: The files that were written.
  returned: success
  type: list
  elements: str
"""
