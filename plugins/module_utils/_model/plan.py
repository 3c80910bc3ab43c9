# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan: what plan.json contains, and where every role takes its inputs from."""

from __future__ import annotations

import typing as t

from .observation import Address
from .profiles import MetaPlugin

Level = t.Literal["error", "warning"]
Role = t.Literal["control_plane", "worker", "ipu"]
HostWord = t.Literal["install", "join", "rejoin", "finish", "upgrade", "change", "untouched", "unknown", "outside"]
Mark = t.Literal["+", "~", "-"]
# The driver of VMware's paravirtual RDMA, a PCI function beside the NIC's; a virtual machine has at most one.
PVRDMA = "vmw_pvrdma"
HOST = "host"  # key of a host's own RDMA NIC in its links, if the plan has no fabric network


class Finding(t.TypedDict):
    """Something to know or to fix: a plan with errors is not applied."""

    level: Level
    check: str  # name of the check, as in fabric_allow
    hosts: t.List[str]  # hosts concerned, by inventory name; empty: all
    what: str  # what is required
    seen: str  # what was seen instead
    next: str  # what to do now


class Image(t.TypedDict):
    """A container image, in the three parts of a NicClusterPolicy."""

    repository: str
    image: str
    version: str


class Releases(t.TypedDict):
    """Releases that work together. What has an empty release is not installed."""

    kubernetes: str  # all three numbers, without v
    stack: str  # network_operator or spiderpool; empty: there is no fabric network
    network_operator: str
    spiderpool: str
    gpu_operator: str
    ipu_operator: str
    cni: str  # calico, flannel or none
    cni_version: str  # tag of its release
    cni_images: t.List[str]  # of the pod network, for a site's own registry
    pause: str  # tag of the pause image; empty: kubeadm's default
    ipam: str  # nv-ipam, whereabouts or spiderpool
    whereabouts: str  # release to install separately; empty: the network operator ships it, or it is not used
    whereabouts_standalone: bool  # whether it is installed separately
    features: t.Dict[str, bool]  # features of this network operator release, by their names in _network/releases.py
    components: t.Dict[str, Image]  # by field name of the NicClusterPolicy


class Support(t.TypedDict):
    """How long its makers support a release, as they publish it."""

    component: str  # such as network operator
    release: str
    state: str  # supported, deprecated (severe faults only), ended, or unknown
    until: str  # last day of support, YYYY-MM-DD; empty: none is published
    source: str  # page with this information; empty: there is none


class IpuOperatorRelease(t.TypedDict):
    """The Helm release of the IPU operator."""

    release: str  # its name
    namespace: str


class RunningIpuOperator(t.TypedDict):
    """An IPU operator of the existing cluster."""

    namespace: str
    release: str  # its name in Helm; empty: it is not a Helm release
    version: str  # of its chart


class RunningCluster(t.TypedDict):
    """The existing cluster that the plan was compared with. Empty: not known."""

    host: str  # control plane that reported this, by its inventory name
    version: str  # of Kubernetes, without v
    endpoint: str
    pod_cidr: str
    service_cidr: str
    pod_networks: t.List[str]  # such as calico
    ipu_operators: t.List[RunningIpuOperator]  # none with fabric_ipu: false
    fabric_networks: t.Optional[t.List[str]]  # of the planned stack; None: not known


class VirtualAddress(t.TypedDict):
    """An address for the API, which keepalived keeps on one of the control planes."""

    address: str
    router_id: int  # of VRRP, 1 to 255
    members: t.Dict[str, str]  # address of each control plane, by its inventory name


class Distribution(t.TypedDict):
    """What set up the nodes, and where their containerd looks for CNI files."""

    name: str  # kubeadm, k3s, rke2, or none if not known
    containerd_socket: str  # empty: the usual /run/containerd/containerd.sock
    cni_bin_directory: str  # of plugins; empty: the usual /opt/cni/bin
    cni_network_directory: str  # of configurations; empty: the usual /etc/cni/net.d


class Runtime(t.TypedDict):
    """The container runtime of the nodes."""

    name: str  # containerd or docker; empty: Kubernetes is managed elsewhere
    cri_dockerd: str  # its release, if the runtime is docker; empty: it is not used
    kubelet_feature_gates: t.Dict[str, bool]  # gates that kubelets need for this runtime


