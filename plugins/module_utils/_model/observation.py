# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hosts report about themselves, as the observing modules return it and observations.json keeps it."""

from __future__ import annotations

import typing as t

from .operators import SeenIpu
from .sources import SourceProblem


class Address(t.TypedDict):
    """An address of an interface, without its prefix, and the length of that prefix in bits."""

    address: str
    prefix: int


class LinkAddress(Address, total=False):
    """How the address came: from router advertisements, or by a lease of DHCP. Static ones have no origin."""

    origin: str  # ADVERTISED or LEASE


ADVERTISED, LEASE = "advertised", "lease"


class PcieLink(t.TypedDict):
    """The narrowest PCIe link between a NIC and its processor."""

    pci: str  # function at its lower end
    speed_gtps: float  # GT/s
    width: int  # lanes
    max_speed_gtps: float  # GT/s that both ends can
    max_width: int  # lanes that both ends have
    gbps: float  # Gb/s that speed and width carry, encoding taken off


class _LinkOptional(t.TypedDict, total=False):
    model: str  # of the NIC: its board, such as MT_0000000359, else PCI vendor:device; empty: not known
    firmware: str  # of the RDMA device; empty: none, or not known
    # Observations of earlier releases lack these.
    guid: str  # of the RDMA device, such as 0c42:a103:0000:0001; empty: none, or not known
    driver_version: str  # of the driver's module, else a digest of its source; empty: not known
    master: str  # the device that it is a member of; empty: none
    master_kind: str  # as kind
    # Of the PCI function, if it has an RDMA device, by name: the device plugin knows it by the first alone.
    function_netdevs: t.List[str]
    rdma_devices: t.List[str]  # of the functions of rdma_netdevs: one, unless a bond has ports that are no RoCE LAG
    gid_room: int  # addresses that the GID table of the port has room for; 0: not known
    vfs: int  # of the PCI function now; missing where it is not known
    max_vfs: int  # that it can have; 0: none, as SR-IOV is off in the firmware or the BIOS; missing likewise
    taken_by: t.List[str]  # devices on it that keep macvlans off, such as `ipvlan eth1.pod`


class Link(_LinkOptional):
    """A network device. The RDMA fields of a bond or VLAN are those of the best port below it. From host_info."""

    netdev: str
    altnames: t.List[str]
    device: str  # RDMA device such as mlx5_0; empty without RDMA
    port: int  # of the RDMA device, counted from 1; 0 without RDMA
    pci: str  # 0000:81:00.0; empty for devices without one
    path: str  # of the PCI function in sysfs, from the host bridge on
    numa_node: int  # -1: none
    driver: str  # of the RDMA device, else of the network device
    kind: str  # physical, vf, other, or that of a virtual device: bond, vlan, bridge, vrf and so on
    link_layer: str  # Ethernet, InfiniBand, or iWARP and usNIC, which are other protocols; empty without RDMA
    state: str  # of the RDMA port: ACTIVE, DOWN and so on; empty without RDMA
    up: bool
    mtu: int  # bytes
    rate_gbps: t.Optional[float]  # Gb/s of the port; None: not known, as of software RDMA
    pcie: t.Optional[PcieLink]  # None: no PCIe, or a guest of a hypervisor
    mac: str
    lower: t.List[str]  # members of a bond, bridge or the like, or the device below a VLAN
    rdma_netdevs: t.List[str]  # devices at the bottom whose hardware carries RDMA
    addresses: t.List[LinkAddress]  # lasting global ones


class _GpuOptional(t.TypedDict, total=False):
    model: str  # PCI vendor:device; empty: not known; observations of earlier releases lack it


class Gpu(_GpuOptional):
    """An NVIDIA GPU, in PCI order, placed like a Link."""

    pci: str
    path: str
    numa_node: int


class Route(t.TypedDict):
    """How a host reaches an address; all empty where it has no route."""

    dev: str
    source: str
    gateway: str


class RdmaDevice(t.TypedDict):
    """An RDMA device that leads to no network device of its host."""

    device: str
    pci: str  # empty for devices without one
    driver: str
    link_layer: str  # of its first port: as that of a Link, or Unknown
    state: str  # likewise


class _RdmaOptional(t.TypedDict, total=False):
    lone_devices: t.List[RdmaDevice]  # observations of earlier releases lack them
    mad_files: t.Dict[str, t.List[str]]  # likewise; umad* and issm* of each RDMA device that has some
    loopback: t.List[LinkAddress]  # global ones of lo; observations of earlier releases lack them
    redirects: t.List[str]  # likewise; PCI bridges whose ACS sends up what GPUs and NICs exchange


