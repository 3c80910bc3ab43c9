# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a role is to make true: decided from its settings and from what was read, before anything is changed."""

from __future__ import annotations

import dataclasses
import typing as t

Object = t.Mapping[str, object]  # of Kubernetes, or what names one


@dataclasses.dataclass(frozen=True)
class Release:
    """A Helm release, as ipu.fabric.helm_release takes it."""

    name: str
    namespace: str
    chart: str
    repo: str  # URL
    version: str
    sha256: str  # of the packed chart; empty: whatever the source sends
    values: t.Mapping[str, object]  # all that the release gets; may have passwords in them
    images: t.Mapping[str, str] = dataclasses.field(default_factory=dict)  # in place of those that the chart renders


@dataclasses.dataclass(frozen=True)
class Networks:
    """Networks of a plan in a cluster that has what makes them."""

    networks: t.Sequence[Object]  # as the module takes them that sees to their NetworkAttachmentDefinitions
    objects: t.Sequence[Object]  # namespaces and address pools
    pods: t.Sequence[Object]  # that have to start, as ipu.fabric.kube_wait takes them


@dataclasses.dataclass(frozen=True)
class PlainOperator:
    """An operator that is applied from a file."""

    objects: t.Sequence[Object]
    ready: t.Sequence[Object]  # as in a Wish, likewise the next two
    crds: t.Sequence[str]
    accepted: t.Sequence[Object]
    jobs: t.Sequence[Object]  # that have to go before the operator, for a removal


@dataclasses.dataclass(frozen=True)
class Wish:
    """What an operator or another add-on of the cluster is to be. Each role uses the fields that it needs."""

    release: Release
    objects: t.Sequence[Object] = ()  # applied beside the release
    networks: t.Sequence[Object] = ()  # whose NetworkAttachmentDefinitions come of the objects
    ready: t.Sequence[Object] = ()  # workloads and custom resources, as ipu.fabric.kube_wait takes them
    crds: t.Sequence[str] = ()  # that have to be established
    accepted: t.Sequence[Object] = ()  # that the API has to take in a dry run
    pods: t.Sequence[Object] = ()  # that have to start
    former: t.Sequence[Object] = ()  # of an earlier installation, which this one takes over from
    leftovers: t.Sequence[Object] = ()  # what the operator itself has made, for a removal
    remnants: t.Sequence[Object] = ()  # what the chart leaves behind, for a removal; those of others stay
    namespace_labels: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    renew: t.Mapping[str, object] = dataclasses.field(default_factory=dict)  # as ipu.fabric.helm_release takes it
    nodes: t.Sequence[Object] = ()  # labels that nodes get or lose, as ipu.fabric.node_labels takes them
    paths: t.Sequence[str] = ()  # what is left on a host, for a removal
    stays: str = ""  # what a removal leaves on purpose, why, and how it goes too


@dataclasses.dataclass(frozen=True)
class Objects:
    """Objects that come without a chart."""

    objects: t.Sequence[Object]  # in the order in which they are applied
    ready: t.Sequence[Object] = ()  # what is waited for, as ipu.fabric.kube_wait takes it


@dataclasses.dataclass(frozen=True)
class Package:
    """A package, as ipu.fabric.apt_packages takes it."""

    name: str
    version: str = ""  # whole, or its first parts
    hold: bool = True


@dataclasses.dataclass(frozen=True)
class HostFile:
    """A file of a host, as ipu.fabric.systemd_units takes it."""

    path: str
    content: str = ""  # may have a login in it
    mode: str = "0644"
    state: str = "present"  # or absent: then only a file of ours goes
    backup: bool = False  # of what others have written
    validate: str = ""  # command that judges it before it is put there
    units: t.Sequence[str] = ()  # that read it when they start
    settings: t.Mapping[str, object] = dataclasses.field(default_factory=dict)  # of Docker, in place of the content


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
    """What a host gets to be a node: packages, then files and services, which depend on what the packages are."""

    repositories: t.Mapping[str, t.Mapping[str, object]]
    packages: t.Sequence[Package]
    kubeadm: t.Sequence[Package]  # an upgrade has it before the others
    keep: t.Sequence[str]  # packages that may not change
    sysctl: t.Mapping[str, object]
    architecture: str  # as packages call it
    bundle_part: str  # of the bundle, with the packages of this host
    program: t.Optional[Program] = None  # cri-dockerd, if it is ours
    files: t.Sequence[HostFile] = ()
    units: t.Sequence[Unit] = ()
    kubelet: Object = dataclasses.field(default_factory=dict)  # what its configuration has to have
    ignored_errors: t.Sequence[str] = ()  # checks of kubeadm whose errors count as warnings


@dataclasses.dataclass(frozen=True)
class NodeSeen:
    """Of what ipu.fabric.kubernetes_node_info says of a host, what its cluster is decided by."""

    name: str = ""
    address: str = ""
    membership: str = "no answer"  # or as the module says it
    seen: str = ""
    next_step: str = ""
    kubelet: str = ""  # version
    kubeconfig_sha256: str = ""  # of the administrator's kubeconfig
    taints: t.Sequence[str] = ()  # their keys


