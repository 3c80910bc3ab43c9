# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bundle: a directory with everything that a plan installs, and a list of its contents."""

from __future__ import annotations

import dataclasses
import typing as t

from .stacks import STACKS

LIST = "bundle.json"
SCHEMA = 2  # schema 1 did not compare the keys of package repositories: its packages are not reused
PACKAGES = "apt/"
# Releases of a plan that decide what its bundle must contain.
RELEASES = (
    "kubernetes",
    "cni",
    "cni_version",
    "stack",
    *STACKS,
    "ipam",
    "whereabouts",
    "ipu_operator",
    "gpu_operator",
)
# Names of a processor architecture: the kernel's, and the one that packages and images use.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class _Origin(t.TypedDict, total=False):
    source: str  # a fingerprint of its URL, if its digest was not known in advance


class BundleFile(_Origin):
    """A file, by its path in the bundle."""

    size: int  # bytes
    sha256: str


class BundleImage(t.TypedDict):
    """An image for one architecture, in its own archive."""

    name: str  # as containerd names it: registry, path, and tag or digest
    architecture: str
    digest: str  # of its manifest in the archive
    file: str  # the archive
    control_plane: bool  # whether only control planes run it


class Bundle(t.TypedDict):
    """bundle.json."""

    schema: int
    request: str  # digest of everything that was requested
    releases: t.Dict[str, str]  # of the plan, by the names in RELEASES
    platforms: t.List[str]  # platforms that it has packages for, such as debian-bookworm-amd64
    helm: str  # Helm's archive
    manifests: t.Dict[str, str]  # files by their purpose: calico_crds, calico_operator, mpi_operator
    images: t.List[BundleImage]
    files: t.Dict[str, BundleFile]


@dataclasses.dataclass(frozen=True)
class SeenBundle:
    """A bundle as the controller finds it."""

    path: str
    problem: str  # why its list can't be used; empty: it can
    wrong: t.Sequence[str]  # files that are missing or differ from the list, each with what was seen
    content: t.Optional[Bundle]


def platform_of(distribution: str, release: str, architecture: str) -> str:
    """The platform that packages are built for, such as debian-bookworm-amd64."""
    return "-".join([distribution, release, ARCHITECTURES.get(architecture, architecture)])
