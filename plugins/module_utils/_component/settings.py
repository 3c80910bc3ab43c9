# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a role as a dataclass: each component lists those that it uses."""

from __future__ import annotations

import dataclasses
import typing as t

from .._model.wish import Object, Release
from .._network.digests import chart_digest

Settings = t.TypeVar("Settings")


def pick(kind: t.Type[Settings], options: t.Mapping[str, t.Any]) -> Settings:
    """An instance made of the options named like its fields. The role's argument spec has already checked them."""
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # no bound says "dataclass"
    return kind(**{name: options[name] for name in names if name in options})


@dataclasses.dataclass(frozen=True)
class NoSettings:
    """No settings, for decisions of playbooks: even the request is part of Seen."""


@dataclasses.dataclass(frozen=True)
class ChartSettings:
    """Variables of every role with a chart."""

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
