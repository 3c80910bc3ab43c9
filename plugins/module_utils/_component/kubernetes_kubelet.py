# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's configuration: our settings, on existing nodes too. All its other keys stay."""

from __future__ import annotations

import dataclasses
import typing as t

from .._kube.kubelet_config import asks_for_certificate, kubelet_config
from .._kube.merge_values import merge_values
from .._kube.query import Object
from .._kubeadm.hardening import CIS
from .._model.wish import KubeletWish
from .._plan.runtime import feature_gates

HARDENED: Object = {
    "serverTLSBootstrap": True,
    "rotateCertificates": True,
    "protectKernelDefaults": True,
    "seccompDefault": True,
    "podPidsLimit": 16384,  # enough for MPI and data loaders on hosts with 128 or more cores
    "eventRecordQPS": 50,
    "streamingConnectionIdleTimeout": "30m0s",
    "readOnlyPort": 0,
    "makeIPTablesUtilChains": True,
    "tlsMinVersion": "VersionTLS12",
    "tlsCipherSuites": [
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    ],
    "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}},
    "authorization": {"mode": "Webhook"},
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role, without its name as a prefix, that the kubelet's configuration comes from."""

    version: str
    runtime: str
    hardening: str
    cgroup_v1: bool
    kubelet_config: Object


@dataclasses.dataclass(frozen=True)
class Seen:
    """What ipu.fabric.kubelet_config found on a host."""

    content: str = ""  # empty if the host is not a node
    needed: bool = False  # an interrupted change, or file permissions that are too open
    serves: bool = False  # whether it has a serving certificate signed by the cluster


def decide(settings: Settings, seen: Seen) -> KubeletWish:
    """Raise FabricError for a file that is not a valid configuration."""
    return configure(kubelet_settings(settings), seen)


def configure(wanted: Object, seen: Seen) -> KubeletWish:
    content = kubelet_config(seen.content, wanted)
    return KubeletWish(
        settings=wanted,
        content=content,
        due=seen.needed or content != seen.content,
        awaits=not seen.serves and asks_for_certificate(content),
    )


def kubelet_settings(settings: Settings) -> Object:
    """Settings for the kubelet; the site's own take precedence."""
    gates = feature_gates(settings.runtime, settings.version)
    level = HARDENED if settings.hardening == CIS else {}
    cgroup = {"failCgroupV1": False} if settings.cgroup_v1 else {}
    return merge_values({**level, **cgroup, **({"featureGates": gates} if gates else {})}, settings.kubelet_config)


def ignored_errors(cgroup_v1: bool, site: t.Sequence[str]) -> t.List[str]:
    """kubeadm checks whose errors count as warnings: the site's, and the system check, which refuses cgroup v1."""
    return list(dict.fromkeys([*site, *["SystemVerification"] * cgroup_v1]))
