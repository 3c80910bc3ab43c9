# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fabric_probe saw of a fabric, from the API and from inside pods: the input of the checks."""

from __future__ import annotations

import typing as t

from .observation import LinkAddress
from .pools import AddressPool, AddressSource

# ---- what a pod reports of itself


class Memlock(t.TypedDict):
    """A limit of locked memory: `unlimited`, or bytes as text."""

    soft: str
    hard: str


class Limits(t.TypedDict):
    uid: t.Optional[int]  # None: not read
    memlock: t.Optional[Memlock]


class UserFacts(Limits):
    """Facts from the container as uid 1000."""

    error: str  # why some of the requested facts may be missing


class NewerLink(t.TypedDict, total=False):
    link_local: str  # its own IPv6 address on the link; missing: it has none


class PodLink(NewerLink):
    """A network device in a pod."""

    mtu: t.Optional[int]  # bytes
    kind: str  # such as macvlan
    mac: str
    addresses: t.List[LinkAddress]  # global ones


class DefaultRoute(t.TypedDict):
    gateway: str
    dev: str


class Route(t.TypedDict):
    """A route of the main table."""

    dst: str  # CIDR or address
    dev: str


class RoutingPolicy(t.TypedDict):
    rules: t.Dict[str, str]  # the table that each source address looks up first; `all`: any address
    defaults: t.Dict[str, t.List[DefaultRoute]]  # by table


class VipuAnswer(t.TypedDict):
    """Whether the port of a V-IPU controller accepted a connection."""

    host: str
    port: int
    rc: int  # 127: the image lacks the tool for it
    seen: str


class GpuFacts(t.TypedDict):
    """What a pod sees of its node's kernel that GPUs depend on."""

    kernel: str  # its release; empty: not read
    driver: str  # version string of NVIDIA's driver; empty: none
    modules: t.List[str]  # those of nvidia, nvidia_peermem and gdrdrv that are loaded


class DnsAnswer(t.TypedDict):
    """Whether a pod resolves the API's name."""

    servers: t.List[str]  # the pod's name servers
    name: str
    address: str  # empty: none
    rc: int  # 127: the image lacks the tool for it
    seen: str


class _NewerFacts(t.TypedDict, total=False):
    """Facts that recordings of earlier releases lack."""

    advertised_routes: t.List[str]  # interfaces of default routes from router advertisements
    dns: DnsAnswer


class NetworkFacts(UserFacts, _NewerFacts):
    """Facts from the container as uid 0."""

    tool_missing: bool  # the image has no `ip`
    links: t.Optional[t.Dict[str, PodLink]]  # by interface; None: not read
    default_routes: t.Optional[t.List[str]]  # their interfaces
    main_routes: t.Optional[t.List[Route]]  # without default routes; None: not read
    policy: t.Optional[RoutingPolicy]
    gpu: GpuFacts
    vipu: t.List[VipuAnswer]


class Port(t.TypedDict, total=False):
    """A port of an RDMA device."""

    state: str  # ACTIVE, DOWN and so on
    link_layer: str  # Ethernet or InfiniBand


class Gid(t.TypedDict):
    """An entry of a GID table."""

    device: str
    port: int
    index: int
    gid: str  # eight groups of four hexadecimal digits
    type: str  # RoCE v2 or IB/RoCE v1
    netdev: str


class RdmaFacts(t.TypedDict):
    """Facts from the container with the RDMA devices."""

    files: t.List[str]  # below /dev/infiniband
    classes: t.List[str]  # the node's, below /sys/class: infiniband/mlx5_0, misc/rdma_cm
    ports: t.Dict[str, Port]  # by device and port: mlx5_0/1
    gids: t.List[Gid]
    tools: t.List[str]  # of the image
    error: str


class Ping(t.TypedDict):
    sent: int
    received: int
    rtt_ms: t.Optional[float]  # average
    path_mtu: t.Optional[int]  # bytes, if a router or the kernel reported it
    supported: bool  # whether this ping supports the options
    seen: str


