# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many pairs the RDMA tests of a proof cover, and about how long they load the network. Pure functions."""

from __future__ import annotations

import itertools
import math
import typing as t

from .._model.plan import Plan
from . import narrow, pairs
from .pods import gpu_of, nics_of, rdma_networks, second_targets, targets

GPU_SECONDS = 6  # additional seconds for ib_write_bw between GPUs
PAIR_SECONDS = 10  # for rping, four seconds of ib_write_bw, ib_read_lat, and the commands in pods around them
RDMA_CHECKS = {"rping", "write_bandwidth", "read_latency", "rdma_counters", "gpu_bandwidth"}

Test = t.Tuple[str, str, str]  # network, host of the client, host of the server


class Duration(t.NamedTuple):
    pairs: int
    rounds: int
    seconds: int


def steps_of(plan: Plan) -> t.Iterator[t.List[Test]]:
    """The tests of all RDMA networks, in the steps of the probe."""
    found = [*targets(plan), *second_targets(plan)]
    hosts = {target.key: target.host for target in found}
    distances = {
        network: pairs.by_distance(sorted(target.key for target in found if network in target.networks))
        for network in sorted(rdma_networks(plan))
    }
    for step in itertools.zip_longest(*distances.values(), fillvalue=()):
        yield [(network, hosts[a], hosts[b]) for network, each in zip(distances, step) for a, b in each]


def duration(plan: Plan, rdma_seconds: int, forks: int, gpu: bool = False) -> Duration:
    """The expected duration: needed steps always run, other pairs until the time limit."""

    def nics(test: Test) -> t.Iterator[t.Tuple[str, str]]:
        network, *hosts = test
        return ((host, nic) for host in hosts for nic in nics_of(plan, network, host))

    def lasts(test: Test) -> int:
        network, *hosts = test
        return PAIR_SECONDS + GPU_SECONDS * (gpu and all(gpu_of(plan, network, host) for host in hosts))

    number = rounds = seconds = longest = 0
    for step, tests in enumerate(steps_of(plan)):
        for together in pairs.rounds(tests, nics):
            if step >= pairs.NEEDED and seconds + longest > rdma_seconds:
                return Duration(number, rounds, seconds)
            takes = max(map(lasts, together)) * math.ceil(len(together) / max(1, forks))
            number, rounds, seconds, longest = (
                number + len(together),
                rounds + 1,
                seconds + takes,
                max(longest, takes),
            )
    return Duration(number, rounds, seconds)


def say_duration(
    plan: Plan,
    rdma_seconds: int,
    forks: int,
    nodes: t.Sequence[str] = (),
    checks: t.Sequence[str] = (),
    gpu: bool = False,
) -> str:
    """A text such as `144 pairs in 12 rounds, about 2 minutes`; empty if no RDMA test runs.

    Also empty for what the probe itself will refuse: a plan without hosts, or a node that is not in it.
    """
    known = {host["node"] for host in plan.get("hosts", {}).values()}
    if not known or set(nodes) - known or (checks and not RDMA_CHECKS & set(checks)):
        return ""
    found = duration(narrow.narrow_plan(plan, nodes), rdma_seconds, forks, gpu)
    if not found.pairs:
        return ""
    minutes = round(found.seconds / 60)
    time = f"{minutes} minutes" if minutes > 1 else f"{found.seconds} seconds"
    many = [f"{found.pairs:,} pair{'s'[: found.pairs - 1]}", f"{found.rounds} round{'s'[: found.rounds - 1]}"]
    return f"RDMA tests load the fabric now: {' in '.join(many)}, about {time}."
