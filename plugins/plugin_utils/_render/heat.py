# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of pairs as heat maps: how much worse each is than usual, as a colour and as a figure. Pure."""

from __future__ import annotations

import collections
import statistics
import typing as t

from ...module_utils._common.text import natural
from ...module_utils._model.checks import Check
from ...module_utils._verify.catalog import CHECK_TYPES, FAILED, PASSED
from ...module_utils._verify.matrix import MEASURED, MORE_IS_BETTER, Matrix

STEPS = (
    0.05,
    0.10,
    0.20,
)  # of the median: a figure that is worse by no more than that has the class heat0, heat1, heat2
TITLES = 100  # pairs of a map that have not passed; with more of them nobody points at each
KEY = (
    ("heat0", "up to 5 % worse than the median"),
    ("heat1", "up to 10 %"),
    ("heat2", "up to 20 %"),
    ("heat3", "more than 20 %"),
    ("bad", "failed"),
    ("open", "unproven"),
)


class Cell(t.NamedTuple):
    """A figure, the class of its colour, and notes on it."""

    text: str
    style: str
    note: str  # its status, unless it has passed
    title: str  # what was seen, unless it has passed


EMPTY = Cell("", "", "", "")
SELF = Cell("", "self", "", "")


def digits(value: float) -> str:
    """A number with at most three significant digits."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


class Map(t.NamedTuple):
    """A heat map: one row for each name."""

    title: str  # what was measured, in which unit
    heading: t.List[str]
    rows: t.List[t.Tuple[str, t.List[Cell]]]


def median(matrix: Matrix) -> float:
    """The median of what was measured; 0 if nothing was."""
    return statistics.median([check.value for check in matrix.pairs.values() if check.value is not None] or [0])


def shade(value: float, usual: float, more_is_better: bool) -> str:
    """The class of a figure, by how much it is below or above the usual one."""
    if usual <= 0:
        return "heat0"
    worse = (usual - value if more_is_better else value - usual) / usual
    return f"heat{sum(worse > step for step in STEPS)}"


def cell(check: t.Optional[Check], check_name: str, usual: float) -> Cell:
    if check is None:
        return EMPTY
    if check.status == FAILED:
        style, note = "bad", FAILED
    elif check.status != PASSED:
        style, note = "open", check.status
    else:
        style = "heat0" if check.value is None else shade(check.value, usual, check_name in MORE_IS_BETTER)
        note = ""
    text = digits(check.value) if check.value is not None else "no" if check.status == FAILED else "yes"
    return Cell(text, style, note, check.seen if note else "")


def of_pairs(matrix: Matrix) -> Map:
    """Rows are clients, columns are servers."""
    usual = median(matrix)
    told = sum(check.status != PASSED for check in matrix.pairs.values()) <= TITLES

    def one(check: t.Optional[Check]) -> Cell:
        found = cell(check, matrix.check, usual)
        return found if told else found._replace(title="")

    rows = [(a, [SELF if a == b else one(matrix.at(a, b)) for b in matrix.nodes]) for a in matrix.nodes]
    return Map(title(matrix), matrix.nodes, rows)


def title(matrix: Matrix) -> str:
    return f"{CHECK_TYPES[matrix.check].title}{f', {matrix.unit}' if matrix.unit else ''}"


def summary(matrix: Matrix) -> str:
    """What a heat map shows, for readers who do not unfold it."""
    pairs = list(matrix.pairs.values())
    failed = sum(check.status == FAILED for check in pairs)
    values = [check.value for check in pairs if check.value is not None]
    said = [f"{len(pairs)} pair{'s' if pairs[1:] else ''}", f"{failed} failed" if failed else "none failed"]
    if values:
        least, most = digits(min(values)), digits(max(values))
        said.append(least if least == most else f"{least} to {most}, median {digits(median(matrix))}")
    return ", ".join(said)


def by_node(matrix: Matrix) -> t.Dict[str, t.List[Check]]:
    """The checks in which each node took part, as client or as server."""
    found: t.Dict[str, t.List[Check]] = {}
    for check in matrix.pairs.values():
        for node in check.pair:
            found.setdefault(node, []).append(check)
    return found


def cell_of_node(checks: t.Sequence[Check], check_name: str, usual: float) -> Cell:
    """The median of a node's figures, which a bad peer hardly changes, and how many of its pairs failed."""
    values = [check.value for check in checks if check.value is not None]
    if not values:
        return EMPTY._replace(text="no", style="bad", note=FAILED) if checks else EMPTY
    middle = statistics.median(values)
    failed = sum(check.status == FAILED for check in checks)
    style, note = shade(middle, usual, check_name in MORE_IS_BETTER), ""
    if failed:
        style, note = "bad" if 2 * failed >= len(checks) else "some", f"{failed} of {len(checks)} failed"
    elif any(check.status != PASSED for check in checks):
        style, note = "open", next(check.status for check in checks if check.status != PASSED)
    return Cell(digits(middle), style, note, "")


def of_nodes(matrices: t.Sequence[Matrix]) -> t.List[Map]:
    """For each test that measures something: the median of each node on each network, the worst nodes first."""
    found = []
    for name in MEASURED:
        mine = [matrix for matrix in matrices if matrix.check == name]
        if not mine:
            continue
        columns = [(by_node(matrix), median(matrix)) for matrix in mine]
        nodes = sorted({node for matrix in mine for node in matrix.nodes}, key=natural)
        rows = [(node, [cell_of_node(each.get(node, ()), name, usual) for each, usual in columns]) for node in nodes]
        failures = failed_pairs(mine)
        rows.sort(key=lambda row: (-failures[row[0]], rank(row[1])))
        unit = next((matrix.unit for matrix in mine if matrix.unit), "")
        found.append(Map(f"{CHECK_TYPES[name].title}, {unit}", [matrix.network for matrix in mine], rows))
    return found


def failed_pairs(matrices: t.Sequence[Matrix]) -> t.Counter[str]:
    """In how many failed pairs each node took part."""
    failed = (check for matrix in matrices for check in matrix.pairs.values() if check.status == FAILED)
    return collections.Counter(node for check in failed for node in check.pair)


def rank(cells: t.Sequence[Cell]) -> t.Tuple[int, ...]:
    """A sort key that puts the worst colours first."""
    return tuple(
        -sum(one.style == style for one in cells) for style in ("bad", "some", "open", "heat3", "heat2", "heat1")
    )
