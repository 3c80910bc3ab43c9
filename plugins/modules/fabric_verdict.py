#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_verdict
short_description: Judge what pods saw of the fabric, and write the reports
version_added: 0.1.0
description:
  - Compares the facts of M(ipu.fabric.fabric_probe) with the plan. Asks nobody.
  - Writes C(report.json), C(report.html) (one page that needs nothing else) and C(junit.xml) to O(artifacts_dir).
    They are a log of this run, so writing them is no change. Check mode writes nothing.
  - RDMA tests of pairs are shown as matrices, one for each network and test; clients are rows, servers are columns.
    A terminal gets the worst pairs where a matrix is too wide. C(report.json) has the figures under C(matrices).
  - A failed check does not fail the module; RV(failed_checks) says how many there are.
author: ipu.fabric contributors (@ipu-fabric)
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
    description: Directory for the reports. Empty writes none.
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
- name: Judge what the pods saw
  ipu.fabric.fabric_verdict:
    plan: "{{ fabric_plan }}"
    probe: "{{ probe.probe }}"
    artifacts_dir: artifacts
  delegate_to: localhost
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
  description: The checks for a terminal of 80 columns; the summary is its last line.
  returned: success
  type: str
reports:
  description: The files that were written.
  returned: success
  type: list
  elements: str
"""

import datetime
import os
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, run_module
from ansible_collections.ipu.fabric.plugins.module_utils._verify import report
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import FAILED, Check, Expect
from ansible_collections.ipu.fabric.plugins.module_utils._verify.checks import counts, judge, summary


def body(module: AnsibleModule) -> t.Dict[str, t.Any]:
    plan, probe = module.params["plan"], module.params["probe"]
    expect = Expect(**{name: module.params[name] for name in Expect._fields})
    checks = judge(plan, probe, expect)
    written = []
    if module.params["artifacts_dir"] and not module.check_mode:
        written = write(module.params["artifacts_dir"], checks, plan, probe)
    return {
        "changed": False,
        "checks": [report.as_dict(check) for check in checks],
        "failed_checks": counts(checks)[FAILED],
        "summary": summary(checks),
        "table": report.table(checks),
        "reports": written,
    }


def write(
    directory: str, checks: t.Sequence[Check], plan: t.Dict[str, t.Any], probe: t.Dict[str, t.Any]
) -> t.List[str]:
    head = report.Head(
        time=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=probe.get("seconds", 0),
        cluster=str(plan.get("cluster", {}).get("endpoint", "")),
        version=str(probe.get("version", "")),
    )
    texts = {"report.json": report.to_json, "report.html": report.to_html, "junit.xml": report.to_junit}
    paths = {name: os.path.join(directory, name) for name in texts}
    try:
        os.makedirs(directory, exist_ok=True)
        for name, render in texts.items():
            with open(paths[name], "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(render(checks, head))
    except OSError as error:
        raise FabricError(
            "The reports were to be written.",
            directory,
            str(error),
            "Set artifacts_dir to a directory that can be written.",
        ) from error
    return list(paths.values())


def main() -> None:
    spec = {
        "plan": {"type": "dict", "required": True},
        "probe": {"type": "dict", "required": True},
        "artifacts_dir": {"type": "path", "default": ""},
        "memlock": {"type": "str", "default": "unlimited"},
        "rdma_bandwidth": {"type": "float", "default": 0},
        "rdma_latency": {"type": "float", "default": 0},
        "host_traffic": {"type": "float", "default": 0},
        "ipu": {"type": "bool", "default": True},
        "ipu_partition": {"type": "str", "default": ""},
    }
    run_module(spec, body, libraries=("jmespath", "netaddr"))


if __name__ == "__main__":
    main()
