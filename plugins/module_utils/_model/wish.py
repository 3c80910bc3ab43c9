# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a role should achieve, decided from its settings and from what was read, before anything is changed."""

from __future__ import annotations

import dataclasses
import typing as t

Object = t.Mapping[str, object]  # a Kubernetes object, or what identifies one


@dataclasses.dataclass(frozen=True)
class Release:
    """A Helm release, as ipu.fabric.helm_release takes it."""

    name: str
    namespace: str
    chart: str
    repo: str  # URL
    version: str
    sha256: str  # of the packed chart; empty: whatever the source sends is accepted
    values: t.Mapping[str, object]  # all values of the release; may contain passwords
    images: t.Mapping[str, str] = dataclasses.field(default_factory=dict)  # replace those that the chart renders


@dataclasses.dataclass(frozen=True)
class Networks:
    """Networks of a plan, for a cluster that has the stack to create them."""

    networks: t.Sequence[Object]  # input for the module that manages their NetworkAttachmentDefinitions
    objects: t.Sequence[Object]  # namespaces and address pools
    pods: t.Sequence[Object]  # pods to start, as ipu.fabric.kube_wait takes them


@dataclasses.dataclass(frozen=True)
class PlainOperator:
    """An operator that is applied from a file."""

    objects: t.Sequence[Object]
    ready: t.Sequence[Object]  # as in a Wish, like the next two
    crds: t.Sequence[str]
    accepted: t.Sequence[Object]
    jobs: t.Sequence[Object]  # must be gone before the operator is removed


@dataclasses.dataclass(frozen=True)
class Wish:
    """The target state of an operator or another add-on. Each role uses the fields that it needs."""

    release: Release
    objects: t.Sequence[Object] = ()  # applied besides the release
    networks: t.Sequence[Object] = ()  # networks whose NetworkAttachmentDefinitions are created from the objects
    ready: t.Sequence[Object] = ()  # workloads and custom resources, as ipu.fabric.kube_wait takes them
    crds: t.Sequence[str] = ()  # must become established
    accepted: t.Sequence[Object] = ()  # must be accepted by the API in a dry run
    pods: t.Sequence[Object] = ()  # must start
    former: t.Sequence[Object] = ()  # objects of an earlier installation, which this one replaces
    leftovers: t.Sequence[Object] = ()  # what the operator itself created, for a removal
    remnants: t.Sequence[Object] = ()  # what the chart leaves behind, for a removal; objects of others stay
    namespace_labels: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    renew: t.Mapping[str, object] = dataclasses.field(default_factory=dict)  # as ipu.fabric.helm_release takes it
    nodes: t.Sequence[Object] = ()  # labels to set or remove, as ipu.fabric.node_labels takes them
    paths: t.Sequence[str] = ()  # what remains on a host, for a removal
    stays: str = ""  # what a removal leaves on purpose, why, and how to remove that too


@dataclasses.dataclass(frozen=True)
class Objects:
    """Objects that come without a chart."""

    objects: t.Sequence[Object]  # in the order in which they are applied
    ready: t.Sequence[Object] = ()  # what to wait for, as ipu.fabric.kube_wait takes it


@dataclasses.dataclass(frozen=True)
class Package:
    """A package, as ipu.fabric.apt_packages takes it."""

    name: str
    version: str = ""  # complete, or only its first parts
    hold: bool = True


@dataclasses.dataclass(frozen=True)
class HostFile:
    """A file of a host, as ipu.fabric.systemd_units takes it."""

    path: str
    content: str = ""  # may contain a login
    mode: str = "0644"
    state: str = "present"  # or absent: then only a file of this collection is removed
    backup: bool = False  # of a file that others wrote
    validate: str = ""  # command that checks the file before it is put in place
    units: t.Sequence[str] = ()  # units that read it when they start
    settings: t.Mapping[str, object] = dataclasses.field(default_factory=dict)  # Docker's, instead of the content


@dataclasses.dataclass(frozen=True)
class Unit:
    """A service, as ipu.fabric.systemd_units takes it."""

    name: str
    restart: str = "stale"
    started: bool = True


@dataclasses.dataclass(frozen=True)
class Program:
    """A program from an archive, as ipu.fabric.program takes it."""

    url: str
    checksum: str
    path: str
    member: str  # its name in the archive
    record: str  # file with the digests of the program and of its archive


@dataclasses.dataclass(frozen=True)
class HostWish:
    """What a host needs to become a node: packages, then files and services, which depend on package versions."""

    repositories: t.Mapping[str, t.Mapping[str, object]]
    packages: t.Sequence[Package]
    kubeadm: t.Sequence[Package]  # an upgrade installs it before the others
    keep: t.Sequence[str]  # packages that must not change
    sysctl: t.Mapping[str, object]
    architecture: str  # as packages call it
    bundle_part: str  # of the bundle, with the packages of this host
    program: t.Optional[Program] = None  # cri-dockerd, if the collection installs it
    files: t.Sequence[HostFile] = ()
    units: t.Sequence[Unit] = ()
    kubelet: Object = dataclasses.field(default_factory=dict)  # what the kubelet's configuration must contain
    ignored_errors: t.Sequence[str] = ()  # kubeadm checks whose errors count as warnings


