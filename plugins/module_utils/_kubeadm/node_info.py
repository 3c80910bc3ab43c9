# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Kubernetes parts of a host: packages, images, and its membership."""

from __future__ import annotations

import glob
import os
import re
import typing as t

from .._common.command import output_of, run_program
from .._common.result import FabricError
from .._common.text import first_of
from .._host.distributions import CONTAINERD_DROP_IN, CONTAINERD_DROP_INS, KUBEADM
from .._host.docker import CriDockerd, read_cri_dockerd
from .._host.facts import default_address, parse_os_release
from .._host.files import OWN_MARK, file_digest, read_text
from .._host.role_files import KEEPALIVED
from .._host.vip import parse_holder
from . import paths
from .lock import is_locked
from .membership import Membership, host_name, inspect_host

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


SECONDS = 120  # a busy host takes long to load a program of 100 MB


class NodeInfo(Membership):
    """Result of kubernetes_node_info."""

    name: str
    address: str
    interface: str  # the one with the address; empty if there is none
    distribution: str  # ID in os-release
    release: str  # VERSION_CODENAME
    architecture: str  # as the kernel names it
    kubelet: str  # version; empty if not installed
    containerd: str  # version; empty if not installed
    containerd_files: t.List[str]  # the main file, and drop-ins that the role did not write
    cri_dockerd: CriDockerd
    keepalived: str  # ours or others, by its configuration; empty if there is none
    images: t.List[str]  # the ones that kubeadm lists for the version
    unsettled: bool  # a change of its control plane was interrupted
    kubeconfig_sha256: str  # of the administrator's kubeconfig; empty if there is none


def program_version(text: str) -> str:
    """The first version number in a program's version output: v1.35.4, containerd ... v2.2.1 hash."""
    match = re.search(r"\bv?(\d+\.\d+\.\d+\S*)", text)
    return match.group(1) if match else ""


def installed_version(program: str) -> str:
    """The version of a program; empty if it is not installed."""
    command = (program, "--version")
    done = run_program(command, SECONDS)
    if done.rc not in (0, 127):
        raise FabricError(
            f"Could not read the version of {program}, which is installed.",
            " ".join(command),
            f"timed out after {SECONDS} s" if done.rc is None else done.err.strip() or f"rc {done.rc}",
            "Try the command on the host; if the host is only slow, run again.",
            code=done.code,
        )
    return program_version(done.out)


def whose_keepalived() -> str:
    if not os.path.exists(KEEPALIVED):
        return ""
    return "ours" if OWN_MARK in read_text(KEEPALIVED) else "others"


def read_node_info(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.kubernetes_node_info)."""
    params = module.params
    name = params["node_name"] or host_name()
    release = parse_os_release(read_text("/etc/os-release"))
    listing = ["kubeadm", "config", "images", "list", "--kubernetes-version", params["version"]]
    if params["image_repository"]:
        listing += ["--image-repository", params["image_repository"]]
    address = params["address"] or default_address()
    unfinished = os.path.exists(paths.MARKER) or is_locked()
    node: NodeInfo = {
        "name": name,
        "address": address,
        "interface": parse_holder(output_of("ip", "-j", "addr"), first_of(address)),
        "distribution": release.get("ID", ""),
        "release": release.get("VERSION_CODENAME", ""),
        "architecture": os.uname().machine,
        "kubelet": installed_version("kubelet"),
        "containerd": installed_version("containerd"),
        "containerd_files": [
            *glob.glob(KUBEADM.containerd_config),
            *sorted(set(glob.glob(CONTAINERD_DROP_INS)) - {CONTAINERD_DROP_IN}),
        ],
        "cri_dockerd": read_cri_dockerd(),
        "keepalived": whose_keepalived(),
        "images": output_of(*listing).split(),
        "unsettled": os.path.exists(paths.EARLIER),
        "kubeconfig_sha256": file_digest(paths.ADMIN),
        **inspect_host(name, params["control_plane"], unfinished),
    }
    return {"node": node}
