# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a backup may be restored on the hosts of an inventory, why not, and the state of an interrupted restore."""

from __future__ import annotations

import typing as t

from .._model.observation import HostFacts
from .._model.plan import Plan

FORMAT = 1


class BackupCluster(t.TypedDict):
    """The cluster that was backed up."""

    name: str  # its endpoint
    ca: str  # digest, as Kubelet.cluster
    version: str
    pod_cidr: str
    service_cidr: str
    nodes: t.List[str]


class Backup(t.TypedDict):
    """What a backup records about itself."""

    format: int
    name: str
    cluster: BackupCluster


class PlaneState(t.TypedDict):
    """What control_plane_restore reads on a control plane. A restore's name is its backup's, and when it began."""

    restoring: str  # an unfinished restore that put a backup in place here; empty: none
    going_on: bool  # kubeadm init has ended, or the API server answers, so the restore must not be repeated
    aside: str  # the restore that this host was set aside for; empty: none
    files: bool  # whether files of a control plane exist


class RestorePlan(t.TypedDict):
    """What restore.yml does."""

    problems: t.List[str]  # all reasons not to restore, as sentences that say what to do
    restore: str  # the name of the restore
    aside: t.List[str]  # control planes to set aside before the first one is restored
    puts_back: bool  # whether keys and data still have to be put on the first control plane


def cluster_name(facts: HostFacts) -> str:
    """How the user names a cluster that answers: by its endpoint."""
    return facts["cluster"]["endpoint"] or facts["kubelet"]["server"]


def plan_restore(
    backup: Backup,
    plan: Plan,
    hosts: t.Mapping[str, HostFacts],
    planes: t.Mapping[str, t.Optional[PlaneState]],
    given: t.Tuple[str, str],
) -> RestorePlan:
    """Plan the restore.

    `planes` are all control planes in order, None for one that was not reached; `given` is the cluster that may be
    replaced, and the time. A restore that has created a cluster continues without a confirmed name only if it removes
    nothing of a cluster any more: all other control planes were set aside for it, or are bare.
    """
    named, now = given
    first, *others = planes
    mine = planes[first] or PlaneState(restoring="", going_on=False, aside="", files=False)
    interrupted = mine["restoring"] if mine["restoring"].split(" ")[0] == backup["name"] else ""
    reached = {name: state for name in others for state in [planes[name]] if state}
    left = [name for name, state in reached.items() if state["files"] and state["aside"] != interrupted]
    resumes = bool(interrupted) and mine["going_on"]
    again = resumes and bool(left) and named == backup["cluster"]["name"]
    problems = [*_silent(planes), *_differences(backup["cluster"], plan), *_foreign(backup["cluster"], hosts)]
    if resumes and left and not again:
        problems.append(
            f"{first} was restored from this backup ({interrupted}), and {', '.join(left)} joined a cluster since, or"
            f" is still in the old one: to begin again from the backup, and lose what changed since, name the cluster"
            f" with -e fabric_restore={backup['cluster']['name']}; to keep it, run ipu.fabric.site."
        )
    elif not resumes:
        problems += _living(hosts, named)
    if backup["format"] != FORMAT:
        problems = [
            f"The backup has format {backup['format']}, this release reads {FORMAT}: use the release that wrote it."
        ]
    keeps = bool(interrupted) and not again
    return {
        "problems": problems,
        "restore": interrupted if keeps else f"{backup['name']} begun {now}",
        "aside": [] if resumes and not again else [name for name in others if not keeps or name in left],
        "puts_back": again or not resumes,
    }


def _silent(planes: t.Mapping[str, t.Optional[PlaneState]]) -> t.Iterator[str]:
    silent = [name for name, state in planes.items() if state is None]
    if silent:
        yield (
            f"Every control plane is stopped before the first one is restored, and {', '.join(silent)} could not be"
            " reached: it may still run the old cluster. Make it reachable, or take it out of the inventory if it is"
            " gone for good."
        )


def _differences(cluster: BackupCluster, plan: Plan) -> t.Iterator[str]:
    """Values that kubeadm would now create differently: the restored objects would not fit."""
    planned = plan["cluster"]
    pairs = (
        ("fabric_kubernetes_version", cluster["version"], plan["releases"]["kubernetes"]),
        ("fabric_pod_cidr", cluster["pod_cidr"], planned["pod_cidr"]),
        ("fabric_service_cidr", cluster["service_cidr"], planned["service_cidr"]),
        ("fabric_control_plane_endpoint", cluster["name"], planned["endpoint"]),
    )
    for name, was, now in pairs:
        if was and was != now:
            yield f"{name}: the backup is of a cluster with {was}, the plan has {now}; set {name} to {was}."
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
                f"A cluster is running: the API server of {name} answers, Kubernetes {facts['cluster']['version']} at"
                f" {cluster_name(facts)}; if all that happened since the backup may be lost, name the cluster with"
                f" -e fabric_restore={cluster_name(facts)}."
            )