class RdmaFacts(_RdmaOptional):
    """Result of host_info."""

    links: t.List[Link]
    gpus: t.List[Gpu]
    netns_mode: str  # shared or exclusive; empty when the kernel has no RDMA
    routes: t.Dict[str, Route]  # by the address that was asked for
    memlock: t.Dict[str, str]  # LimitMEMLOCK of each container runtime's unit
    modules: t.Optional[t.List[str]]  # loaded or built-in ones that RDMA may need; None where nothing tells
    rdma_subsystem: bool


class BusyPort(t.TypedDict):
    """A TCP port that something listens on; process is empty if this user can't see it."""

    port: int
    process: str


class _ClockOptional(t.TypedDict, total=False):
    services: t.List[str]  # units that run and set the clock, such as chrony
    servers: t.Dict[str, bool]  # whether each NTP server that was asked answers


class _Clock(_ClockOptional):
    synchronized: t.Optional[bool]  # None where nothing tells
    asked: float  # the controller's, when the host was asked
    read: float  # the host's, when it answered


class Clock(_Clock, total=False):
    """The clocks of host and controller, in seconds since 1970."""

    offset: int  # seconds that the host is ahead; 0 where both may be right; the controller adds it


class Kubelet(t.TypedDict):
    """What a kubelet leaves on a host. All empty without one."""

    present: bool
    version: str
    server: str  # host:port of its API server
    cluster: str  # digest of that server's CA


class _PodNetworkOptional(t.TypedDict, total=False):
    # How calico-node looks for a host's address of each family, by the variable that says so.
    autodetection: t.Dict[str, str]
    exclusive: bool  # whether it takes the CNI configurations of others out of service


class PodNetwork(_PodNetworkOptional):
    """A pod network that a cluster has."""

    name: str  # such as calico, flannel or cilium
    seen: str  # the object that shows it


class NvIpamPool(t.TypedDict):
    """An IPPool of nv-ipam, and what it has given to nodes."""

    name: str
    subnet: str
    block_size: int
    blocks: t.Dict[str, str]  # first-last address, by node


class FabricNetwork(t.TypedDict):
    """A network that a stack has made, or is to make."""

    stack: str  # as in STACKS
    name: str


class _NodeOptional(t.TypedDict, total=False):
    addresses: t.List[str]


class NodeIdentity(_NodeOptional):
    """What tells a node from another cluster's of the same name."""

    name: str
    machine_id: str


class _AttachmentOptional(t.TypedDict, total=False):
    ipam: t.Mapping[str, object]  # of whereabouts and host-local, as it is written: it may be malformed


class SeenAttachment(_AttachmentOptional):
    """What a plugin of a NetworkAttachmentDefinition takes."""

    namespace: str
    name: str
    plugin: str  # such as ipvlan
    nic: str  # its master, or the device that it moves into pods, by name or PCI address; empty: none is named
    mode: str  # of macvlan and ipvlan
    addresses: t.List[str]  # of the IPAM static


class NicPolicy(t.TypedDict):
    """A policy of the network operator."""

    kind: str  # NicClusterPolicy or NicNodePolicy
    name: str
    sections: t.List[str]  # of its spec that both kinds may have, such as rdmaSharedDevicePlugin
    node_selector: t.Dict[str, str]
    ours: bool  # this collection has applied it


class DraNic(t.TypedDict):
    """A NIC that a driver of Dynamic Resource Allocation (DRA) offers to pods."""

    driver: str  # such as dra.net
    node: str
    nic: str  # its name on the host; empty: not published
    pci: str  # address; empty: not published
    claims: t.List[str]  # NAMESPACE/NAME of the ResourceClaims that have it


class _ClusterOptional(t.TypedDict, total=False):
    attachments: t.List[SeenAttachment]  # only where there are some that take a NIC or an address
    dra_nics: t.List[DraNic]  # only where there are some
    nic_policies: t.List[NicPolicy]  # likewise
    nodes: t.List[NodeIdentity]  # observations of earlier releases lack them
    ipu: t.Optional[SeenIpu]  # likewise; None: there is no definition of IPUJobs
    fabric_networks: t.List[FabricNetwork]  # likewise
    charts: t.List[str]  # likewise; NAME-VERSION of Helm charts, as its Deployments are labelled
    built_here: bool  # likewise; the role kubernetes has prepared this host
    multus: t.List[str]  # likewise; its DaemonSets, as NAMESPACE/NAME


