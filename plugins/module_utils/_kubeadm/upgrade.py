# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeadm upgrade: the control plane's own pods, and the kubelet's configuration. kubeadm can safely repeat it.

Afterwards, the kubelet is restarted in its new release. A node is done when all of its parts have the release,
no matter where a run was interrupted.
"""

from __future__ import annotations

import os
import re
import typing as t

from .._common.command import output_of
from .._common.result import FabricError, outcome
from .._host.cri import DOCKER, node_runtime
from .._host.files import read_text
from . import paths
from .lock import hold_lock
from .membership import find_node, host_name
from .program import Kubeadm, config_file

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
ETCD = "etcd"  # has its own releases
NEXT_STEP = "Fix what is reported (see crictl ps, too), then run again: it continues here."


class NodeRelease(t.TypedDict):
    """The parts of a node that kubeadm upgrade changes."""

    components: t.Dict[str, str]  # release of each static pod; empty on workers
    configuration: str  # release for which the kubelet's configuration was written


def tag_release(image: str) -> str:
    """The tag of an image, without v."""
    return image.rpartition("/")[2].partition("@")[0].partition(":")[2].lstrip("v")


def image_release(manifest: str) -> str:
    """The tag of the first image in a manifest, without v."""
    match = re.search(r"^\s*(?:- )?image: *(\S+)\s*$", manifest, re.MULTILINE)
    return tag_release(match.group(1)) if match else ""


def release_order(release: str) -> t.Tuple[int, ...]:
    """A sort key: 3.5.21-0 comes before 3.6.6-0, and an unknown release before both."""
    return tuple(int(number) for number in re.findall(r"\d+", release))


def etcd_of(version: str) -> str:
    """The etcd release that this kubeadm uses for a Kubernetes release; empty if it does not say."""
    images = output_of("kubeadm", "config", "images", "list", "--kubernetes-version", version).split()
    return next((tag_release(image) for image in images if "/etcd:" in image), "")


def read_release(module: AnsibleModule, node_name: str, control_plane: bool) -> NodeRelease:
    lookup = find_node(node_name)
    if not lookup.node:
        raise FabricError(
            "Only a node of a cluster can be upgraded.",
            host_name(),
            lookup.error or "the cluster knows no such node",
            "Run ipu.fabric.site to have it join, or start its API server.",
            code="api-unreachable" if lookup.error else "not-found",
        )
    kubelet = lookup.node.get("status", {}).get("nodeInfo", {}).get("kubeletVersion", "")
    components = {}
    if control_plane:
        components = {
            name: image_release(read_text(os.path.join(paths.MANIFESTS, f"{name}.yaml")))
            for name in (*COMPONENTS, ETCD)
            if name != ETCD or os.path.exists(os.path.join(paths.MANIFESTS, f"{ETCD}.yaml"))
        }
    return {"components": components, "configuration": kubelet.lstrip("v")}


def compare(module: AnsibleModule) -> t.Tuple[NodeRelease, NodeRelease]:
    """The node's present and wanted state."""
    params = module.params
    before = read_release(module, params["node_name"] or host_name(), params["control_plane"])
    components = dict.fromkeys(before["components"], params["version"])
    if ETCD in components:  # never downgraded
        components[ETCD] = max(before["components"][ETCD], etcd_of(params["version"]), key=release_order)
    return before, {"components": components, "configuration": params["version"]}


def upgrade_host(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of the command `upgrade`."""
    params = module.params
    if node_runtime() == DOCKER:
        raise FabricError(
            "Only nodes with containerd are upgraded.",
            host_name(),
            "its kubelet speaks to cri-dockerd",
            "Upgrade this node with kubeadm, as the guide of kubeadm says.",
            code="wrong-state",
        )
    if module.check_mode:
        return outcome(*compare(module))
    command = ["apply", f"v{params['version']}", "--yes"] if params["first"] else ["node"]
    # Waits for a kubeadm that outlived its run.
    with hold_lock(params["lock_timeout"]) as lock:
        before, after = compare(module)
        if before != after:
            with config_file(params["documents"]) as config:
                kubeadm = Kubeadm(module, lock)
                kubeadm.validate(config)
                kubeadm.run_with_services("upgrade", *command, f"--config={config}", next_step=NEXT_STEP)
    return outcome(before, after)
