# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases as helm stores them: one Secret per revision."""

from __future__ import annotations

import base64
import typing as t

from .._common.helm_record import RENDER_LABEL, unpack
from .client import Cluster
from .query import Object, query, quoted

NO_RENDER = "none"


class Release(t.NamedTuple):
    """One revision of a release."""

    name: str
    namespace: str
    revision: int
    status: str
    chart: str
    version: str  # of the chart
    values: Object
    render: str
    secret: str
    stored: str = ""  # storage time, by the API server's clock, in ISO 8601
    ours: bool = False  # installed or upgraded by this collection
    manifest: str = ""  # YAML of its objects, without hooks
    crds: str = ""  # YAML of the CRDs in the chart itself

    @property
    def pending(self) -> bool:
        return self.status.startswith("pending-")


def decode_release(secret: Object) -> Release:
    data = unpack(secret)
    render = query(f"metadata.labels.{quoted(RENDER_LABEL)}", secret)
    return Release(
        name=data.get("name", ""),
        namespace=data.get("namespace", ""),
        revision=data["version"],
        status=query("info.status", data) or "",
        chart=query("chart.metadata.name", data) or "",
        version=query("chart.metadata.version", data) or "",
        values=data.get("config") or {},
        render=render or NO_RENDER,
        secret=query("metadata.name", secret) or "",
        stored=query("metadata.creationTimestamp", secret) or "",
        ours=render is not None,
        manifest=data.get("manifest") or "",
        crds=chart_crds(query("chart.files", data) or []),
    )


def chart_crds(files: t.Sequence[Object]) -> str:
    return "\n---\n".join(
        base64.b64decode(each["data"]).decode()
        for each in files
        if each["name"].startswith("crds/") and each["name"].endswith((".yaml", ".yml"))
    )


def read_releases(cluster: Cluster, name: str, namespace: str) -> t.List[Release]:
    """All revisions of a release."""
    path = f"/api/v1/namespaces/{namespace}/secrets"
    secrets = cluster.items(path, labelSelector=f"owner=helm,name={name}")
    return [decode_release(secret) for secret in secrets]


def split_pending(releases: t.Sequence[Release]) -> t.Tuple[t.Optional[Release], t.List[Release]]:
    """The newest finished revision, and the unfinished ones that a killed run left after it."""
    ordered = sorted(releases, key=lambda release: release.revision, reverse=True)
    finished = next((release for release in ordered if not release.pending), None)
    newest = finished.revision if finished else 0
    return finished, [release for release in ordered if release.pending and release.revision > newest]
