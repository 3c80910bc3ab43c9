# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CoreDNS forwards to the DNS servers of its host. If one of them forwards back to CoreDNS, CoreDNS exits."""

from __future__ import annotations

import re

LOOP = re.compile(r"plugin/loop: Loop .* detected")  # what it logs then
LOOP_STEP = (
    "Write the real servers into a file on every host, and name it in kubernetes_kubelet_config: {resolvConf: FILE}."
    " Or run systemd-resolved: kubeadm then uses the servers of systemd-resolved."
)
LOOPED_STEP = (
    f"{LOOP_STEP} Run site, which tells the kubelets. Pods keep the servers that they were started with, so then run"
    " `kubectl -n kube-system delete pods -l k8s-app=kube-dns`, and run site again."
)