class GatewayAnswer(t.TypedDict):
    """What a pod learns of a network's gateway."""

    network: str
    address: str
    ping: Ping
    mac: str  # that answers for the address, whether or not pings get through; empty: none


class Attached(t.TypedDict, total=False):
    """An entry of the network status that multus writes on a pod."""

    name: str  # namespace/name


class _Asked(t.TypedDict, total=False):
    network_status: t.Optional[t.List[Attached]]
    root: NetworkFacts
    user: UserFacts
    rdma: RdmaFacts
    gateways: t.List[GatewayAnswer]  # missing if no network of the pod has one
    gateways_error: str
    gpus: int  # GPUs that it holds: all of its node, or none
    gpus_refused: str  # why its node did not give it the GPUs that it offers


class PodFacts(_Asked):
    """The probe pod of a node, without facts if the pod does not run."""

    host: str  # its inventory name
    pod: str
    networks: t.List[str]  # in the order of their interfaces: net1, net2
    state: str  # waiting, running or failed
    reason: str


# ---- from pod to pod

# Names of nodes: `from` is the client.
Pair = t.TypedDict("Pair", {"network": str, "from": str, "to": str})


class Pings(t.TypedDict, total=False):
    small: Ping
    full: Ping  # as large as the MTU, not to be fragmented; missing if the MTU is not known


class PingPair(Pair, Pings):
    address: str  # the address that was pinged
    mtu: int  # bytes; 0: not known
    error: str


class Crossing(Pair):
    """Pings from one network to another: to the link-local address of a pod's interface there, and to its address."""

    other: str  # network of the pod that was pinged
    asked: str  # link-local address; empty: the pod has none
    near: Ping
    far: Ping
    mac: str  # that answers for the address on the client's own network; empty: none, so a router was asked
    error: str


class Figure(t.TypedDict):
    value: t.Optional[float]
    unit: str


class Directions(Figure):
    """Result of gc-hosttraffictest: the slowest direction, and all of them."""

    directions: t.Dict[str, float]  # Gb/s


class _Measured(t.TypedDict, total=False):
    rc: int
    seen: str
    value: t.Optional[float]
    unit: str


class Moved(t.TypedDict):
    """How much the counters of a pod grew during a test."""

    rdma: t.Dict[str, t.Dict[str, int]]  # by device: bytes, packets or requests, both directions; only what it counts
    interfaces: t.Dict[str, int]  # bytes by network device, both directions


class Sent(t.TypedDict):
    """What a test sent, as its tool reports."""

    device: str  # RDMA device; empty: the tool does not say
    transport: str  # IB, or IW for iWARP; empty: the tool does not say
    messages: int
    size: int  # bytes of each


class _Counted(_Measured, total=False):
    sent: Sent  # by the client
    moved: t.List[Moved]  # of client and server


class Traffic(Pair, _Counted):
    """An RDMA test between two pods; without figures if it was not run."""

    check: str
    tool: str
    missing: bool  # an image lacks the tool
    blocked: bool  # rping failed before it


class HostTraffic(_Measured, total=False):
    """gc-hosttraffictest on a node."""

    node: str
    missing: bool
    directions: t.Dict[str, float]


# ---- what the API says


class ChartRelease(t.TypedDict):
    """The newest revision of a Helm release."""

    name: str
    namespace: str
    revision: int
    version: str  # of the chart
    status: str  # such as deployed


class NetworkState(t.TypedDict, total=False):
    """Status of a MacvlanNetwork."""

    state: str
    reason: str


class ClusterNetwork(t.TypedDict):
    """A planned network as the cluster has it."""

    state: t.Optional[NetworkState]  # None: there is no such object
    attachment: object  # CNI configuration as data, or as text if it is not JSON; None: no attachment


class AppliedState(t.TypedDict, total=False):
    name: str
    state: str


class PolicyStatus(t.TypedDict, total=False):
    """Status of the NicClusterPolicy."""

    state: str
    appliedStates: t.List[AppliedState]


