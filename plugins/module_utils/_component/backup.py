# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which control plane a backup is taken from, and which cluster it is of, for the playbook backup."""

from __future__ import annotations

import dataclasses
import typing as t

from .._common.result import FabricError
from .._plan.restoring import BackupCluster, cluster_name
from .settings import NoSettings as Settings


@dataclasses.dataclass(frozen=True)
class Seen:
    """The cluster, and its control planes from the inventory."""

    hosts: t.Sequence[str]
    facts: t.Sequence[t.Mapping[str, t.Any]]  # what ipu.fabric.host_info returned, in this order
    ca: str  # digest
    nodes: t.Sequence[t.Mapping[str, t.Any]]


@dataclasses.dataclass(frozen=True)
class BackupWish:
    """What a backup records about itself."""

    control_plane: str
    cluster: BackupCluster


def decide(settings: Settings, seen: Seen) -> BackupWish:
    """Raise FabricError if no API server answers."""
    hosts = {name: answer["host"] for name, answer in zip(seen.hosts, seen.facts) if "host" in answer}
    plane = next((name for name, facts in hosts.items() if facts["cluster"]["answered"]), "")
    if not plane:
        raise FabricError(
            "A backup is taken from a control plane whose API server answers.",
            ", ".join(seen.hosts),
            "none answers",
            "Start the cluster. If it is lost, restore an earlier backup: ipu.fabric.restore with"
            " -e fabric_backup=DIRECTORY.",
            code="not-ready",
        )
    cluster = hosts[plane]["cluster"]
    return BackupWish(
        plane,
        BackupCluster(
            name=cluster_name(hosts[plane]),
            ca=seen.ca,
            version=cluster["version"],
            pod_cidr=cluster["pod_cidr"],
            service_cidr=cluster["service_cidr"],
            nodes=sorted(node["name"] for node in seen.nodes),
        ),
    )
