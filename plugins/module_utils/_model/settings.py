# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a site decides before the plan: the options of fabric_plan, and what its inventory writes for them."""

from __future__ import annotations

import dataclasses
import typing as t

from .bundle import SeenBundle
from .sources import SourceProblem


class Kubeconfig(t.NamedTuple):
    """A kubeconfig on the controller: where it should be, and where its current context leads to."""

    path: str  # empty: the API is spoken to from another host
    server: str = ""  # URL; empty: there is no kubeconfig
    ca: str = ""  # digest, as Kubelet.cluster; empty: none is named
    fault: str = ""  # why the file at this path is none; empty: there is no file, or nothing is wrong


class SiteProxy(t.NamedTuple):
    """What a site says of its proxy. Its URL, which may have a password in it, the plan need not know."""

    no_proxy: t.Sequence[str]  # what the site itself reaches without it
    mirrors: t.Sequence[str]  # URLs and host:port of its own sources


HOST_NETWORK = "worker.hostNetwork"  # a value of the IPU operator's chart


class IpuRelease(t.NamedTuple):
    """What the role ipu_operator would install, by its own variables."""

    name: str = "ipu-operator"  # in helm
    namespace: str = "ipu-operator"
    crd_url: str = ""
    values: t.Mapping[str, str] = {}  # of its chart, by path, without the controllers and what is secret

    @property
    def workers_on_host_network(self) -> bool:
        """From there they reach every address of V-IPU."""
        return self.values.get(HOST_NETWORK) == "true"


@dataclasses.dataclass(frozen=True)
class OwnMultus:
    """The multus of the stack, by the variables of its role."""

    multus: bool = True  # whether it brings one
    namespace: str = ""  # where; empty: the stack's own


class PlanFile(t.NamedTuple):
    """A plan in a file, with which this one is compared."""

    path: str
    fault: str  # why it can't be read; empty: it is a plan of some schema
    content: t.Optional[t.Mapping[str, object]]  # None: it can't be read


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a site. The entries of `networks` and `vipu_hosts` are as it wrote them: the plan checks them."""

    artifacts_dir: str  # folder for the files of the plan; empty: none
    inventory_sources: t.Sequence[str]
    inventory_groups: t.Mapping[str, t.Sequence[str]]  # all of them, with their hosts
    site_variables: t.Collection[str]  # names of all that the collection reads
    allow: t.Sequence[str]  # names of checks
    manage_kubernetes: bool
    kubernetes_version: str
    runtime: str  # containerd or docker
    upgrade: bool  # the existing cluster may run an older one
    cni: str
    pod_network: t.Mapping[str, object]  # settings of `calico` (its Installation) and `flannel` (its backend)
    cni_bin_directory: str  # where containerd looks for CNI plugins; empty: what the hosts say
    cni_network_directory: str  # and for their configurations; empty: what the hosts say
    calico_version: str
    pod_cidr: str  # one CIDR, or one of each family with a comma between
    service_cidr: str
    control_plane_endpoint: str  # host:port; empty: the first control plane
    renew_days: int  # before its end, a certificate is to be renewed
    hardening: str  # none, baseline or cis
    cluster_config: t.Mapping[str, object]  # what of kubeadm's ClusterConfiguration the site sets itself
    control_plane_vip: str  # address that keepalived keeps on one of them; empty: none
    control_plane_vip_router_id: int  # of VRRP; 0: the last part of the address
    ipu: bool
    ipu_operator_version: str
    stack: str
    network_operator_version: str
    ofed: t.Mapping[str, object]  # the driver container, as the network operator takes it; empty: none
    spiderpool_version: str
    gpu: bool
    gpu_operator_version: str
    ipam: str
    nic_policy: str  # which policy of the network operator has the device plugin: auto, cluster or node
    require_rdma: bool
    memlock: str  # the least limit of locked memory that the proof expects in pods, as verify_memlock has it
    ntp: t.Sequence[object]  # servers, as fabric_ntp names them
    node_address: t.Mapping[str, object]  # as fabric_node_address has it
    host_sizes: t.Mapping[str, object]  # as fabric_host_sizes has them
    pods_per_node: int
    vipu_hosts: t.Sequence[object]
    networks: t.Sequence[object]
    kubeconfig: Kubeconfig
    resolved: t.Mapping[str, str]  # addresses of the host names in vipu_hosts
    sources: t.Mapping[str, object]  # where things come from, as fabric_mirror has it, upstream's with it
    image_digests: t.Mapping[str, object]  # as fabric_image_digests has them
    ipu_release: IpuRelease = dataclasses.field(default_factory=IpuRelease)
    own_multus: OwnMultus = dataclasses.field(default_factory=OwnMultus)
    bundle: t.Optional[SeenBundle] = None  # None: none is used
    plan_file: t.Optional[PlanFile] = None  # None: any plan will do
    proxy: t.Optional[SiteProxy] = None  # None: there is none
    api_answers: bool = True  # that of a cluster which others manage; true where nobody asked
    memlock_limit: str = "infinity"  # what the role memlock sets, as memlock_limit has it
    rights: t.Sequence[str] = ()  # that the kubeconfig of a cluster which others manage lacks
    user: str = ""  # whom the API takes that kubeconfig for; empty: not known
    # evictionHard of the kubelets, as the site has it; empty: upstream's
    eviction: t.Mapping[str, object] = dataclasses.field(default_factory=dict)
    admission: str = "off"  # or warn, enforce
    max_unproved: t.Union[int, str] = "10%"  # as fabric_max_unproved has it
    source_problems: t.Sequence[SourceProblem] = ()  # what the controller has seen of sources

    def __post_init__(self) -> None:
        """Releases have no v: people write it, as their makers' tags have it."""
        for field in dataclasses.fields(self):
            if field.name.endswith("_version"):
                object.__setattr__(self, field.name, getattr(self, field.name).strip().lstrip("v"))
