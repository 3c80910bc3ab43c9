#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_probe
short_description: Facts about the fabric, from inside pods on every node
version_added: 0.1.0
description:
  - Creates a namespace with one pod on each node, attached to the planned networks, runs commands in all of them at
    once, and removes the namespace again. Each pod has a container as uid 0, one as uid 1000 and, when the plan has
    RDMA, one that requests the RDMA resource.
  - Draws no conclusions; M(ipu.fabric.fabric_report) does.
  - Leaves nothing behind, so it never reports a change. A later run with the same O(namespace) removes what an
    interrupted run left, once that has given no sign of life for five minutes.
  - Stops early when a pod can't start, for example when its image can't be pulled; that node's facts say why.
  - In check mode it creates no pods and reads nothing; RV(probe.probed) is then V(false).
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - cryptography
  - netaddr
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  plan:
    description: The plan whose networks are probed, as written to C(plan.json).
    type: dict
    required: true
  namespace:
    description:
      - Prefix of the probe namespace's name, and value of the label on the namespaces that a run may remove.
      - Concurrent runs have a namespace each.
    type: str
    default: ipu-fabric-verify
  own_namespace:
    description:
      - Whether each run creates and removes its own namespace. V(false) uses the existing namespace O(namespace), which
        needs the service account C(probe), and creates only pods in it. It allows one run at a time.
    type: bool
    default: true
  image:
    description:
      - Image of the pods when the plan has no RDMA. It needs C(sh), C(ip) and C(ping) of iproute2 and iputils, and
        C(nc) or C(bash).
    type: str
    default: docker.io/nicolaka/netshoot:v0.14
  rdma_image:
    description:
      - Image of the pods when the plan has RDMA. It needs what O(image) has, and C(rping), C(ib_write_bw) and
        C(ib_read_lat); also C(gc-hosttraffictest) where O(ipu_partition) is given. Empty for O(image).
    type: str
    default: nvcr.io/nvidia/doca/doca:3.3.0-full-rt-host
  timeout:
    description:
      - Seconds that the pods may take to start, pulling their image included.
      - Before that, device plugins have a quarter of this time to register their resources.
    type: int
    default: 300
  command_timeout:
    description: Seconds that a ping or an RDMA test between two pods may take.
    type: int
    default: 30
  nodes:
    description:
      - Only probe these nodes, and their neighbours on each network, which serve as the other end.
      - Empty probes all.
    type: list
    elements: str
    default: []
  checks:
    description:
      - Names of the checks of M(ipu.fabric.fabric_report) that the facts are for. Slow steps that none of them needs
        are left out.
      - Empty for all.
    type: list
    elements: str
    default: []
  slice:
    description:
      - Instead of O(nodes), how many nodes to probe, such as V(8) or V(10%), for scheduled proofs. Takes nodes whose
        fabric NICs, and with O(gpu) whose GPUs, no pod holds, in the order of their last proof in the condition
        C(FabricProved), the oldest first. Busy nodes are not used as neighbours either. If all are busy,
        RV(probe.probed) is V(false).
      - Empty for O(nodes).
    type: str
    default: ""
  max_pairs:
    description:
      - Up to this many pairs of nodes, all pairs ping each other on each network; beyond that, only those along a ring
        and its diameters.
    type: int
    default: 100
  across_rails:
    description: Also ping from each network to the others, with at most 64 pairs of pods.
    type: bool
    default: false
  rdma_seconds:
    description:
      - RDMA tests begin with those that tell a bad node from a bad path. On each network, every node is client and
        server of a test with the next node of a ring, and of one with the opposite node.
      - Then other pairs follow, spread over all distances, until each was tested or this many seconds have passed.
      - No NIC runs two tests at a time.
    type: int
    default: 300
  forks:
    description: How many requests and commands run at the same time.
    type: int
    default: 32
  ipu:
    description: Also query the IPU operator, and try to reach V-IPU from the pods.
    type: bool
    default: true
  ipu_partition:
    description: A V-IPU partition that C(gc-hosttraffictest) may use. Empty runs no such test.
    type: str
    default: ""
  ipu_device:
    description: Device of the partition that C(gc-hosttraffictest) uses.
    type: int
    default: 0
  gpu:
    description:
      - Whether pods on nodes with GPUs hold all of them (C(nvidia.com/gpu)), to measure between their memory. If other
        pods hold some, the pod takes none. C(ib_write_bw) of O(rdma_image) needs CUDA support for it.
    type: bool
    default: false
  gpu_rdma:
    description: How GPUDirect RDMA is planned, by the kernel's C(dma-buf) or by the module nvidia_peermem.
    type: str
    choices: [dma-buf, peermem]
    default: dma-buf
  dest:
    description:
      - File on the controller for the facts, instead of RV(probe). With hundreds of nodes they take megabytes, which
        Ansible would copy from task to task. Check mode writes nothing.
      - A relative path is relative to the folder of the playbook. Empty writes no file.
    type: path
    default: ""
  script:
    description: Internal. The text of the script that runs in the pods; the action plugin of this module sets it.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Probe the fabric from inside pods
  ipu.fabric.fabric_probe:
    kubeconfig: artifacts/admin.conf
    plan: "{{ fabric_plan }}"
  delegate_to: localhost
  run_once: true
  register: probe

