# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubeadm is told on a host that becomes a node, and which images the host pulls meanwhile."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._common.digests import pinned_image
from .._common.text import first_of
from .._host.cri import SOCKETS
from .._kube.merge_values import merge_values
from .._kube.query import Object
from .._kubeadm import hardening
from .._model.wish import DocumentsWish, NodeSeen
from .kubernetes_cluster import TAINT
from .kubernetes_encryption import KeysSeen, plan_keys
from .kubernetes_hardening import ENCRYPTION, Level, harden
from .kubernetes_kubelet import Settings as KubeletSettings
from .kubernetes_kubelet import ignored_errors, kubelet_settings
from .settings import pick

KUBEADM = "kubeadm.k8s.io/v1beta4"


@dataclasses.dataclass(frozen=True)
class Settings(Level, KubeletSettings):
    """More variables of the role, in addition to the inherited ones."""

    node_ip: str
    image_repository: str
    image_digests: t.Mapping[str, str]
    control_plane_endpoint: str
    control_plane_vip: str
    pod_cidr: str
    service_cidr: str
    dns_domain: str
    kubelet_extra_args: t.Mapping[str, t.Any]
    kube_proxy_config: Object
    kubeadm_timeouts: Object
    ignore_preflight_errors: t.Sequence[str]
    token_ttl: str
    taints: t.Sequence[Object]
    backup: Object


@dataclasses.dataclass(frozen=True)
class Seen:
    """The host, and the decisions about its cluster."""

    host: str
    node: t.Mapping[str, t.Any]  # as ipu.fabric.kubernetes_node_info returns it
    cluster: t.Mapping[str, t.Any]  # ClusterWish
    control_plane: bool
    network_images: t.Sequence[str] = ()  # of the pod network
    keys: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)  # keys for Secrets that the host has


def decide(settings: Settings, seen: Seen) -> DocumentsWish:
    node = pick(NodeSeen, seen.node)
    registered = registration(settings, seen, node)
    if seen.cluster["is_first"]:
        return begin(settings, seen, node, registered)
    own, network = list(seen.node["images"]), list(seen.network_images)
    images = own if seen.control_plane else [name for name in own if re.search("/(kube-proxy|pause):", name)]
    # kubeadm's own images run under their tags: it writes no digests into its manifests.
    pinned = {name: digest for name, digest in settings.image_digests.items() if name not in own}
    return DocumentsWish(
        documents=join_documents(settings, seen, node, registered),
        images=[pinned_image(image, pinned) for image in [*images, *network]],
    )


def begin(settings: Settings, seen: Seen, node: NodeSeen, registered: Object) -> DocumentsWish:
    """Documents of the first control plane, which does not start without the files that its arguments name."""
    keys = pick(KeysSeen, seen.keys)
    encrypted = ["encrypted"] if settings.backup and keys.order else []
    configuration = harden(settings, cluster_configuration(settings, seen), [ENCRYPTION, *encrypted])
    release = hardening.parse_release(settings.version)
    key_steps: t.Sequence[t.Sequence[str]] = []
    if ENCRYPTION in [setting.name for setting in configuration.applied]:
        key_steps = plan_keys({seen.host: keys}).before or [keys.order]  # a restored backup has its own
    kubelet = kubelet_settings(settings)
    return DocumentsWish(
        documents=[
            {
                "apiVersion": KUBEADM,
                "kind": "InitConfiguration",
                # A short-lived token that nobody gets. Hosts that join get another one.
                "bootstrapTokens": [{"ttl": settings.token_ttl}],
                "localAPIEndpoint": {"advertiseAddress": first_of(node.address)},
                "nodeRegistration": registered,
                "timeouts": settings.kubeadm_timeouts,
            },
            t.cast(Object, configuration.configuration),
            component("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration", {"cgroupDriver": "systemd"}, kubelet),
            component("kubeproxy.config.k8s.io/v1alpha1", "KubeProxyConfiguration", {}, settings.kube_proxy_config),
        ],
        files=hardening.files(configuration.applied, release, settings.pod_security_exempt),
        key_steps=key_steps,
    )


def component(api_version: str, kind: str, own: Object, site: Object) -> Object:
    return merge_values({"apiVersion": api_version, "kind": kind, **own}, site)


def registration(settings: Settings, seen: Seen, node: NodeSeen) -> Object:
    restored = ["DirAvailable--var-lib-etcd"] if settings.backup else []
    arguments = {**({"node-ip": settings.node_ip} if settings.node_ip else {}), **settings.kubelet_extra_args}
    return {
        "name": node.name,
        "criSocket": f"unix://{SOCKETS[settings.runtime]}",
        "imagePullSerial": False,
        "ignorePreflightErrors": [*ignored_errors(settings.cgroup_v1, settings.ignore_preflight_errors), *restored],
        "kubeletExtraArgs": [{"name": name, "value": value} for name, value in arguments.items()],
        **taints(settings, seen),
    }


def taints(settings: Settings, seen: Seen) -> Object:
    """Taints of the node. If the key is missing, kubeadm keeps pods off a control plane."""
    own = [] if seen.cluster["is_first"] else list(settings.taints)
    if not seen.control_plane or seen.cluster["schedulable"]:
        return {"taints": own} if own or seen.control_plane else {}
    return {"taints": [{"key": TAINT, "effect": "NoSchedule"}, *own]} if own else {}


def join_documents(settings: Settings, seen: Seen, node: NodeSeen, registered: Object) -> t.List[Object]:
    advertised = {"localAPIEndpoint": {"advertiseAddress": first_of(node.address)}}
    endpoint = {"controlPlane": advertised} if seen.control_plane else {}
    about = {"apiVersion": KUBEADM, "kind": "JoinConfiguration", "nodeRegistration": registered}
    return [{**about, "timeouts": settings.kubeadm_timeouts, **endpoint}]


def cluster_configuration(settings: Settings, seen: Seen) -> hardening.ClusterConfiguration:
    first = settings.control_plane_vip or first_of(seen.cluster["first_node"]["address"])
    host = f"[{first}]" if ":" in first else first
    networking = {
        "podSubnet": settings.pod_cidr,
        "serviceSubnet": settings.service_cidr,
        "dnsDomain": settings.dns_domain,
    }
    own = {
        "apiVersion": KUBEADM,
        "kind": "ClusterConfiguration",
        "kubernetesVersion": f"v{settings.version.lstrip('v')}",
        "controlPlaneEndpoint": settings.control_plane_endpoint or f"{host}:6443",
        "networking": networking,
        **({"imageRepository": settings.image_repository} if settings.image_repository else {}),
    }
    return t.cast(hardening.ClusterConfiguration, merge_values(own, settings.cluster_config))
