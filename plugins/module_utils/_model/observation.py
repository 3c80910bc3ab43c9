# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hosts report about themselves, as the observing modules return it and observations.json keeps it."""

from __future__ import annotations

import typing as t

from .operators import SeenIpu
from .sources import SourceProblem


class Address(t.TypedDict):
    """An address of an interface without its prefix, and the length of that prefix in bits."""

    address: str
    prefix: int


class LinkAddress(Address, total=False):
    """How an interface got its address: by router advertisement or DHCP lease. Static addresses have no origin."""

    origin: str  # ADVERTISED or LEASE


ADVERTISED, LEASE = "advertised", "lease"


class PcieLink(t.TypedDict):
    """The narrowest PCIe link between a NIC and its processor."""

    pci: str  # function at its lower end
    speed_gtps: float  # GT/s
    width: int  # lanes
    max_speed_gtps: float  # GT/s that both ends support
    max_width: int  # lanes that both ends have
    gbps: float  # Gb/s that speed and width carry, without encoding overhead


class _LinkOptional(t.TypedDict, total=False):
    model: str  # of the NIC: its board, such as MT_0000000359, else PCI vendor:device; empty: not known
    firmware: str  # of the RDMA device; empty: none, or not known
    # Observations of earlier releases lack these.
    guid: str  # of the RDMA device, such as 0c42:a103:0000:0001; empty: none, or not known
    driver_version: str  # of the driver's module, or a digest of its source; empty: not known
    master: str  # the device that this link is a member of; empty: none
    master_kind: str  # as kind
    # Names of the PCI function's network devices, if it has an RDMA device: the device plugin knows only the first.
    function_netdevs: t.List[str]
    rdma_devices: t.List[str]  # of the functions of rdma_netdevs: one, unless a bond's ports form no RoCE LAG
    gid_room: int  # addresses that fit into the port's GID table; 0: not known
    vfs: int  # VFs that the PCI function has now; missing: not known
    max_vfs: int  # VFs that it can have; 0: none, because SR-IOV is off in the firmware or the BIOS; missing: not known
    taken_by: t.List[str]  # devices on top of it that block macvlans, such as `ipvlan eth1.pod`


class Link(_LinkOptional):
    """A network device. The RDMA fields of a bond or VLAN are those of the best port below it. From host_info."""

    netdev: str
    altnames: t.List[str]
    device: str  # RDMA device such as mlx5_0; empty without RDMA
    port: int  # of the RDMA device, counted from 1; 0 without RDMA
    pci: str  # 0000:81:00.0; empty for devices without one
    path: str  # of the PCI function in sysfs, from the host bridge on
    numa_node: int  # -1: none
    driver: str  # of the RDMA device, or else of the network device
    kind: str  # physical, vf, other, or the kind of a virtual device: bond, vlan, bridge, vrf and so on
    link_layer: str  # Ethernet or InfiniBand; iWARP or usNIC for those other protocols; empty without RDMA
    state: str  # of the RDMA port: ACTIVE, DOWN and so on; empty without RDMA
    up: bool
    mtu: int  # bytes
    rate_gbps: t.Optional[float]  # Gb/s of the port; None: not known, as with software RDMA
    pcie: t.Optional[PcieLink]  # None: no PCIe, or the host is a virtual machine
    mac: str
    lower: t.List[str]  # members of a bond, bridge or the like, or the device below a VLAN
    rdma_netdevs: t.List[str]  # the lowest devices, whose hardware does RDMA
    addresses: t.List[LinkAddress]  # global ones, without temporary or deprecated ones


class _GpuOptional(t.TypedDict, total=False):
    model: str  # PCI vendor:device; empty: not known; observations of earlier releases lack it


class Gpu(_GpuOptional):
    """An NVIDIA GPU, in PCI order, placed like a Link."""

    pci: str
    path: str
    numa_node: int


class Route(t.TypedDict):
    """How a host reaches an address; all empty if it has no route."""

    dev: str
    source: str
    gateway: str


class RdmaDevice(t.TypedDict):
    """An RDMA device without a network device on its host."""

    device: str
    pci: str  # empty for devices without one
    driver: str
    link_layer: str  # of its first port: as in Link, or Unknown
    state: str  # of its first port: as in Link


class _RdmaOptional(t.TypedDict, total=False):
    lone_devices: t.List[RdmaDevice]  # observations of earlier releases lack them
    mad_files: t.Dict[str, t.List[str]]  # likewise; umad* and issm* of each RDMA device that has any
    loopback: t.List[LinkAddress]  # global ones of lo; observations of earlier releases lack them
    redirects: t.List[str]  # likewise; PCI bridges whose ACS redirects traffic between GPUs and NICs upstream