class Cluster(t.TypedDict):
    """The planned cluster. Hosts are given by their inventory names."""

    pod_cidr: str  # one, or one of each family separated by a comma
    service_cidr: str
    endpoint: str  # host:port of the API server; empty: unknown
    distribution: Distribution
    runtime: Runtime
    virtual_address: t.Optional[VirtualAddress]  # null: the collection does not provide the endpoint
    control_planes: t.List[str]
    workers: t.List[str]
    single_node: bool  # one host is control plane, worker and IPU host at once
    running: t.Optional[RunningCluster]  # null: no control plane has a cluster, or none answered


class _PlannedLinkOptional(Address, total=False):
    firmware: str  # of the RDMA device; missing if not known
    guid: str  # likewise
    driver_version: str  # likewise
    down: str  # state of a NIC that can't carry traffic, such as down; missing if it is up


class PlannedLink(_PlannedLinkOptional):
    """The NIC of one host on one fabric network; address and prefix are those of the network's first family.

    They are empty and 0 for a NIC without an address in a subnet that the site states.
    """

    netdev: str
    altname: str  # alternative name that the NIC gets; empty: none
    pci: str  # 0000:81:00.0; empty for devices without one
    mac: str
    driver: str
    kind: str  # as in Link
    lower: t.List[str]  # members of a bond, bridge or the like, or the device below a VLAN
    rdma_netdevs: t.List[str]  # the lowest devices, whose hardware does RDMA
    device: str  # RDMA device such as mlx5_0; empty without RDMA
    mtu: int  # bytes
    rate_gbps: t.Optional[float]  # Gb/s of the port; null: not known, as with software RDMA
    pcie_gbps: t.Optional[float]  # Gb/s of the narrowest PCIe link to the processor; null: not known
    addresses: t.List[Address]  # one of each family of the network


class PlannedGpu(t.TypedDict):
    """A GPU of a host. The collection does not change it: the plan shows where it sits."""

    pci: str  # 0000:82:00.0
    model: str  # PCI vendor:device, such as 10de:2330; empty: not known
    networks: t.List[str]  # those whose NIC is nearest in the PCI tree, or else on its NUMA node; empty: none is near


class _PlannedHostOptional(t.TypedDict, total=False):
    role_variables: t.Dict[str, t.Optional[str]]  # that differ from those of most hosts; null: not set


class PlannedHost(_PlannedHostOptional):
    """One host, by its inventory name."""

    node: str  # name of its Kubernetes node
    platform: str  # distribution, release and architecture, such as debian-bookworm-amd64; empty: not observed
    address: str  # of its node in the cluster; empty: unknown
    roles: t.List[Role]
    links: t.Dict[str, PlannedLink]  # by network; without networks, the RDMA NIC of a host that runs pods, as `host`
    gpus: t.List[PlannedGpu]  # in PCI order, as nvidia-smi numbers them


class Controller(t.TypedDict):
    """A V-IPU controller, and the hosts that it serves."""

    host: str  # as the site or the hosts give it
    port: int
    address: str  # what host resolves to
    serves: t.List[str]  # inventory names of the hosts that it serves
    label: str  # key=value, on the nodes of these hosts


class Vipu(t.TypedDict):
    """V-IPU: input for the IPU operator's chart and for node labels."""

    controllers: t.List[Controller]
    value: str  # of the chart's global.vipuControllers
    node_labels: t.Dict[str, t.Dict[str, str]]  # by inventory name


class SubnetAddresses(t.TypedDict):
    """Which addresses of a subnet pods may get: those from range_start to range_end that are not in exclude."""

    cidr: str
    prefix: int  # bits
    gateway: str  # empty: none
    range_start: str  # first address for pods
    range_end: str  # last address for pods
    exclude: t.List[str]  # CIDRs of all addresses that pods never get: outside the range, gateway, hosts, reserved ones
    capacity: int  # addresses that pods can get; with nv-ipam, those in the blocks of the planned nodes
    warnings: t.List[str]  # in a plan they are also findings


