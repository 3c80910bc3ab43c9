# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a site decides before the plan: the options of fabric_plan, and how its inventory writes them."""

from __future__ import annotations

import dataclasses
import typing as t

from .bundle import SeenBundle
from .sources import SourceProblem


class Kubeconfig(t.NamedTuple):
    """A kubeconfig on the controller: where it should be, and which API server its current context points to."""

    path: str  # empty: the API is spoken to from another host
    server: str = ""  # URL; empty: there is no kubeconfig
    ca: str = ""  # digest, as Kubelet.cluster; empty: none is named
    fault: str = ""  # why the file at this path is not a kubeconfig; empty: there is no file, or nothing is wrong


class SiteProxy(t.NamedTuple):
    """A site's proxy settings, without the proxy's URL: it may contain a password, and the plan does not need it."""

    no_proxy: t.Sequence[str]  # what the site already reaches without the proxy
    mirrors: t.Sequence[str]  # URLs and host:port of its own sources


HOST_NETWORK = "worker.hostNetwork"  # a value of the IPU operator's chart


class IpuRelease(t.NamedTuple):
    """What the role ipu_operator would install, by its own variables."""

    name: str = "ipu-operator"  # in Helm
    namespace: str = "ipu-operator"
    crd_url: str = ""
    values: t.Mapping[str, str] = {}  # of its chart, by path, without the controllers and without secrets

    @property
    def workers_on_host_network(self) -> bool:
        """On the host network, workers reach every address of V-IPU."""
        return self.values.get(HOST_NETWORK) == "true"


@dataclasses.dataclass(frozen=True)
class OwnMultus:
    """The stack's multus, from the variables of its role."""

    multus: bool = True  # whether the stack installs one


@dataclasses.dataclass(frozen=True)
class Home:
    """Where a role installs its chart, from its own variables."""

    namespace: str


class PlanFile(t.NamedTuple):
    """A plan in a file, which the new plan is compared with."""

    path: str
    fault: str  # why it can't be read; empty: it is a plan of some schema
    content: t.Optional[t.Mapping[str, object]]  # None: it can't be read


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a site. `networks` and `vipu_hosts` hold its entries unchanged: the plan checks them."""

    artifacts_dir: str  # folder for the files of the plan; empty: none
    inventory_sources: t.Sequence[str]
    inventory_groups: t.Mapping[str, t.Sequence[str]]  # all groups with their hosts
    limit: str  # --limit of this run; empty: none
    run_hosts: t.Collection[str]  # hosts of this run
    site_variables: t.Collection[str]  # names of all variables that the collection reads
    allow: t.Sequence[str]  # names of checks
    manage_kubernetes: bool
    kubernetes_version: str
    runtime: str  # containerd or docker
    upgrade: bool  # the existing cluster may run an older release of Kubernetes
    cni: str
    pod_network: t.Mapping[str, object]  # settings of `calico` (its Installation) and `flannel` (its backend)
    cni_bin_directory: str  # where containerd looks for CNI plugins; empty: what the hosts say
    cni_network_directory: str  # where containerd looks for CNI configurations; empty: what the hosts say
    calico_version: str
    pod_cidr: str  # one CIDR, or one of each family with a comma between
    service_cidr: str
    control_plane_endpoint: str  # host:port; empty: the first control plane
    renew_days: int  # how many days before its end a certificate is due for renewal
    hardening: str  # none, baseline or cis
    cluster_config: t.Mapping[str, object]  # kubeadm's ClusterConfiguration, as far as the site sets it itself
    control_plane_vip: str  # address that keepalived keeps on one of the control planes; empty: none
    control_plane_vip_router_id: int  # of VRRP; 0: the last part of the address is used
    ipu: bool
    ipu_operator_version: str
    stack: str
    network_operator_version: str
    ofed: t.Mapping[str, object]  # the driver container, as the network operator takes it; empty: none
    spiderpool_version: str
    gpu: bool
    gpu_operator_version: str
    ipam: str
    prune_networks: bool  # whether site removes networks that are no longer planned
    nic_policy: str  # which policy of the network operator configures the device plugin: auto, cluster or node
    require_rdma: bool
    memlock: str  # the locked-memory limit that the proof expects in pods at least, in the form of verify_memlock
    ntp: t.Sequence[object]  # servers, in the form of fabric_ntp
    node_address: t.Mapping[str, object]  # in the form of fabric_node_address
    host_sizes: t.Mapping[str, object]  # in the form of fabric_host_sizes
    pods_per_node: int
    vipu_hosts: t.Sequence[object]
    networks: t.Sequence[object]
    kubeconfig: Kubeconfig
    resolved: t.Mapping[str, str]  # addresses of the host names in vipu_hosts
    sources: t.Mapping[str, object]  # in the form of fabric_mirror, with upstream's sources filled in
    image_digests: t.Mapping[str, object]  # in the form of fabric_image_digests
    ipu_release: IpuRelease = dataclasses.field(default_factory=IpuRelease)
    own_multus: OwnMultus = dataclasses.field(default_factory=OwnMultus)
    homes: t.Mapping[str, str] = dataclasses.field(default_factory=dict)  # by role that installs privileged pods
    bundle: t.Optional[SeenBundle] = None  # None: none is used
    plan_file: t.Optional[PlanFile] = None  # None: the plan need not match any file
    proxy: t.Optional[SiteProxy] = None  # None: there is none
    api_silence: str = ""  # why the API of a cluster that others manage gave no answer; empty: it did, or nobody asked
    memlock_limit: str = "infinity"  # the limit that the role memlock sets, in the form of memlock_limit
    rights: t.Sequence[str] = ()  # that the kubeconfig lacks, for a cluster that others manage
    user: str = ""  # the user that this kubeconfig authenticates as; empty: not known
    # what the site merges into the KubeletConfiguration
    kubelet_config: t.Mapping[str, object] = dataclasses.field(default_factory=dict)
    node_affinity: bool = False  # whether the site keeps the network operator's DaemonSets off some nodes
    admission: str = "off"  # or warn, enforce
    max_unproved: t.Union[int, str] = "10%"  # in the form of fabric_max_unproved
    # role variables that site sets, each with the site's variable to set instead; empty: there is none
    passed_variables: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    source_problems: t.Sequence[SourceProblem] = ()  # problems with sources that the controller saw

    def __post_init__(self) -> None:
        """Strip the v of releases: people copy it from the upstream tags."""
        for field in dataclasses.fields(self):
            if field.name.endswith("_version"):
                object.__setattr__(self, field.name, getattr(self, field.name).strip().lstrip("v"))
