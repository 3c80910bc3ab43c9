#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_report
short_description: Check what pods observed of the fabric, and write the reports
version_added: 0.1.0
description:
  - Compares the facts of M(ipu.fabric.fabric_probe) with the plan. Connects to no host.
  - Runs on the controller, whatever host the task is for, and writes the reports there.
  - Writes C(report.json), C(report.html) (one file that loads nothing else) and C(junit.xml) to O(artifacts_dir). They
    log this run, so writing them is no change. Check mode writes nothing.
  - Keeps time, outcome and counts of the last 20 proofs of the whole site in C(history.json) beside them, and their
    measurements in C(baseline.json). C(report.html) shows both.
  - RDMA tests of pairs are shown as matrices, one for each network and test; clients are rows, servers are columns. A
    terminal gets the worst pairs if a matrix is too wide. C(report.json) has the figures under C(matrices), and for
    each matrix under C(suspects) what its failures point to, a node, a path or all.
  - A check that the plan requires but that could not be made, for lack of a tool in the image or of a second node, is
    V(unproven) and says what is missing. A check of something that the plan does not have is V(skipped).
  - Neither a failed nor an unproven check fails the module; see RV(outcome).
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - cryptography
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
    description: RV(ipu.fabric.fabric_probe#module:probe). Either this or O(probe_file) is needed.
    type: dict
  probe_file:
    description: RV(ipu.fabric.fabric_probe#module:probe_file), a file on the controller.
    type: path
  artifacts_dir:
    description:
      - Directory on the controller for the reports. Empty writes none.
      - A relative path is relative to the folder of the playbook.
    type: path
    default: ""
  memlock:
    description:
      - The lowest accepted limit of locked memory in a pod, V(unlimited) or bytes.
      - The report says so if this is less than V(unlimited).
    type: str
    default: unlimited
  rdma_bandwidth:
    description:
      - The lowest accepted average of C(ib_write_bw) between two pods in Gb/s, or V(auto).
      - V(auto) expects 80% of what the ports and PCIe links of both nodes carry, and 90% of the median of the network's
        other pairs if there are at least three. With software RDMA, it expects only a quarter of that median.
      - V(0) only measures, so the check is V(unproven).
    type: str
    default: auto
  rdma_latency:
    description:
      - The highest accepted typical latency of C(ib_read_lat) between two pods in microseconds, or V(auto).
      - V(auto) allows 20 microseconds, and twice the median of the network's other pairs (at least 5 microseconds above
        it) if there are at least three. With software RDMA, only the median counts, four times and 1 ms above it.
      - V(0) only measures, so the check is V(unproven).
    type: str
    default: auto
  host_traffic:
    description: The lowest accepted result of C(gc-hosttraffictest) in its slowest direction in Gb/s.
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
  gpu:
    description: Whether the checks of GPUs count.
    type: bool
    default: false
  gpu_rdma:
    description: How GPUDirect RDMA is planned, by the kernel's C(dma-buf) or by the module nvidia_peermem.
    type: str
    choices: [dma-buf, peermem]
    default: dma-buf
  gpu_bandwidth:
    description:
      - As O(rdma_bandwidth), between the memory of GPUs, which M(ipu.fabric.fabric_probe) gives its pods
        (O(ipu.fabric.fabric_probe#module:gpu)).
    type: str
    default: auto
  gdrcopy:
    description: Whether the module gdrdrv is planned.
    type: bool
    default: false
  rail_isolation:
    description:
      - V(expect) if pods must not reach each other from network to network, neither on layer 2 nor through a router.
        V(forbid) if they must. Empty checks neither.
      - M(ipu.fabric.fabric_probe) needs O(ipu.fabric.fabric_probe#module:across_rails) for this.
    type: str
    choices: ["", expect, forbid]
    default: ""
  nodes:
    description:
      - The nodes that M(ipu.fabric.fabric_probe) probed, if not all. Only their checks and those of the cluster count.
    type: list
    elements: str
    default: []
  checks:
    description:
      - Names of the only checks to make, for example after a repair. RV(outcome) is then never V(proved), and no file
        is written, so that the reports of the last proof stay.
      - Empty makes all.
    type: list
    elements: str
    default: []
  before:
    description: RV(checks) of an earlier report. RV(regressions) compares with it.
    type: list
    elements: dict
    default: []
  baseline:
    description:
      - What to compare the proof with. Empty takes the last proofs of the whole site, which O(artifacts_dir) remembers.
      - The path of a C(report.json) selects that proof. V(none) compares with nothing. V(accept) makes later proofs
        expect what this one saw.
      - A figure that is worse by more than earlier proofs differed, a check that passed before and does not now, and a
        node with other roles or networks are failures of the check C(regression).
      - With O(before), nothing else is compared unless this option is set.
    type: str
    default: ""
  report_key:
    description:
      - Private key (RSA or EC, PEM, without a passphrase) on the controller that signs C(report.json), or none. The
        signature is in C(report.json.sig).
      - A key that anyone but its owner and its group may read is refused.
    type: str
    default: ""
  allow_unproven:
    description: Names of checks that the site accepts unproven. They count as V(accepted).
    type: list
    elements: str
    default: []
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

- name: Fail unless the fabric is proved
  ansible.builtin.assert:
    that: report.outcome == "proved"
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
      description: V(passed), V(failed), V(unproven), V(accepted) or V(skipped).
      type: str
    node:
      description: The node that the check is about, or empty.
      type: str
    pair:
      description: The two nodes that the check is about, or empty.
      type: list
      elements: str
    network:
      description: The network that the check is about, or empty.
      type: str
    expected:
      description: What was expected.
      type: str
    seen:
      description: What was seen, or why the check was not made.
      type: str
    next:
      description: What to do about a failure, or what is missing to prove it.
      type: str
  sample:
    - check: mtu
      status: passed
      node: poplar-01
      network: rdma-net
      expected: "9000"
      seen: "9000"
regressions:
  description:
    - With O(before), checks that passed then and do not pass now, and failed checks that were not made then.
    - A check that had failed or was unproven is no regression.
  returned: success
  type: list
  elements: dict
outcome:
  description:
    - V(failed) if a check failed, else V(unproven) if one is unproven, else V(proved). In check mode V(not run).
    - With O(checks), V(partial) instead of V(proved).
    - C(report.json) has it too.
  returned: success
  type: str
  sample: proved
failed_checks:
  description: How many checks failed.
  returned: success
  type: int
unproven:
  description: What is missing to prove the rest, with the names of the checks that need it.
  returned: success
  type: list
  elements: dict
  sample:
    - checks: [write_bandwidth]
      seen: ib_write_bw is not in the image registry.site/small
      missing: "Set verify_rdma_image (without RDMA: verify_image) to an image that has ib_write_bw."
summary:
  description: The counts in one line.
  returned: success
  type: str
  sample: 41 passed, 0 failed, 9 skipped
table:
  description: The checks for a terminal; the summary is its last line.
  returned: success
  type: str
refusal:
  description:
    - Why a playbook should fail. Empty if the fabric is proved or nothing was tested.
    - With O(before), empty if the fabric is no worse than before.
  returned: success
  type: str
  sample: ""
bare:
  description: Whether the cluster has nothing of the planned fabric, as before C(site) and after C(reset).
  returned: success
  type: bool
proofs:
  description:
    - What this proof says of each node that it tested, for M(ipu.fabric.node_admission). Empty with O(checks).
    - A failed pair of nodes counts against the node that it points to. Checks of the cluster count against no node.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the node.
      type: str
    status:
      description: V(True), V(False), or V(Unknown) if it could not be tested, or if a failed path points to no node.
      type: str
    reason:
      description: V(Proved), V(CheckFailed), V(PathFailed), V(PathUnclear) or V(Unproven).
      type: str
    text:
      description: What was seen, and the next step.
      type: str
time:
  description: When the report was made, UTC in ISO 8601.
  returned: success
  type: str
sha256:
  description: SHA-256 of C(report.json); empty if none was written.
  returned: success
  type: str
reports:
  description: The files that were written.
  returned: success
  type: list
  elements: str
"""
