"""Which node, path, or all: random matrices with one fault each, dense and sparse, are attributed rightly."""

from __future__ import annotations

import itertools
import time
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._verify.attribution import NOBODY, Blame, attribute
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pairs import by_distance
from hypothesis import given, settings
from hypothesis import strategies as st

Pair = t.Tuple[str, ...]
COUNTS = st.integers(min_value=3, max_value=30)
MOST = st.sampled_from([2, 3, 7, 1000])  # steps of by_distance: a ring with diameters, more, all of them


def names(count: int) -> t.List[str]:
    return [f"n{number:03}" for number in range(count)]


def chosen(count: int, most: int) -> t.List[Pair]:
    return list(itertools.chain.from_iterable(itertools.islice(by_distance(names(count)), most)))


@settings(deadline=None)
@given(count=COUNTS, most=MOST, data=st.data())
def test_a_bad_node_is_named_alone(count: int, most: int, data: st.DataObject) -> None:
    pairs, bad = chosen(count, most), data.draw(st.sampled_from(names(count)))
    blame = attribute({pair: bad not in pair for pair in pairs})
    assert blame == Blame(False, {bad: ""}, [])
    assert {blame.of(pair) for pair in pairs if bad in pair} == {f"node {bad}"}


@settings(deadline=None)
@given(count=st.integers(min_value=4, max_value=30), side=st.sampled_from([0, 1]), data=st.data())
def test_a_node_that_is_bad_in_one_direction(count: int, side: int, data: st.DataObject) -> None:
    pairs, bad = chosen(count, 1000), data.draw(st.sampled_from(names(count)))
    blame = attribute({pair: pair[side] != bad for pair in pairs})
    assert blame == Blame(False, {bad: ("as client", "as server")[side]}, [])
    assert {blame.of(pair) for pair in pairs if pair[side] == bad} == {f"node {bad} {blame.nodes[bad]}"}


@settings(deadline=None)
@given(count=st.integers(min_value=4, max_value=30), most=MOST, both=st.booleans(), data=st.data())
def test_a_bad_path_names_no_node(count: int, most: int, both: bool, data: st.DataObject) -> None:
    pairs = chosen(count, most)
    bad = data.draw(st.sampled_from(pairs))
    paths = {pair for pair in pairs if pair == bad or (both and pair[::-1] == bad)}
    blame = attribute({pair: pair not in paths for pair in pairs})
    assert blame == Blame(False, {}, sorted(paths))
    assert {blame.of(pair) for pair in paths} == {"path"}


@settings(deadline=None)
@given(count=st.integers(min_value=2, max_value=30), most=MOST)
def test_where_all_is_bad_no_node_is_named(count: int, most: int) -> None:
    pairs = chosen(count, most)
    blame = attribute(dict.fromkeys(pairs, False))
    assert blame == Blame(True, {}, [])
    assert blame.of(pairs[0]) == "all"
    assert attribute(dict.fromkeys(pairs, True)) == NOBODY


@settings(deadline=None)
@given(count=st.integers(min_value=8, max_value=30), data=st.data())
def test_two_bad_nodes_and_a_bad_path(count: int, data: st.DataObject) -> None:
    nodes = data.draw(st.permutations(names(count)))
    first, second, client, server = nodes[:4]
    pairs = chosen(count, 1000)
    blame = attribute({pair: not ({first, second} & set(pair)) and pair != (client, server) for pair in pairs})
    assert blame == Blame(False, {first: "", second: ""}, [(client, server)])
    assert blame.of((first, second)) == f"node {first} and {second}"
    assert blame.lines() == [*sorted(f"node {bad}" for bad in (first, second)), f"path {client} -> {server}"]


@pytest.mark.parametrize(
    ("good", "text"),
    [
        ({("a", "b"): False, ("b", "a"): True}, ["path a -> b"]),  # two nodes: which of them, nobody can say
        ({("a", "b"): False, ("b", "a"): False}, ["all: nearly every pair"]),
        ({("a", "b"): False}, ["path a -> b"]),
        ({}, []),
    ],
)
def test_two_nodes(good: t.Dict[Pair, bool], text: t.List[str]) -> None:
    assert attribute(good).lines() == text


def test_one_good_figure_does_not_clear_a_bad_node() -> None:
    pairs = {pair: "n003" not in pair for pair in itertools.permutations(names(8), 2)}
    assert attribute({**pairs, ("n003", "n001"): True}).nodes == {"n003": ""}


def test_many_bad_nodes_of_200_take_no_time() -> None:
    bad = set(names(200)[::5])
    pairs = {pair: not bad & set(pair) for pair in itertools.permutations(names(200), 2)}
    start = time.process_time()
    assert set(attribute(pairs).nodes) == bad
    assert time.process_time() - start < 10
