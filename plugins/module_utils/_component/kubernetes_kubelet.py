# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's configuration: what is set, on existing nodes too. All other keys of it stay."""

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
    "podPidsLimit": 16384,  # MPI and data loaders on hosts of 128 and more cores
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
    """Variables of the role, without its name before them, that the kubelet's configuration comes from."""

    version: str
    runtime: str
    hardening: str
    cgroup_v1: bool
    kubelet_config: Object


@dataclasses.dataclass(frozen=True)
class Seen:
    """What ipu.fabric.kubelet_config found on a host."""

    content: str = ""  # nothing where the host is no node
    needed: bool = False  # a change that was interrupted, or a mode that is too wide
    serves: bool = False  # whether it has a serving certificate of the cluster


def decide(settings: Settings, seen: Seen) -> KubeletWish:
    """FabricError for a file that is no configuration."""
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
    """A site's own settings win over all others."""
    gates = feature_gates(settings.runtime, settings.version)
    level = HARDENED if settings.hardening == CIS else {}
    cgroup = {"failCgroupV1": False} if settings.cgroup_v1 else {}
    return merge_values({**level, **cgroup, **({"featureGates": gates} if gates else {})}, settings.kubelet_config)


def ignored_errors(cgroup_v1: bool, site: t.Sequence[str]) -> t.List[str]:
    """Checks of kubeadm whose errors count as warnings. Its check of the system refuses cgroup v1."""
    return list(dict.fromkeys([*site, *["SystemVerification"] * cgroup_v1]))
