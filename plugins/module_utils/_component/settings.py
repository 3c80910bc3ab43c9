# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a role as a type: each component names those that it decides by."""

from __future__ import annotations

import dataclasses
import typing as t

from .._model.wish import Object, Release
from .._network.digests import chart_digest

Settings = t.TypeVar("Settings")


def pick(kind: t.Type[Settings], options: t.Mapping[str, t.Any]) -> Settings:
    """The dataclass, of the options that have the names of its fields. The role's argument spec has checked them."""
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # no bound says "dataclass"
    return kind(**{name: options[name] for name in names if name in options})


@dataclasses.dataclass(frozen=True)
class NoSettings:
    """Of what only a playbook decides: what is asked for is read, too."""


@dataclasses.dataclass(frozen=True)
class ChartSettings:
    """Variables that every role with a chart has."""

    state: str
    version: str
    chart: str
    chart_repo_url: str
    chart_sha256: str
    namespace: str
    values: t.Mapping[str, t.Any]

    def release(self, name: str, namespace: str, values: Object) -> Release:
        sha256 = self.chart_sha256 or chart_digest(self.chart, self.version)
        return Release(name, namespace, self.chart, self.chart_repo_url, self.version, sha256, values)
