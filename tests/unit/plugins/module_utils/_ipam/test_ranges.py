"""Addresses, CIDRs and ranges as people write them, and sets of them against counting one by one."""

from __future__ import annotations

import ipaddress
import typing as t

import netaddr
import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.excludes import exclude_list
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import (
    ip_range,
    parse_range,
    parse_ranges,
    range_texts,
    union,
    whole,
)
from hypothesis import given
from hypothesis import strategies as st

BASES = st.sampled_from([ipaddress.ip_address("10.5.0.0"), ipaddress.ip_address("fd00:5::")])
RUNS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=6)


def spans(base: t.Any, runs: t.Iterable[t.Tuple[int, int]]) -> netaddr.IPSet:
    """The set of runs (first, length less one), counted from `base` on."""
    return netaddr.IPSet([ip_range(base + first, base + first + more) for first, more in runs])


def members(base: t.Any, addresses: netaddr.IPSet) -> t.Set[int]:
    return {int(address) - int(base) for address in addresses}


def every(runs: t.Iterable[t.Tuple[int, int]]) -> t.Set[int]:
    return {number for first, more in runs for number in range(first, first + more + 1)}


@pytest.mark.parametrize(
    ("runs", "merged"),
    [
        ([], []),
        ([(5, 7)], [(5, 7)]),
        ([(8, 9), (5, 7)], [(5, 9)]),
        ([(5, 7), (6, 12), (20, 20)], [(5, 12), (20, 20)]),
        ([(1, 100), (5, 7)], [(1, 100)]),
    ],
)
def test_merge(runs, merged):
    addresses = netaddr.IPSet([netaddr.IPRange(first, last) for first, last in runs])
    assert [(run.first, run.last) for run in addresses.iter_ipranges()] == merged
    assert union(netaddr.IPSet(netaddr.IPRange(first, last)) for first, last in runs) == addresses


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        ([], [(10, 20)]),
        ([(0, 5), (30, 40)], [(10, 20)]),
        ([(10, 10), (20, 20)], [(11, 19)]),
        ([(0, 12)], [(13, 20)]),
        ([(18, 40)], [(10, 17)]),
        ([(14, 15), (12, 13)], [(10, 11), (16, 20)]),
        ([(0, 40)], []),
        ([(10, 20)], []),
    ],
)
def test_subtract(taken, left):
    found = netaddr.IPSet(netaddr.IPRange(10, 20)) - netaddr.IPSet([netaddr.IPRange(*ends) for ends in taken])
    assert [(run.first, run.last) for run in found.iter_ipranges()] == left
    assert found.size == 11 - sum(1 for number in range(10, 21) if any(a <= number <= b for a, b in taken))


@given(BASES, RUNS, RUNS)
def test_sets_are_what_counting_says(base: t.Any, one: t.Any, other: t.Any) -> None:
    mine, theirs = spans(base, one), spans(base, other)
    assert members(base, mine) == every(one)
    assert mine.size == len(every(one))
    assert members(base, mine & theirs) == every(one) & every(other)
    assert members(base, mine - theirs) == every(one) - every(other)
    assert members(base, union([mine, theirs])) == every(one) | every(other)
    assert mine.isdisjoint(theirs) == (not every(one) & every(other))
    assert members(base, mine) == every(one), "the operators changed their operand"


@given(BASES, RUNS, RUNS)
def test_shared_is_what_both_sets_hold(base: t.Any, one: t.Any, other: t.Any) -> None:
    both = spans(base, one) & spans(base, other)
    assert members(base, both) == every(one) & every(other)
    assert parse_ranges(range_texts(both), "here") == both


@given(BASES, RUNS)
def test_range_texts_are_the_fewest(base: t.Any, runs: t.Any) -> None:
    numbers = every(runs)
    firsts, lasts = ([n for n in sorted(numbers) if n + step not in numbers] for step in (-1, 1))
    assert range_texts(spans(base, runs)) == [f"{base + first}-{base + last}" for first, last in zip(firsts, lasts)]


@given(BASES, RUNS)
def test_the_exclude_list_is_the_rest_of_the_subnet(base: t.Any, runs: t.Any) -> None:
    network = ipaddress.ip_network(f"{base}/{base.max_prefixlen - 7}")
    excluded = {
        int(ip) - int(base) for cidr in exclude_list(network, spans(base, runs)) for ip in ipaddress.ip_network(cidr)
    }
    assert excluded | {0, 127} == (set(range(128)) - every(runs)) | {0, 127}
    assert not excluded & every(runs)


def test_families_never_meet() -> None:
    ranges = [parse_ranges([text], "here") for text in ("0.0.0.1-0.0.0.9", "::1-::9")]
    assert not ranges[0] & ranges[1]
    assert union(ranges).size == 18
    assert range_texts(union(reversed(ranges)))[0] == "0.0.0.1-0.0.0.9"


def test_wide_subnets_have_a_size() -> None:
    """len() of a netaddr set fails beyond 2^63."""
    network = ipaddress.ip_network("fd00::/48")
    assert (netaddr.IPSet(whole(network)) - parse_ranges(["fd00::/64", "10.0.0.0/8"], "here")).size == 2**80 - 2**64


@given(st.integers(2**112, 2**128 - 1), st.integers(0, 2**32 - 1))
def test_addresses_are_spelled_as_python_spells_them(wide: int, narrow: int) -> None:
    for address in (ipaddress.IPv6Address(wide), ipaddress.IPv4Address(narrow)):
        assert str(ip_range(address, address)[0]) == str(address)


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("10.5.0.20", ("10.5.0.20", "10.5.0.20")),
        ("10.5.0.64/26", ("10.5.0.64", "10.5.0.127")),
        ("10.5.0.10-10.5.0.20", ("10.5.0.10", "10.5.0.20")),
        ("10.5.0.10 - 10.5.0.20", ("10.5.0.10", "10.5.0.20")),
        ("fd00::1-fd00::ff", ("fd00::1", "fd00::ff")),
    ],
)
def test_parse_range(text, run):
    found = parse_range(text, "here")
    assert (found.first, found.last) == tuple(int(ipaddress.ip_address(end)) for end in run)
    assert found.version == ipaddress.ip_address(run[0]).version


@pytest.mark.parametrize(
    "text",
    [
        *("", "vipu", "10.5.0.300", "10.5.0.5/24", "10.5.0.9-10.5.0.1", "10.5.0.1-fd00::1", "1-2-3", "10.5.0.1-"),
        # What netaddr alone would take.
        *("10.5", "10.5/16", "10.5.0.1-10.6", "167772160", "0x0a050001", "010.5.0.1"),
    ],
)
def test_parse_range_refuses(text):
    with pytest.raises(FabricError) as error:
        parse_range(text, "reserved")
    assert error.value.where == "reserved"
    assert repr(text) in error.value.seen
