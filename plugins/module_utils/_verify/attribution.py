# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the bad pairs of a matrix point to a node, to a path, or to the whole fabric. Pure functions."""

from __future__ import annotations

import typing as t

Pair = t.Tuple[str, ...]  # client and server
Side = t.Tuple[str, str]  # a node, and `as client`, `as server`, or empty for both

ALL = 0.9  # share of all pairs from which on nothing distinguishes the nodes
NEARLY_ALL = 0.8  # share of a node's pairs: a slow node may have one figure that is just good enough
PEERS = 2  # with which a node must be bad: with only one, it may be the path


class Blame(t.NamedTuple):
    """What the bad pairs have in common; empty if there are none."""

    everything: bool
    nodes: t.Dict[str, str]  # and the side of each: `as client`, `as server`, or empty for both
    paths: t.List[Pair]

    def guilty(self, pair: Pair) -> t.List[str]:
        """The bad nodes that are to blame for a bad pair; none if it is a path, or all pairs are bad."""
        sides = {pair[0]: "as server", pair[1]: "as client"}  # the side that plays no role in this pair
        return [node for node in pair if self.nodes.get(node, sides[node]) != sides[node]]

    def of(self, pair: Pair) -> str:
        """What a bad pair points to: `all`, `path`, or the names of its bad nodes."""
        if self.everything:
            return "all"
        names = [f"{node} {self.nodes[node]}".strip() for node in self.guilty(pair)]
        return f"node {' and '.join(names)}" if names else "path"

    def lines(self) -> t.List[str]:
        """Everything, as lines for people."""
        if self.everything:
            return ["all: nearly every pair"]
        nodes = [f"node {node} {side}".strip() for node, side in sorted(self.nodes.items())]
        return nodes + [f"path {' -> '.join(pair)}" for pair in self.paths]


NOBODY = Blame(False, {}, [])


def attribute(good: t.Mapping[Pair, bool]) -> Blame:
    """Explain the bad pairs by as few nodes as possible; the pairs that no node explains are paths."""
    bad = {pair for pair, fine in good.items() if not fine}
    if not bad:
        return NOBODY
    if len(bad) >= ALL * len(good):
        return NOBODY._replace(everything=True) if len(good) > 1 else NOBODY._replace(paths=sorted(bad))
    suspects = _suspects(good, bad)
    nodes: t.Dict[str, str] = {}
    open_pairs = set(bad)
    while suspects:
        side = min(suspects, key=lambda side: (-len(suspects[side] & open_pairs), side))
        explained = suspects.pop(side) & open_pairs
        if len(explained) < PEERS:
            break
        nodes[side[0]] = side[1] if side[0] not in nodes else ""
        open_pairs -= explained
    return Blame(False, nodes, sorted(open_pairs))


def _suspects(good: t.Iterable[Pair], bad: t.Set[Pair]) -> t.Dict[Side, t.Set[Pair]]:
    """The bad pairs of every node with hardly any good ones, in both directions or in one."""
    sides: t.Dict[Side, t.Set[Pair]] = {}
    for pair in good:
        for side in ((pair[0], ""), (pair[1], ""), (pair[0], "as client"), (pair[1], "as server")):
            sides.setdefault(side, set()).add(pair)
    found = {}
    for (node, which), pairs in sides.items():
        mine = pairs & bad
        peers = {other for pair in mine for other in pair} - {node}
        if len(peers) >= PEERS and len(mine) >= NEARLY_ALL * len(pairs):
            found[node, which] = mine
    return found