class RdmaFacts(_RdmaOptional):
    """Result of host_info."""

    links: t.List[Link]
    gpus: t.List[Gpu]
    netns_mode: str  # shared or exclusive; empty if the kernel has no RDMA
    routes: t.Dict[str, Route]  # by the address that was looked up
    memlock: t.Dict[str, str]  # LimitMEMLOCK of each container runtime's systemd unit
    modules: t.Optional[t.List[str]]  # those that RDMA may need, loaded or built in; None: not known
    rdma_subsystem: bool


class BusyPort(t.TypedDict):
    """A TCP port that something listens on; process is empty if this user can't see it."""

    port: int
    process: str


class _ClockOptional(t.TypedDict, total=False):
    services: t.List[str]  # running units that set the clock, such as chrony
    servers: t.Dict[str, bool]  # whether each NTP server answers, of those that were asked


class _Clock(_ClockOptional):
    synchronized: t.Optional[bool]  # None: not known
    asked: float  # the controller's time when the host was asked
    read: float  # the host's time when it answered


class Clock(_Clock, total=False):
    """The clocks of host and controller, in seconds since 1970."""

    offset: int  # seconds that the host is ahead; 0 if both may be right; added by the controller


class Kubelet(t.TypedDict):
    """What a kubelet left on a host. All fields are empty without one."""

    present: bool
    version: str
    server: str  # host:port of its API server
    cluster: str  # digest of that server's CA


class _PodNetworkOptional(t.TypedDict, total=False):
    # How calico-node finds a host's address of each family, by the name of the variable that sets the method.
    autodetection: t.Dict[str, str]
    exclusive: bool  # whether it disables CNI configurations of others


class PodNetwork(_PodNetworkOptional):
    """A pod network of a cluster."""

    name: str  # such as calico, flannel or cilium
    seen: str  # the object that reveals it


class NvIpamPool(t.TypedDict):
    """An IPPool of nv-ipam, and the blocks that it gave to nodes."""

    name: str
    subnet: str
    block_size: int
    blocks: t.Dict[str, str]  # first-last address, by node


class FabricNetwork(t.TypedDict):
    """A network that a stack created, or is told to create."""

    stack: str  # as in STACKS
    name: str


class _NodeOptional(t.TypedDict, total=False):
    addresses: t.List[str]
    not_ready: str  # why; missing if the node is Ready
    cordoned: bool  # missing unless it is
    untainted: bool  # missing unless it is a control plane that takes pods without a toleration


class NodeIdentity(_NodeOptional):
    """What distinguishes a node from another cluster's node of the same name."""

    name: str
    machine_id: str


class _AttachmentOptional(t.TypedDict, total=False):
    ipam: t.Mapping[str, object]  # of whereabouts and host-local, unchanged: it may be malformed


class SeenAttachment(_AttachmentOptional):
    """What a plugin of a NetworkAttachmentDefinition occupies."""

    namespace: str
    name: str
    plugin: str  # such as ipvlan
    nic: str  # its master, or the device that it moves into pods, by name or PCI address; empty: it names none
    mode: str  # of macvlan and ipvlan
    addresses: t.List[str]  # given by the IPAM plugin static


class NicPolicy(t.TypedDict):
    """A policy of the network operator."""

    kind: str  # NicClusterPolicy or NicNodePolicy
    name: str
    sections: t.List[str]  # sections of its spec that both kinds may have, such as rdmaSharedDevicePlugin
    node_selector: t.Dict[str, str]
    ours: bool  # this collection applied it


class DraNic(t.TypedDict):
    """A NIC that a driver of Dynamic Resource Allocation (DRA) offers to pods."""

    driver: str  # such as dra.net
    node: str
    nic: str  # its name on the host; empty: not published
    pci: str  # address; empty: not published
    claims: t.List[str]  # NAMESPACE/NAME of the ResourceClaims that hold it


class _ClusterOptional(t.TypedDict, total=False):
    attachments: t.List[SeenAttachment]  # missing unless some take a NIC or an address
    dra_nics: t.List[DraNic]  # missing unless there are some
    nic_policies: t.List[NicPolicy]  # likewise
    nodes: t.List[NodeIdentity]  # observations of earlier releases lack them
    ipu: t.Optional[SeenIpu]  # likewise; None: the cluster does not define IPUJobs
    fabric_networks: t.List[FabricNetwork]  # likewise
    charts: t.List[str]  # likewise; NAME-VERSION of Helm charts, from the labels of Deployments
    built_here: bool  # likewise; the role kubernetes prepared this host
    built_elsewhere: bool  # its API server answers, and the role kubernetes has not prepared this host
    network_operators: t.List[str]  # missing unless there are some; NAMESPACE/RELEASE, where others may have no release
    multus: t.List[str]  # likewise; DaemonSets of multus, as NAMESPACE/NAME
    pod_security: t.Dict[str, str]  # likewise; level by namespace, where one below privileged is enforced