@dataclasses.dataclass(frozen=True)
class ClusterWish:
    """Which cluster a host belongs to. It stays so for the rest of the run."""

    first: str  # the control plane that begins the cluster, or through which the others join
    first_node: NodeSeen
    is_first: bool
    running: bool  # whether the cluster exists already
    planes: t.Mapping[str, NodeSeen]  # the group kube_control_plane, as it was when the run began
    members: t.Sequence[str]  # of them
    schedulable: bool  # whether pods run on this host, should it be a control plane
    untaints: bool  # whether a taint keeps them from it
    fetches: bool  # whether the kubeconfig on the controller is another than that of every control plane
    renews: bool  # whether it will be, once this check has come true


@dataclasses.dataclass(frozen=True)
class JoinWish:
    """How the control planes of a run join its cluster, or the workers."""

    throttle: int  # hosts that join at a time
    ttl: str  # how long their token is good for
    rejoining: t.Sequence[str]  # names of nodes that hosts may have left behind
    addresses: t.Sequence[str]  # of control planes that may have left a member of etcd behind


@dataclasses.dataclass(frozen=True)
class Manifest:
    """A file of objects that somebody publishes."""

    url: str
    checksum: str  # sha256:DIGEST; empty: whatever the source sends
    path: str  # where it is kept on the controller


@dataclasses.dataclass(frozen=True)
class PodNetworkWish:
    """What pods reach each other by."""

    manifests: t.Sequence[Manifest] = ()  # applied first, in this order
    bundled: t.Mapping[str, t.Mapping[str, str]] = dataclasses.field(default_factory=dict)  # the same, by name
    objects: t.Sequence[Object] = ()  # applied after them
    images: t.Sequence[str] = ()  # that run on every host
    flannel_network: Object = dataclasses.field(default_factory=dict)
    flannel_arguments: t.Sequence[str] = ()
    ready: t.Sequence[Object] = ()  # as ipu.fabric.kube_wait takes them


@dataclasses.dataclass(frozen=True)
class KubeletWish:
    """How a kubelet is configured."""

    settings: Object  # for nodes to come
    content: str  # of its file; empty where there is none yet
    due: bool  # whether there is something to do on an existing node
    awaits: bool  # whether it has to get its serving certificate from the cluster


@dataclasses.dataclass(frozen=True)
class KeysWish:
    """How control planes come to the new key of Secrets: no one takes a step before all have taken the one before."""

    before: t.Sequence[t.Sequence[str]]  # names of keys: the first one writes, all read
    after: t.Sequence[t.Sequence[str]]  # once all Secrets are written again
    steps: t.Sequence[t.Sequence[str]]  # both
    new: str  # name of the key that writes at the end
    source: str  # control plane that has every key
    generate: bool  # whether none has the new one


@dataclasses.dataclass(frozen=True)
class HardeningWish:
    """How the control planes of a cluster are hardened."""

    text: str  # kubeadm's configuration of the cluster
    uploads: bool  # whether it differs from the uploaded one
    files: t.Sequence[Object]  # that its arguments name
    super_admin: bool  # whether super-admin.conf stays
    present: t.Sequence[str]  # names of settings that the cluster has
    present_files: t.Sequence[Object]
    live: t.Sequence[str]  # control planes, in their order
    documents: t.Mapping[str, t.Sequence[Object]]  # of kubeadm, for each of them
    rollout: t.Optional[KeysWish]  # of the key of Secrets. None: it stays as it is


@dataclasses.dataclass(frozen=True)
class DocumentsWish:
    """How kubeadm makes a host a node."""

    documents: t.Sequence[Object]  # for init on the first control plane, for join on the others
    images: t.Sequence[str] = ()  # that a host pulls while the first control plane is initialised
    files: t.Sequence[Object] = ()  # of the first API server
    key_steps: t.Sequence[t.Sequence[str]] = ()  # of its key of Secrets; none: they are not encrypted


@dataclasses.dataclass(frozen=True)
class KubeletsWish:
    """Whose kubelets get another configuration, and which certificates are approved."""

    planes: t.Sequence[str]  # control planes that are due, in their order
    workers: t.Sequence[str]  # that are
    contents: t.Mapping[str, str]  # of the files of these
    refused: t.Sequence[str]  # hosts whose file is no configuration
    awaited: t.Sequence[str]  # names of nodes whose kubelets have no serving certificate yet
    signed: t.Sequence[str]  # hosts that have one once that is waited for
    addresses: t.Mapping[str, t.Sequence[str]]  # that nodes may have in it, by name


@dataclasses.dataclass(frozen=True)
class KubeconfigWish:
    """What becomes of the kubeconfig on the controller."""

    of_others: bool  # it leads to other clusters, and is kept beside the new one