class PlannedSubnet(SubnetAddresses):
    """The addresses of one family of a network."""

    needed: int  # of capacity: hosts times fabric_pods_per_node, the most pods that the site plans for each host


class Exclusion(t.TypedDict):
    """Addresses from startIP to endIP, both included, that an nv-ipam pool never allocates."""

    startIP: str
    endIP: str


class NodeSelectorRequirement(t.TypedDict):
    """A condition on node labels, as Kubernetes writes it."""

    key: str
    operator: str
    values: t.List[str]


class NodeSelectorTerm(t.TypedDict):
    """Conditions, all of which a node has to meet."""

    matchExpressions: t.List[NodeSelectorRequirement]


class NodeSelector(t.TypedDict):
    """Terms, one of which a node has to meet."""

    nodeSelectorTerms: t.List[NodeSelectorTerm]


class _PoolOptions(t.TypedDict, total=False):
    gateway: str
    nodeSelector: NodeSelector


class PoolSpec(_PoolOptions):
    """The spec of an nv-ipam IPPool. Without a gateway, that key is missing."""

    subnet: str
    perNodeBlockSize: int  # addresses that each node gets
    exclusions: t.List[Exclusion]


class PlannedPool(PoolSpec):
    """An nv-ipam IPPool: its name and its spec."""

    name: str


class WhereaboutsRange(t.TypedDict, total=False):
    """A range of whereabouts, with its own keys."""

    range: str
    range_start: str
    range_end: str
    exclude: t.List[str]


class WhereaboutsApi(t.TypedDict):
    """How whereabouts reaches the API."""

    kubeconfig: str  # file on every node


class Ipam(WhereaboutsRange, total=False):
    """The ipam of a MacvlanNetwork, with the keys of the IPAM that `type` names; empty if pods get no addresses."""

    type: str
    ipRanges: t.List[WhereaboutsRange]  # whereabouts, with two families
    configuration_path: str  # whereabouts, if its files are not in the usual directory
    kubernetes: WhereaboutsApi  # whereabouts, if its files are not in the usual directory
    poolName: str  # nv-ipam
    default_ipv4_ippool: t.List[str]  # Spiderpool
    default_ipv6_ippool: t.List[str]


class SubnetPlan(SubnetAddresses):
    """What rdma_subnet returns for one subnet."""

    mtu: int  # bytes, the smallest of the nodes' NICs; 0: not known
    ipam: Ipam
    pool: t.Optional[PoolSpec]  # nv-ipam only


class NetworkOptions(t.TypedDict, total=False):
    """Options that only some networks have."""

    accept_ra: bool  # false: pods ignore router advertisements
    meta_plugins: t.List[MetaPlugin]  # chained CNI plugins, after the main one
    cni: str  # CNI plugin, if not macvlan: ipvlan, ipoib, sriov, ib-sriov or host-device
    link_layer: str  # of its NICs, if not Ethernet: InfiniBand
    vfs: int  # for each of its NICs, if pods get VFs
    made_by: str  # in a plan derived from a cluster: its object's stack; empty: only a NetworkAttachmentDefinition


class PlannedNetwork(NetworkOptions):
    """A fabric network. `subnet` and `pool` are those of its first family: the first in `families`, or else IPv4."""

    name: str
    namespace: str
    hosts: t.List[str]  # hosts with a NIC on it, by inventory name
    master: str  # name by which the macvlan finds the NIC on every host: netdev or altname; empty: no NIC was found
    mode: str  # bridge, private, vepa or passthru
    mtu: int  # of pods, in bytes
    resource: str  # as pods request it: resourcePrefix/resourceName of an RdmaResource
    rdma: bool  # whether this resource exists
    rdma_drivers: t.List[str]  # of its NICs on all hosts
    rdma_netdevs: t.List[str]  # its NICs on all hosts, below bonds and VLANs
    subnet: t.Optional[PlannedSubnet]  # null if pods get no addresses
    subnets: t.List[PlannedSubnet]  # one of each family
    ipam: Ipam
    pool: t.Optional[PlannedPool]  # null if the IPAM is not nv-ipam
    pools: t.List[PlannedPool]  # one of each family


