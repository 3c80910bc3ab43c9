# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a role is to make true: decided from its settings and from what was read, before anything is changed."""

from __future__ import annotations

import dataclasses
import typing as t

Object = t.Mapping[str, object]  # of Kubernetes, or what names one


@dataclasses.dataclass(frozen=True)
class Release:
    """A Helm release, as ipu.fabric.helm_release takes it."""

    name: str
    namespace: str
    chart: str
    repo: str  # URL
    version: str
    sha256: str  # of the packed chart; empty: whatever the source sends
    values: t.Mapping[str, object]  # all that the release gets; may have passwords in them
    images: t.Mapping[str, str] = dataclasses.field(default_factory=dict)  # in place of those that the chart renders


@dataclasses.dataclass(frozen=True)
class Networks:
    """Networks of a plan in a cluster that has what makes them."""

    networks: t.Sequence[Object]  # as the module takes them that sees to their NetworkAttachmentDefinitions
    objects: t.Sequence[Object]  # namespaces and address pools
    pods: t.Sequence[Object]  # that have to start, as ipu.fabric.kube_wait takes them


@dataclasses.dataclass(frozen=True)
class Wish:
    """What an operator or another add-on of the cluster is to be. Each role uses the fields that it needs."""

    release: Release
    objects: t.Sequence[Object] = ()  # applied beside the release
    networks: t.Sequence[Object] = ()  # whose NetworkAttachmentDefinitions come of the objects
    ready: t.Sequence[Object] = ()  # workloads and custom resources, as ipu.fabric.kube_wait takes them
    crds: t.Sequence[str] = ()  # that have to be established
    accepted: t.Sequence[Object] = ()  # that the API has to take in a dry run
    pods: t.Sequence[Object] = ()  # that have to start
    former: t.Sequence[Object] = ()  # of an earlier installation, which this one takes over from
    remnants: t.Sequence[Object] = ()  # what the chart leaves behind, for a removal; those of others stay
    paths: t.Sequence[str] = ()  # what is left on a host, for a removal


@dataclasses.dataclass(frozen=True)
class Objects:
    """Objects that come without a chart."""

    objects: t.Sequence[Object]  # in the order in which they are applied
    ready: t.Sequence[Object] = ()  # what is waited for, as ipu.fabric.kube_wait takes it


@dataclasses.dataclass(frozen=True)
class UnitFile:
    """A file of a host, as ipu.fabric.systemd_units takes it."""

    path: str
    content: str
    units: t.Sequence[str]  # that read it
