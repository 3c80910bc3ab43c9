# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stacks that create fabric networks, one row each: all that the plan, a reset and the proof need to know."""

from __future__ import annotations

import typing as t
from types import MappingProxyType

from .plan import HOST, Plan, PlannedLink, PlannedNetwork, Releases

NETWORKS = "k8s.v1.cni.cncf.io/networks"  # pod annotation: the networks that the pod requests from multus
OWN_DEVICES = ("sriov", "ib-sriov", "host-device")  # CNI plugins that give each pod its own device
StackName = t.Literal["network_operator", "spiderpool"]
OWN_IPAM: t.Final = "spiderpool"  # the stack with its own IPAM
SPIDERNET = "spiderpool.spidernet.io"  # API group of its pools and networks


class Stack(t.NamedTuple):
    """A stack. STACKS has it under its name, which is also that of its role and of its release's key in a plan."""

    title: str  # used in sentences
    release: str  # of Helm, and of its chart
    namespace: str  # the default
    kinds: t.FrozenSet[str]
    group: str
    network: str  # the kind of a network, and its path in the API
    path: str
    states: bool  # whether a network has a state in its status
    chains: bool = False  # whether a network may have chained CNI plugins after macvlan
    ipam: str = ""  # the only IPAM that it supports; empty: it offers a choice
    keeps_token: bool = False  # its multus reads its token only once
    routes_nodes: bool = False  # whether pods reach node addresses through eth0, whatever other networks they are on
    neighbours: int = 0  # gc_thresh3 that its agent sets; 0: it sets none
    repository: str = ""  # of its publisher's charts; empty: see digests.py
    webhook: int = 0  # host TCP port of its webhook; 0: it listens on none
    advertised: str = ""  # what to do if pods accept router advertisements
    pool: str = ""  # the kind of its address pools
    refusals: str = ""  # Prometheus' counter of pods that got no address, because a pool had none left
    leaks: str = ""  # what to do about addresses that leaked from its IPAM
    routes: str = ""  # what to do if a rail's own routing table is wrong
    charts: t.Mapping[str, str] = MappingProxyType({})  # SHA-256 by release; empty: see releases.py
    files: t.Tuple[str, ...] = ()  # what its pods leave on a host, except for files that others use too

    @property
    def networks(self) -> str:
        """Where the API lists the networks of all namespaces."""
        return f"/apis/{self.group}/{self.path.split('/')[-2]}"


STACKS: t.Dict[StackName, Stack] = {
    "network_operator": Stack(
        "network operator",
        "network-operator",
        "nvidia-network-operator",
        frozenset({"NicClusterPolicy", "MacvlanNetwork", "NetworkAttachmentDefinition"}),
        "mellanox.com/v1alpha1",
        "MacvlanNetwork",
        "macvlannetworks/{name}",
        states=True,
        keeps_token=True,
        advertised="Turn router advertisements off on the routers of this network's VLAN: no release of the network"
        " operator, up to 26.7, can make pods ignore them. Spiderpool can: fabric_stack: spiderpool, with"
        " accept_ra: false in fabric_networks.",
    ),
    "spiderpool": Stack(
        "Spiderpool",
        "spiderpool",
        "spiderpool",
        frozenset({"SpiderIPPool", "SpiderMultusConfig", "NetworkAttachmentDefinition"}),
        f"{SPIDERNET}/v2beta1",
        "SpiderMultusConfig",
        "namespaces/{namespace}/spidermultusconfigs/{name}",
        states=False,
        ipam="spiderpool",
        chains=True,
        routes_nodes=True,
        neighbours=28160,
        repository="https://spidernet-io.github.io/spiderpool",
        webhook=5722,
        advertised="Pods take router advertisements on this network: set accept_ra to false in fabric_networks, run"
        " ipu.fabric.fabric and recreate the pods; or turn advertisements off on the routers of its VLAN.",
        pool="SpiderIPPool",
        refusals="spiderpool_ipam_allocation_err_ip_used_out_counts",
        leaks="Look at the log of the spiderpool-controller: its garbage collection frees them, if it is on.",
        routes="Let the coordinator tune routes (tunePodRoutes: true in spiderpool_coordinator), run the playbook"
        " ipu.fabric.fabric, then recreate the pods.",
        charts={
            "1.2.0": "570448fc462117760ef10aabe871812f53106a1acb84ba7f61c94f29bb40a514",
            "1.2.1": "c542d1d9c38a95c2d9c32bef5af0f80e0d98005c3ba7190ca676ed98e5b60049",
            "1.2.2": "55d25e6ea19f30bcc8c7e45093522b4ada77e8959baef1a127525916c4b69dd1",
        },
        # The chart writes them there whatever its values say. Standard CNI plugins stay: the pod network may need them.
        files=(
            *(f"/opt/cni/bin/{name}{old}" for name in ("spiderpool", "coordinator", "ifacer") for old in ("", ".old")),
            "/var/run/spidernet",
            "/var/log/spidernet",
        ),
    ),
}


def has_stack(releases: Releases) -> bool:
    """Whether anything creates fabric networks. A plan without networks needs no stack."""
    return releases.get("stack") != ""


def host_nic(plan: Plan, host: str) -> t.Optional[PlannedLink]:
    """The host's RDMA NIC, whose devices privileged pods use if there is no fabric network."""
    return None if plan["networks"] else plan["hosts"][host]["links"].get(HOST)


def has_rdma(plan: Plan) -> bool:
    """Whether pods have RDMA, on a fabric network or through their host's devices."""
    return any(network["rdma"] for network in plan["networks"]) or any(host_nic(plan, host) for host in plan["hosts"])


def is_derived(plan: Plan) -> bool:
    """Whether the plan was derived from an existing cluster, without asking any host."""
    return "not_proved" in plan


def stack_name(releases: Releases) -> StackName:
    """The stack of a plan. An unknown name is already a finding."""
    name = releases.get("stack")
    return next((known for known in STACKS if known == name), "network_operator")


def named_stack(name: str) -> t.Optional[Stack]:
    """The stack that a site names; None if the name is unknown."""
    return next((stack for known, stack in STACKS.items() if known == name), None)


def stack_of(plan: Plan, network: PlannedNetwork) -> t.Optional[Stack]:
    """The stack that creates a network; None if the network is only a NetworkAttachmentDefinition."""
    return named_stack(network.get("made_by", stack_name(plan["releases"])))


def describe_stack(releases: Releases) -> str:
    if not has_stack(releases):
        return "no fabric network"
    name = stack_name(releases)
    return f"{STACKS[name].title} {releases[name]}"
