# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

DOCUMENTATION = r"""
name: plan_parts
short_description: Return which roles apply a plan, in their order
version_added: 0.1.0
description:
  - Internal. The playbooks include these roles one after another, in one task, since a task that is skipped takes time
    too.
positional: site, tasks
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description: A plan, as M(ipu.fabric.fabric_plan) returns it.
    type: dict
    required: true
  site:
    description: The settings that all playbooks share, V(fabric_site).
    type: dict
    required: true
  tasks:
    description: A file of tasks of P(ipu.fabric.kubernetes#role) that runs alone. Empty for all parts.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Operators and networks
  ansible.builtin.include_role:
    name: ipu.fabric.{{ item.role }}
    tasks_from: "{{ item.tasks }}"
  loop: "{{ (fabric_plan | ipu.fabric.plan_parts(fabric_site)).fabric }}"
"""

RETURN = r"""
_value:
  description:
    - V(before), what comes before hosts reboot for their NICs, V(cluster), what makes them nodes, and V(fabric), what
      installs operators and networks. Each part has V(title), V(role) and V(tasks), the file of its tasks.
    - V(asks_mirror) says whether V(before) asks a mirror for images.
  type: dict
"""

Settings = t.Mapping[str, t.Any]


def part(title: str, role: str, tasks: str = "main") -> t.Dict[str, str]:
    return {"title": title, "role": role, "tasks": tasks}


def plan_parts(plan: Settings, site: Settings, tasks: str = "") -> t.Dict[str, t.Any]:
    """The roles of each play. All hosts of a play have the same list: Ansible would change the order of others."""
    from ..module_utils._model.stacks import named_stack

    releases, cluster, managed = plan["releases"], plan["cluster"], site["manage_kubernetes"]
    asks_mirror = bool(
        cluster.get("running") is None
        and site["mirror"]["registry"]
        and not site["bundle"]
        and site.get("runtime") != "docker"
    )
    embedded = (cluster.get("distribution") or {}).get("name") in ("k3s", "rke2") and not tasks
    stack = named_stack(str(releases.get("stack", "")))
    title = stack.title[:1].upper() + stack.title[1:] if stack else ""
    before = [
        # Before any host is changed, so that gaps in a mirror show at once.
        (part("Manifests of the pod network, images of the mirror", "kubernetes", "sources"),
         managed and (releases["cni"] == "calico" or asks_mirror)),
        # Before the cluster is built, since its certificates are not valid on hosts whose clocks are behind.
        (part("Clocks", "chrony"), site.get("ntp")),
    ]  # fmt: skip
    nodes = [
        (part("Kubernetes", "kubernetes", tasks or "main"), managed),
        # Before locked memory, so that one restart is enough for both.
        (part("Files of the containerd of k3s and RKE2", "embedded_containerd", "files"), embedded),
        (part("Locked memory", "memlock"), not tasks),
        (part("Restart of k3s and RKE2", "embedded_containerd", "finish"), embedded),
    ]
    fabric = [
        (part(title, str(releases.get("stack"))), stack),
        (part("Whereabouts", "whereabouts"), releases.get("whereabouts_standalone")),
        # Other stacks create their networks themselves.
        (part("Networks", "macvlan", "apply"), releases.get("stack") == "network_operator"),
        (part("GPU operator", "gpu_operator"), releases.get("gpu_operator")),
        (part("IPU operator", "ipu_operator"), plan.get("ipu_operator")),
    ]
    return {
        "asks_mirror": asks_mirror,
        "before": [each for each, is_wanted in before if is_wanted and not tasks],
        "cluster": [each for each, is_wanted in nodes if is_wanted],
        "fabric": [each for each, is_wanted in fabric if is_wanted],
    }


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"plan_parts": plan_parts}
