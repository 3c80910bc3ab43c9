# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bundle: a directory with everything that a plan installs, and the list of what is in it."""

from __future__ import annotations

import dataclasses
import typing as t

from .stacks import STACKS

LIST = "bundle.json"
SCHEMA = 2  # of 1 the packages count for nothing: the keys of their repositories were not compared
PACKAGES = "apt/"
# Releases of a plan that decide what has to be in its bundle.
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
# Names of a processor, as kernels and as packages and images have it.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class _Origin(t.TypedDict, total=False):
    source: str  # a fingerprint of its URL, if nobody knew its digest before


class BundleFile(_Origin):
    """A file, by its path in the bundle."""

    size: int  # bytes
    sha256: str


class BundleImage(t.TypedDict):
    """An image for one architecture, in an archive of its own."""

    name: str  # as containerd has it: registry, path, and tag or digest
    architecture: str
    digest: str  # of its manifest in the archive
    file: str  # the archive
    control_plane: bool  # whether only control planes run it


class Bundle(t.TypedDict):
    """bundle.json."""

    schema: int
    request: str  # digest of all that was asked for
    releases: t.Dict[str, str]  # of the plan, by the names in RELEASES
    platforms: t.List[str]  # hosts that there are packages for, such as debian-bookworm-amd64
    helm: str  # Helm's archive
    manifests: t.Dict[str, str]  # files by what they are: calico_crds, calico_operator, mpi_operator
    images: t.List[BundleImage]
    files: t.Dict[str, BundleFile]


@dataclasses.dataclass(frozen=True)
class SeenBundle:
    """A bundle as the controller finds it."""

    path: str
    problem: str  # why its list can't be used; empty: it can
    wrong: t.Sequence[str]  # files that are missing or are not what the list says, each with what was seen
    content: t.Optional[Bundle]


def platform_of(distribution: str, release: str, architecture: str) -> str:
    """What packages are made for: debian-bookworm-amd64."""
    return "-".join([distribution, release, ARCHITECTURES.get(architecture, architecture)])
