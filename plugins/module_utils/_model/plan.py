# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan: what plan.json holds, and what every role takes its inputs from."""

from __future__ import annotations

import typing as t

from .observation import Address
from .profiles import MetaPlugin

Level = t.Literal["error", "warning"]
Role = t.Literal["control_plane", "worker", "ipu"]
HostWord = t.Literal["install", "join", "rejoin", "finish", "upgrade", "change", "untouched", "unknown"]
Mark = t.Literal["+", "~", "-"]
# The driver of VMware's paravirtual RDMA, a PCI function beside that of the NIC; a virtual machine has one at most.
PVRDMA = "vmw_pvrdma"
HOST = "host"  # key of a host's own RDMA NIC in its links, where the plan has no fabric network


class Finding(t.TypedDict):
    """Something to know, or to fix: with errors the plan is not applied."""

    level: Level
    check: str  # name of the check, as fabric_allow takes it
    hosts: t.List[str]  # that it is about, by inventory name; empty: all
    what: str  # what is required
    seen: str  # what was seen instead
    next: str  # what to do now


class Image(t.TypedDict):
    """A container image, in the three parts that a NicClusterPolicy takes."""

    repository: str
    image: str
    version: str


class Releases(t.TypedDict):
    """Releases that work together. An empty release is not installed."""

    kubernetes: str  # all three numbers, without v
    stack: str  # network_operator or spiderpool; empty: there is no fabric network
    network_operator: str
    spiderpool: str
    gpu_operator: str
    ipu_operator: str
    cni: str  # calico, flannel or none
    cni_version: str  # tag of its release
    cni_images: t.List[str]  # of the pod network, for a site's own registry
    pause: str  # tag of the pause image; empty: ask kubeadm
    ipam: str  # nv-ipam, whereabouts or spiderpool
    whereabouts: str  # release to install separately; empty: the network operator ships it, or it is not used
    whereabouts_standalone: bool  # whether it is installed separately
    features: t.Dict[str, bool]  # of this network operator release, by the names in _network/releases.py
    components: t.Dict[str, Image]  # by the name of a NicClusterPolicy's field


class Support(t.TypedDict):
    """What the makers of a release say of how long they go on with it."""

    component: str  # such as network operator
    release: str
    state: str  # supported, deprecated (severe faults only), ended, or unknown
    until: str  # its last day, YYYY-MM-DD; empty: none is named
    source: str  # page that says so; empty: there is none


class IpuOperatorRelease(t.TypedDict):
    """The Helm release of the IPU operator."""

    release: str  # its name
    namespace: str


class RunningIpuOperator(t.TypedDict):
    """An IPU operator of the existing cluster."""

    namespace: str
    release: str  # its name in helm; empty: helm has none
    version: str  # of its chart


class RunningCluster(t.TypedDict):
    """The existing cluster, with which the plan was compared. Empty is not known."""

    host: str  # control plane that says so, by its inventory name
    version: str  # of Kubernetes, without v
    endpoint: str
    pod_cidr: str
    service_cidr: str
    pod_networks: t.List[str]  # such as calico
    ipu_operators: t.List[RunningIpuOperator]  # none with fabric_ipu: false
    fabric_networks: t.Optional[t.List[str]]  # of the planned stack; None: not known


class VirtualAddress(t.TypedDict):
    """An address of the API that keepalived keeps on one of the control planes."""

    address: str
    router_id: int  # of VRRP, 1 to 255
    members: t.Dict[str, str]  # address of each control plane, by its inventory name


class Distribution(t.TypedDict):
    """What makes the nodes, and where their containerd looks for CNI files."""

    name: str  # kubeadm, k3s or rke2; none: not known
    containerd_socket: str  # empty: the usual /run/containerd/containerd.sock
    cni_bin_directory: str  # of plugins; empty: the usual /opt/cni/bin
    cni_network_directory: str  # of configurations; empty: the usual /etc/cni/net.d


class Runtime(t.TypedDict):
    """What runs the containers of the nodes."""

    name: str  # containerd or docker; empty: Kubernetes is managed elsewhere
    cri_dockerd: str  # its release, with docker; empty: none is used
    kubelet_feature_gates: t.Dict[str, bool]  # of kubelets, that the runtime needs


class Cluster(t.TypedDict):
    """The planned cluster. Hosts have their inventory names."""

    pod_cidr: str  # one, or one of each family with a comma between
    service_cidr: str
    endpoint: str  # host:port of the API server; empty: unknown
    distribution: Distribution
    runtime: Runtime
    virtual_address: t.Optional[VirtualAddress]  # null: the endpoint is somebody else's work
    control_planes: t.List[str]
    workers: t.List[str]
    single_node: bool  # one host is control plane, worker and IPU host
    running: t.Optional[RunningCluster]  # null: no control plane has a cluster, or none answered


