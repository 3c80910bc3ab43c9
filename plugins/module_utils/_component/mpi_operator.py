# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MPI operator, from the manifest of a release."""

from __future__ import annotations

import dataclasses
import re

from .._common.result import FabricError
from .._model.operators import MpiFacts
from .._model.wish import PlainOperator
from .manifests import check_manifest, parse_manifest
from .objects import named

JOBS = ("kubeflow.org/v2beta1", "MPIJob")
IMAGE = re.compile(r"image: mpioperator/mpi-operator:\S+")
# The smallest possible job; only for a dry run.
PROBE = {
    **named(*JOBS, "fabric-probe", "default"),
    "spec": {
        "mpiReplicaSpecs": {
            "Launcher": {"template": {"spec": {"containers": [{"name": "probe", "image": "registry.k8s.io/pause"}]}}}
        }
    },
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role, without its name as a prefix."""

    state: str
    manifest_url: str
    manifest_sha256: str
    image: str
    delete_jobs: bool


@dataclasses.dataclass(frozen=True)
class Seen:
    """The manifest, and what ipu.fabric.cluster_info found."""

    manifest: str
    mpi: MpiFacts


def decide(settings: Settings, seen: Seen) -> PlainOperator:
    """Raise FabricError for an unexpected manifest, or a removal that would delete MPIJobs without being told to."""
    check_manifest(seen.manifest, settings.manifest_url, settings.manifest_sha256, "mpi_operator_manifest_sha256")
    text = IMAGE.sub(lambda _: f"image: {settings.image}", seen.manifest) if settings.image else seen.manifest
    # MPIJobs are deleted with their definition. If that belongs to others, both stay.
    jobs = seen.mpi["jobs"] if seen.mpi["ours"] and settings.state == "absent" else []
    if jobs and not settings.delete_jobs:
        raise FabricError(
            "MPIJobs are deleted together with their definition.",
            "MPIJobs of the cluster",
            f"{len(jobs)} of them, {', '.join(jobs[:20])}",
            "Wait until they have ended and delete them, or have all of them deleted with "
            "mpi_operator_delete_jobs: true.",
            code="unsafe",
        )
    return PlainOperator(
        objects=parse_manifest(text),
        ready=[{"kind": "Deployment", "name": "mpi-operator", "namespace": "mpi-operator"}],
        crds=["mpijobs.kubeflow.org"],
        accepted=[PROBE],
        jobs=[named(*JOBS, name, namespace) for namespace, _slash, name in (job.partition("/") for job in jobs)],
    )
