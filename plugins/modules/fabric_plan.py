#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_plan
short_description: Plan a cluster and its fabric networks from what its hosts reported
version_added: 0.1.0
author: ipu.fabric contributors (@ipu-fabric)
description:
  - Decides which NIC, addresses, releases and V-IPU controllers are used, and finds what is impossible and why.
  - Runs on the controller and asks no host. The same input gives the same plan, if O(questions) get the same answers.
  - A host that did not answer is planned from observations.json of the last run, so that it keeps its place in the
    pools, and its addresses. It is still an error, unless O(allow) has V(unobserved).
  - Compares itself with the existing cluster. What no role can change is an error.
  - Reports no change, since it changes no host. RV(plan.since) says what is decided differently than in the plan that
    was applied, or else in that of the last run.
  - C(docs/plan.schema.json) of the collection describes every field of plan.json.
  - Does not fail because of findings. They are in RV(plan.findings).
requirements:
  - jmespath
  - netaddr
extends_documentation_fragment:
  - ipu.fabric.proxy
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  hosts:
    description:
      - For each inventory name V(groups), V(address), the parts V(host), V(rdma) and V(vipu) of the result of
        M(ipu.fabric.host_info), those of M(ipu.fabric.port_probe) as V(listener), V(probes) and V(listened), V(errors),
        and V(reboot) if the role rdma_host may reboot it.
      - The filter P(ipu.fabric.observations#filter) returns this.
    type: dict
    required: true
  site:
    description:
      - Whether options that are not given are taken from the variables of the role P(ipu.fabric.fabric#role), O(cni)
        from C(fabric_cni). O(artifacts_dir), O(bundle), O(kubeconfig), O(plan_file) and O(proxy) are not.
    type: bool
    default: false
  scope:
    description:
      - V(plan) is the whole plan.
      - V(preflight) checks hosts and their NICs only, and writes no files.
      - V(ports) only says which ports each host has to reach of the others, and which ones others need of it.
      - V(cluster) fails if O(cluster) is another one than that of O(hosts), unless O(allow) has V(other-cluster), and
        if a host says that it is a node which is another host.
      - V(upgrade) says which nodes of O(cluster) an upgrade to O(kubernetes_version) takes, in which turns, and what
        forbids it.
      - V(drift) adds O(drift) to O(plan), and writes its files again.
      - V(applied) keeps O(plan) as the one that was applied, with which later plans are compared.
      - V(derived) tells O(plan), which M(ipu.fabric.cluster_info) derived from a cluster, and writes its files.
    type: str
    choices: [plan, preflight, ports, cluster, upgrade, drift, applied, derived]
    default: plan
  plan:
    description: The plan, for O(scope=drift), O(scope=applied) and O(scope=derived).
    type: dict
    default: {}
  all_findings:
    description: Whether RV(text) tells a warning of the last run's plan.json in full again, in place of one line.
    type: bool
    default: false
  refuse:
    description:
      - What RV(refusal) names beside errors, V(changes) where there is something to do, and V(unbuilt) where no host is
        in a cluster yet.
    type: list
    elements: str
    choices: [changes, unbuilt]
    default: []
  drift:
    description:
      - What the modules of the API would change, for O(scope=drift). They keep it as a fact in the playbook
        C(ipu.fabric.drift).
    type: list
    elements: dict
    default: []
  cluster:
    description:
      - The cluster that a kubeconfig leads to, for O(scope=cluster) and O(scope=upgrade). V(kubeconfig) is where that
        is, V(ca), V(version) and V(nodes) are those of M(ipu.fabric.cluster_info).
      - For O(scope=applied), V(kubeconfig) is a path on V(host), which connects to the API, and V(image) the image of
        the proof, if it is another one than usually. RV(text) has them.
      - Each of O(hosts) that trusts a CA has to trust this one. Where none does, one of them has to be a node.
    type: dict
    default: {}
  questions:
    description: What the controller asks of sources, as C(ipu.fabric.wish) decides it, for twelve seconds at most.
    type: list
    elements: dict
    default: []
  artifacts_dir:
    description:
      - Folder for plan.json, plan.html, and observations.json, which keeps what the hosts reported. Created if needed.
      - applied.json is the plan that was applied.
      - Empty writes nothing.
    type: path
    default: ""
  plan_file:
    description:
      - A plan.json that somebody has approved. Where a decision of this plan differs, each difference is an
        error (C(plan-moved)). So is a file that is no plan of these hosts (C(plan-file)).
      - Findings, the support of releases, certificates, and the state of the existing cluster are not compared.
      - The file itself is never written, also where it is the plan.json in O(artifacts_dir).
      - Empty compares nothing.
    type: path
    default: ""
  observations:
    description:
      - A recording to plan from, in place of what O(hosts) reported. It is an observations.json that this module has
        written, the same with C(.gz), or an archive of M(ipu.fabric.support_archive).
      - Each host is planned as it was then, and the plan is as of that day. One without a recording is an error, unless
        O(allow) has V(unobserved).
      - No observations.json is written then.
    type: path
    default: ""
  inventory_sources:
    description: Inventory files and folders of this run. Files of the plan must not lie in one of these folders.
    type: list
    elements: path
    default: []
  inventory_groups:
    description:
      - The groups of the inventory with their hosts, the variable V(groups). A group that is named nearly like one of
        the collection's is a finding.
      - So is a variable among V(variables) of O(hosts) that the collection does not read.
    type: dict
    default: {}
  kubeconfig:
    description:
      - The kubeconfig that is used for the API on the controller. If it is there, it has to be of the cluster that the
        hosts are in.
      - Empty compares nothing.
    type: path
    default: ""
  rights:
    description: What the kubeconfig may not do, RV(ipu.fabric.cluster_info#module:rights).
    type: list
    elements: str
    default: []
  user:
    description: The user that lacks O(rights), RV(ipu.fabric.cluster_info#module:user).
    type: str
    default: ""
  api_answers:
    description: Whether the API of a cluster that others manage answers with its kubeconfig, as far as it was asked.
    type: bool
    default: true
  bundle:
    description: A bundle on the controller, whose list is compared with the plan. Empty is none.
    type: path
    default: ""
  proxy:
    description:
      - Given where downloads go through a proxy, whose URL the plan does not get to know.
      - C(no_proxy) is a list of what the site reaches without it, C(mirror) its own sources as in C(fabric_mirror).
    type: dict
    default: {}
  allow:
    description: Names of checks whose errors count as warnings.
    type: list
    elements: str
    default: []
  manage_kubernetes:
    description:
      - Whether the role P(ipu.fabric.kubernetes#role) builds the cluster.
      - If not, ports, swap and the like are not checked, and version and addresses are those of its control plane.
    type: bool
    default: true
  kubernetes_version:
    description: Kubernetes release.
    type: str
    default: 1.36.3
  runtime:
    description: Container runtime of the nodes. V(docker) is Docker Engine with cri-dockerd.
    type: str
    choices: [containerd, docker]
    default: containerd
  upgrade:
    description:
      - Whether the plan is that of an upgrade. It is then no error that the cluster runs another release than
        O(kubernetes_version).
    type: bool
    default: false
  cni:
    description: The pod network, V(calico), V(flannel) or V(none).
    type: str
    default: calico
  pod_network:
    description:
      - Settings of the pod network, as far as they decide which ports it needs. V(calico) are those of its
        Installation, V(flannel) those of its backend.
    type: dict
    default: {}
  cni_bin_directory:
    description: Where containerd of every node looks for CNI plugins. Empty is what the nodes say.
    type: str
    default: ""
  cni_network_directory:
    description: Where it looks for their configurations. Empty is what the nodes say.
    type: str
    default: ""
  calico_version:
    description: Release of Calico, where that is the pod network.
    type: str
    default: 3.32.2
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
  renew_days:
    description: Days before the end of a certificate of the cluster from which on the plan warns of it.
    type: int
    default: 30
  admission:
    description: Whether nodes that are not proved are marked, or closed to new pods.
    type: str
    choices: ["off", warn, enforce]
    default: "off"
  max_unproved:
    description: How many nodes failed proofs may close, a number or a percentage.
    type: raw
    default: 10%
  hardening:
    description: How the control plane is hardened, V(none), V(baseline) or V(cis).
    type: str
    choices: [none, baseline, cis]
    default: baseline
  cluster_config:
    description: What of kubeadm's ClusterConfiguration the site sets itself. It comes before O(hardening).
    type: dict
    default: {}
  control_plane_vip:
    description: Virtual address that keepalived keeps on one of the control planes, and that is the endpoint then.
    type: str
    default: ""
  control_plane_vip_router_id:
    description: Its VRRP router ID, 1 to 255. V(0) takes the last byte of the address.
    type: int
    default: 0
  ipu:
    description: Whether the hosts of ipu_node have IPUs.
    type: bool
    default: true
  ipu_operator_version:
    description: Release of the IPU operator.
    type: str
    default: 1.2.0
  stack:
    description: The stack that makes the fabric networks, V(network_operator) or V(spiderpool).
    type: str
    default: network_operator
  network_operator_version:
    description: Release of the network operator.
    type: str
    default: 26.7.1
  ofed:
    description: The driver container that is wanted, as the network operator takes it. Empty is none.
    type: dict
    default: {}
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
  nic_policy:
    description:
      - Which policy of the network operator has the RDMA device plugin. V(cluster) is the NicClusterPolicy, V(node) are
        NicNodePolicies, one for each group of hosts with the same NICs.
      - V(auto) is what the cluster has; a new one has NicNodePolicies if hosts differ and the release has them.
    type: str
    choices: [auto, cluster, node]
    default: auto
  require_rdma:
    description: Whether fabric NICs must have RDMA.
    type: bool
    default: true
  memlock:
    description:
      - The least limit of locked memory that the proof expects in pods, V(unlimited) or bytes.
      - A host that can't give it is an error.
    type: str
    default: unlimited
  memlock_limit:
    description:
      - The limit that container runtimes are to have, V(infinity) or bytes, as the role P(ipu.fabric.memlock#role)
        sets it.
    type: str
    default: infinity
  ntp:
    description: NTP servers that the role P(ipu.fabric.chrony#role) gives to every host. Empty leaves clocks alone.
    type: list
    elements: str
    default: []
  node_address:
    description:
      - Which address of a host is its node's, where the inventory has no C(ip). C(interface) is the name of an
        interface, or a pattern with C(*); C(subnet) a CIDR, or a list of one of each family.
      - Empty for the address that the default route goes out from, and with CIDRs of both families the other one of
        that interface.
    type: dict
    default: {}
  host_sizes:
    description:
      - What hosts of a role need at least, instead of the figures of this collection. Less is an error.
      - Roles are V(control_plane), V(worker), V(ipu) and V(gpu), each with any of V(cpus), V(memory_gb) and V(disk_gb).
    type: dict
    default: {}
  eviction:
    description:
      - C(evictionHard) of the kubelets' configuration, where the site sets it.
      - A host that has less free disk than its kubelet keeps is an error, before it is a node.
    type: dict
    default: {}
  pods_per_node:
    description: Pods with a fabric address on each host, at most.
    type: int
    default: 8
  vipu_hosts:
    description:
      - V-IPU controllers, instead of those that the hosts name.
      - Each V(host:port), or a dictionary of V(host), V(port) and V(serves), a list of inventory names.
    type: list
    elements: raw
    default: []
  networks:
    description: The fabric networks, as the role P(ipu.fabric.fabric#role) takes them in V(fabric_networks).
    type: list
    elements: raw
    default: []
  sources:
    description:
      - Where packages, charts, manifests and programs come from, as the role P(ipu.fabric.fabric#role) takes it in
        V(fabric_mirror), with upstream's for what a site leaves out.
      - One without TLS, and without a digest or a signature, is an error.
    type: dict
    default: {}
  image_digests:
    description: The digest of each image that is pinned, V(sha256:) and 64 digits, by its whole name with the tag.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Plan
  ipu.fabric.fabric_plan:
    hosts: "{{ hostvars | ipu.fabric.observations(groups, {'host': ['seen']}) }}"
    networks:
      - name: rdma-net
    artifacts_dir: "{{ lookup('env', 'PWD') }}/artifacts"
  run_once: true
  register: __plan

- name: List what has to be fixed first
  ansible.builtin.debug:
    msg: "{{ __plan.plan.findings | selectattr('level', 'eq', 'error') }}"
  run_once: true
"""

RETURN = r"""
plan:
  description:
    - The plan. Hosts are named as in the inventory.
    - With O(scope=preflight) only V(schema), V(hosts) and V(findings).
  returned: with O(scope=plan) or O(scope=preflight)
  type: dict
  contains:
    schema:
      description: Version of this structure.
      type: int
      sample: 1
    made:
      description: V(time) in UTC, V(site), the version of the V(collection), and V(by), a user and the controller.
      type: dict
    summary:
      description:
        - What comes of the plan. V(hosts) has for each host a V(word) (V(install), V(join), V(rejoin), V(finish),
          V(upgrade), V(change), V(untouched) or V(unknown)) and V(why), V(counts) the number of hosts by word, V(line)
          a sentence.
        - V(state) is V(nothing), V(changes) or V(errors), and V(exit_code) 0, 2 or 1.
      type: dict
    since:
      description:
        - What is decided differently than in an earlier plan, V(moved), each with a V(mark), V(host), V(thing) and
          V(fields). V(time) is when that plan was made, V(applied) whether it is the one that was applied.
        - Null without an earlier plan.
      type: dict
    drift:
      description: O(drift) as seen at V(drift_time), unless O(scope=applied) came after it, else null.
      type: list
      elements: dict
    drift_time:
      description: When the drift was seen, in UTC. Empty where nobody has looked.
      type: str
    releases:
      description:
        - Releases that go together, what the network operator's can do, and the images of its components.
        - V(whereabouts) is a release to install on its own if V(whereabouts_standalone), else empty.
      type: dict
    cluster:
      description:
        - V(pod_cidr), V(service_cidr), V(endpoint), V(control_planes), V(workers), V(single_node).
        - V(distribution) has the V(name) of what makes the nodes (V(kubeadm), V(k3s), V(rke2), or V(none) where that is
          not known), V(containerd_socket), V(cni_bin_directory) and V(cni_network_directory), empty for the usual one.
        - V(runtime) has the V(name) of what runs containers, empty where Kubernetes is managed elsewhere, the release
          of V(cri_dockerd), and V(kubelet_feature_gates) that the runtime needs.
        - V(virtual_address) has the V(address), V(router_id) and V(members) of keepalived, null without one.
      type: dict
    admission:
      description: V(mode) and V(max_unproved). Missing where O(admission) is V(off).
      type: dict
    hardening:
      description:
        - The V(level) of O(hardening), its V(settings) for the control plane, and V(due), the control planes that do
          not run as planned with what changes there. Null where Kubernetes is managed elsewhere.
        - V(left_out) has the V(name) of each setting that this cluster does not get, and V(why).
      type: dict
    hosts:
      description:
        - For each host V(node), V(address), V(roles), and V(links) by the name of the network.
        - A link has V(netdev), V(pci), V(mac), V(driver), V(kind), V(lower), V(device), V(mtu), V(rdma_netdevs),
          V(address), V(prefix), V(addresses) of all families, and V(altname), an alternative name that the NIC gets.
        - V(firmware) of its RDMA device, where that is known.
        - V(rate_gbps) of its port and V(pcie_gbps) of its PCIe link are in Gb/s, or null where they are not known.
      type: dict
    vipu:
      description: V(controllers), the V(value) that the IPU operator's chart takes, and V(node_labels) by host.
      type: dict
    networks:
      description:
        - Each fabric network with its master, MTU, V(subnets) and nv-ipam V(pools), one of each family, and IPAM.
        - V(subnet) and V(pool) are those of the first family, null without one.
      type: list
      elements: dict
    rdma_resources:
      description: What the RDMA shared device plugin offers.
      type: list
      elements: dict
    certificates:
      description:
        - For each host with certificates of a cluster V(node), the certificate that ends V(first), and when it V(ends).
        - V(ending) has the names of those that end within O(renew_days), V(expired) of those that have ended.
      type: list
      elements: dict
    cni_token_ends:
      description:
        - Tokens that CNI plugins have on V(hosts), as V(certificates), and when it was V(seen), by the host's clock.
        - V(restart) has the plugins whose pods have to start again, with the end of their first token.
      type: dict
    sources:
      description: What is downloaded on its own, each V(name) with its V(url) and the V(sha256) that it has to have.
      type: list
      elements: dict
    image_digests:
      description: O(image_digests) without what is not valid.
      type: dict
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
          description: What is required.
          type: str
        seen:
          description: What was seen instead.
          type: str
        next:
          description: What to do now.
          type: str
listen:
  description: For each host the ports that others need of it, V(tcp), V(udp) and V(ip). Hosts without any are left out.
  returned: with O(scope=ports)
  type: dict
ports:
  description: For each host its targets, as M(ipu.fabric.port_probe) takes them. Hosts without any are left out.
  returned: with O(scope=ports)
  type: dict
upgrade:
  description:
    - V(control_planes) and V(workers) that are due, in their turns, V(done), what is V(behind) of those that are due,
      the V(versions) of kubelets and the V(nodes) of all by inventory name, and V(findings).
    - V(begun) says that a control plane is done, V(marked) which of V(done) an interrupted upgrade has left cordoned.
  returned: with O(scope=upgrade)
  type: dict
text:
  description:
    - The plan for a terminal, with O(site) also the hosts outside C(--limit) and the files of the plan.
    - With O(scope=applied) what to do next.
  returned: but with O(scope=ports) and O(scope=cluster)
  type: str
errors:
  description: Number of findings that are errors.
  returned: with O(scope=plan), O(scope=preflight) or O(scope=upgrade)
  type: int
refusal:
  description: Why a run should end with this plan, which has errors or what O(refuse) names. Empty if it may go on.
  returned: with O(scope=plan)
  type: str
"""
