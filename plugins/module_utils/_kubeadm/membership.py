# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is to its cluster: nothing yet, a member, or something between."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import socket
import typing as t

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

KUBERNETES = "/etc/kubernetes"
ADMIN = f"{KUBERNETES}/admin.conf"
KUBELET = f"{KUBERNETES}/kubelet.conf"
# There while kubeadm runs for us, and left behind when it was interrupted: only then may a half-made node be reset.
MARKER = "/var/lib/ipu-fabric/kubeadm-unfinished"
# Held by kubeadm itself, which may go on after the run that started it was killed.
LOCK = "/run/lock/ipu-fabric-kubeadm.lock"
CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
TRACES = (ADMIN, KUBELET, f"{KUBERNETES}/bootstrap-kubelet.conf", f"{KUBERNETES}/manifests/kube-apiserver.yaml")

Json = t.Dict[str, t.Any]


def membership(traces: t.Sequence[str], unfinished: bool, node: t.Optional[Json], control_plane: bool) -> str:
    """none, member, unfinished or broken.

    node is what the API says of this host: the object, {} when it knows no such node, None when there was no answer.
    A half-made node that nobody marked is broken: it may be somebody's, and is left alone.
    """
    complete = bool(node) and (not control_plane or CONTROL_PLANE_LABEL in labels(node))
    if unfinished:
        return "unfinished"
    if complete:
        return "member"
    return "broken" if traces else "none"


def labels(node: t.Optional[Json]) -> Json:
    return dict((node or {}).get("metadata", {}).get("labels") or {})


def why_broken(traces: t.Sequence[str], node: t.Optional[Json]) -> str:
    files = "there are " + ", ".join(traces)
    if node is None:
        return files + ", but the API server gives no answer"
    if not node:
        return files + ", but the cluster knows no such node"
    return files + ", and the node is in a cluster, but not as a control plane"


def parse_os_release(text: str) -> t.Dict[str, str]:
    return {
        key: value.strip("\"'") for key, _sep, value in (line.partition("=") for line in text.splitlines()) if value
    }


def program_version(text: str) -> str:
    """The first version number in what a program prints of itself: v1.35.4, containerd ... v2.2.1 hash."""
    match = re.search(r"\bv?(\d+\.\d+\.\d+\S*)", text)
    return match.group(1) if match else ""


def ask(module: AnsibleModule, *argv: str) -> str:
    """Output of a program; empty when it is not there or fails."""
    path = module.get_bin_path(argv[0])
    if not path:
        return ""
    code, out, _err = module.run_command([path, *list(argv[1:])])
    return out.strip() if code == 0 else ""


def default_address() -> str:
    """The address that the default route goes out from. Nothing is sent."""
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((target, 9))
                return str(probe.getsockname()[0])
        except OSError:
            continue
    return ""


def read_node(module: AnsibleModule, name: str) -> t.Optional[Json]:
    """This host's node, asked for with the kubelet's own credentials; {} if unknown, None without an answer."""
    kubectl = module.get_bin_path("kubectl")
    if not kubectl or not os.path.exists(KUBELET):
        return None
    argv = [kubectl, "--kubeconfig", KUBELET, "--request-timeout", "10s", "get", "node", name, "-o", "json"]
    code, out, err = module.run_command(argv)
    if code == 0:
        return dict(json.loads(out))
    return {} if "NotFound" in err else None


def is_busy() -> bool:
    """Whether a kubeadm that an earlier run started is still at work."""
    if not os.path.exists(LOCK):
        return False
    with open(LOCK, "a", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def file_digest(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, "rb") as handle:
        return hashlib.sha256(handle.read()).hexdigest()


def inspect(module: AnsibleModule, name: str, control_plane: bool, unfinished: bool) -> Json:
    """Where this host stands with its cluster."""
    traces = [path for path in TRACES if os.path.exists(path)]
    node = read_node(module, name) if traces else {}
    state = membership(traces, unfinished, node, control_plane)
    return {
        "membership": state,
        "seen": why_broken(traces, node) if state == "broken" else "",
        "registered": bool(node),
        "is_control_plane": CONTROL_PLANE_LABEL in labels(node),
        "taints": [taint["key"] for taint in (node or {}).get("spec", {}).get("taints", [])],
    }


def host_name() -> str:
    return socket.gethostname().lower()


def observe(module: AnsibleModule) -> Json:
    """The body of M(ipu.fabric.kubernetes_node_info)."""
    params = module.params
    name = params["node_name"] or host_name()
    with open("/etc/os-release", encoding="utf-8") as handle:
        release = parse_os_release(handle.read())
    listing = ["kubeadm", "config", "images", "list", "--kubernetes-version", params["version"]]
    if params["image_repository"]:
        listing += ["--image-repository", params["image_repository"]]
    node = {
        "name": name,
        "address": params["address"] or default_address(),
        "distribution": release.get("ID", ""),
        "release": release.get("VERSION_CODENAME", ""),
        "kubelet": program_version(ask(module, "kubelet", "--version")),
        "containerd": program_version(ask(module, "containerd", "--version")),
        "images": ask(module, *listing).split(),
        "kubeconfig_sha256": file_digest(ADMIN),
        **inspect(module, name, params["control_plane"], os.path.exists(MARKER) or is_busy()),
    }
    return {"changed": False, "node": node}
