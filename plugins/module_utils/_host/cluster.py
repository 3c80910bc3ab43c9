# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a control plane says of its cluster: release, endpoint, addresses and pod network.

Asked by kubectl as administrator, with `get --raw` alone: every other command writes a cache on the host.
"""

from __future__ import annotations

import json
import os
import re
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.command import run_program
from ansible_collections.ipu.fabric.plugins.module_utils._model.observation import ClusterFacts, PodNetwork

ADMIN = "etc/kubernetes/admin.conf"
UNFINISHED = "var/lib/ipu-fabric/kubeadm-unfinished"
SECONDS = 120  # a busy host takes long to load kubectl
# Pod networks, by the DaemonSet that carries them.
POD_NETWORKS = {
    "antrea-agent": "antrea",
    "aws-node": "aws-vpc-cni",
    "calico-node": "calico",
    "canal": "canal",
    "cilium": "cilium",
    "kindnet": "kindnet",
    "kube-flannel": "flannel",
    "kube-flannel-ds": "flannel",
    "kube-ovn-cni": "kube-ovn",
    "kube-router": "kube-router",
    "ovnkube-node": "ovn-kubernetes",
    "rke2-canal": "canal",
    "weave-net": "weave",
}


class Metadata(t.TypedDict, total=False):
    """Which object it is."""

    name: str
    namespace: str


class ApiObject(t.TypedDict, total=False):
    """The parts of the API's answers that are read."""

    gitVersion: str
    data: t.Dict[str, str]
    items: t.List[ApiObject]
    metadata: Metadata


class UnansweredError(Exception):
    """The API server gave no answer, or not this one."""


def ask(admin: str, path: str) -> ApiObject:
    """An object of the API, or an empty one where it has none."""
    done = run_program(["kubectl", "--kubeconfig", admin, "--request-timeout", "30s", "get", "--raw", path], SECONDS)
    if done.rc == 0:
        answer: ApiObject = json.loads(done.out)
        return answer
    if "(NotFound)" in done.err:
        return {}
    said = done.err.strip().splitlines()[-1:] or [f"no end within {SECONDS} s"]
    raise UnansweredError(said[0])


def setting(configuration: str, name: str) -> str:
    """A value of kubeadm's ClusterConfiguration, in the form that kubeadm stores it in. Hosts have no YAML parser."""
    match = re.search(rf"^ *{name}: *['\"]?([^\s'\"]+)", configuration, re.MULTILINE)
    return match.group(1) if match else ""


def pod_networks(daemon_sets: ApiObject, installations: ApiObject) -> t.List[PodNetwork]:
    """The pod networks of a cluster, and what shows each."""
    found: t.List[PodNetwork] = [
        {
            "name": POD_NETWORKS[each["metadata"]["name"]],
            "seen": "DaemonSet {namespace}/{name}".format(**each["metadata"]),
        }
        for each in daemon_sets.get("items", [])
        if each["metadata"]["name"] in POD_NETWORKS
    ]
    # What Calico's operator is told to set up, whether or not it has done so.
    return found + [
        {"name": "calico", "seen": "Installation {name}".format(**each["metadata"])}
        for each in installations.get("items", [])
    ]


def read_cluster(root: str) -> ClusterFacts:
    """The cluster of which this host is a control plane."""
    admin = os.path.join(root, ADMIN)
    facts: ClusterFacts = {
        "present": os.path.exists(admin),
        "answered": False,
        "unfinished": os.path.exists(os.path.join(root, UNFINISHED)),
        "error": "",
        "version": "",
        "endpoint": "",
        "pod_cidr": "",
        "service_cidr": "",
        "pod_networks": [],
    }
    if not facts["present"]:
        return facts
    try:
        version = ask(admin, "/version")
        kubeadm = ask(admin, "/api/v1/namespaces/kube-system/configmaps/kubeadm-config")
        networks = pod_networks(
            ask(admin, "/apis/apps/v1/daemonsets"), ask(admin, "/apis/operator.tigera.io/v1/installations")
        )
    except UnansweredError as error:
        return {**facts, "error": str(error)}
    configuration = kubeadm.get("data", {}).get("ClusterConfiguration", "")
    return {
        **facts,
        "answered": True,
        "version": version["gitVersion"].lstrip("v"),
        "endpoint": setting(configuration, "controlPlaneEndpoint"),
        "pod_cidr": setting(configuration, "podSubnet"),
        "service_cidr": setting(configuration, "serviceSubnet"),
        "pod_networks": networks,
    }
