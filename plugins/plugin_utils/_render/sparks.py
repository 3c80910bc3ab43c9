# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of the last proofs as small charts: of each pair or node, as many as a page takes, the worst first. Pure."""

from __future__ import annotations

import statistics
import typing as t

from ...module_utils._model.checks import Check
from ...module_utils._verify.baseline import NOISE, Baseline, Key, Series, key_of
from ...module_utils._verify.catalog import CHECK_TYPES, FAILED
from .heat import digits

CHARTS = 300  # of a page
WIDTH, HEIGHT = 120, 20  # of a chart, in its own units
EDGE = 3  # around the line, for its last point

Values = t.Sequence[t.Optional[float]]  # oldest first


class Spark(t.NamedTuple):
    """One figure."""

    name: str
    now: str
    usual: str  # median of the proofs before
    change: str
    path: str  # of an SVG
    point: t.Tuple[float, float]  # the last one
    alternative: str
    worse: bool  # its check failed


class Sparks(t.NamedTuple):
    """All figures of one test on one network."""

    title: str
    summary: str
    open: bool
    rows: t.List[Spark]
    total: int


def line(values: Values) -> t.Tuple[str, t.Tuple[float, float]]:
    """The path, broken where nothing was measured, and its last point."""
    known = [value for value in values if value is not None]
    low, high = min(known), max(known)
    # A line that hardly changes is drawn flat, so that noise does not look like a drop.
    scale = max(high - low, 0.1 * abs(high)) or 1.0
    low -= (scale - (high - low)) / 2
    step = (WIDTH - 2 * EDGE) / max(1, len(values) - 1)
    path, pen, point = [], "M", (0.0, 0.0)
    for place, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        point = (round(EDGE + place * step, 1), round(HEIGHT - EDGE - (value - low) / scale * (HEIGHT - 2 * EDGE), 1))
        path.append(f"{pen}{point[0]:g} {point[1]:g}")
        pen = "L"
    return "".join(path), point


def worsened(key: Key, series: Series) -> float:
    """By which factor the figure is worse than usual; less than 1 if it is better."""
    now, earlier = series.shown[0], [value for value in series.shown[1:] if value is not None]
    if not now or not earlier or not statistics.median(earlier):
        return 0.0
    ratio = statistics.median(earlier) / now
    return ratio if NOISE[key.check].more_is_better else 1 / ratio


def spark(key: Key, series: Series, unit: str, worse: bool) -> Spark:
    values = series.shown[::-1]
    path, point = line(values)
    earlier = [value for value in values[:-1] if value is not None]
    usual, now = statistics.median(earlier), values[-1] or 0.0
    told = ", ".join("none" if value is None else digits(value) for value in values)
    name = key.place.strip().replace(">", " → ")
    change = f"{round(100 * (now / usual - 1)):+d} %" if usual else ""
    return Spark(name, digits(now), digits(usual), change, path, point, f"{told} {unit}, oldest first", worse)


def charts(checks: t.Sequence[Check], base: Baseline) -> t.List[Sparks]:
    """Charts of this proof's figures that earlier proofs have too; base: the figures, including this proof's."""
    units = {key_of(check._asdict()): check.unit for check in checks if check.check in NOISE}
    worse = {key_of(check._asdict()) for check in checks if check.check in NOISE and check.status == FAILED}
    groups: t.Dict[t.Tuple[str, str], t.List[Key]] = {}
    for key, series in base.figures.items():
        if key in units and series.shown[0] is not None and any(value is not None for value in series.shown[1:]):
            groups.setdefault((key.network, key.check), []).append(key)
    found = []
    for network, check in sorted(groups):
        keys = sorted(
            groups[network, check], key=lambda key: (key not in worse, -worsened(key, base.figures[key]), key)
        )
        most = max(1, CHARTS // len(groups))
        rows = [spark(key, base.figures[key], units[key], key in worse) for key in keys[:most]]
        number = sum(key in worse for key in keys)
        said = f"{len(keys)} figure{'s' if keys[1:] else ''}, {f'{number} worse' if number else 'none worse'}"
        title = f"{CHECK_TYPES[check].title}, {units[keys[0]]}"
        found.append(Sparks(f"{network}: {title}" if network else title, said, bool(number), rows, len(keys)))
    return found