class Resource(t.TypedDict):
    resource: str  # PREFIX/NAME
    count: int  # how many of it pods on the node may have


class _NewerNodeFacts(t.TypedDict, total=False):
    pressures: t.List[str]  # such as DiskPressure: MESSAGE


class NodeFacts(_NewerNodeFacts):
    ready: bool
    reason: str
    labels: t.Dict[str, str]
    allocatable: t.Dict[str, Resource]  # by network


class _NewerAddons(t.TypedDict, total=False):
    cni_since: t.Dict[str, t.Dict[str, str]]  # when pods of multus and whereabouts started, by node


class Addons(_NewerAddons):
    """DaemonSets as namespace/name."""

    nfd: t.List[str]
    multus: t.List[str]
    multus_nodes: t.List[str]  # nodes with a ready multus


class Answer(t.TypedDict):
    passed: bool
    seen: str


class Health(t.TypedDict):
    healthy: bool
    seen: str


class Deployment(t.TypedDict):
    """Counted in replicas."""

    name: str
    namespace: str
    ready: int
    wanted: int


class Certificate(t.TypedDict):
    end: str  # ISO 8601; empty: no certificate
    days: t.Optional[int]  # days until it ends


class IpuFacts(t.TypedDict, total=False):
    """Facts of the IPU operator; empty if IPU checks are off."""

    deployments: t.List[Deployment]
    proxy: Health
    certificate: Certificate
    ignored: t.List[str]  # webhook configurations whose failure policy a killed run left at Ignore
    controllers: t.Optional[t.List[str]]  # host:port:label=value, as its ConfigMap has them; None: not read


class KubeletRequest(t.TypedDict):
    """A kubelet's request for a serving certificate, neither approved nor denied yet."""

    name: str  # of the CertificateSigningRequest
    requestor: str  # the user that made it, as the API server reports
    node: str  # planned node whose kubelet made it; empty: none
    problem: str  # why it does not fit the plan; empty: it does


class RunningImage(t.TypedDict):
    """Containers of one image that the plan pins."""

    image: str  # with its tag, as the plan names it
    id: str  # as reported by the node's runtime for what it runs
    pods: t.List[str]  # namespace/name on node


class ClusterFacts(t.TypedDict, total=False):
    version: str  # of Kubernetes
    ca: str  # digest of the cluster's CA; empty: not read
    kubelet_requests: t.List[KubeletRequest]
    nodes: t.Dict[str, NodeFacts]
    policy: t.Optional[PolicyStatus]  # None: there is none
    releases: t.List[ChartRelease]
    addons: Addons
    dns_problems: t.List[str]  # why pods of CoreDNS do not work; empty: no problem is known
    exclusive_cilium: str  # the ConfigMap that makes Cilium rename multus's configuration; empty: none
    address_sources: t.List[AddressSource]
    pods_without: t.Dict[str, t.List[str]]  # by network: running pods that ask for it and lack it, each with the reason
    images: t.List[RunningImage]  # of running containers, if the plan pins the image
    kinds: t.List[str]  # kinds that the API serves, in the groups that were asked for
    networks: t.Dict[str, ClusterNetwork]
    ipu: IpuFacts


class TrafficFacts(t.TypedDict, total=False):
    """What only pods can tell."""

    pods: t.Dict[str, PodFacts]  # by node
    pairs: t.List[PingPair]
    crossings: t.List[Crossing]  # missing if not tested
    traffic: t.List[Traffic]
    host_traffic: t.List[HostTraffic]
    webhook: t.Optional[Answer]  # None: not asked


class Probe(ClusterFacts, TrafficFacts, total=False):
    """The whole result; in check mode only the first two fields."""

    probed: bool
    reason: str  # why nothing was probed
    any_cluster: bool  # the plan was derived from the cluster
    seconds: float  # how long it took
    rdma_image: str
    pools: t.List[AddressPool]  # as they were before the probe's pods were created