class ClusterFacts(_ClusterOptional):
    """What a control plane says of its cluster. Empty: not known, or it does not exist."""

    present: bool  # whether the host is a control plane
    answered: bool  # whether its API server did
    unfinished: bool  # kubeadm is setting up this host, or was interrupted
    error: str  # why there is no answer
    version: str  # of the API server, without v
    endpoint: str  # host:port in kubeadm's configuration, for all control planes
    pod_cidr: str  # one, or one of each family separated by a comma
    service_cidr: str
    pod_networks: t.List[PodNetwork]
    nv_ipam_pools: t.List[NvIpamPool]


class Certificate(t.TypedDict):
    """A Kubernetes certificate or token on a host. Times are UTC in ISO 8601; empty if there is an error."""

    name: str  # kubeadm's name for it; kubelet-client and kubelet-serving for the kubelet's; the CNI plugin for a token
    path: str
    not_before: str
    not_after: str
    ca: bool
    renewed_by: str  # kubeadm, kubelet, calico-node, or nobody: kubeadm has no command that renews a CA
    error: str  # why its times are not known


class VipFacts(t.TypedDict):
    """A virtual address for the API, as a control plane sees it before any host is told to take it."""

    address: str  # the address that was asked about
    held: bool  # this host has it
    answered: str  # the result of a connection to it; empty: no answer, or this host has it
    mac: str  # of whoever has it on the local network; empty: this host saw nobody
    gateways: t.List[str]  # of this host's routes
    foreign_keepalived: bool  # keepalived has a configuration that this collection did not write


class ControlPlaneFacts(t.TypedDict):
    """How a control plane runs."""

    arguments: t.Dict[str, t.Dict[str, str]]  # by static pod, without leading dashes
    open_files: t.List[str]  # files that users other than root can read or change, but should not
    super_admin: bool  # super-admin.conf exists


EMBEDDED = ("k3s", "rke2")  # distributions that run a containerd of their own


class KubernetesFacts(t.TypedDict):
    """What set up the Kubernetes node on a host, and where its parts are. Paths are absolute."""

    distribution: str  # kubeadm, k3s, rke2 or none
    server: bool  # it has the administrator's kubeconfig, as control planes have
    units: t.List[str]  # services of its kubelet; with k3s and RKE2 they run containerd too
    kubeconfig: str  # the administrator's; empty: there is none here
    containerd_socket: str
    containerd_config: str  # file that containerd reads
    registries: str  # file with mirrors of k3s and RKE2, whether it exists or not; empty for other distributions
    cni_bin_directory: str  # where containerd looks for CNI plugins
    cni_network_directory: str  # where containerd looks for CNI configurations


class CniFile(t.TypedDict):
    """A file in the directory where the runtime looks for CNI configurations."""

    name: str  # of the file
    plugin: str  # the first plugin that it runs, such as calico; empty if the file can't be read


class Resolver(t.TypedDict):
    """A resolv.conf."""

    path: str
    servers: t.List[str]


class Shadow(t.TypedDict):
    """A file that takes precedence over a package's file."""

    path: str
    masks: bool  # it masks a unit: systemd never starts it


class Obstacles(t.TypedDict):
    """Parts of a host's own setup that may keep a node or its pods from working."""

    filesystem: str  # type of the file system with containerd's data, such as ext4; empty: not known
    kubelet_directory: str  # where the kubelet keeps its data; empty: it is not running
    unloadable: t.Dict[str, str]  # kernel modules that are blocked from loading, with the file that blocks them
    network_manager: bool  # it is running, and may take over interfaces of pods
    firewall: str  # ufw or firewalld, if active
    firewall_sources: t.List[str]  # CIDRs from which it accepts all traffic
    tunnel_offloads: t.List[str]  # VMware NICs that segment packets in VXLAN in hardware
    controllers: t.List[str]  # of cgroup v2; none: not known
    neighbours: int  # limit of the kernel's neighbour table, shared by all network namespaces; 0: not known


class SwapOrigin(t.TypedDict):
    """A file that turns swap on at each boot, and that the role kubernetes leaves alone."""

    path: str
    seen: str  # the line that does so


