# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet of a host, of whatever distribution of Kubernetes."""

from __future__ import annotations

import os
import typing as t

# Kubeconfig of the kubelet, and the kubectl that goes with it, of each distribution.
KUBELETS = (
    ("/etc/kubernetes/kubelet.conf", ["kubectl"]),
    ("/var/lib/rancher/k3s/agent/kubelet.kubeconfig", ["k3s", "kubectl"]),
    ("/var/lib/rancher/rke2/agent/kubelet.kubeconfig", ["/var/lib/rancher/rke2/bin/kubectl"]),
)


def found_kubelets() -> t.List[t.Tuple[str, t.List[str]]]:
    return [(config, kubectl) for config, kubectl in KUBELETS if os.path.exists(config)]


def node_name(given: str) -> str:
    """The name of the host's node: the given one, or the kubelet's default."""
    return given or os.uname().nodename.lower()
