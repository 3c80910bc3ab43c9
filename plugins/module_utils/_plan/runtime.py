# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container runtime of the nodes, and what is incompatible with Docker Engine."""

from __future__ import annotations

import typing as t

from .._common.digests import plain_digest
from .._common.findings import Findings
from .._host.cri import CONTAINERD, DOCKER
from .._model.plan import Runtime, Source
from .._model.settings import Settings
from .._network.digests import CRI_DOCKERD_KNOWN, known_digest
from .._network.releases import parse
from .hosts import Hosts
from .sources import text_of, without_credentials

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # the kernel's names, and cri-dockerd's
# Since this release, the API server forwards WebSockets to kubelets that announce support; cri-dockerd lacks it.
WEBSOCKETS = (1, 36)
WEBSOCKETS_GATE = "ExtendWebSocketsToKubelet"


def plan_runtime(settings: Settings, hosts: Hosts, kubernetes: str, findings: Findings) -> Runtime:
    """The cluster's runtime. For a cluster managed elsewhere, it is not planned."""
    if not settings.manage_kubernetes:
        if settings.runtime != CONTAINERD:
            findings.warning(
                "runtime",
                [],
                "The container runtime is chosen only where this collection builds the cluster.",
                f"fabric_runtime is {settings.runtime}, and fabric_manage_kubernetes is false",
                "Leave fabric_runtime out. Locked memory is set for whatever runtime the hosts have.",
            )
        return {"name": "", "cri_dockerd": "", "kubelet_feature_gates": {}}
    _check_nodes(settings, hosts, findings)
    if settings.runtime != DOCKER:
        return {"name": settings.runtime, "cri_dockerd": "", "kubelet_feature_gates": {}}
    _check_settings(settings, findings)
    return {
        "name": DOCKER,
        "cri_dockerd": text_of(settings.sources, "cri_dockerd", "version"),
        "kubelet_feature_gates": feature_gates(DOCKER, kubernetes),
    }


def feature_gates(runtime: str, kubernetes: str) -> t.Dict[str, bool]:
    """Feature gates that kubelets need for the runtime."""
    return {WEBSOCKETS_GATE: False} if runtime == DOCKER and parse(kubernetes)[:2] >= WEBSOCKETS else {}


def _check_nodes(settings: Settings, hosts: Hosts, findings: Findings) -> None:
    """No role changes a node's runtime: its pods would have to leave, and its images belong to the other runtime."""
    for name, host in hosts.items():
        runtime = host.facts.get("runtime", "") if host.facts else ""
        if runtime and runtime != settings.runtime:
            findings.error(
                "cluster-runtime",
                [name],
                "The node's container runtime is not the one that the site asks for, and no role changes it.",
                f"fabric_runtime is {settings.runtime}; the kubelet uses {runtime}",
                f"Set fabric_runtime to {runtime}."
                if runtime in (CONTAINERD, DOCKER)
                else "Take the host out of the inventory.",
            )


def _check_settings(settings: Settings, findings: Findings) -> None:
    """Refuse settings that containerd supports but Docker does not."""
    without = "Or leave fabric_runtime out: containerd can do this."
    registry = text_of(settings.sources, "registry")
    for wrong, what, seen, step in (
        (
            bool(registry),
            "Docker uses a mirror for docker.io only: images of all other registries would come from the internet.",
            f"fabric_mirror.registry is {without_credentials(registry)}",
            f"Leave fabric_mirror.registry out, and let hosts reach the registries, or set fabric_proxy. {without}",
        ),
        (
            settings.bundle is not None,
            "Images of a bundle are imported into containerd, where Docker does not look for them.",
            "fabric_bundle is set",
            f"Leave fabric_bundle out. {without}",
        ),
        (
            settings.gpu,
            "The GPU operator of these releases sets up containerd and CRI-O, not Docker.",
            "fabric_gpu is true",
            f"Set fabric_gpu to false, and set up GPUs in Docker yourself. {without}",
        ),
        (
            settings.upgrade,
            "ipu.fabric.upgrade does not support nodes with Docker.",
            "fabric_runtime is docker",
            "Upgrade with kubeadm as its guide says, and set fabric_kubernetes_version to that release. Then run site.",
        ),
    ):
        if wrong:
            findings.error("runtime", [], what, seen, step)


def cri_dockerd_sources(settings: Settings, hosts: Hosts, findings: Findings) -> t.List[Source]:
    """cri-dockerd's archive for each architecture. It runs as root on every node, so a digest is required."""
    if not settings.manage_kubernetes or settings.runtime != DOCKER:
        return []
    release = text_of(settings.sources, "cri_dockerd", "version")
    seen = {host.facts["architecture"] for host in hosts.values() if host.facts}
    found: t.List[Source] = []
    for architecture in sorted({ARCHITECTURES.get(name, name) for name in seen} or {"amd64"}):
        url = text_of(settings.sources, "cri_dockerd", "url")
        url = url.replace("{version}", release).replace("{arch}", architecture)
        digest = plain_digest(text_of(settings.sources, "cri_dockerd", "checksum"))
        digest = digest or known_digest(f"cri-dockerd-{release}.{architecture}.tgz")
        shown = without_credentials(url)
        if not digest:
            findings.error(
                "runtime",
                [],
                "cri-dockerd runs as root on every node, so the digest of its archive has to be known.",
                f"cri-dockerd {release} from {shown}, and no digest is known for it",
                f"Set fabric_mirror.cri_dockerd.checksum to sha256: and what `curl -fsSL {shown} | sha256sum` prints on"
                f" a machine that you trust, or fabric_mirror.cri_dockerd.version to {' or '.join(CRI_DOCKERD_KNOWN)}.",
            )
        found.append({"name": f"cri-dockerd {release} ({architecture})", "url": shown, "sha256": digest})
    return found
