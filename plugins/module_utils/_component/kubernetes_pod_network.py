# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pod network: where its manifests come from, which images hosts pull for it, and when it is ready."""

from __future__ import annotations

import dataclasses
import hashlib
import posixpath
import re
import typing as t

from .._common.result import FabricError
from .._kube.query import Object
from .._model.wish import Manifest, PodNetworkWish
from .._network.digests import CALICO_FILES, known_digest
from .._network.releases import calico_parts
from .calico import calico_installation

# Calico's manifests: the setting, and the file that upstream publishes.
# What must be ready before pods have a network. Nodes already become Ready when a plugin is configured, even if it does
# not work.
CALICO_READY: t.Sequence[Object] = (
    {"kind": "Deployment", "name": "tigera-operator", "namespace": "tigera-operator"},
    {"kind": "DaemonSet", "name": "calico-node", "namespace": "calico-system"},
    {"kind": "Deployment", "name": "calico-typha", "namespace": "calico-system"},
    {"kind": "Deployment", "name": "calico-kube-controllers", "namespace": "calico-system"},
    # Its condition shows what the operator refuses in the Installation.
    {
        "api_version": "operator.tigera.io/v1",
        "kind": "TigeraStatus",
        "name": "calico",
        "field": "status.conditions[?type=='Degraded'].status | [0]",
        "value": "False",
    },
)
# Its pods start once there is a pod network, and crash if their host uses one of them as its DNS server. Optional,
# because a site may have removed it.
DNS: Object = {"kind": "Deployment", "name": "coredns", "namespace": "kube-system", "required": False}
FLANNEL_READY: t.Sequence[Object] = ({"kind": "DaemonSet", "name": "kube-flannel-ds", "namespace": "kube-flannel"},)
FLANNEL_ARGUMENTS = ("--ip-masq", "--kube-subnet-mgr", "--healthz-ip=127.0.0.1", "--healthz-port=8081")
TIGERA = "operator.tigera.io/v1"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role, without its name as a prefix."""

    cni: str
    cni_workloads: t.Sequence[Object]
    pod_cidr: str  # IPv4, IPv6, or both separated by a comma
    kube_proxy_config: Object
    image_digests: t.Mapping[str, str]
    kubeconfig: str  # manifests are kept next to it
    calico_version: str
    calico: t.Mapping[str, str]
    calico_installation: Object
    flannel_image: str
    flannel_cni_image: str
    flannel_backend: Object
    flannel_interface: str


@dataclasses.dataclass(frozen=True)
class Seen:
    """The task that failed to fetch the manifests, if it did."""

    failed: t.Optional[t.Mapping[str, t.Any]] = None


def decide(settings: Settings, seen: Seen) -> PodNetworkWish:
    """Raise FabricError if the manifests could not be fetched."""
    if settings.cni == "calico":
        if seen.failed:
            refuse_manifests(seen.failed, posixpath.dirname(settings.kubeconfig))
        return calico(settings)
    if settings.cni == "flannel":
        return flannel(settings)
    return PodNetworkWish(ready=[*settings.cni_workloads, DNS] if settings.cni_workloads else [])


def kept_manifest(kubeconfig: str, name: str, url: str, release: str) -> str:
    """Where one of Calico's manifests is kept: next to the kubeconfig, with a name that depends on its URL."""
    key = hashlib.sha1(url.replace("{version}", release.lstrip("v")).encode()).hexdigest()[
        :8
    ]  # only part of a name, not a security check
    return posixpath.join(posixpath.dirname(kubeconfig), f"calico-{name}-{key}.yaml")


def calico(settings: Settings) -> PodNetworkWish:
    release = settings.calico_version.lstrip("v")
    sources, files = {}, []
    for name, file in CALICO_FILES.items():
        url = settings.calico[f"{name}_url"].replace("{version}", release)
        known = known_digest(f"calico-{release}/{file}")
        checksum = settings.calico[f"{name}_checksum"] or (f"sha256:{known}" if known else "")
        sources[f"calico_{name}"] = {"url": url, "checksum": checksum}
        path = kept_manifest(settings.kubeconfig, name, url, release)
        files.append(Manifest(url=url, checksum=checksum, path=path))
    chosen = settings.calico_installation
    place = f"{chosen.get('registry', 'quay.io').rstrip('/')}/{chosen.get('imagePath', 'calico')}"
    prefix = chosen.get("imagePrefix", "")
    spec = calico_installation(settings.pod_cidr.split(","), chosen)
    installation = {"apiVersion": TIGERA, "kind": "Installation", "metadata": {"name": "default"}, "spec": spec}
    return PodNetworkWish(
        manifests=files,
        bundled=sources,
        images=[f"{place}/{prefix}{name}:v{release}" for name in calico_parts(release).on_hosts],
        objects=[*image_set(settings.image_digests, release), installation],
        ready=[*CALICO_READY, DNS],
    )


def image_set(digests: t.Mapping[str, str], release: str) -> t.List[Object]:
    """The ImageSet with digests. The operator expects this name, and the digests of all images that it starts."""
    found = {re.fullmatch(rf"quay[.]io/(calico/.+):v{re.escape(release)}", image): image for image in digests}
    images = [{"image": match[1], "digest": digests[image]} for match, image in found.items() if match]
    name = f"calico-v{release}"
    pinned = {"apiVersion": TIGERA, "kind": "ImageSet", "metadata": {"name": name}, "spec": {"images": images}}
    return [pinned] if images else []


def flannel(settings: Settings) -> PodNetworkWish:
    cidrs = settings.pod_cidr.split(",")
    ipv4 = next((cidr for cidr in cidrs if ":" not in cidr), "")
    ipv6 = next((cidr for cidr in cidrs if ":" in cidr), "")
    # The interface with the node's own address, from NODE_IP in the container. With both families, only IPv4 works.
    own = "$(NODE_IP)" if len(cidrs) == 1 or cidrs[0] == ipv4 else ""
    interface = settings.flannel_interface or own
    return PodNetworkWish(
        images=[settings.flannel_image, settings.flannel_cni_image],
        flannel_network={
            "Backend": settings.flannel_backend,
            "EnableNFTables": settings.kube_proxy_config.get("mode", "iptables") == "nftables",
            **({"Network": ipv4} if ipv4 else {"EnableIPv4": False}),
            **({"EnableIPv6": True, "IPv6Network": ipv6} if ipv6 else {}),
        },
        flannel_arguments=[*FLANNEL_ARGUMENTS, *([f"--iface={interface}"] if interface else [])],
        ready=[*FLANNEL_READY, DNS],
    )


def refuse_manifests(failed: t.Mapping[str, t.Any], directory: str) -> t.NoReturn:
    results = [each for each in failed.get("results", ()) if each.get("failed")]
    reasons = [str(each.get("seen") or each.get("msg", "")) for each in results] or [str(failed.get("msg", ""))]
    raise FabricError(
        "Calico's manifests could not be fetched by the machine that runs Ansible.",
        ", ".join(each["item"]["url"] for each in results) or directory,
        "; ".join(dict.fromkeys(reasons)),
        "If that is out of reach for this machine, put the manifests on a server of the site, and their URLs into"
        " fabric_mirror.calico (for the role alone, kubernetes_calico). Then run again. All that Calico needs:"
        " https://github.com/ipu-fabric/ipu.fabric/blob/main/docs/mirror.md#images-of-the-pod-network",
        code="download-failed",
    )
