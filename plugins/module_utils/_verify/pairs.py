# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods are tested against which, and which tests run at the same time. Pure."""

from __future__ import annotations

import itertools
import typing as t


def choose_pairs(nodes: t.Sequence[str], most: int) -> t.List[t.Tuple[str, str]]:
    """Every pair, or, when those are too many, a ring with its diameters: each node is seen, near and far."""
    count = len(nodes)
    if count * (count - 1) // 2 <= most:
        return list(itertools.combinations(nodes, 2))
    return ring(nodes, count // 2)[: max(most, count)]


def choose_directed(nodes: t.Sequence[str], most: int) -> t.List[t.Tuple[str, str]]:
    """Client and server of each test: all, or a ring with its diameters. Every node is both once at least."""
    count = len(nodes)
    if count * (count - 1) <= most:
        return list(itertools.permutations(nodes, 2))
    return ring(nodes, count)[: max(most, count)]


def ring(nodes: t.Sequence[str], diameters: int) -> t.List[t.Tuple[str, str]]:
    """Each node with the next one, then so many of them with the opposite one."""
    count = len(nodes)
    near = [(node, nodes[(place + 1) % count]) for place, node in enumerate(nodes)]
    far = [(node, nodes[(place + count // 2) % count]) for place, node in enumerate(nodes[:diameters])]
    return list(dict.fromkeys(near + far))


Job = t.TypeVar("Job")


def rounds(jobs: t.Iterable[Job], uses: t.Callable[[Job], t.Iterable[t.Hashable]]) -> t.List[t.List[Job]]:
    """Jobs in rounds in which nothing is used twice, so that no measurement disturbs another."""
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
