# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which container runtime a node of kubeadm has, by what its kubelet is started with."""

from __future__ import annotations

import os
import re

from ansible_collections.ipu.fabric.plugins.module_utils._host.files import read_text

CONTAINERD, DOCKER = "containerd", "docker"
SOCKETS = {CONTAINERD: "/run/containerd/containerd.sock", DOCKER: "/run/cri-dockerd.sock"}
# A flag counts before the kubelet's configuration. kubeadm 1.34 and later keep it in a file of this instance.
FLAGS = "var/lib/kubelet/kubeadm-flags.env"
CONFIGURATIONS = ("var/lib/kubelet/instance-config.yaml", "var/lib/kubelet/config.yaml")


def parse_flags(text: str) -> str:
    """The endpoint in the flags that kubeadm has written for the kubelet; empty where there is none."""
    match = re.search(r"--container-runtime-endpoint[= ][\"']?([^\s\"']+)", text)
    return match.group(1) if match else ""


def parse_configuration(text: str) -> str:
    """The endpoint in a KubeletConfiguration; empty where there is none."""
    match = re.search(r"^containerRuntimeEndpoint:[ \t]*[\"']?([^\s\"'#]+)", text, re.MULTILINE)
    return match.group(1) if match else ""


def kubelet_socket(root: str = "/") -> str:
    """The path of the socket over which the kubelet reaches its runtime; empty where nothing says so."""
    found = [parse_flags(read_text(os.path.join(root, FLAGS)))]
    found += [parse_configuration(read_text(os.path.join(root, path))) for path in CONFIGURATIONS]
    path = next(filter(None, found), "")
    path = path[len("unix://") :] if path.startswith("unix://") else path
    return "/run/" + path[len("/var/run/") :] if path.startswith("/var/run/") else path


def runtime_of(socket: str) -> str:
    """containerd or docker, or the socket itself where it is neither's; empty without one."""
    return next((name for name, path in SOCKETS.items() if path == socket), socket)


def node_runtime(root: str = "/") -> str:
    """The runtime of the node that this host is; empty where nothing says so."""
    return runtime_of(kubelet_socket(root))