class ClusterFacts(_ClusterOptional):
    """What a control plane says of its cluster. Empty is not known, or not there."""

    present: bool  # whether the host is a control plane
    answered: bool  # whether its API server did
    unfinished: bool  # kubeadm is setting up this host, or was interrupted
    error: str  # why there is no answer
    version: str  # of the API server, without v
    endpoint: str  # host:port that kubeadm has for all control planes
    pod_cidr: str  # one, or one of each family with a comma between
    service_cidr: str
    pod_networks: t.List[PodNetwork]
    nv_ipam_pools: t.List[NvIpamPool]


class Certificate(t.TypedDict):
    """A certificate, or a token, of Kubernetes on a host. Times are UTC in ISO 8601, empty where there is an error."""

    name: str  # as kubeadm calls it; kubelet-client and kubelet-serving are the kubelet's; of a token the CNI plugin
    path: str
    not_before: str
    not_after: str
    ca: bool
    renewed_by: str  # kubeadm, kubelet, calico-node, or nobody: kubeadm has no command for a CA
    error: str  # why its times are not known


class VipFacts(t.TypedDict):
    """A virtual address for the API, as a control plane sees it before anybody is told to take it."""

    address: str  # that was asked for
    held: bool  # this host has it
    answered: str  # what came of a connection to it; empty: nothing, or this host has it
    mac: str  # of whoever has it on the local network; empty: nobody that this host has seen
    gateways: t.List[str]  # of this host's routes
    foreign_keepalived: bool  # there is a configuration of keepalived that this collection has not written


class ControlPlaneFacts(t.TypedDict):
    """How a control plane runs."""

    arguments: t.Dict[str, t.Dict[str, str]]  # by static pod, without dashes
    open_files: t.List[str]  # that others than root can read or change, and should not
    super_admin: bool  # there is a super-admin.conf


class KubernetesFacts(t.TypedDict):
    """What made the Kubernetes node of a host, and where its parts are. Paths are absolute."""

    distribution: str  # kubeadm, k3s, rke2 or none
    server: bool  # it has the administrator's kubeconfig, as control planes have
    units: t.List[str]  # services of its kubelet; with k3s and RKE2 that of containerd too
    kubeconfig: str  # the administrator's; empty: there is none here
    containerd_socket: str
    containerd_config: str  # file that containerd reads
    registries: str  # file with mirrors of k3s and RKE2, there or not; empty: they have none
    cni_bin_directory: str  # where containerd looks for CNI plugins
    cni_network_directory: str  # and for their configurations


class CniFile(t.TypedDict):
    """A configuration in the directory where the runtime looks for those of pod networks."""

    name: str  # of the file
    plugin: str  # that it starts first, such as calico; empty where it can't be read


class Resolver(t.TypedDict):
    """A resolv.conf."""

    path: str
    servers: t.List[str]


class Shadow(t.TypedDict):
    """A file that goes before one of a package."""

    path: str
    masks: bool  # a unit that systemd is told never to start


class Obstacles(t.TypedDict):
    """What of a host's own setup may keep a node or its pods from working."""

    filesystem: str  # type of that below containerd's data, such as ext4; empty: not known
    kubelet_directory: str  # where the kubelet keeps its data; empty: it does not run
    unloadable: t.Dict[str, str]  # modules that are told not to be loaded, with the file that says so
    network_manager: bool  # it runs, and may take interfaces of pods
    firewall: str  # ufw or firewalld, where it is on
    firewall_sources: t.List[str]  # CIDRs from which it lets everything pass
    tunnel_offloads: t.List[str]  # VMware's NICs that divide packets in VXLAN themselves
    controllers: t.List[str]  # of cgroup v2; none: not known
    neighbours: int  # that the kernel keeps for all network namespaces together; 0: not known


class SwapOrigin(t.TypedDict):
    """A file that has swap turned on at each boot, which the role kubernetes leaves alone."""

    path: str
    seen: str  # its line


class _HostOptional(t.TypedDict, total=False):
    obstacles: Obstacles  # observations of earlier releases lack them
    disk_total_mb: t.Dict[str, int]  # MiB of the file system of each folder in disk_mb; likewise
    vip: t.Optional[VipFacts]  # None: none was asked for
    control_plane: t.Optional[ControlPlaneFacts]  # None: the host is no control plane
    locked_memory: str  # the most that systemd can give a service, unlimited or bytes; empty: not known
    noexec: t.List[str]  # folders that programs are run from, on mounts that forbid it
    kubernetes: KubernetesFacts  # observations of earlier releases lack it
    runtime: str  # containerd or docker, of a node of kubeadm; another runtime's socket; empty: no node, or not known
    cni_files: t.List[CniFile]  # in the order in which runtimes look at them
    swap_origins: t.List[SwapOrigin]
    cni_disabled: t.List[CniFile]  # that Cilium has renamed
    shadows: t.List[Shadow]  # programs and units that go before those of packages
    service_routes: t.Dict[str, bool]  # by CIDR of services whether there is a route to it
    resolver: Resolver  # that the kubelet gives to pods which use their host's DNS
    sources: t.List[SourceProblem]  # that do not answer this host, or do not have what it needs