@dataclasses.dataclass(frozen=True)
class NodeSeen:
    """The part of ipu.fabric.kubernetes_node_info's result that decides which cluster a host belongs to."""

    name: str = ""
    address: str = ""
    membership: str = "no answer"  # or the module's value
    seen: str = ""
    next_step: str = ""
    kubelet: str = ""  # version
    kubeconfig_sha256: str = ""  # of the administrator's kubeconfig
    taints: t.Sequence[str] = ()  # their keys


@dataclasses.dataclass(frozen=True)
class ClusterWish:
    """Which cluster a host belongs to. It stays the same for the rest of the run."""

    first: str  # the control plane that starts the cluster, or through which the others join
    first_node: NodeSeen
    is_first: bool
    running: bool  # whether the cluster exists already
    planes: t.Mapping[str, NodeSeen]  # hosts of the group kube_control_plane, as they were when the run began
    members: t.Sequence[str]  # those of them that are members of the cluster
    schedulable: bool  # whether pods may run on this host if it is a control plane
    untaints: bool  # whether a taint prevents that
    fetches: bool  # whether the kubeconfig on the controller differs from that of every control plane
    renews: bool  # whether it will differ after the changes that check mode announces


@dataclasses.dataclass(frozen=True)
class JoinWish:
    """How control planes or workers join the cluster in this run."""

    throttle: int  # hosts that join at a time
    ttl: str  # how long their token is valid
    rejoining: t.Sequence[str]  # names of nodes that hosts may have left in the cluster
    addresses: t.Sequence[str]  # of control planes that may have left an etcd member behind


@dataclasses.dataclass(frozen=True)
class Manifest:
    """A published file of Kubernetes objects."""

    url: str
    checksum: str  # sha256:DIGEST; empty: whatever the source sends is accepted
    path: str  # where it is kept on the controller


@dataclasses.dataclass(frozen=True)
class PodNetworkWish:
    """How the pod network is installed."""

    manifests: t.Sequence[Manifest] = ()  # applied first, in this order
    bundled: t.Mapping[str, t.Mapping[str, str]] = dataclasses.field(default_factory=dict)  # from a bundle, by name
    objects: t.Sequence[Object] = ()  # applied after them
    images: t.Sequence[str] = ()  # images that run on every host
    flannel_network: Object = dataclasses.field(default_factory=dict)
    flannel_arguments: t.Sequence[str] = ()
    ready: t.Sequence[Object] = ()  # as ipu.fabric.kube_wait takes them


@dataclasses.dataclass(frozen=True)
class KubeletWish:
    """How a kubelet is configured."""

    settings: Object  # for future nodes
    content: str  # of its file; empty if there is none yet
    due: bool  # whether an existing node needs a change
    awaits: bool  # whether it has to get its serving certificate from the cluster


@dataclasses.dataclass(frozen=True)
class KeysWish:
    """How control planes switch to a new key for Secrets: no step starts before all have finished the previous one."""

    before: t.Sequence[t.Sequence[str]]  # key names: the first one writes, all of them read
    after: t.Sequence[t.Sequence[str]]  # once all Secrets have been rewritten
    steps: t.Sequence[t.Sequence[str]]  # both
    new: str  # name of the key that finally writes
    source: str  # control plane that has every key
    generate: bool  # whether no control plane has the new key


@dataclasses.dataclass(frozen=True)
class HardeningWish:
    """How the control planes of a cluster are hardened."""

    text: str  # kubeadm's configuration of the cluster
    uploads: bool  # whether it differs from the uploaded configuration
    files: t.Sequence[Object]  # files that its arguments name
    super_admin: bool  # whether super-admin.conf stays
    present: t.Sequence[str]  # names of settings that the cluster has
    present_files: t.Sequence[Object]
    live: t.Sequence[str]  # control planes, in their order
    documents: t.Mapping[str, t.Sequence[Object]]  # kubeadm's documents for each of them
    rollout: t.Optional[KeysWish]  # of the key for Secrets. None: the key stays


@dataclasses.dataclass(frozen=True)
class DocumentsWish:
    """How kubeadm turns a host into a node."""

    documents: t.Sequence[Object]  # for init on the first control plane, for join on the others
    images: t.Sequence[str] = ()  # images that a host pulls while the first control plane is initialised
    files: t.Sequence[Object] = ()  # of the first API server
    key_steps: t.Sequence[t.Sequence[str]] = ()  # of its key for Secrets; empty: they are not encrypted


@dataclasses.dataclass(frozen=True)
class KubeletsWish:
    """Which kubelets get a new configuration, and which certificates are approved."""

    settings: Object  # for future nodes
    planes: t.Sequence[str]  # those to change, in their order
    workers: t.Sequence[str]  # those to change
    contents: t.Mapping[str, str]  # of their configuration files
    refused: t.Sequence[str]  # hosts whose file is not a valid configuration
    awaited: t.Sequence[str]  # names of nodes whose kubelets have no serving certificate yet
    signed: t.Sequence[str]  # hosts that have one once the awaited ones are there
    addresses: t.Mapping[str, t.Sequence[str]]  # that nodes may have in their certificates, by node name


@dataclasses.dataclass(frozen=True)
class KubeconfigWish:
    """What happens to the kubeconfig on the controller."""

    of_others: bool  # it points to other clusters, and is kept beside the new one