class _HostOptional(t.TypedDict, total=False):
    obstacles: Obstacles  # observations of earlier releases lack them
    disk_total_mb: t.Dict[str, int]  # size in MiB of the file system of each folder in disk_mb; likewise
    vip: t.Optional[VipFacts]  # None: not asked about
    control_plane: t.Optional[ControlPlaneFacts]  # None: the host is not a control plane
    locked_memory: str  # the highest limit that systemd can give a service: unlimited, or bytes; empty: not known
    noexec: t.List[str]  # folders that programs are run from, on mounts with noexec
    kubernetes: KubernetesFacts  # observations of earlier releases lack it
    runtime: str  # containerd or docker on a kubeadm node; another runtime's socket; empty: no node, or not known
    cni_files: t.List[CniFile]  # in the order in which runtimes read them
    swap_origins: t.List[SwapOrigin]
    cni_disabled: t.List[CniFile]  # those that Cilium renamed
    shadows: t.List[Shadow]  # programs and units that take precedence over those of packages
    service_routes: t.Dict[str, bool]  # whether there is a route to each service CIDR
    resolver: Resolver  # the one that the kubelet gives to pods that use their host's DNS
    sources: t.List[SourceProblem]  # sources that do not answer this host, or lack what it needs


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
    modules: t.Dict[str, t.Optional[bool]]  # whether the kernel has each; None: not known
    time: Clock
    dns: t.Dict[str, bool]
    kubelet: Kubelet
    cluster: ClusterFacts
    certificates: t.List[Certificate]
    cni_token_ends: t.List[Certificate]  # tokens of CNI plugins, which their pods wrote to the host
    other_kubernetes: t.List[str]  # such as k3s
    default_address: str
    python: str
    lacking_packages: t.List[str]  # those that modules for the API need; observations of earlier releases lack it
    systemd: bool


class _Protocols(t.TypedDict, total=False):
    ip: t.List[int]  # numbers of IP protocols, such as 112 for VRRP


class OpenPorts(t.TypedDict):
    """Ports of a host that other hosts need: numbers by protocol."""

    tcp: t.List[int]
    udp: t.List[int]
    ip: t.List[int]


class PortNeeds(t.TypedDict):
    """Which hosts listen on which ports, and which connect to them, by inventory names."""

    listen: t.Dict[str, OpenPorts]
    ports: t.Dict[str, t.List[PortTarget]]


class Listener(_Protocols):
    """A temporary listener of port_probe, and the ports on which it listens because they were free."""

    name: str  # the listener's own name; empty: it could not be started
    tcp: t.List[int]
    udp: t.List[int]


class PortTarget(_Protocols):
    """Ports of another host that a host has to reach."""

    host: str  # inventory name
    address: str
    source: str  # address to connect from; empty: the one that the route selects
    tcp: t.List[int]
    udp: t.List[int]


class PortProbe(t.TypedDict):
    """The result of a connection to a port of another host."""

    host: str  # inventory name
    address: str
    protocol: str  # TCP, UDP or IP protocol
    port: int  # or the number of the IP protocol
    seen: str  # open, filtered (no answer), refused, unreachable, forbidden, or unresolved (on this host)


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
    """What the observing modules returned for one host; parts are missing if it did not answer."""

    host: HostFacts
    rdma: RdmaFacts
    vipu: VipuFacts
    listener: Listener
    listened: str  # name of the listener when it was stopped; another name or none: it did not run all the time
    probes: t.List[PortProbe]
    reached: str  # IP address by which Ansible reaches the host, from the inventory


class _Optional(ObservedParts, total=False):
    recalled: str  # when it was observed, in ISO 8601, if that was in an earlier run
    reboot: bool  # the site allows the role rdma_host to reboot the host
    variables: t.List[str]  # names of those that begin like the collection's own
    decided: t.Dict[str, str]  # values of role variables that the plan does not take, without secrets


class Observation(_Optional):
    """Everything that is known of one inventory host before the plan."""

    groups: t.List[str]
    address: str  # the address in the inventory; may be empty
    errors: t.List[ObservationError]


class ClusterIdentity(t.TypedDict):
    """The cluster that a kubeconfig points to."""

    kubeconfig: str  # its path
    ca: str  # digest, as Kubelet.cluster; empty if the API does not tell
    nodes: t.List[NodeIdentity]


class CachedObservation(ObservedParts):
    """An entry of observations.json."""

    when: str  # in ISO 8601


Observations = t.Mapping[str, Observation]  # by inventory name
