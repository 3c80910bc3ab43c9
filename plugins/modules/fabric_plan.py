#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turn an inventory and what its hosts said into a plan."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_plan
short_description: Plan a cluster and its fabric networks from what the hosts said
version_added: 0.1.0
author: ipu.fabric contributors (@ipu-fabric)
description:
  - Decides which NIC, addresses, releases and V-IPU controllers are used, and finds what is impossible and why.
  - Runs on the controller and asks no host. The same input gives the same plan.
  - A host that could not be looked at is planned as observations.json of the last run has it, so that it keeps its
    place in the pools, and its addresses. That it was not seen is an error all the same, unless O(allow) has
    V(unobserved).
  - Counts as changed when what is decided differs from the plan.json of the last run. Findings alone do not count.
  - Does not fail because of findings. The caller reads them in RV(plan.findings).
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  hosts:
    description:
      - For each inventory name V(groups), V(address), and the results of M(ipu.fabric.host_info) as V(host), of
        M(ipu.fabric.rdma_info) as V(rdma), of M(ipu.fabric.vipu_info) as V(vipu), and V(errors).
      - The filter P(ipu.fabric.observations#filter) makes it.
    type: dict
    required: true
  scope:
    description:
      - V(plan) is the whole plan.
      - V(preflight) judges hosts and their NICs only, and writes no files.
    type: str
    choices: [plan, preflight]
    default: plan
  artifacts_dir:
    description:
      - Folder for plan.json, plan.html, and observations.json, what the hosts said. It is made if it is not there.
      - Empty writes nothing.
    type: path
    default: ""
  inventory_sources:
    description: Inventory files and folders of this run. Files of the plan must not lie in one of these folders.
    type: list
    elements: path
    default: []
  allow:
    description: Names of checks whose errors count as warnings.
    type: list
    elements: str
    default: []
  manage_kubernetes:
    description:
      - Whether the role P(ipu.fabric.kubernetes#role) builds the cluster.
      - If not, its hosts are not judged as to ports, swap and the like, and its version is taken from them.
    type: bool
    default: true
  kubernetes_version:
    description: Kubernetes release.
    type: str
    default: 1.35.4
  cni:
    description: The pod network, V(calico), V(flannel) or V(none).
    type: str
    default: calico
  pod_cidr:
    description: Addresses of pods, one CIDR or one of each family with a comma between.
    type: str
    default: 10.244.0.0/16
  service_cidr:
    description: Addresses of services, written like O(pod_cidr).
    type: str
    default: 10.96.0.0/12
  control_plane_endpoint:
    description: Host and port of the API server. Empty takes the first control plane.
    type: str
    default: ""
  ipu:
    description: Whether the hosts of ipu_node have IPUs.
    type: bool
    default: true
  ipu_operator_version:
    description: Release of the IPU operator.
    type: str
    default: 1.2.0
  stack:
    description: What makes the fabric networks, V(network_operator) or V(spiderpool).
    type: str
    default: network_operator
  network_operator_version:
    description: Release of the network operator.
    type: str
    default: 26.4.1
  spiderpool_version:
    description: Release of Spiderpool.
    type: str
    default: 1.2.2
  gpu:
    description: Whether the GPU operator is wanted.
    type: bool
    default: false
  gpu_operator_version:
    description: Release of the GPU operator.
    type: str
    default: 26.7.0
  ipam:
    description:
      - V(auto) takes what the stack brings, otherwise V(nv-ipam) or V(whereabouts). Spiderpool has its own.
      - Network operators from 25.10 on do not bring whereabouts; RV(plan.releases) then names one of its own.
    type: str
    default: auto
  require_rdma:
    description: Whether fabric NICs must have RDMA.
    type: bool
    default: true
  pods_per_node:
    description: Pods with a fabric address on each host, at most.
    type: int
    default: 8
  vipu_hosts:
    description:
      - V-IPU controllers, in place of what the hosts say.
      - Each V(host:port), or a dictionary of V(host), V(port) and V(serves), a list of inventory names.
    type: list
    elements: raw
    default: []
  networks:
    description: The fabric networks, as the role P(ipu.fabric.fabric#role) takes them in V(fabric_networks).
    type: list
    elements: raw
    default: []
"""

EXAMPLES = r"""
- name: Plan
  ipu.fabric.fabric_plan:
    hosts: "{{ hostvars | ipu.fabric.observations(groups) }}"
    networks:
      - name: rdma-net
    artifacts_dir: "{{ lookup('env', 'PWD') }}/artifacts"
  delegate_to: localhost
  run_once: true
  register: __plan
"""

RETURN = r"""
plan:
  description:
    - The plan. Hosts are named as in the inventory.
    - With O(scope=preflight) only V(schema), V(hosts) and V(findings).
  returned: success
  type: dict
  contains:
    schema:
      description: Number of this shape.
      type: int
      sample: 1
    releases:
      description:
        - Releases that go together, what the network operator's can do, and the images of its components.
        - V(whereabouts) is a release to install on its own if V(whereabouts_standalone), else empty.
      type: dict
    cluster:
      description: V(pod_cidr), V(service_cidr), V(endpoint), V(control_planes), V(workers), V(single_node).
      type: dict
    hosts:
      description:
        - For each host V(node), V(address), V(roles), and V(links) by the name of the network.
        - A link has V(netdev), V(pci), V(mac), V(driver), V(kind), V(lower), V(device), V(mtu), V(rdma_netdevs),
          V(address), V(prefix), V(addresses) of all families, and V(altname), a further name that the NIC is to have.
      type: dict
    vipu:
      description: V(controllers), the V(value) that the IPU operator's chart takes, and V(node_labels) by host.
      type: dict
    networks:
      description:
        - Each fabric network with its master, MTU, V(subnets) and nv-ipam V(pools), one of each family, and IPAM.
        - V(subnet) and V(pool) are those of the first family.
      type: list
      elements: dict
    rdma_resources:
      description: What the RDMA shared device plugin is to offer.
      type: list
      elements: dict
    findings:
      description: All errors and warnings, errors first.
      type: list
      elements: dict
      contains:
        level:
          description: V(error) or V(warning).
          type: str
        check:
          description: Name of the check, as O(allow) takes it.
          type: str
        hosts:
          description: The hosts concerned. Empty for all.
          type: list
          elements: str
        what:
          description: What is wanted.
          type: str
        seen:
          description: What is there instead.
          type: str
        next:
          description: What to do now.
          type: str
text:
  description: The plan for a terminal of 80 columns.
  returned: success
  type: str
errors:
  description: Number of findings that are errors.
  returned: success
  type: int
"""

import datetime
import json
import os
import socket
import tempfile
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common import result
from ansible_collections.ipu.fabric.plugins.module_utils._host import vipu as vipu_cli
from ansible_collections.ipu.fabric.plugins.module_utils._host.files import read_text
from ansible_collections.ipu.fabric.plugins.module_utils._plan import build as planner
from ansible_collections.ipu.fabric.plugins.module_utils._plan import observation_cache, vipu_controllers
from ansible_collections.ipu.fabric.plugins.module_utils._plan import report as plan_report

SEEN = "observations.json"
ARGUMENT_SPEC: t.Dict[str, t.Any] = {
    "hosts": {"type": "dict", "required": True},
    "scope": {"type": "str", "choices": ["plan", "preflight"], "default": "plan"},
    "artifacts_dir": {"type": "path", "default": ""},
    "inventory_sources": {"type": "list", "elements": "path", "default": []},
    "allow": {"type": "list", "elements": "str", "default": []},
    "manage_kubernetes": {"type": "bool", "default": True},
    "kubernetes_version": {"type": "str", "default": "1.35.4"},
    "cni": {"type": "str", "default": "calico"},
    "pod_cidr": {"type": "str", "default": "10.244.0.0/16"},
    "service_cidr": {"type": "str", "default": "10.96.0.0/12"},
    "control_plane_endpoint": {"type": "str", "default": ""},
    "ipu": {"type": "bool", "default": True},
    "ipu_operator_version": {"type": "str", "default": "1.2.0"},
    "stack": {"type": "str", "default": "network_operator"},
    "network_operator_version": {"type": "str", "default": "26.4.1"},
    "spiderpool_version": {"type": "str", "default": "1.2.2"},
    "gpu": {"type": "bool", "default": False},
    "gpu_operator_version": {"type": "str", "default": "26.7.0"},
    "ipam": {"type": "str", "default": "auto"},
    "require_rdma": {"type": "bool", "default": True},
    "pods_per_node": {"type": "int", "default": 8},
    "vipu_hosts": {"type": "list", "elements": "raw", "default": []},
    "networks": {"type": "list", "elements": "raw", "default": []},
}


def resolve_vipu(entries: t.Sequence[t.Any]) -> t.Dict[str, str]:
    """Addresses of the host names among fixed V-IPU controllers; the plan itself asks nobody."""
    found = {}
    for entry in entries:
        host = str(entry.get("host", "")) if isinstance(entry, dict) else str(entry)
        try:
            name = vipu_cli.split_endpoint(host)[0]
            if vipu_controllers.as_address(name) is None:
                found[name] = str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])
        except (OSError, ValueError):  # the plan says what is wrong with it
            continue
    return found


def write(module: AnsibleModule, path: str, text: str) -> None:
    """A whole file or none; the plan holds no secrets, so everyone may read it."""
    handle, temporary = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(temporary, 0o644)
    module.atomic_move(temporary, path)


def decisions(text: str) -> t.Any:
    """A plan without its findings, which come and go with the state of the hosts; None if the text is no plan."""
    try:
        return {key: value for key, value in json.loads(text).items() if key != "findings"}
    except (AttributeError, ValueError):
        return None


def keep(module: AnsibleModule, plan: t.Dict[str, t.Any], seen: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
    """Put the plan, and what it was made of, into the artifacts folder."""
    folder = module.params["artifacts_dir"]
    files = {
        "plan.json": json.dumps(plan, indent=2) + "\n",
        "plan.html": plan_report.as_html(plan),
        SEEN: json.dumps(seen) + "\n",
    }
    before = {name: read_text(os.path.join(folder, name)) for name in files}
    if not module.check_mode:
        try:
            os.makedirs(folder, mode=0o755, exist_ok=True)
        except OSError as error:
            raise result.FabricError(
                "The folder for the plan can't be made.", folder, str(error), "Set fabric_artifacts_dir to another one."
            ) from error
        for name, text in files.items():
            if before[name] != text:
                write(module, os.path.join(folder, name), text)
    return result.outcome(decisions(before["plan.json"]), decisions(files["plan.json"]))


def make(module: AnsibleModule) -> t.Dict[str, t.Any]:
    settings = {**module.params, "resolved": resolve_vipu(module.params["vipu_hosts"])}
    hosts = settings.pop("hosts")
    folder = settings["artifacts_dir"]
    last = observation_cache.read(read_text(os.path.join(folder, SEEN)) if folder else "")
    if settings["scope"] == "preflight":
        plan, title, kept = planner.build_preflight(settings, hosts), "Preflight", {"changed": False}
    else:
        plan = planner.build_plan(settings, observation_cache.recall(hosts, last))
        title, kept = "Plan", {"changed": False}
        if folder and not any(item["check"] == "artifacts-dir" for item in plan["findings"]):
            now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
            kept = keep(module, plan, observation_cache.keep(hosts, last, now))
    errors = sum(finding["level"] == "error" for finding in plan["findings"])
    return {**kept, "plan": plan, "text": plan_report.as_text(plan, title), "errors": errors}


def main() -> None:
    result.run_module(ARGUMENT_SPEC, make)


if __name__ == "__main__":
    main()
