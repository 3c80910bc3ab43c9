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
  - Decides which NICs, addresses, releases and V-IPU controllers are used, and reports what is impossible and why.
  - Runs on the controller and contacts no host. The same input gives the same plan, if O(questions) get the same
    answers.
  - A host that did not answer is planned from observations.json of the last run, so that it keeps its place in the
    pools and its addresses. This is still an error, unless O(allow) has V(unobserved).
  - Compares the plan with the existing cluster. A difference that no role can remove is an error.
  - Reports no change, since it changes no host. RV(plan.since) lists the decisions that differ from the applied plan
    or, without one, from the plan of the last run.
  - C(docs/plan.schema.json) of the collection describes every field of plan.json.
  - Does not fail because of findings. RV(plan.findings) lists them.
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
      - Whether options that are not set are taken from the variables of the role P(ipu.fabric.fabric#role), such as
        O(cni) from C(fabric_cni). O(artifacts_dir), O(bundle), O(kubeconfig), O(plan_file) and O(proxy) are not.
    type: bool
    default: false
  scope:
    description:
      - V(plan) makes the whole plan.
      - V(preflight) checks hosts and their NICs only, and writes no files.
      - V(ports) only has O(run_hosts) try which ports they reach of other hosts, with M(ipu.fabric.port_probe).
      - V(cluster) fails if O(cluster) is not the cluster of O(hosts), unless O(allow) has V(other-cluster), and if a
        host claims to be a node that is another host.
      - V(upgrade) lists the nodes of O(cluster) that an upgrade to O(kubernetes_version) covers, in which order, and
        what prevents it.
      - V(drift) adds O(drift) to O(plan), and rewrites its files.
      - V(applied) saves O(plan) as the applied plan, with which later plans are compared.
      - V(applied_fabric) does so after a run that left Kubernetes and the hosts' settings as they are, and keeps what
        the applied plan says of these. Where the site builds the cluster and no plan was applied, none is saved.
      - V(derived) describes O(plan), which M(ipu.fabric.cluster_info) derived from a cluster, and writes its files.
    type: str
    choices: [plan, preflight, ports, cluster, upgrade, drift, applied, applied_fabric, derived]
    default: plan
  plan:
    description: The plan, for O(scope=drift), O(scope=applied) and O(scope=derived).
    type: dict
    default: {}
  all_findings:
    description:
      - Whether RV(text) shows a warning that the last run's plan.json already has in full again, instead of in one
        line.
    type: bool
    default: false
  refuse:
    description:
      - What RV(refusal) names besides errors, V(changes) if there is something to do, and V(unbuilt) if no host is in a
        cluster yet.
    type: list
    elements: str
    choices: [changes, unbuilt]
    default: []
  drift:
    description:
      - What the modules for the Kubernetes API would change, for O(scope=drift). In the playbook C(ipu.fabric.drift)
        they keep it as a fact.
    type: list
    elements: dict
    default: []
  cluster:
    description:
      - The cluster that a kubeconfig points to, for O(scope=cluster) and O(scope=upgrade). V(kubeconfig) is the path of
        that file; V(ca), V(version) and V(nodes) come from M(ipu.fabric.cluster_info). If V(host) is given for
        O(scope=cluster), that module reads them there, and its return values are returned.
      - For O(scope=applied), V(kubeconfig) is a path on V(host), which connects to the API, and V(image) the image of
        the proof, if it is not the default. RV(text) shows them.
      - Each of O(hosts) that trusts a CA must trust V(ca). If none trusts a CA, one of them must be a node.
    type: dict
    default: {}
  questions:
    description:
      - What the controller requests from sources, as C(ipu.fabric.wish) decides it, for twelve seconds at most.
    type: list
    elements: dict
    default: []
  artifacts_dir:
    description:
      - Folder for plan.json, plan.html, and observations.json, which keeps what the hosts reported. Created if needed.
      - applied.json is the applied plan, and upgrade-VERSION.json the proof from before an upgrade.
      - Empty writes nothing.
    type: path
    default: ""
  plan_file:
    description:
      - A plan.json that somebody has approved. Each decision that differs from it is an error (C(plan-moved)). So is a
        file that is not a plan of these hosts (C(plan-file)).
      - Findings, the support of releases, certificates, and the state of the existing cluster are not compared.
      - The file itself is never written, even if it is the plan.json in O(artifacts_dir).
      - Empty compares nothing.
    type: path
    default: ""
  observations:
    description:
      - A recording to plan from, instead of what O(hosts) reported. It is an observations.json that this module wrote,
        the same file compressed as C(.gz), or an archive of M(ipu.fabric.support_archive).
      - Each host is planned as it was then, and the plan is as of that day. A host without a recording is an error,
        unless O(allow) has V(unobserved).
      - If set, no observations.json is written.
    type: path
    default: ""
  inventory_sources:
    description: Inventory files and folders of this run. Files of the plan must not lie in one of these folders.
    type: list
    elements: path
    default: []
  inventory_groups:
    description:
      - The groups of the inventory with their hosts, as in the variable V(groups). A group whose name nearly matches
        one of the collection's is a finding.
      - So is a variable among V(variables) of O(hosts) that the collection does not read.
    type: dict
    default: {}
  limit:
    description: The C(--limit) of this run. A name in it that is in no group of O(inventory_groups) is an error.
    type: str
    default: ""
  run_hosts:
    description: The hosts of this run. With O(limit), they must have the control plane that begins a new cluster.
    type: list
    elements: str
    default: []
  observe_timeout:
    description: Seconds that each of O(run_hosts) has for a step with O(scope=ports). V(0) sets no limit.
    type: int
    default: 180
  kubeconfig:
    description:
      - The kubeconfig that is used for the API on the controller. If it exists, it must be for the cluster that the
        hosts are in.
      - Empty compares nothing.
    type: path
    default: ""
  rights:
    description: Rights that the kubeconfig lacks, RV(ipu.fabric.cluster_info#module:rights).
    type: list
    elements: str
    default: []
  user:
    description: The user that lacks O(rights), RV(ipu.fabric.cluster_info#module:user).
    type: str
    default: ""
  api_silence:
    description:
      - Why the API of a cluster that is managed elsewhere gave no answer, RV(ipu.fabric.cluster_info#module:silence).
    type: str
    default: ""
  bundle:
    description: A bundle on the controller, whose list is compared with the plan. Empty is none.
    type: path
    default: ""
  proxy:
    description:
      - Set if downloads go through a proxy. The plan does not get the URL of the proxy.
      - C(no_proxy) lists what the site reaches without it, and C(mirror) has the site's own sources as in
        C(fabric_mirror).
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
      - Whether the plan is for an upgrade. The cluster may then run another release than O(kubernetes_version).
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
    description: Directory in which containerd on every node looks for CNI plugins. Empty for what the nodes report.
    type: str
    default: ""
  cni_network_directory:
    description: Directory in which it looks for CNI configurations. Empty for what the nodes report.
    type: str
    default: ""
  calico_version:
    description: Release of Calico, if that is the pod network.
    type: str
    default: 3.32.2
  pod_cidr:
    description: Addresses of pods, one CIDR, or one of each family separated by a comma.
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
    description: How many days before a certificate of the cluster expires the plan starts to warn of it.
    type: int
    default: 30
  admission:
    description: Whether nodes that are not proved are only marked (V(warn)), or also closed to new pods (V(enforce)).
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
    description:
      - Fields of kubeadm's ClusterConfiguration that the site sets itself. They take precedence over O(hardening).
    type: dict
    default: {}
  control_plane_vip:
    description: Virtual address that keepalived keeps on one of the control planes. If set, it is the endpoint.
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
    description: The requested driver container, as the network operator takes it. Empty for none.
    type: dict
    default: {}
  spiderpool_version:
    description: Release of Spiderpool.
    type: str
    default: 1.2.2
  gpu:
    description: Whether the GPU operator is installed.
    type: bool
    default: false
  gpu_operator_version:
    description: Release of the GPU operator.
    type: str
    default: 26.7.0
  ipam:
    description:
      - V(auto) takes what the stack includes, otherwise V(nv-ipam) or V(whereabouts). Spiderpool has its own.
      - Network operators from 25.10 on do not include whereabouts; RV(plan.releases) then names a separate release of
        it.
    type: str
    default: auto
  prune_networks:
    description: Whether site removes networks that are no longer planned. If not, each of them is a warning.
    type: bool
    default: false
  nic_policy:
    description:
      - Which policy of the network operator has the RDMA device plugin. V(cluster) is the NicClusterPolicy, V(node) are
        NicNodePolicies, one for each group of hosts with the same NICs.
      - V(auto) keeps what the cluster has; a new cluster gets NicNodePolicies if hosts differ and the release supports
        them.
    type: str
    choices: [auto, cluster, node]
    default: auto
  require_rdma:
    description: Whether fabric NICs must have RDMA.
    type: bool
    default: true
  memlock:
    description:
      - The lowest limit of locked memory that the proof accepts in pods, V(unlimited) or bytes.
      - A host that can't give it is an error.
    type: str
    default: unlimited
  memlock_limit:
    description:
      - The limit that the role P(ipu.fabric.memlock#role) sets for container runtimes, V(infinity) or bytes.
    type: str
    default: infinity
  ntp:
    description: NTP servers that the role P(ipu.fabric.chrony#role) gives to every host. Empty leaves clocks alone.
    type: list
    elements: str
    default: []
  node_address:
    description:
      - Which address of a host becomes its node's, if the inventory has no C(ip). C(interface) is the name of an
        interface, or a pattern with C(*); C(subnet) is a CIDR, or a list with one of each family.
      - Empty for the source address of the default route and, with CIDRs of both families, the address of the other
        family on that interface.
    type: dict
    default: {}
  host_sizes:
    description:
      - Minimum sizes of hosts by role, instead of those of this collection. A smaller host is an error.
      - Roles are V(control_plane), V(worker), V(ipu) and V(gpu), each with any of V(cpus), V(memory_gb) and V(disk_gb).
    type: dict
    default: {}
  kubelet_config:
    description:
      - Settings that the site merges into the KubeletConfiguration. An unknown field is a warning.
      - A host that is not yet a node and has less free disk space than C(evictionHard) keeps free is an error.
    type: dict
    default: {}
  node_affinity:
    description:
      - Whether the site restricts the nodes of the network operator's DaemonSets. If so, nodes that are not in the
        inventory are no warning.
    type: bool
    default: false
  pods_per_node:
    description: Maximum number of pods with a fabric address on each host.
    type: int
    default: 8
  vipu_hosts:
    description:
      - V-IPU controllers, instead of those that the hosts name.
      - Each is V(host:port), or a dictionary with V(host), V(port) and V(serves), a list of inventory names.
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
        V(fabric_mirror), with the upstream source for what a site leaves out.
      - A source with neither TLS nor a digest nor a signature is an error.
    type: dict
    default: {}
  image_digests:
    description: The digest of each pinned image, V(sha256:) and 64 digits, by the full name with the tag.
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

- name: List what must be fixed first
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
        - What applying the plan would do. V(hosts) has for each host a V(word) (V(install), V(join), V(rejoin),
          V(finish), V(upgrade), V(change), V(untouched), V(outside) or V(unknown)) and V(why), V(counts) the number of
          hosts by word, and V(line) a sentence.
        - V(state) is V(nothing), V(changes) or V(errors), and V(exit_code) 0, 2 or 1.
      type: dict
    since:
      description:
        - How the decisions differ from an earlier plan, as V(moved), each with a V(mark), V(host), V(thing) and
          V(fields). V(time) is when that plan was made, V(applied) whether it is the applied plan.
        - Null without an earlier plan.
      type: dict
    drift:
      description: O(drift) as seen at V(drift_time). Null without any, and once a plan was applied after it.
      type: list
      elements: dict
    drift_time:
      description: When the drift was seen, in UTC. Empty if nobody has looked.
      type: str
    releases:
      description:
        - Releases that go together, the capabilities of the network operator's, and the images of its components.
        - V(whereabouts) is a release to install on its own if V(whereabouts_standalone), else empty.
      type: dict
    cluster:
      description:
        - V(pod_cidr), V(service_cidr), V(endpoint), V(control_planes), V(workers), V(single_node).
        - V(distribution) has the V(name) of what makes the nodes (V(kubeadm), V(k3s), V(rke2), or V(none) if that is
          not known), V(containerd_socket), V(cni_bin_directory) and V(cni_network_directory), empty for the default.
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
          not run as planned, with what changes there. Null where Kubernetes is managed elsewhere.
        - V(left_out) has the V(name) of each setting that this cluster does not get, and V(why).
      type: dict
    hosts:
      description:
        - For each host V(node), V(address), V(roles), and V(links) by the name of the network.
        - A link has V(netdev), V(pci), V(mac), V(driver), V(kind), V(lower), V(device), V(mtu), V(rdma_netdevs),
          V(address), V(prefix), V(addresses) of all families, and V(altname), an alternative name that the NIC gets.
        - V(firmware) is that of its RDMA device, if known.
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
        - For each host with certificates of a cluster V(node), the certificate that expires V(first), and when it
          V(ends).
        - V(ending) names those that expire within O(renew_days), V(expired) those that have expired.
      type: list
      elements: dict
    cni_token_ends:
      description:
        - Tokens that CNI plugins have on V(hosts), as V(certificates), and when it was V(seen), by the host's clock.
        - V(restart) has the plugins whose pods must be restarted, with the time at which their first token expires.
      type: dict
    sources:
      description:
        - Files that are downloaded on their own, each with its V(name), its V(url) and the V(sha256) that it must have.
      type: list
      elements: dict
    image_digests:
      description: O(image_digests) without invalid entries.
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
hosts:
  description:
    - For each of O(run_hosts) that was observed, what M(ipu.fabric.port_probe) returned, of all steps together.
    - V(unreachable) and V(msg) of a host that was lost meanwhile, V(failed) and V(msg) if a step failed.
  returned: with O(scope=ports)
  type: dict
upgrade:
  description:
    - V(control_planes) and V(workers) that are due, in their order, V(done), what is V(behind) on those that are due,
      by inventory name the V(versions) of kubelets and the names of V(nodes), and V(findings).
    - V(begun) says whether a control plane is done, V(marked) which of V(done) an interrupted upgrade has left
      cordoned, V(resumed) whether upgrade-VERSION.json in O(artifacts_dir) is of the cluster with this V(ca).
  returned: with O(scope=upgrade)
  type: dict
text:
  description:
    - The plan for a terminal; with O(site) also the hosts outside C(--limit) and the files of the plan.
    - With O(scope=applied) what to do next.
  returned: except with O(scope=ports) and O(scope=cluster)
  type: str
errors:
  description: Number of findings that are errors.
  returned: with O(scope=plan), O(scope=preflight) or O(scope=upgrade)
  type: int
refusal:
  description:
    - Why a run should stop after this plan, because of errors or what O(refuse) names. Empty if it may continue.
  returned: with O(scope=plan)
  type: str
"""
