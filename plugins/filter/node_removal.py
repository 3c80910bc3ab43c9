# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import readable

if t.TYPE_CHECKING:
    from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.etcd import MemberFacts
    from ansible_collections.ipu.fabric.plugins.module_utils._model.observation import Observations
    from ansible_collections.ipu.fabric.plugins.module_utils._plan.node_removal import ClusterNode, RemovalPlan

DOCUMENTATION = r"""
name: node_removal
short_description: How nodes leave a cluster, or why they can't
version_added: 0.1.0
description:
  - Finds the nodes and their hosts, and the order in which they leave. Fails where the cluster would lose its last
    control plane, the address of its API, or etcd its majority, and where a kubelet would run on.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description: Names of nodes, or of their hosts in the inventory, as a list or with commas between.
    type: raw
    required: true
  observations:
    description: What hosts reported, as P(ipu.fabric.observations#filter) returns it.
    type: dict
    required: true
  ca:
    description: Digest of the cluster's CA, as M(ipu.fabric.cluster_info) returns it.
    type: str
    required: true
  nodes:
    description: Nodes of the cluster, as M(ipu.fabric.cluster_info) returns them.
    type: list
    elements: dict
    required: true
  members:
    description:
      - Members of etcd, as M(ipu.fabric.etcd_member) returns them. Without them etcd's majority is not looked at.
    type: list
    elements: dict
"""

EXAMPLES = r"""
- name: Show how a node would leave
  ansible.builtin.debug:
    msg: "{{ ('w2' | ipu.fabric.node_removal(observations, cluster.ca, cluster.nodes)).table }}"
"""

RETURN = r"""
_value:
  description:
    - C(nodes), in their order, each with C(name), C(host), C(groups), C(present), C(reset), C(control_plane), C(member)
      and C(note); C(through) and C(through_node), the control plane that speaks to etcd, and C(asks_etcd),
      whether it has to; C(table) and C(warnings).
  type: dict
"""


@readable
def node_removal(
    names: t.Union[str, t.Sequence[str], None],
    observations: Observations,
    ca: str,
    nodes: t.Sequence[ClusterNode],
    members: t.Optional[t.Sequence[MemberFacts]] = None,
) -> RemovalPlan:
    """The plan, or the error that says why there is none."""
    from ansible_collections.ipu.fabric.plugins.module_utils._plan.node_removal import asked_names, plan_removal

    return plan_removal(asked_names(names), observations, ca, nodes, members)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"node_removal": node_removal}