class _PlannedLinkOptional(Address, total=False):
    firmware: str  # of the RDMA device; missing where it is not known
    guid: str  # likewise
    driver_version: str  # likewise
    down: str  # what the host said of a NIC that can't carry traffic, such as down; missing where it is up


class PlannedLink(_PlannedLinkOptional):
    """The NIC of one host on one fabric network; address and prefix are those of the network's first family.

    A NIC may have none in a subnet that the site states: then they are empty and 0.
    """

    netdev: str
    altname: str  # an alternative name that the NIC gets; empty: none
    pci: str  # 0000:81:00.0; empty for devices without one
    mac: str
    driver: str
    kind: str  # as that of a Link
    lower: t.List[str]  # members of a bond, bridge or the like, or the device below a VLAN
    rdma_netdevs: t.List[str]  # devices at the bottom whose hardware carries RDMA
    device: str  # RDMA device such as mlx5_0; empty without RDMA
    mtu: int  # bytes
    rate_gbps: t.Optional[float]  # Gb/s of the port; null: not known, as of software RDMA
    pcie_gbps: t.Optional[float]  # Gb/s of the narrowest PCIe link to the processor; null: not known
    addresses: t.List[Address]  # one of each family of the network


class PlannedGpu(t.TypedDict):
    """A GPU of a host. Nothing is done to it: it is in the plan to show its place."""

    pci: str  # 0000:82:00.0
    model: str  # PCI vendor:device, such as 10de:2330; empty: not known
    networks: t.List[str]  # whose NIC is nearest to it in the PCI tree, else on its NUMA node; empty: none is near


class PlannedHost(t.TypedDict):
    """One host, by its inventory name."""

    node: str  # name of its Kubernetes node
    platform: str  # distribution, release and architecture, such as debian-bookworm-amd64; empty: not observed
    address: str  # of its node in the cluster; empty: unknown
    roles: t.List[Role]
    links: t.Dict[str, PlannedLink]  # by network; without any, the RDMA NIC of a host that runs pods, by `host`
    gpus: t.List[PlannedGpu]  # in PCI order, in which nvidia-smi counts them


class Controller(t.TypedDict):
    """A V-IPU controller, and the hosts that it serves."""

    host: str  # as the site or the hosts name it
    port: int
    address: str  # what host resolves to
    serves: t.List[str]  # inventory names
    label: str  # key=value, on the nodes of these hosts


class Vipu(t.TypedDict):
    """V-IPU for the IPU operator's chart and the labels of nodes."""

    controllers: t.List[Controller]
    value: str  # of the chart's global.vipuControllers
    node_labels: t.Dict[str, t.Dict[str, str]]  # by inventory name


class SubnetAddresses(t.TypedDict):
    """Which addresses of a subnet are for pods: those from range_start to range_end that are not in exclude."""

    cidr: str
    prefix: int  # bits
    gateway: str  # empty: none
    range_start: str  # first address for pods
    range_end: str  # last address for pods
    exclude: t.List[str]  # CIDRs of all addresses that no pod gets: outside of the range, gateway, hosts, reserved
    capacity: int  # addresses that pods can get; with nv-ipam, those in the blocks of the planned nodes
    warnings: t.List[str]  # in a plan they are findings too


class PlannedSubnet(SubnetAddresses):
    """The addresses of one family of a network."""

    needed: int  # of capacity: hosts times fabric_pods_per_node, the most pods that a site plans for each host


class Exclusion(t.TypedDict):
    """Addresses from startIP to endIP, both included, that an nv-ipam pool never gives out."""

    startIP: str
    endIP: str


class NodeSelectorRequirement(t.TypedDict):
    """A condition on a label of nodes, as Kubernetes writes it."""

    key: str
    operator: str
    values: t.List[str]


class NodeSelectorTerm(t.TypedDict):
    """Conditions that a node meets all."""

    matchExpressions: t.List[NodeSelectorRequirement]


class NodeSelector(t.TypedDict):
    """Terms of which a node meets one."""

    nodeSelectorTerms: t.List[NodeSelectorTerm]


class _PoolOptions(t.TypedDict, total=False):
    gateway: str
    nodeSelector: NodeSelector


class PoolSpec(_PoolOptions):
    """The spec of an nv-ipam IPPool. Without a gateway the key is left out."""

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
    """The ipam of a MacvlanNetwork, with the keys of the IPAM that `type` names; empty where there are no addresses."""

    type: str
    ipRanges: t.List[WhereaboutsRange]  # whereabouts with two families
    configuration_path: str  # whereabouts, where its files are not in the usual directory
    kubernetes: WhereaboutsApi  # likewise
    poolName: str  # nv-ipam
    default_ipv4_ippool: t.List[str]  # Spiderpool
    default_ipv6_ippool: t.List[str]


