# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions to sources of packages, images, charts, manifests and programs, asked before anything is installed."""

from __future__ import annotations

import typing as t

Kind = t.Literal["file", "key", "repository", "charts", "images"]


class _QuestionOptions(t.TypedDict, total=False):
    suite: str  # of an apt repository; it ends with / if the repository is flat
    component: str  # the first component of an apt repository
    arch: str  # of an apt repository
    login: bool  # whether the site logs in there; then a refusal proves nothing
    kubelet: str  # version; a host whose kubelet has it needs no download
    path: str  # where the download is kept; if the file exists, nothing is downloaded
    playbook: str  # the only one that needs the source; missing: site does
    checksum: str  # of the file, the key or the packed chart, as the site writes it; empty: any
    fingerprint: str  # of a key without a checksum, as the site writes it
    setting: str  # how a site sets these two
    later: bool  # nothing is fetched now, but images of new pods will be
    instead: SourceQuestion  # what another pod network needs; asked only if this source has a problem


class SourceQuestion(_QuestionOptions):
    """A source, and what it must offer. {distribution}, {release} and {arch} are those of the host that asks."""

    kind: Kind
    variable: str  # the variable that sets the source
    url: str  # of a file, a repository, or a mirror of registries; empty for images: their own registries
    name: str  # chart or package; empty: none is looked up
    version: str  # of it, without v; empty: any
    release: str  # variable that chooses the version; empty: none does
    images: t.List[str]  # full names


class SourceQuestions(t.TypedDict):
    """Who asks which questions: cluster hosts, one control plane, the API host, and the controller."""

    hosts: t.List[SourceQuestion]
    planes: t.List[SourceQuestion]
    api: t.List[SourceQuestion]
    controller: t.List[SourceQuestion]


class _ProblemParts(t.TypedDict, total=False):
    offers: t.List[str]  # releases of the package that it offers instead, such as 1.36.3
    instead: str  # pod network whose source does answer
    expected: str  # digest or fingerprints, where the source serves something else
    setting: str  # how a site sets what is expected
    later: bool  # nothing is fetched now, but images of new pods will be


class SourceProblem(_ProblemParts):
    """A source that lacks what it should offer, or does not answer."""

    variable: str
    url: str  # without a password
    seen: str
    lacks: str  # what is missing, such as kubelet 1.36.9; empty: the source gave no answer, or refused
    release: str  # variable that chooses what is missing; empty: none does
    chart: str  # NAME-VERSION; empty: it is not a chart
    playbook: str  # the only one that needs the source; empty: site does
