# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of a source of packages, images, charts, manifests or programs before anything is installed from it."""

from __future__ import annotations

import typing as t

Kind = t.Literal["file", "repository", "charts", "images"]


class _QuestionOptions(t.TypedDict, total=False):
    suite: str  # of an apt repository; it ends with / where the repository is flat
    component: str  # of an apt repository, the first one
    arch: str  # of an apt repository
    login: bool  # whether a site logs in there; then a refusal proves nothing
    kubelet: str  # version; a host whose kubelet has it has what it needs
    path: str  # of what is downloaded; where it is, nothing is
    playbook: str  # the only one that needs it; missing: site does
    instead: SourceQuestion  # what another pod network needs, which is asked only where this source has a problem


class SourceQuestion(_QuestionOptions):
    """A source, and what it has to have. {distribution}, {release} and {arch} are those of the host that asks."""

    kind: Kind
    variable: str  # that says where the source is
    url: str  # of a file, of a repository, or of a mirror of registries; of images empty: their own registries
    name: str  # chart or package; empty: none is looked for
    version: str  # of it, without v; empty: any
    release: str  # variable that chooses the version; empty: none does
    images: t.List[str]  # whole names


class SourceQuestions(t.TypedDict):
    """Who asks what: hosts of the cluster, one control plane, whatever speaks to the API, and the controller."""

    hosts: t.List[SourceQuestion]
    planes: t.List[SourceQuestion]
    api: t.List[SourceQuestion]
    controller: t.List[SourceQuestion]


class _ProblemParts(t.TypedDict, total=False):
    offers: t.List[str]  # releases of a package that it has instead, such as 1.36.3
    instead: str  # pod network whose source answers


class SourceProblem(_ProblemParts):
    """A source that does not have what it should, or does not answer."""

    variable: str
    url: str  # without a password
    seen: str
    lacks: str  # what is not there, such as kubelet 1.36.9; empty: the source gave no answer, or refused
    release: str  # variable that chooses what is not there; empty: none does
    chart: str  # NAME-VERSION, of charts; empty: it is none
    playbook: str  # the only one that needs it; empty: site does
