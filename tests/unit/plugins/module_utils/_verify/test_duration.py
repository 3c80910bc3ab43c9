"""What is said of RDMA tests before they begin is what the probe then does."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._verify.duration import (
    GPU_SECONDS,
    PAIR_SECONDS,
    duration,
    say_duration,
)
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pairs import by_distance, rounds


def plan(hosts: int, rails: int, resource: str = "shared") -> t.Any:
    names = [f"rail{rail}" for rail in range(rails)]
    links = {name: {"rdma_netdevs": [f"ens{name}"], "netdev": f"ens{name}"} for name in names}
    return {
        "hosts": {f"h{n:03}": {"node": f"n{n:03}", "roles": ["worker"], "links": links} for n in range(hosts)},
        "networks": [
            {
                "name": name,
                "rdma": True,
                "resource": resource,
                "mode": "bridge",
                "ipam": {"type": "nv-ipam"},
                "hosts": [f"h{n:03}" for n in range(hosts)],
            }
            for name in names
        ],
    }


@pytest.mark.parametrize(("hosts", "rails"), [(2, 1), (3, 1), (4, 2), (7, 3)])
def test_all_pairs_of_a_small_site_are_tested_in_both_directions(hosts: int, rails: int) -> None:
    """Rails have NICs of their own: they are tested at the same time."""
    found = duration(plan(hosts, rails), 3600, 32)
    nodes = [str(number) for number in range(hosts)]
    alone = sum(len(rounds(step, lambda pair: pair)) for step in by_distance(nodes))
    assert found.pairs == hosts * (hosts - 1) * rails
    assert found.rounds == alone
    assert found.seconds == alone * PAIR_SECONDS


def test_a_large_site_takes_what_is_needed_or_the_time_that_it_has() -> None:
    needed = duration(plan(200, 8), 0, 32)
    assert needed.pairs == 2 * 200 * 8
    assert needed.seconds > 600  # 32 pairs at a time
    assert duration(plan(200, 8), 300, 32) == needed
    more = duration(plan(200, 8), 3600, 2000)
    assert needed.pairs < more.pairs < 200 * 199 * 8
    assert 3600 - PAIR_SECONDS < more.seconds <= 3600


def test_gpus_are_tested_too() -> None:
    planned = plan(3, 1)
    seconds = [duration(planned, 3600, 32, gpu).seconds for gpu in (False, True)]
    assert seconds[1] == seconds[0]
    for host in planned["hosts"].values():
        host["gpus"] = [{"pci": "0000:17:00.0", "model": "", "networks": ["rail0"]}]
    seconds = [duration(planned, 3600, 32, gpu).seconds for gpu in (False, True)]
    assert seconds[1] == seconds[0] * (PAIR_SECONDS + GPU_SECONDS) / PAIR_SECONDS


def test_two_pods_on_one_host_are_a_pair() -> None:
    assert duration(plan(1, 1), 300, 32).pairs == 2


def test_it_is_said_in_a_sentence() -> None:
    assert say_duration(plan(2, 1), 300, 32) == "RDMA tests load the fabric now: 2 pairs in 2 rounds, about 20 seconds."
    assert say_duration(plan(12, 2), 3600, 32).endswith(" minutes.")
    assert "12 pairs" in say_duration(plan(12, 2), 3600, 32, ["n003"])


@pytest.mark.parametrize(("resource", "checks"), [("", []), ("shared", ["mtu"])])
def test_nothing_is_said_where_no_test_runs(resource: str, checks: t.List[str]) -> None:
    assert say_duration(plan(2, 1, resource), 300, 32, (), checks) == ""
    assert say_duration(plan(2, 1), 300, 32, ["n9"]) == ""  # the probe refuses that
    empty: t.Any = {}
    assert say_duration(empty, 300, 32) == ""