class SubnetPlan(SubnetAddresses):
    """What rdma_subnet returns of one subnet."""

    mtu: int  # bytes, the least of the nodes' NICs; 0: not known
    ipam: Ipam
    pool: t.Optional[PoolSpec]  # nv-ipam only


class NetworkOptions(t.TypedDict, total=False):
    """What few networks have."""

    accept_ra: bool  # false: pods ignore router advertisements
    meta_plugins: t.List[MetaPlugin]  # CNI plugins that follow the main one
    cni: str  # CNI plugin, where it is not macvlan: ipvlan, ipoib, sriov, ib-sriov or host-device
    link_layer: str  # of its NICs, where it is not Ethernet: InfiniBand
    vfs: int  # of each of its NICs, where pods have VFs
    made_by: str  # in a plan of any cluster: the stack of its object; empty: it is a NetworkAttachmentDefinition alone


class PlannedNetwork(NetworkOptions):
    """A fabric network. `subnet` and `pool` are those of the first family: the first in its key families, else IPv4."""

    name: str
    namespace: str
    hosts: t.List[str]  # whose NICs are on it, by inventory name
    master: (
        str  # name by which the macvlan finds the NIC on every host: its netdev or its altname; empty: no NIC was found
    )
    mode: str  # bridge, private, vepa or passthru
    mtu: int  # of pods, in bytes
    resource: str  # as a pod asks for it: resourcePrefix/resourceName of an RdmaResource
    rdma: bool  # whether there is such a resource
    rdma_drivers: t.List[str]  # of its NICs on all hosts
    rdma_netdevs: t.List[str]  # its NICs on all hosts, below bonds and VLANs
    subnet: t.Optional[PlannedSubnet]  # null where there are no addresses
    subnets: t.List[PlannedSubnet]  # one of each family
    ipam: Ipam
    pool: t.Optional[PlannedPool]  # null where the IPAM is not nv-ipam
    pools: t.List[PlannedPool]  # one of each family


class Selectors(t.TypedDict, total=False):
    """Which devices a resource selects: OR inside a list, AND between lists."""

    drivers: t.List[str]
    ifNames: t.List[str]


class RdmaResource(t.TypedDict):
    """One entry of the RDMA shared device plugin's configList."""

    resourceName: str
    resourcePrefix: str
    rdmaHcaMax: int  # pods on a host that can have it
    selectors: Selectors


class DeviceSelectors(t.TypedDict):
    """Which devices pods get for their own."""

    pciAddresses: t.List[str]
    isRdma: bool


class DeviceResource(t.TypedDict):
    """One entry of the SR-IOV device plugin's resourceList: NICs that move into pods."""

    resourceName: str
    resourcePrefix: str
    selectors: DeviceSelectors


class SriovPolicy(t.TypedDict):
    """What the SR-IOV operator is told of the NICs of a network."""

    name: str  # of the network
    resource: str  # without its prefix
    pci: t.List[str]  # addresses of the NICs
    vfs: int  # of each
    mtu: int  # of the VFs, in bytes; 0: their own
    link_layer: str


class NicGroup(t.TypedDict):
    """Hosts on which the device plugin has to look for the same NICs."""

    name: str  # of its NicNodePolicy, and the value of its nodes' label
    hosts: t.List[str]  # inventory names
    resources: t.List[RdmaResource]


class NoProxy(t.TypedDict):
    """What is reached without the site's proxy. Both lists are empty where there is none."""

    everything: t.List[str]  # names, addresses and networks: for programs that speak to hosts and the API
    downloads: t.List[
        str
    ]  # for containerd and apt; hosts are in it by their networks, so that a new one changes nothing


class HostCertificates(t.TypedDict):
    """Certificates of the cluster on a host, when the plan was made."""

    node: str
    first: str  # name of the one that ends first, as host_info calls it
    ends: str  # when that is, UTC in ISO 8601; empty: it can't be read
    ending: t.List[str]  # names of those that are to be renewed soon
    expired: t.List[str]


class HostTokens(HostCertificates):
    """Tokens that CNI plugins have on a host, by their plugins' names."""

    seen: str  # when the host was asked, by its own clock


class CniTokens(t.TypedDict):
    """Tokens that CNI plugins have, when the plan was made."""

    hosts: t.List[HostTokens]
    restart: t.Dict[str, str]  # plugins whose pods have to start again, and when their first token ends


class HardeningSetting(t.TypedDict):
    """A setting of the control plane that follows from fabric_hardening."""

    name: str
    component: str  # static pod
    arguments: t.Dict[str, str]  # without dashes
    checks: str  # of the CIS benchmark for Kubernetes 1.12; empty: none


class LeftOut(t.TypedDict):
    """A setting of the level that this cluster does not get."""

    name: str
    why: str