class Selectors(t.TypedDict, total=False):
    """Which devices a resource selects: OR inside a list, AND between lists."""

    drivers: t.List[str]
    ifNames: t.List[str]


class RdmaResource(t.TypedDict):
    """One entry of the RDMA shared device plugin's configList."""

    resourceName: str
    resourcePrefix: str
    rdmaHcaMax: int  # pods on one host that can use it
    selectors: Selectors


class DeviceSelectors(t.TypedDict):
    """Which devices pods get exclusively."""

    pciAddresses: t.List[str]
    isRdma: bool


class DeviceResource(t.TypedDict):
    """One entry of the SR-IOV device plugin's resourceList: NICs that are moved into pods."""

    resourceName: str
    resourcePrefix: str
    selectors: DeviceSelectors


class SriovPolicy(t.TypedDict):
    """The SR-IOV operator's settings for the NICs of one network."""

    name: str  # of the network
    resource: str  # without its prefix
    pci: t.List[str]  # addresses of the NICs
    vfs: int  # VFs of each NIC
    mtu: int  # of the VFs, in bytes; 0: left alone
    link_layer: str


class NicGroup(t.TypedDict):
    """Hosts on which the device plugin looks for the same NICs."""

    name: str  # of its NicNodePolicy, and value of the label on its nodes
    hosts: t.List[str]  # inventory names
    resources: t.List[RdmaResource]


class NoProxy(t.TypedDict):
    """Destinations that bypass the site's proxy. Both lists are empty if there is no proxy."""

    everything: t.List[str]  # names, addresses and networks: for programs that talk to hosts and the API
    downloads: t.List[str]  # for containerd and apt; has hosts by their networks, so that a new host changes nothing


class HostCertificates(t.TypedDict):
    """The cluster's certificates on a host when the plan was made."""

    node: str
    first: str  # the one that ends first, by its name in host_info
    ends: str  # when it ends, UTC in ISO 8601; empty: it can't be read
    ending: t.List[str]  # names of those that are due for renewal
    expired: t.List[str]


class HostTokens(HostCertificates):
    """Tokens that CNI plugins have on a host, by plugin name."""

    seen: str  # when the host was asked, by its own clock


class CniTokens(t.TypedDict):
    """Tokens of CNI plugins when the plan was made."""

    hosts: t.List[HostTokens]
    restart: t.Dict[str, str]  # plugins whose pods need a restart, with the end of their first token


class HardeningSetting(t.TypedDict):
    """A setting of the control plane that fabric_hardening requires."""

    name: str
    component: str  # static pod
    arguments: t.Dict[str, str]  # without leading dashes
    checks: str  # checks of the CIS benchmark for Kubernetes 1.12 that it meets; empty: none


class LeftOut(t.TypedDict):
    """A setting of the level that this cluster does not get."""

    name: str
    why: str


class HardeningChange(t.TypedDict):
    """A control plane that does not run as planned."""

    host: str  # inventory name
    changes: t.List[str]  # arguments to change, by static pod, and files
    kept: t.List[str]  # settings that the site made differently and that stay, with their values


class Hardening(t.TypedDict):
    """How the control plane is hardened."""

    level: str  # none, baseline or cis
    settings: t.List[HardeningSetting]  # for a control plane on which the site sets nothing itself
    left_out: t.List[LeftOut]
    super_admin: bool  # whether super-admin.conf stays
    exempt: t.List[str]  # namespaces whose pods may be privileged, besides those of the site and of the collection
    due: t.List[HardeningChange]  # as of when the plan was made; empty if there is no cluster yet


class Source(t.TypedDict):
    """What is downloaded individually: manifests, charts and programs. Packages are signed by their repository."""

    name: str  # such as chart ipu-operator 1.2.0
    url: str  # of the file, or of the repository that holds it
    sha256: str  # the expected digest; empty: not known


class Drift(t.TypedDict):
    """An object of the cluster that differs from the plan."""

    object: str  # kind, namespace and name
    change: t.Literal["create", "change", "remove", "take over", "leave"]  # what site would do with it
    ours: bool  # whether this collection created it, or would
    fields: t.List[str]  # what would change in it, with both values


