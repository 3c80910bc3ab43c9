# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe pods as data: their nodes, networks and addresses. Pure functions."""

from __future__ import annotations

import collections
import typing as t

from .._host.ipu_operator import MANAGER, PROXY
from .._model.observation import ADVERTISED
from .._model.plan import PVRDMA, IpuOperatorRelease, Plan, PlannedNetwork
from .._model.probe import PodFacts, PodLink
from .._model.settings import IpuRelease
from .._model.stacks import has_rdma
from .parsers import gid_of, port_gid

LABEL = "fabric.ipu/verify"
GPUS = "nvidia.com/gpu"  # resource of NVIDIA's device plugin
IPU_DEPLOYMENTS = (MANAGER, PROXY)
NO_LINK: PodLink = {"mtu": None, "kind": "", "mac": "", "addresses": []}

Pods = t.Dict[str, PodFacts]  # by node; the second pod on a node by node and SECOND
SECOND = " (second pod)"


class Options(t.NamedTuple):
    """Options of fabric_probe."""

    script: str  # text of pod.sh
    namespace: str
    image: str
    rdma_image: str
    timeout: int  # seconds until the pods run
    command_timeout: int  # time limit in seconds of a ping or an RDMA test
    max_pairs: int  # limit of pings on a network
    rdma_seconds: int  # time limit for RDMA tests beyond those that are needed
    forks: int
    ipu: bool
    ipu_partition: str
    ipu_device: int
    own_namespace: bool = True  # false: `namespace` and the account of the pods exist already
    across_rails: bool = False  # whether to ping from network to network
    checks: t.Sequence[str] = ()  # checks for which facts are needed; empty: all
    gpu: bool = False  # whether pods hold the GPUs of their nodes
    gpu_rdma: str = "dma-buf"  # or peermem: the planned way of GPUDirect RDMA

    def asks(self, *checks: str) -> bool:
        """Whether one of these checks needs facts."""
        return not self.checks or bool(set(checks) & set(self.checks))

    def image_for(self, plan: Plan) -> str:
        """The image of all pods: the one with RDMA tools if the plan has RDMA."""
        return (self.rdma_image if has_rdma(plan) else "") or self.image

    def lifetime(self, rdma: bool) -> int:
        """Seconds after which the kubelet stops an abandoned pod; RDMA tests run one pair after another."""
        return self.timeout + (4 * 3600 if rdma else 600)


class Target(t.NamedTuple):
    """A node to probe, and the planned networks for which it has a NIC."""

    host: str
    node: str
    networks: t.Tuple[str, ...]
    second: bool = False  # whether it is the second pod on the node
    again: bool = False  # whether the node refused the pod before

    @property
    def key(self) -> str:
        return self.node + (SECOND if self.second else "")

    @property
    def pod(self) -> str:
        name = "second" if self.second else "again" if self.again else "probe"
        return f"{name}-{self.node}"[:253].rstrip(".-")


class End(t.NamedTuple):
    """One end of a pair on a network."""

    node: str  # key of its pod in Pods
    pod: str
    interface: str
    address: str
    link_local: str = ""


def targets(plan: Plan) -> t.List[Target]:
    """Nodes that run workloads or have a NIC of a network; other control planes are left alone."""
    names = [network["name"] for network in plan["networks"]]
    found = []
    for host, facts in sorted(plan["hosts"].items()):
        mine = tuple(name for name in names if name in facts["links"])
        if mine or {"worker", "ipu"} & set(facts["roles"]):
            found.append(Target(host, facts["node"], mine))
    return found


def second_targets(plan: Plan) -> t.List[Target]:
    """If a network has one node, two pods on it replace a pair of nodes; only the modes bridge and l2 let them talk."""
    planned = targets(plan)
    bridges = {n["name"] for n in plan["networks"] if n["mode"] in ("bridge", "l2") and not has_one_address(n)}
    nodes = collections.Counter(name for target in planned for name in target.networks if name in bridges)
    alone = {target: tuple(name for name in target.networks if nodes[name] == 1) for target in planned}
    return [target._replace(networks=names, second=True) for target, names in alone.items() if names]


def has_one_address(network: PlannedNetwork) -> bool:
    """Whether all pods on a network get the same address, so that only one pod at a time may have it."""
    return network["ipam"].get("type") == "static"


def node_of(key: str) -> str:
    """The node of a pod."""
    return key[: -len(SECOND)] if key.endswith(SECOND) else key


# The plan


def ipu_release(plan: Plan) -> IpuOperatorRelease:
    """The IPU operator's Helm release; a plan of an earlier release may lack it."""
    usual = IpuRelease()
    return plan.get("ipu_operator") or {"release": usual.name, "namespace": usual.namespace}


def resource_name(plan: Plan, network: PlannedNetwork) -> str:
    """The network's RDMA resource with its prefix; empty if the plan has no RDMA for it."""
    name = network.get("resource") or ""
    if not network["rdma"] or not name:
        return ""
    prefixes = {r["resourceName"]: r.get("resourcePrefix") or "rdma" for r in plan.get("rdma_resources", [])}
    return name if "/" in name else f"{prefixes.get(name, 'rdma')}/{name}"


def rdma_networks(plan: Plan) -> t.Set[str]:
    """Names of the networks with planned RDMA."""
    return {network["name"] for network in plan["networks"] if resource_name(plan, network)}


