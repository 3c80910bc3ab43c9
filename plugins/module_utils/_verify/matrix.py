# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of pairs as matrices, one per network and test: rows are clients, columns are servers. Pure functions."""

from __future__ import annotations

import typing as t

from .._common.text import natural
from .._model.checks import Check
from .attribution import attribute
from .catalog import CHECK_TYPES, FAILED, PASSED

TESTS = ("ping", "full_size", "rping", "write_bandwidth", "read_latency", "gpu_bandwidth")
# The reply to a ping takes the reverse direction; RDMA tests run in each direction.
ONE_WAY = ("rping", "write_bandwidth", "read_latency", "gpu_bandwidth")
MORE_IS_BETTER = ("rping", "write_bandwidth", "gpu_bandwidth")
MEASURED = ("write_bandwidth", "read_latency", "gpu_bandwidth")  # tests that the terminal shows
FEW = 5  # worst pairs that replace a matrix that is too wide


class Matrix(t.NamedTuple):
    """One test on one network."""

    network: str
    check: str
    nodes: t.List[str]
    pairs: t.Dict[t.Tuple[str, ...], Check]

    def at(self, client: str, server: str) -> t.Optional[Check]:
        found = self.pairs.get((client, server))
        return found if found or self.check in ONE_WAY else self.pairs.get((server, client))

    def suspects(self) -> t.List[str]:
        """The nodes or paths that failures point to, or all of them."""
        good = {pair: check.status != FAILED for pair, check in self.pairs.items()}
        if self.check not in ONE_WAY:
            good.update({(server, client): fine for (client, server), fine in good.items()})
        return attribute(good).lines()

    @property
    def unit(self) -> str:
        return next((check.unit for check in self.pairs.values() if check.unit), "")


def matrices(checks: t.Sequence[Check]) -> t.List[Matrix]:
    """A matrix for every test of pairs that ran, whether or not its figure proves anything."""
    groups: t.Dict[str, t.Dict[str, t.Dict[t.Tuple[str, ...], Check]]] = {}
    for check in checks:
        if check.pair and (check.status in (PASSED, FAILED) or check.value is not None):
            groups.setdefault(check.network, {}).setdefault(check.check, {})[check.pair] = check
    return [
        Matrix(network, kind, sorted({node for pair in kinds[kind] for node in pair}, key=natural), kinds[kind])
        for network, kinds in groups.items()
        for kind in TESTS
        if kind in kinds
    ]


def worst(matrix: Matrix) -> t.List[Check]:
    """All pairs: failures first, and within both groups the worst figure first."""
    sign = 1 if matrix.check in MORE_IS_BETTER else -1
    return sorted(matrix.pairs.values(), key=lambda check: (check.status == PASSED, sign * (check.value or 0)))


def as_data(matrix: Matrix) -> t.Dict[str, object]:
    """For report.json: the figure, or null if not measured, by client and then by server."""
    figures: t.Dict[str, t.Dict[str, t.Dict[str, object]]] = {}
    for (client, server), check in sorted(matrix.pairs.items()):
        figures.setdefault(client, {})[server] = {"status": check.status, "value": check.value}
    parts = {"network": matrix.network, "check": matrix.check, "unit": matrix.unit, "nodes": matrix.nodes}
    return {**parts, "suspects": matrix.suspects(), "figures": figures}


def figure(check: t.Optional[Check]) -> str:
    """At most three significant digits; a failure is marked."""
    if check is None:
        return "."
    text = f"{check.value:.3g}" if check.value is not None and check.value < 1000 else f"{check.value or 0:.0f}"
    return ("!" if check.status == FAILED else "") + (text if check.value is not None else "no")


def as_text(matrix: Matrix, width: int) -> t.List[str]:
    """Numbered rows and columns, or the worst pairs if those are too wide."""
    title = f"  {matrix.network}: {CHECK_TYPES[matrix.check].title}, {matrix.unit}"
    numbers = [str(number) for number in range(1, len(matrix.nodes) + 1)]
    rows = [
        (
            f"{number} {client}",
            ["-" if client == server else figure(matrix.at(client, server)) for server in matrix.nodes],
        )
        for number, client in zip(numbers, matrix.nodes)
    ]
    label = max(len(name) for name, _cells in rows)
    cell = 2 + max(len(text) for _name, cells in rows for text in [*cells, *numbers])
    if 4 + label + cell * len(rows) > width:
        pairs = worst(matrix)
        lines = [f"{title}: the worst of {len(pairs)} pairs, from client to server"]
        lines += [f"    {figure(c):>6}  {' -> '.join(c.pair)}" for c in pairs[:FEW]]
        return [line[:width] for line in lines + suspects_text(matrix)]
    lines = [f"{title}: rows are clients, columns servers"[:width]]
    lines.append(" " * (4 + label) + "".join(number.rjust(cell) for number in numbers))
    lines += [f"    {name:<{label}}" + "".join(text.rjust(cell) for text in cells) for name, cells in rows]
    return lines + [line[:width] for line in suspects_text(matrix)]


def suspects_text(matrix: Matrix) -> t.List[str]:
    return [f"    points to {line}" for line in shorten(matrix.suspects())]


def shorten(lines: t.List[str]) -> t.List[str]:
    return lines if len(lines) <= FEW else [*lines[: FEW - 1], f"and {len(lines) - FEW + 1} more, in report.json"]