class HardeningChange(t.TypedDict):
    """A control plane that does not run as planned."""

    host: str  # inventory name
    changes: t.List[str]  # arguments by static pod, and files
    kept: t.List[str]  # settings that the site has made in its own way, with what it has


class Hardening(t.TypedDict):
    """How the control plane is hardened."""

    level: str  # none, baseline or cis
    settings: t.List[HardeningSetting]  # of a control plane where nothing is set by the site
    left_out: t.List[LeftOut]
    super_admin: bool  # whether super-admin.conf stays
    exempt: t.List[str]  # namespaces whose pods may be privileged, beside those of the site and of the collection
    due: t.List[HardeningChange]  # when the plan was made; empty where there is no cluster yet


class Source(t.TypedDict):
    """What is downloaded on its own: manifests, charts and programs. Packages are signed by their repository."""

    name: str  # such as chart ipu-operator 1.2.0
    url: str  # of the file, or of the repository that has it
    sha256: str  # that it has to have; empty: none is known


class Drift(t.TypedDict):
    """An object of the cluster that is not as planned."""

    object: str  # kind, namespace and name
    change: t.Literal["create", "change", "remove", "take over", "leave"]  # what site would do with it
    ours: bool  # whether this collection made it, or would
    fields: t.List[str]  # what would change in it, with both values


class Made(t.TypedDict):
    """When, where and by whom a plan was made. Plans are not compared by it."""

    time: str  # UTC, ISO 8601
    site: (
        str  # clusterName of the site's ClusterConfiguration, else the folder of the inventory; empty: neither is known
    )
    collection: str  # version of ipu.fabric
    by: str  # user@host of the controller; empty: not known


class HostChange(t.TypedDict):
    """What happens to a host."""

    word: HostWord
    why: t.List[str]  # what differs, where the word alone does not say it


class Moved(t.TypedDict):
    """One thing that is planned differently than before."""

    mark: Mark
    host: str  # inventory name; empty: it is no host's
    thing: str  # such as NIC on rdma-net
    fields: t.List[str]  # what differs in it, with both values; empty: all of it came or went


class Since(t.TypedDict):
    """What differs from an earlier plan."""

    time: str  # when that was made; empty: it does not say
    applied: bool  # site has applied it; else it is the plan of the last run, which site has not fully applied
    moved: t.List[Moved]


class Summary(t.TypedDict):
    """What comes of the plan, in a line and for programs."""

    hosts: t.Dict[str, HostChange]  # by inventory name
    counts: t.Dict[str, int]  # hosts by word, those that there are
    bare: bool  # no host is in a cluster: site would build one
    line: str
    state: t.Literal["nothing", "changes", "errors"]
    exit_code: int  # 0: nothing to do, 1: errors, 2: changes, as terraform plan -detailed-exitcode has them


class NotProved(t.TypedDict):
    """What a plan of any cluster leaves out."""

    network: str  # namespace/name
    whole: bool  # the network; false: only what `why` says of it
    fault: bool  # pods can't join it; false: it may well work
    why: str
    next: str  # what to do about it; empty: nothing is needed


class Admission(t.TypedDict):
    """Which nodes take new pods."""

    mode: str  # warn: all, enforce: those that are proved
    max_unproved: str  # how many of the others a failed proof may close: a count or a percentage


class OwnDevices(t.TypedDict, total=False):
    """What pods get for their own; a part of a plan."""

    device_resources: t.List[DeviceResource]  # missing where no NIC moves into pods
    sriov_policies: t.List[SriovPolicy]  # missing where pods have no VFs


class _PlanOptional(OwnDevices, total=False):
    not_proved: t.List[NotProved]  # only in a plan that the playbook prove_cluster derived: no host was asked for it
    admission: Admission  # missing where it is off
    nic_groups: t.List[NicGroup]  # missing where the NicClusterPolicy has the device plugin of all nodes


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
    hardening: t.Optional[Hardening]  # null where Kubernetes is managed elsewhere
    hosts: t.Dict[str, PlannedHost]  # by inventory name
    vipu: Vipu
    ipu_operator: t.Optional[IpuOperatorRelease]  # null with fabric_ipu: false
    networks: t.List[PlannedNetwork]
    rdma_resources: t.List[RdmaResource]
    no_proxy: NoProxy
    certificates: t.List[HostCertificates]  # empty where there is no cluster of kubeadm yet
    cni_token_ends: CniTokens
    sources: t.List[Source]
    image_digests: t.Dict[str, str]  # sha256:... by image with its tag: what is rendered names both
    drift: t.Optional[t.List[Drift]]  # null: the playbook drift has not looked since site was run
    drift_time: str  # when it looked; UTC, ISO 8601; empty: it has not
    findings: t.List[Finding]  # errors first


class Preflight(t.TypedDict):
    """The part of a plan about hosts and their NICs."""

    schema: int
    hosts: t.Dict[str, PlannedHost]
    findings: t.List[Finding]