class HostFacts(_HostOptional):
    """Result of host_info."""

    hostname: str
    machine_id: str
    macs: t.List[str]
    distribution: str  # ID of os-release
    release: str  # VERSION_CODENAME
    version: str  # VERSION_ID
    architecture: str
    kernel: str
    cpus: int
    memory_mb: int  # MiB
    disk_mb: t.Dict[str, int]  # free MiB by folder
    swap: t.List[str]
    ports_busy: t.List[BusyPort]
    cgroup: str  # v1, v2 or hybrid
    modules: t.Dict[str, t.Optional[bool]]  # whether the kernel has each; None where nothing tells
    time: Clock
    dns: t.Dict[str, bool]
    kubelet: Kubelet
    cluster: ClusterFacts
    certificates: t.List[Certificate]
    cni_token_ends: t.List[Certificate]  # of CNI plugins, which pods have left on the host
    other_kubernetes: t.List[str]  # such as k3s
    default_address: str
    python: str
    lacking_packages: t.List[str]  # for modules of the API; observations of earlier releases lack it
    systemd: bool


class _Protocols(t.TypedDict, total=False):
    ip: t.List[int]  # numbers of IP protocols, such as 112 for VRRP


class OpenPorts(t.TypedDict):
    """Ports that others need of a host: numbers by protocol."""

    tcp: t.List[int]
    udp: t.List[int]
    ip: t.List[int]


class PortNeeds(t.TypedDict):
    """Who listens on which ports, and who connects to which of them, by inventory names."""

    listen: t.Dict[str, OpenPorts]
    ports: t.Dict[str, t.List[PortTarget]]


class Listener(_Protocols):
    """A temporary listener of port_probe, and the free ports that it listens on."""

    name: str  # its own; empty if it could not be started
    tcp: t.List[int]
    udp: t.List[int]


class PortTarget(_Protocols):
    """Ports of another host that a host has to reach."""

    host: str  # inventory name
    address: str
    source: str  # address to connect from; empty: what the route says
    tcp: t.List[int]
    udp: t.List[int]


class PortProbe(t.TypedDict):
    """What became of a connection to a port of another host."""

    host: str  # inventory name
    address: str
    protocol: str  # TCP, UDP or IP protocol
    port: int  # or the number of the IP protocol
    seen: str  # open, filtered (no answer), refused, unreachable, forbidden or unresolved (on this host)


class VipuFacts(t.TypedDict):
    """Where the V-IPU controller is. From host_info."""

    host: str
    port: int
    address: str  # what host resolves to
    version: str
    source: str  # json or text


class ObservationError(t.TypedDict):
    """Why a part of an observation is missing."""

    source: str  # vipu or host
    what: str
    where: str
    seen: str
    next_step: str


class ObservedParts(t.TypedDict, total=False):
    """What the observing modules returned for one host; parts are missing where it did not answer."""

    host: HostFacts
    rdma: RdmaFacts
    vipu: VipuFacts
    listener: Listener
    listened: str  # name of the listener when it was ended; another or none: it had not been there all the time
    probes: t.List[PortProbe]


class _Optional(ObservedParts, total=False):
    recalled: str  # when it was observed, in ISO 8601, if that was in an earlier run
    reboot: bool  # the site lets the role rdma_host reboot it
    variables: t.List[str]  # names of those that begin like ours
    reached: str  # IP address at which the inventory has Ansible reach it


class Observation(_Optional):
    """All that is known of one host of the inventory before the plan."""

    groups: t.List[str]
    address: str  # that the inventory names; may be empty
    errors: t.List[ObservationError]


class ClusterIdentity(t.TypedDict):
    """The cluster that a kubeconfig leads to."""

    kubeconfig: str  # where it is
    ca: str  # digest, as Kubelet.cluster; empty where the API does not tell
    nodes: t.List[NodeIdentity]


class CachedObservation(ObservedParts):
    """An entry of observations.json."""

    when: str  # in ISO 8601


Observations = t.Mapping[str, Observation]  # by inventory name
