# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan: what plan.json holds, and what every role takes its inputs from."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._model.observation import Address


class Finding(t.TypedDict):
    """Something that a person has to know, or to change before anything is applied."""

    level: str  # error or warning
    check: str  # as fabric_allow takes it
    hosts: t.List[str]  # empty: all
    what: str
    seen: str
    next: str


class Image(t.TypedDict):
    """A container image, in the three parts that a NicClusterPolicy wants."""

    repository: str
    image: str
    version: str


class Releases(t.TypedDict):
    """Releases that go together. Empty text: not installed."""

    kubernetes: str
    stack: str  # network_operator or spiderpool
    network_operator: str
    spiderpool: str
    gpu_operator: str
    ipu_operator: str
    cni: str
    cni_version: str
    pause: str
    ipam: str  # nv-ipam, whereabouts or spiderpool
    whereabouts: str  # a release to install on its own
    whereabouts_standalone: bool
    features: t.Dict[str, bool]  # what this network operator can do
    components: t.Dict[str, Image]  # by the name of a NicClusterPolicy's field


class Cluster(t.TypedDict):
    """The cluster to be. Hosts are named as in the inventory."""

    pod_cidr: str
    service_cidr: str
    endpoint: str  # host:port of the API server
    control_planes: t.List[str]
    workers: t.List[str]
    single_node: bool


class PlannedLink(Address):
    """The NIC of one host on one fabric network; address and prefix are those of the network's first family."""

    netdev: str
    altname: str  # a further name that the NIC is to have; empty: none
    pci: str
    mac: str
    driver: str
    kind: str
    lower: t.List[str]
    rdma_netdevs: t.List[str]
    device: str
    mtu: int  # bytes
    addresses: t.List[Address]  # one of each family of the network


class PlannedHost(t.TypedDict):
    """One host, by its inventory name."""

    node: str  # its Kubernetes node
    address: str
    roles: t.List[str]  # control_plane, worker, ipu
    links: t.Dict[str, PlannedLink]  # by network


class Controller(t.TypedDict):
    """A V-IPU controller, and the hosts that it serves."""

    host: str
    port: int
    address: str
    serves: t.List[str]
    label: str  # key=value, on the nodes of these hosts


class Vipu(t.TypedDict):
    """What the IPU operator is told."""

    controllers: t.List[Controller]
    value: str  # of the chart's global.vipuControllers
    node_labels: t.Dict[str, t.Dict[str, str]]  # by host


class SubnetAddresses(t.TypedDict):
    """Which addresses of a subnet are for pods."""

    cidr: str
    prefix: int
    gateway: str  # empty: none
    range_start: str
    range_end: str
    exclude: t.List[str]  # CIDRs of the whole subnet that no pod gets
    capacity: int  # addresses for pods
    warnings: t.List[str]


class PlannedSubnet(SubnetAddresses):
    """The addresses of one family of a network."""

    needed: int  # addresses that the pods of all its nodes take


class Exclusion(t.TypedDict):
    """Addresses from startIP to endIP, both included, that an nv-ipam pool never gives out."""

    startIP: str
    endIP: str


class NodeSelectorRequirement(t.TypedDict):
    key: str
    operator: str
    values: t.List[str]


class NodeSelectorTerm(t.TypedDict):
    matchExpressions: t.List[NodeSelectorRequirement]


class NodeSelector(t.TypedDict):
    nodeSelectorTerms: t.List[NodeSelectorTerm]


class _PoolOptions(t.TypedDict, total=False):
    gateway: str
    nodeSelector: NodeSelector


class PoolSpec(_PoolOptions):
    """The spec of an nv-ipam IPPool."""

    subnet: str
    perNodeBlockSize: int  # addresses that each node gets
    exclusions: t.List[Exclusion]


class PlannedPool(PoolSpec):
    """An nv-ipam IPPool: its name and its spec."""

    name: str


class WhereaboutsRange(t.TypedDict, total=False):
    """A range of whereabouts, in its own words."""

    range: str
    range_start: str
    range_end: str
    exclude: t.List[str]


class Ipam(WhereaboutsRange, total=False):
    """The ipam of a MacvlanNetwork, in the words of the IPAM that `type` names."""

    type: str
    ipRanges: t.List[WhereaboutsRange]  # whereabouts with two families
    poolName: str  # nv-ipam
    default_ipv4_ippool: t.List[str]  # Spiderpool
    default_ipv6_ippool: t.List[str]


class SubnetPlan(SubnetAddresses):
    """What rdma_subnet returns of one subnet."""

    mtu: int  # bytes, the least of the nodes' NICs; 0: not known
    ipam: Ipam
    pool: t.Optional[PoolSpec]  # nv-ipam only


class PlannedNetwork(t.TypedDict):
    """A fabric network. `subnet` and `pool` are those of the first family."""

    name: str
    namespace: str
    hosts: t.List[str]
    master: str  # name of the NIC on every host
    mode: str
    mtu: int  # bytes
    resource: str  # rdma/NAME, as a pod asks for it
    rdma: bool
    rdma_drivers: t.List[str]
    rdma_netdevs: t.List[str]
    subnet: t.Optional[PlannedSubnet]
    subnets: t.List[PlannedSubnet]
    ipam: Ipam
    pool: t.Optional[PlannedPool]
    pools: t.List[PlannedPool]


class Selectors(t.TypedDict, total=False):
    """Which devices a resource stands for: OR inside a list, AND between lists."""

    drivers: t.List[str]
    ifNames: t.List[str]


class RdmaResource(t.TypedDict):
    """One entry of the RDMA shared device plugin's configList."""

    resourceName: str
    resourcePrefix: str
    rdmaHcaMax: int  # pods on a host that may have it
    selectors: Selectors


class Plan(t.TypedDict):
    """The whole plan."""

    schema: int
    releases: Releases
    cluster: Cluster
    hosts: t.Dict[str, PlannedHost]
    vipu: Vipu
    networks: t.List[PlannedNetwork]
    rdma_resources: t.List[RdmaResource]
    findings: t.List[Finding]


class Preflight(t.TypedDict):
    """The part of a plan that is about hosts and their NICs."""

    schema: int
    hosts: t.Dict[str, PlannedHost]
    findings: t.List[Finding]