def mtu_of(plan: Plan, network: PlannedNetwork, host: str) -> int:
    """The planned MTU in bytes; if the plan leaves it to the NIC, the NIC's. 0 if unknown."""
    link = plan["hosts"][host]["links"].get(network["name"]) if host in plan["hosts"] else None
    return int(network["mtu"] or (link["mtu"] if link else 0))


def nics_of(plan: Plan, network: str, host: str) -> t.List[str]:
    """The NICs that carry a network's traffic on a host: VLANs share their NIC."""
    link = plan["hosts"][host]["links"][network]
    return link["rdma_netdevs"] or [link["netdev"]]


def gpu_of(plan: Plan, network: str, host: str) -> t.Optional[str]:
    """PCI address of the GPU nearest to a network's NIC on a host; empty if unknown, None if no GPU is near it."""
    gpus = plan["hosts"][host].get("gpus", [])
    if plan["hosts"][host]["links"][network].get("driver") == PVRDMA:
        return None
    return next((gpu["pci"] for gpu in gpus if network in gpu["networks"]), None) if gpus else ""


def gpu_options(plan: Plan, pod: PodFacts, network: str, way: str) -> t.List[str]:
    """ib_write_bw's options for the memory of the nearest GPU; empty if the pod has none."""
    gpu = gpu_of(plan, network, pod["host"]) if pod.get("gpus") else None
    if gpu is None:
        return []
    chosen = f"--use_cuda_bus_id={gpu}" if gpu else "--use_cuda=0"
    return [chosen, *(["--use_cuda_dmabuf"] if way == "dma-buf" else [])]  # perftest accepts them only in this order


def controllers_of(plan: Plan, host: str) -> t.List[t.Tuple[str, int]]:
    """The V-IPU controllers that this host's pods must reach."""
    own = own_controllers(plan, host)
    return [one for one in _serving(plan, host) if one not in own]


def own_controllers(plan: Plan, host: str) -> t.List[t.Tuple[str, int]]:
    """Controllers on the host's own fabric NICs, which its pods can never reach over macvlan."""
    own = {entry["address"] for link in plan["hosts"][host]["links"].values() for entry in link["addresses"]}
    return [one for one in _serving(plan, host) if one[0] in own]


def _serving(plan: Plan, host: str) -> t.List[t.Tuple[str, int]]:
    """The controllers for a host; one that names no hosts serves all."""
    return [
        (controller["address"], int(controller["port"]))
        for controller in plan["vipu"]["controllers"]
        if not controller["serves"] or host in controller["serves"]
    ]


# The facts of the pods


def running(pods: Pods) -> t.List[str]:
    return [node for node, pod in sorted(pods.items()) if pod["state"] == "running"]


def interface_of(pod: PodFacts, network: str) -> str:
    """The pod's interface on a network: multus numbers them in the order of the annotation."""
    return f"net{pod['networks'].index(network) + 1}"


def gateways_of(plan: Plan, pod: PodFacts) -> t.Dict[t.Tuple[str, str], str]:
    """The network of each gateway that a pod must reach, by the gateway's address and the pod's interface."""
    return {
        (subnet["gateway"], interface_of(pod, network["name"])): network["name"]
        for network in plan["networks"]
        if network["name"] in pod["networks"]
        for subnet in network["subnets"]
        if subnet["gateway"]
    }


def link_of(pod: PodFacts, network: str) -> PodLink:
    """The pod's interface on a network; NO_LINK if it has none."""
    links = pod["root"].get("links") if "root" in pod else None
    if not links or network not in pod["networks"]:
        return NO_LINK
    return links.get(interface_of(pod, network), NO_LINK)


def addresses_of(pod: PodFacts, network: str) -> t.List[str]:
    """The addresses that IPAM assigned, without those from router advertisements."""
    return [entry["address"] for entry in link_of(pod, network)["addresses"] if entry.get("origin") != ADVERTISED]


def gids_of(pod: PodFacts, network: str) -> t.Set[str]:
    """The GIDs of the pod's interface on a network: RoCE derives them from addresses, an InfiniBand port has one."""
    return {*map(gid_of, addresses_of(pod, network)), port_gid(link_of(pod, network).get("mac", ""))} - {""}


def advertised_to(pod: PodFacts, network: str) -> t.List[str]:
    """The addresses that the pod derived from router advertisements."""
    return [entry["address"] for entry in link_of(pod, network)["addresses"] if entry.get("origin") == ADVERTISED]


def ends(pods: Pods, network: str) -> t.Dict[str, End]:
    """The pods with an address on a network, by node."""
    found = {}
    for node in running(pods):
        addresses = addresses_of(pods[node], network)
        if addresses:
            near = link_of(pods[node], network).get("link_local", "")
            found[node] = End(node, pods[node]["pod"], interface_of(pods[node], network), addresses[0], near)
    return found


class Device(t.NamedTuple):
    """An RDMA device in a pod."""

    name: str
    software: bool  # such as rdma_rxe: it has no parent device


def devices_on(pods: Pods, network: str) -> t.Dict[str, Device]:
    """The RDMA device, in each pod, with a GID of the pod's interface on a network."""
    found = {}
    for node, pod in pods.items():
        wanted = gids_of(pod, network) if "rdma" in pod else set()
        name = next((gid["device"] for gid in pod["rdma"]["gids"] if gid["gid"] in wanted), "") if wanted else ""
        if name:
            found[node] = Device(name, f"infiniband/{name}/device" not in pod["rdma"]["classes"])
    return found
