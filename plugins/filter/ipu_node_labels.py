# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import readable

if t.TYPE_CHECKING:
    from ansible_collections.ipu.fabric.plugins.module_utils._ipu.controllers import (
        LabelledNode,
        NodeLabels,
        VipuController,
    )

DOCUMENTATION = r"""
name: ipu_node_labels
short_description: The labels by which V-IPU controllers find their nodes
version_added: 0.1.0
description:
  - Returns the nodes and labels for M(ipu.fabric.node_labels). Nodes that a controller serves no more lose its label.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description:
      - The V-IPU controllers that are wanted, each with C(label), a key=value, and C(nodes), names of nodes.
      - Without C(nodes) the labels of its nodes are not managed, and stay.
    type: list
    elements: dict
    required: true
  seen:
    description: What M(ipu.fabric.cluster_info) returned in C(ipu), C(vipu_controllers) and C(labelled) of it.
    type: dict
    default: {}
  absent:
    description: Whether the operator is removed, and all labels with it.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Label the IPU nodes
  ipu.fabric.node_labels:
    kubeconfig: artifacts/admin.conf
    nodes: "{{ controllers | ipu.fabric.ipu_node_labels }}"
  vars:
    controllers:
      - label: vipu-ctrl=vctl1
        nodes: [ipu1, ipu2]
"""

RETURN = r"""
_value:
  description: The nodes, each with C(name) and C(labels); a label of null is removed.
  type: list
  elements: dict
"""


class Seen(t.TypedDict, total=False):
    """What cluster_info returned in `ipu`, as far as this filter reads it."""

    vipu_controllers: t.List[VipuController]
    labelled: t.List[LabelledNode]


def node_labels(
    controllers: t.Sequence[VipuController], seen: t.Optional[Seen] = None, absent: bool = False
) -> t.List[NodeLabels]:
    from ansible_collections.ipu.fabric.plugins.module_utils._ipu.controllers import ipu_node_labels

    known: Seen = seen or {}
    return ipu_node_labels(controllers, known.get("vipu_controllers") or [], known.get("labelled") or [], absent)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"ipu_node_labels": readable(node_labels)}
