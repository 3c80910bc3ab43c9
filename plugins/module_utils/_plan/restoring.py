# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a backup may be restored on the hosts of an inventory, and why not."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._model.observation import HostFacts
from ansible_collections.ipu.fabric.plugins.module_utils._model.plan import Plan

FORMAT = 1


class BackupCluster(t.TypedDict):
    """The cluster that a backup is of."""

    name: str  # its endpoint
    ca: str  # digest, as Kubelet.cluster
    version: str
    pod_cidr: str
    service_cidr: str
    nodes: t.List[str]


class Backup(t.TypedDict):
    """What a backup says about itself."""

    format: int
    name: str
    cluster: BackupCluster


def cluster_name(facts: HostFacts) -> str:
    """The word for a cluster that answers: its endpoint."""
    return facts["cluster"]["endpoint"] or facts["kubelet"]["server"]


def restore_problems(
    backup: Backup, plan: Plan, hosts: t.Mapping[str, HostFacts], named: str, restoring: str
) -> t.List[str]:
    """Every reason not to restore, as a sentence that says what to do."""
    if backup["format"] != FORMAT:
        return [
            f"The backup has format {backup['format']}, this release reads {FORMAT}: use the release that wrote it."
        ]
    return [
        *_differences(backup["cluster"], plan),
        *_foreign(backup["cluster"], hosts),
        *([] if restoring == backup["name"] else _living(hosts, named)),
    ]


def _differences(cluster: BackupCluster, plan: Plan) -> t.Iterator[str]:
    """What kubeadm would make in another way than it was: the restored objects would not fit."""
    planned = plan["cluster"]
    pairs = (
        ("fabric_kubernetes_version", cluster["version"], plan["releases"]["kubernetes"]),
        ("fabric_pod_cidr", cluster["pod_cidr"], planned["pod_cidr"]),
        ("fabric_service_cidr", cluster["service_cidr"], planned["service_cidr"]),
        ("fabric_control_plane_endpoint", cluster["name"], planned["endpoint"]),
    )
    for name, was, now in pairs:
        if was and was != now:
            yield f"{name}: the backup is of a cluster with {was}, the plan has {now}; set it to {was}."
    nodes = {host["node"] for host in plan["hosts"].values()}
    if not nodes & set(cluster["nodes"]):
        yield (
            f"No host of the inventory was a node of that cluster: its nodes were {', '.join(cluster['nodes'])}, the"
            f" hosts are {', '.join(sorted(nodes))}; give the hosts the names that they had."
        )


def _foreign(cluster: BackupCluster, hosts: t.Mapping[str, HostFacts]) -> t.Iterator[str]:
    for name, facts in hosts.items():
        trusted = facts["kubelet"]["cluster"]
        if trusted and trusted != cluster["ca"]:
            yield (
                f"{name} belongs to another cluster: its CA is {trusted}, the backup's is {cluster['ca']}; correct the"
                " inventory, or take the host out of that cluster first."
            )


def _living(hosts: t.Mapping[str, HostFacts], named: str) -> t.Iterator[str]:
    for name, facts in hosts.items():
        if facts["cluster"]["answered"] and cluster_name(facts) != named:
            yield (
                f"A cluster lives: the API server of {name} answers, Kubernetes {facts['cluster']['version']} at"
                f" {cluster_name(facts)}; if all that happened since the backup may be lost, name it with"
                f" -e fabric_restore={cluster_name(facts)}."
            )
