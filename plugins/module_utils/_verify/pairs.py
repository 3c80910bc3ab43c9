# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods are tested with which, and which tests run at the same time. Pure functions."""

from __future__ import annotations

import itertools
import typing as t

Pair = t.Tuple[str, str]
# Steps after which each node was client and server with at least two others: that tells a bad node from a bad path.
NEEDED = 2
GOLDEN = (5**0.5 - 1) / 2


def choose_pairs(nodes: t.Sequence[str], most: int) -> t.List[Pair]:
    """Every pair or, if there are too many, a ring with its diameters: each node is tested with near and far ones."""
    count = len(nodes)
    if count * (count - 1) // 2 <= most:
        return list(itertools.combinations(nodes, 2))
    chosen = itertools.chain.from_iterable(itertools.islice(by_distance(nodes), NEEDED))
    return list({frozenset(pair): pair for pair in chosen}.values())


def by_distance(nodes: t.Sequence[str]) -> t.Iterator[t.List[Pair]]:
    """All pairs of client and server, in steps: each node with the next one of a ring, then with the opposite one.

    The other distances follow in an order that, after any step, spreads the tested distances over the ring.
    """
    count = len(nodes)
    between = sorted(range(2, count), key=lambda distance: distance * GOLDEN % 1)
    for distance in dict.fromkeys([1, count // 2, *between] if count > 1 else []):
        yield [(node, nodes[(place + distance) % count]) for place, node in enumerate(nodes)]


Job = t.TypeVar("Job")


def rounds(jobs: t.Iterable[Job], uses: t.Callable[[Job], t.Iterable[t.Hashable]]) -> t.List[t.List[Job]]:
    """Jobs grouped into rounds in which nothing is used twice, so that no measurement disturbs another."""
    result: t.List[t.List[Job]] = []
    busy: t.List[t.Set[t.Hashable]] = []
    for job in jobs:
        used = set(uses(job))
        index = next((i for i, taken in enumerate(busy) if taken.isdisjoint(used)), len(busy))
        if index == len(busy):
            busy.append(set())
            result.append([])
        busy[index] |= used
        result[index].append(job)
    return result


MOST_CROSSINGS = 64  # for all networks: both directions of eight


def crossings(networks: t.Mapping[str, t.Sequence[str]]) -> t.List[t.Tuple[Pair, Pair]]:
    """For every two networks, in both directions, a node on one and another node on the other, in rotation.

    networks: the nodes of each network.
    """
    found: t.List[t.Tuple[Pair, Pair]] = []
    for one, other in itertools.permutations(networks, 2):
        ends = [(a, b) for a in networks[one] for b in networks[other] if a != b]
        if ends:
            a, b = ends[len(found) * len(ends) // 7 % len(ends)]
            found.append(((one, a), (other, b)))
    step = max(1, -(-len(found) // MOST_CROSSINGS))
    return found[::step]
