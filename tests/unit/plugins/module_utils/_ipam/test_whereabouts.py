"""Pools of whereabouts, their networks and their reservations."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._ipam import leaks
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.whereabouts import whereabouts_pools
from ansible_collections.ipu.fabric.tests.unit.fixtures.pools import (
    IPAM,
    PODS,
    Object,
    attachment,
    live,
    pod,
    reservation,
    whereabouts,
    whys,
)
from hypothesis import given
from hypothesis import strategies as st


def test_a_pool_of_whereabouts_takes_its_bounds_from_the_network() -> None:
    pool = whereabouts({"129": "default/a", "130": "default/b", "131": "default/new"})
    found = whereabouts_pools([pool], [], [attachment(IPAM)], PODS)
    assert found == [
        {
            "name": "10.5.0.0-24", "ipam": "whereabouts", "cidr": "10.5.0.0/24",
            "usable": 127, "excluded": 5, "capacity": 122, "allocated": 3, "free": 119, "leaked": [],
            "nodes": [
                {"node": "w1", "range": "", "capacity": None, "allocated": 2, "free": None},
                {"node": "w2", "range": "", "capacity": None, "allocated": 1, "free": None},
            ],
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ipam", "usable", "capacity"),
    [
        ({}, 254, 254),  # no network any more: network and broadcast addresses are nobody's
        ({"range": "10.5.0.7/24"}, 254, 254),
        ({"range": "10.5.0.128-10.5.0.254/24"}, 127, 127),
        ({"range": "10.5.0.0/24", "range_start": "10.6.0.1"}, 254, 254),  # silently ignored
        ({"range": "10.5.0.0/24", "range_start": "fd00::1"}, 254, 254),
        ({"range": "10.5.0.0/24", "range_start": "10.5.0.200", "range_end": "10.5.0.100"}, 55, 55),
        ({"range": "10.5.0.0/24", "exclude": ["10.5.0.9/25"]}, 254, 127),  # host bits are masked
        ({"range": "10.5.0.0/24", "exclude": ["10.5.0.0/24"]}, 254, 0),
        ({"range": "", "ipRanges": [{"range": "10.5.0.0/24", "range_start": "10.5.0.200"}]}, 55, 55),
        ({"range": "10.5.0.0/24", "exclude": ["nonsense"]}, 254, 254),
    ],
)
@pytest.mark.parametrize("plugins", [False, True])
def test_bounds_of_whereabouts(ipam: Object, usable: int, capacity: int, plugins: bool) -> None:
    network = attachment({"type": "whereabouts", **ipam}, plugins)
    (found,) = whereabouts_pools([whereabouts({})], [], [network], {})
    assert (found["usable"], found["capacity"], found["free"]) == (usable, capacity, capacity)


@pytest.mark.parametrize("cidr", ["10.5.0.0/31", "10.5.0.0/32", "fd00::/127"])
def test_a_range_without_host_addresses_has_no_room(cidr: str) -> None:
    (found,) = whereabouts_pools([whereabouts({}, cidr)], [], [], {})
    assert (found["usable"], found["capacity"], found["free"]) == (0, 0, 0)


def test_two_networks_on_one_range_share_its_pool() -> None:
    low, high = ({"type": "whereabouts", "range": f"10.5.0.{a}-10.5.0.{b}/24"} for a, b in ((10, 19), (30, 39)))
    (found,) = whereabouts_pools([whereabouts({})], [], [attachment(low), attachment(high)], {})
    assert (found["usable"], found["capacity"]) == (20, 20)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"ipam": 3}', '{"ipam": {"type": "host-local"}}'])
def test_networks_of_others_say_nothing(text: str) -> None:
    (found,) = whereabouts_pools([whereabouts({})], [], [{"spec": {"config": text}}], {})
    assert found["usable"] == 254


@pytest.mark.parametrize(
    ("podref", "why"),
    [
        ("default/gone", leaks.NO_POD),
        ("default/b", leaks.OTHER_ADDRESS),  # a StatefulSet's pod that came back with another address
        ("default/new", ""),  # may still get it
        ("default/a", ""),
        ("", ""),  # nobody knows its owner
    ],
)
def test_leaks_of_whereabouts(podref: str, why: str) -> None:
    pool = whereabouts({"129": podref})
    (found,) = whereabouts_pools([pool], [], [attachment(IPAM)], PODS)
    assert whys(found) == ({"10.5.0.129": why} if why else {})


@pytest.mark.parametrize(
    ("name", "cidr", "address"),
    [
        ("10.5.0.131", "10.5.0.0/24", "10.5.0.131"),
        ("rail-1-10.5.0.131", "10.5.0.0/24", "10.5.0.131"),
        ("fd00-5--131", "fd00:5::/64", "fd00:5::131"),
        ("fd00-5--0", "fd00:5::/64", "fd00:5::"),
        ("abc-fd00-5--131", "fd00:5::/64", "fd00:5::131"),
        ("10.6.0.131", "10.5.0.0/24", ""),
        ("nonsense", "10.5.0.0/24", ""),
    ],
)
def test_a_reservation_without_an_allocation_is_a_leak_too(name: str, cidr: str, address: str) -> None:
    (found,) = whereabouts_pools([whereabouts({}, cidr)], [reservation(name, "default/gone")], [], PODS)
    assert whys(found) == ({address: leaks.NO_POD} if address else {})
    assert found["allocated"] == len(whys(found))


def test_an_allocation_and_its_reservation_are_one_address() -> None:
    pool = whereabouts({"131": "default/gone"})
    (found,) = whereabouts_pools([pool], [reservation("10.5.0.131", "default/gone")], [], PODS)
    assert (found["allocated"], whys(found)) == (1, {"10.5.0.131": leaks.NO_POD})


@given(st.sets(st.integers(1, 254), max_size=60), st.sets(st.integers(1, 254), max_size=60))
def test_every_allocation_is_either_a_pods_or_leaked(held: t.Set[int], alive: t.Set[int]) -> None:
    pods = live(*(pod(f"p{number}", f"10.5.0.{number}") for number in alive))
    pool = whereabouts({str(number): f"default/p{number}" for number in held})
    (found,) = whereabouts_pools([pool], [], [], pods)
    assert {entry["address"] for entry in found["leaked"]} == {f"10.5.0.{number}" for number in held - alive}
    assert found["allocated"] == len(held)
    assert found["free"] == found["capacity"] - len(held)
