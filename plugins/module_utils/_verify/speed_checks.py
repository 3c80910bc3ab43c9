# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bandwidth and latency of RDMA: compared with what ports and PCIe carry, and with other pairs. Pure functions."""

from __future__ import annotations

import bisect
import typing as t

from .._common.result import FabricError
from .._model.checks import Check, Expect, Place
from .._model.plan import Plan
from .._model.probe import Traffic
from .catalog import result, unproven
from .pods import Device, Pods

# ib_write_bw reaches 97% of a port's rate with RoCE's MTU of 4096 and 92% with 1024: headers take the rest; PCIe
# overhead takes 10 to 15%. Neither explains less than 80%.
LEAST_SHARE = 0.8
# A read through one or two switches takes 2 to 6 us, plus about 10 us if a processor must wake up for it.
CEILING_US = 20.0
OTHERS = 3  # pairs needed for a median

# The site's expectation by check: a field of Expect, and with the prefix verify_ a variable.
LIMITS = {"write_bandwidth": "rdma_bandwidth", "read_latency": "rdma_latency", "gpu_bandwidth": "gpu_bandwidth"}


class Tolerance(t.NamedTuple):
    """How far a figure may be from the median of the others."""

    bandwidth: float  # minimum, as a share of the median
    latency: float  # maximum, as a multiple of the median
    latency_us: float  # and at least this much above it


HARDWARE = Tolerance(0.9, 2, 5)
SOFTWARE = Tolerance(0.25, 4, 1000)  # a busy processor may slow it down at any time
SAYS_NOTHING = "figures of software RDMA say nothing about speed"


def read_limit(option: str, text: str) -> t.Optional[float]:
    """The site's figure, where 0 means only measuring; None for `auto`."""
    try:
        limit = None if text.strip() == "auto" else float(text)
    except ValueError:
        limit = -1
    if limit is not None and not 0 <= limit < float("inf"):
        raise FabricError(
            "A limit of RDMA tests is `auto` or a number.",
            option,
            repr(text),
            "Set it to auto, to a number, or to 0 to only measure.",
            code="invalid-input",
        )
    return limit


class Line(t.NamedTuple):
    """The most that a pair can carry, and the part of a node that limits it."""

    gbps: float
    part: str


def line_of(plan: Plan, pods: Pods, test: Traffic) -> t.Optional[Line]:
    """The narrowest of the ports and PCIe links of both nodes; None if a port's rate is unknown."""
    parts = []
    for node in (test["from"], test["to"]):
        link = plan["hosts"][pods[node]["host"]]["links"][test["network"]]
        rate, pcie = link.get("rate_gbps"), link.get("pcie_gbps")
        if not rate:
            return None
        parts.append(Line(rate, f"{node}'s port"))
        if pcie:
            parts.append(Line(pcie, f"{node}'s PCIe"))
    return min(parts, key=lambda line: line.gbps)


class Others:
    """Sorted figures of the same test on a network."""

    def __init__(self, figures: t.Iterable[float]) -> None:
        self._figures = sorted(figures)

    def median(self, figure: float) -> t.Optional[float]:
        """The median of all but this one; None if these are too few."""
        rest = len(self._figures) - 1
        if rest < OTHERS:
            return None
        place = bisect.bisect_left(self._figures, figure)
        low, high = (self._figures[at if at < place else at + 1] for at in ((rest - 1) // 2, rest // 2))
        return (low + high) / 2


class Condition(t.NamedTuple):
    text: str
    good: bool


def check_speeds(
    plan: Plan, pods: Pods, devices: t.Mapping[str, Device], tests: t.Sequence[Traffic], expect: Expect
) -> t.Iterator[Check]:
    """The checks of all tests of one kind on one network that have a figure; `devices` has each node's RDMA device."""
    software = {node for node, device in devices.items() if device.software}
    lines: t.List[t.Optional[Line]] = []
    soft = [test["from"] in software or test["to"] in software for test in tests]
    for test, is_soft in zip(tests, soft):
        lines.append(None if is_soft else line_of(plan, pods, test))
    kind = tests[0]["check"] if tests else "read_latency"
    bandwidth = kind != "read_latency"
    # Bandwidth is compared among pairs with the same limit: a narrow PCIe link loses another share than a port.
    keys = [line.gbps if bandwidth and line else 0.0 for line in lines]
    figures: t.Dict[float, t.List[float]] = {}
    for test, key in zip(tests, keys):
        figures.setdefault(key, []).append(test["value"] or 0.0)
    others = {key: Others(mine) for key, mine in figures.items()}
    fixed = read_limit(LIMITS[kind], getattr(expect, LIMITS[kind]))
    for test, line, is_soft, key in zip(tests, lines, soft, keys):
        value = test["value"] or 0.0
        if fixed is not None:
            yield _check(test, [_fixed(bandwidth, value, fixed)] if fixed else [], "only measured")
            continue
        tolerance = SOFTWARE if is_soft else HARDWARE
        judge = _bandwidth if bandwidth else _latency
        conditions = list(judge(value, line, others[key].median(value), tolerance))
        if is_soft:
            conditions.append(Condition(SAYS_NOTHING, True))
        yield _check(test, conditions, "the port's rate is not known, and there are too few pairs to compare")


def _fixed(bandwidth: bool, value: float, fixed: float) -> Condition:
    if bandwidth:
        return Condition(f">= {fixed:g} Gb/s", value >= fixed)
    return Condition(f"<= {fixed:g} us", value <= fixed)


def _bandwidth(
    value: float, line: t.Optional[Line], median: t.Optional[float], tolerance: Tolerance
) -> t.Iterator[Condition]:
    if line:
        least = LEAST_SHARE * line.gbps
        yield Condition(f">= {least:g} Gb/s, {LEAST_SHARE:.0%} of {line.part}", value >= least)
    if median is not None:
        least = tolerance.bandwidth * median
        yield Condition(f">= {least:.3g} Gb/s, {tolerance.bandwidth:.0%} of the others' median", value >= least)


def _latency(
    value: float, line: t.Optional[Line], median: t.Optional[float], tolerance: Tolerance
) -> t.Iterator[Condition]:
    if line:
        yield Condition(f"<= {CEILING_US:g} us", value <= CEILING_US)
    if median is not None:
        most = max(tolerance.latency * median, median + tolerance.latency_us)
        yield Condition(f"<= {most:.3g} us, the others' median is {median:.3g}", value <= most)


def _check(test: Traffic, conditions: t.Sequence[Condition], why_not: str) -> Check:
    """Name the conditions that a figure does not meet, or else all of them."""
    where: Place = {"network": test["network"], "pair": (test["from"], test["to"])}
    seen, value, unit = f"{test['value']:g} {test['unit']}", test["value"], test["unit"]
    if not conditions:
        missing = f"Set verify_{LIMITS[test['check']]} to what this site expects, or to auto with three nodes or more."
        return unproven(test["check"], f"{seen}: {why_not}", missing, value=value, unit=unit, **where)
    bad = [condition.text for condition in conditions if not condition.good]
    expected = "; ".join(bad or [condition.text for condition in conditions])
    return result(test["check"], not bad, expected, seen, value=value, unit=unit, **where)