- name: Show the nodes whose pod did not start, and why
  ansible.builtin.debug:
    msg: "{{ item.key }}: {{ item.value.reason }}"
  loop: "{{ probe.probe.pods | dict2items | rejectattr('value.state', 'eq', 'running') }}"
  run_once: true
"""

RETURN = r"""
probe_file:
  description: The file with RV(probe), as JSON. Input of M(ipu.fabric.fabric_report).
  returned: success, with O(dest) outside check mode
  type: str
  sample: artifacts/probe.json
nodes:
  description:
    - The nodes that were probed for themselves, not as neighbours. Empty for all. With O(slice), the chosen ones.
  returned: success
  type: list
  elements: str
busy:
  description: With O(slice), the nodes that it left out, each with a pod that holds its NICs.
  returned: success
  type: dict
  sample: {poplar-02: jobs/training-worker-0}
probe:
  description: The facts. Input of M(ipu.fabric.fabric_report).
  returned: success, without O(dest) or in check mode
  type: dict
  contains:
    probed:
      description: Whether pods were created. V(false) in check mode.
      type: bool
    reason:
      description: Why no pods were created.
      type: str
    seconds:
      description: How long the probe took.
      type: float
    version:
      description: Version of the cluster.
      type: str
    pods:
      description: Facts of each node's pod, by node name.
      type: dict
    pairs:
      description: Pings from pod to pod.
      type: list
      elements: dict
    pools:
      description: Address pools before the pods were created, as RV(ipu.fabric.ip_pool_info#module:pools).
      type: list
      elements: dict
    address_sources:
      description: Pools, and networks with ranges of their own, each with C(what), C(ours), C(ipam) and its C(ranges).
      type: list
      elements: dict
    pods_without:
      description: For each network, the running pods that request it but lack it, each with the reason.
      type: dict
    kubelet_requests:
      description:
        - Pending requests of kubelets for serving certificates. Each has C(name), C(requestor), C(node), and
          C(problem), why it does not fit the plan.
      type: list
      elements: dict
    images:
      description:
        - Running containers whose image the plan pins, each with C(image), the C(id) of what runs, and its C(pods).
      type: list
      elements: dict
    addons:
      description: DaemonSets of Node Feature Discovery and of multus, and the nodes with a ready multus.
      type: dict
    traffic:
      description: RDMA tests from pod to pod, C(from) the client to the server.
      type: list
      elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.result import Runner, run_module
from ..module_utils._ipam.pool_audit import running_pods
from ..module_utils._kube.client import arguments, connect
from ..module_utils._kube.node_labels import NODES
from ..module_utils._verify.narrow import known_checks, narrow_plan
from ..module_utils._verify.pods import Options
from ..module_utils._verify.probe import probe
from ..module_utils._verify.slices import last_proofs, next_slice, without_nodes


def body(module: AnsibleModule) -> t.Dict[str, t.Any]:
    known_checks(module.params["checks"], "Only existing checks can be run alone.", "checks")
    if module.check_mode:
        reason = "check mode creates no pods, and proof needs them"
        return {"changed": False, "probe": {"probed": False, "reason": reason}}
    options = Options(**{name: module.params[name] for name in Options._fields})
    plan, nodes, cluster = module.params["plan"], module.params["nodes"], connect(module)
    busy: t.Dict[str, str] = {}
    if module.params["slice"]:
        proved = last_proofs(cluster.items(NODES))
        nodes, busy = next_slice(plan, running_pods(cluster), proved, module.params["slice"], options.gpu)
        plan = without_nodes(plan, busy)
        if not nodes:
            reason = f"pods hold the NICs of each node, such as {next(iter(busy.values()))}" if busy else "no nodes"
            return {"changed": False, "nodes": [], "busy": busy, "probe": {"probed": False, "reason": reason}}
    seen = probe(cluster, narrow_plan(plan, nodes), options)
    return {"changed": False, "nodes": nodes, "busy": busy, "probe": seen}


def main(run: Runner = run_module) -> None:
    spec = arguments(
        plan={"type": "dict", "required": True},
        namespace={"type": "str", "default": "ipu-fabric-verify"},
        image={"type": "str", "default": "docker.io/nicolaka/netshoot:v0.14"},
        rdma_image={"type": "str", "default": "nvcr.io/nvidia/doca/doca:3.3.0-full-rt-host"},
        timeout={"type": "int", "default": 300},
        command_timeout={"type": "int", "default": 30},
        nodes={"type": "list", "elements": "str", "default": []},
        checks={"type": "list", "elements": "str", "default": []},
        own_namespace={"type": "bool", "default": True},
        slice={"type": "str", "default": ""},
        max_pairs={"type": "int", "default": 100},
        across_rails={"type": "bool", "default": False},
        rdma_seconds={"type": "int", "default": 300},
        forks={"type": "int", "default": 32},
        ipu={"type": "bool", "default": True},
        ipu_partition={"type": "str", "default": ""},
        ipu_device={"type": "int", "default": 0},
        gpu={"type": "bool", "default": False},
        gpu_rdma={"type": "str", "choices": ["dma-buf", "peermem"], "default": "dma-buf"},
        dest={"type": "path", "default": ""},
        script={"type": "str", "default": ""},
    )
    run(spec, body, libraries=("cryptography", "jmespath", "netaddr"))


if __name__ == "__main__":
    main()
