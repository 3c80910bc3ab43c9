# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a site sends to a maintainer, and what the maintainer finds in it."""

from __future__ import annotations

import typing as t


class Gap(t.TypedDict):
    """Something that could not be collected."""

    what: str
    where: str  # host, object or file
    seen: str


class ClusterPart(t.TypedDict):
    """What the API was asked for."""

    objects: t.Mapping[str, t.Sequence[t.Mapping[str, object]]]  # by kind
    logs: t.Dict[str, str]  # by namespace/pod/container
    gaps: t.List[Gap]


class About(t.TypedDict):
    """about.json of an archive."""

    format: int
    time: str  # UTC, ISO 8601
    versions: t.Dict[str, str]
    gaps: t.List[Gap]


class Problem(t.NamedTuple):
    """Something that is wrong at the site, as far as the archive shows."""

    source: str  # plan, proof, node, pod, event or archive
    level: str  # error, warning or unproven
    check: str  # of the plan or the proof, or a reason from Kubernetes
    where: str
    seen: str
    expected: str = ""
    next: str = ""
    what: str = ""  # what a finding of the plan is about