class Made(t.TypedDict):
    """When, where and by whom a plan was made. Comparisons of plans ignore it."""

    time: str  # UTC, ISO 8601
    site: str  # clusterName of the site's ClusterConfiguration, else the inventory's folder; empty: neither is known
    collection: str  # version of ipu.fabric
    by: str  # user@host of the controller; empty: not known


class HostChange(t.TypedDict):
    """What happens to a host."""

    word: HostWord
    why: t.List[str]  # what differs, if the word alone does not say it


class Moved(t.TypedDict):
    """One thing that is planned differently than before."""

    mark: Mark
    host: str  # inventory name; empty: it does not belong to a host
    thing: str  # such as NIC on rdma-net
    fields: t.List[str]  # what differs, with both values; empty: the whole thing was added or removed


class Since(t.TypedDict):
    """What differs from an earlier plan."""

    time: str  # when the earlier plan was made; empty: it does not say
    applied: bool  # site applied that plan; false: it is the last run's plan
    moved: t.List[Moved]


class Summary(t.TypedDict):
    """The outcome of the plan, in one line and for programs."""

    hosts: t.Dict[str, HostChange]  # by inventory name
    counts: t.Dict[str, int]  # number of hosts by word; words without hosts are left out
    bare: bool  # no host is in a cluster: site would build one
    line: str
    state: t.Literal["nothing", "changes", "errors"]
    exit_code: int  # 0: nothing to do, 1: errors, 2: changes; the same as terraform plan -detailed-exitcode


class NotProved(t.TypedDict):
    """What a plan derived from an existing cluster leaves out."""

    network: str  # namespace/name
    whole: bool  # the whole network; false: only what `why` says
    fault: bool  # pods can't join it; false: it may well work
    why: str
    next: str  # what to do about it; empty: nothing


class Admission(t.TypedDict):
    """Which nodes accept new pods."""

    mode: str  # warn: all nodes; enforce: only proved ones
    max_unproved: str  # how many of the fabric's nodes a failed proof may close: a number or a percentage


class OwnDevices(t.TypedDict, total=False):
    """Devices that pods get exclusively; a part of a plan."""

    device_resources: t.List[DeviceResource]  # missing if no NIC is moved into pods
    sriov_policies: t.List[SriovPolicy]  # missing if pods get no VFs


class _PlanOptional(OwnDevices, total=False):
    not_proved: t.List[NotProved]  # only in a plan that the playbook prove_cluster derived, without asking hosts
    admission: Admission  # missing if it is off
    role_variables: t.Dict[str, str]  # as most hosts have them, without secrets; missing if none is set
    nic_groups: t.List[NicGroup]  # missing if the NicClusterPolicy configures the device plugin on all nodes


class Plan(_PlanOptional):
    """The whole plan."""

    schema: int  # version of this structure
    made: Made
    summary: Summary
    since: t.Optional[Since]  # null: no earlier plan was found
    recorded: str  # when the observations were recorded, in ISO 8601; empty: the hosts were asked
    releases: Releases
    support: t.List[Support]  # of each component that is installed
    cluster: Cluster
    hardening: t.Optional[Hardening]  # null if Kubernetes is managed elsewhere
    hosts: t.Dict[str, PlannedHost]  # by inventory name
    vipu: Vipu
    ipu_operator: t.Optional[IpuOperatorRelease]  # null with fabric_ipu: false
    networks: t.List[PlannedNetwork]
    rdma_resources: t.List[RdmaResource]
    no_proxy: NoProxy
    certificates: t.List[HostCertificates]  # empty if there is no kubeadm cluster yet
    cni_token_ends: CniTokens
    sources: t.List[Source]
    image_digests: t.Dict[str, str]  # sha256:... by image and tag: rendered objects contain both
    drift: t.Optional[t.List[Drift]]  # null: the playbook drift has not run since site did
    drift_time: str  # when drift ran; UTC, ISO 8601; empty: it has not
    findings: t.List[Finding]  # errors first


class Preflight(t.TypedDict):
    """The part of a plan about hosts and their NICs."""

    schema: int
    hosts: t.Dict[str, PlannedHost]
    findings: t.List[Finding]
