# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that the role kubernetes writes, and their text. A reset removes these; others of the same name stay."""

from __future__ import annotations

import re

from . import proxy
from .distributions import CONTAINERD_DROP_IN
from .files import MARK, OWN_MARK

UNITS = "/etc/systemd/system"
CONTAINERD_UNIT = f"{UNITS}/containerd.service.d/10-kubernetes.conf"
CONTAINERD_PROXY = f"{UNITS}/containerd.service.d/20-proxy.conf"
DOCKER_PROXY = f"{UNITS}/docker.service.d/20-proxy.conf"
SYSCTL = "/etc/sysctl.d/99-z-kubernetes.conf"  # each host of the role has it
MIRROR = "/etc/containerd/certs.d/_default/hosts.toml"
CRICTL = "/etc/crictl.yaml"
# cri-dockerd's units, its program, and the record of the installed program.
CRI_DOCKER_SERVICE, CRI_DOCKER_SOCKET = f"{UNITS}/cri-docker.service", f"{UNITS}/cri-docker.socket"
CRI_DOCKERD = "/usr/local/bin/cri-dockerd"
CRI_DOCKERD_RECORD = "/var/lib/ipu-fabric/cri-dockerd.sha256"
# keepalived's files, if its configuration has our mark.
KEEPALIVED = "/etc/keepalived/keepalived.conf"
API_CHECK = "/etc/keepalived/check-api-server"
KEEPALIVED_UNIT = f"{UNITS}/keepalived.service.d/10-kubernetes.conf"

LINES = r"(?:[^#\n].*\n|\n)*"  # without comments
_PROXY_UNIT = r"# [0-9a-f]{8}\n\[Service\]\nEnvironmentFile=-/etc/containerd/proxy\.env\n"
# By path, a pattern for the whole text as we write it; empty if the name is enough.
TEXTS = {
    MIRROR: rf"(?:{re.escape(OWN_MARK)}\n)?"
    r'\[host\."[^"\n]+"\]\ncapabilities = \["pull", "resolve"\]\n'
    r'(?:\n\[host\."[^"\n]+"\.header\]\nauthorization = "Basic [^"\n]+"\n)?',
    f"{MIRROR}.*~": "",  # copies of the same text, made by runs of former releases
    "/etc/apt/sources.list.d/ipu-fabric-bundle.sources": "",
    proxy.APT: proxy.APT_TEXT.pattern,
    CONTAINERD_DROP_IN: rf"{re.escape(OWN_MARK)}\n{LINES}",
    proxy.CONTAINERD: proxy.CONTAINERD_TEXT.pattern,
    "/etc/modules-load.d/kubernetes.conf": rf"{re.escape(MARK)}\n(?:[\w-]+\n)*",
    SYSCTL: rf"{re.escape(MARK)}\n(?:[\w./-]+ = .*\n)*",
    CONTAINERD_UNIT: rf"{re.escape(OWN_MARK)}\n\[Service\]\n{LINES}",
    CONTAINERD_PROXY: _PROXY_UNIT,
    DOCKER_PROXY: _PROXY_UNIT,
}
