# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from ..module_utils._model.plan import Plan

DOCUMENTATION = r"""
name: plan_nodes
short_description: Return what a plan says about hosts, by node name, and about charts
version_added: 0.1.0
description:
  - Returns the nodes with RDMA NICs, the addresses of all nodes, the taints that they join with, the V-IPU controllers
    with the nodes that each serves, and the digests of charts.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description: A plan, as M(ipu.fabric.fabric_plan) returns it.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the nodes with RDMA NICs
  ansible.builtin.debug:
    msg: "{{ (fabric_plan | ipu.fabric.plan_nodes).rdma }}"
"""

RETURN = r"""
_value:
  description:
    - C(rdma), a list of node names, and C(nic_groups) as in the plan, with C(nodes).
    - C(addresses) and C(taints), lists by node name, C(vipu_controllers), each with
      C(host), C(port), C(label) and C(nodes), and C(chart_sha256), by the chart's name.
  type: dict
"""


def plan_nodes(plan: Plan) -> t.Dict[str, t.Any]:
    """What a plan says about hosts, by the names of their nodes, and about charts."""
    from ..module_utils._common.admission import ENFORCE, TAINT

    hosts = plan["hosts"]
    rdma = [h["node"] for h in hosts.values() if any(link.get("rdma_netdevs") for link in h["links"].values())]
    controllers = [
        {
            "host": controller["address"],
            "port": controller["port"],
            "label": controller["label"],
            "nodes": [hosts[host]["node"] for host in controller["serves"]],
        }
        for controller in plan["vipu"]["controllers"]
    ]
    sources = [(source["name"].split(), source["sha256"]) for source in plan.get("sources", [])]
    closed = hosts.values() if plan.get("admission", {}).get("mode") == ENFORCE else ()
    # A control plane that runs no pods and has no NIC of the fabric is not proved.
    proved = [host["node"] for host in closed if host["links"] or {"worker", "ipu"} & set(host["roles"])]
    return {
        "rdma": rdma,
        "nic_groups": [
            {**group, "nodes": [hosts[host]["node"] for host in group["hosts"]]} for group in plan.get("nic_groups", [])
        ],
        "taints": {node: [TAINT] for node in proved},
        "addresses": {host["node"]: host["address"].split(",") for host in hosts.values()},
        "vipu_controllers": controllers,
        "chart_sha256": {words[1]: sha256 for words, sha256 in sources if words[0] == "chart"},
    }


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"plan_nodes": plan_nodes}
