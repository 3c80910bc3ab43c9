# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the traffic of RDMA tests used the planned RDMA device, or silently TCP, by counters. Pure functions.

All pods of a node share a device, so its counters may grow by more than a test sent, but never by less.
"""

from __future__ import annotations

import typing as t

from .._model.checks import Check, Place
from .._model.probe import Moved, Traffic
from .catalog import need_image, result, unproven
from .parsers import amount_text
from .pods import Device

Devices = t.Mapping[str, Device]  # by node: the device of the network in its pod
LARGEST_MTU = 4096  # largest number of bytes in a RoCE packet
EXPECTED = "counters of the RDMA device grow by what was sent"


class Evidence(t.NamedTuple):
    good: t.Optional[bool]  # None: the counters do not show it
    text: str


class _End(t.NamedTuple):
    """One end of a test, and the device that it should have used."""

    node: str
    device: str
    software: bool
    moved: Moved


def check_counters(tests: t.Sequence[Traffic], devices: Devices) -> Check:
    """One check of all tests between two pods on a network."""
    where: Place = {"network": tests[0]["network"], "pair": (tests[0]["from"], tests[0]["to"])}
    ran = [test for test in tests if not test["missing"] and test.get("rc") == 0 and test.get("value")]
    if not ran:
        missing = (
            need_image("rping and perftest")
            if any(test["missing"] for test in tests)
            else "First act on the failed RDMA tests of this pair."
        )
        return unproven("rdma_counters", "no RDMA test ran between these pods", missing, **where)
    found = [evidence(test, devices) for test in ran]
    bad = [each.text for each in found if each.good is False]
    good = [each.text for each in found if each.good]
    if not bad and not good:
        return unproven("rdma_counters", found[-1].text, need_image("rdma of iproute2"), **where)
    return result("rdma_counters", not bad, EXPECTED, "; ".join(bad) or max(good, key=len), **where)


def evidence(test: Traffic, devices: Devices) -> Evidence:
    """What the counters of both ends show about one test."""
    sent, ends = test["sent"], _ends(test, devices)
    if sent["transport"] == "IW":
        return Evidence(False, f"{test['tool']} took {sent['device']}, which is iWARP: that goes over TCP")
    if sent["device"] not in ("", ends[0].device):
        return Evidence(
            False, f"{test['tool']} took {sent['device']}, but the pod's address belongs to {ends[0].device}"
        )
    if not all(end.device for end in ends):
        return Evidence(None, "no RDMA device has the pod's address")
    answers = [_of_device(end, test) for end in ends]
    bad = [each.text for each in answers if each.good is False]
    good = [each.text for each in answers if each.good]
    if bad:
        return Evidence(False, "; ".join(bad))
    if good:
        return Evidence(True, good[0])
    return _by_interfaces(test, ends)


def _ends(test: Traffic, devices: Devices) -> t.List[_End]:
    unknown = Device(test["sent"]["device"], software=True)  # without a GID; its interfaces show nothing
    nodes = (test["from"], test["to"])
    return [_End(node, *devices.get(node, unknown), moved) for node, moved in zip(nodes, test["moved"])]


def _of_device(end: _End, test: Traffic) -> Evidence:
    """What the device's counters show. Requests count where they are answered, if at all: few of them prove nothing."""
    sent, kinds = test["sent"], end.moved["rdma"].get(end.device, {})
    data = sent["messages"] * sent["size"]
    needs = {"bytes": data, "packets": max(sent["messages"], data // LARGEST_MTU), "requests": sent["messages"]}
    who, text = f"{end.device} on {end.node}", ""
    for kind, need in needs.items():
        have = kinds.get(kind)
        if have is not None and have >= need:
            return Evidence(True, f"{who}: {_amount(have, kind)} of at least {_amount(need, kind)}")
        if have is not None and kind != "requests":
            text = text or f"{who}: {_amount(have, kind)} of at least {_amount(need, kind)}; {_busiest(end)}"
    return Evidence(False if text else None, text)


def _by_interfaces(test: Traffic, ends: t.Sequence[_End]) -> Evidence:
    """Hardware RDMA bypasses the pod's network devices: what they did not carry was RDMA, and what they did was TCP."""
    names = " and ".join(f"{end.device} on {end.node}" for end in ends)
    unknown = f"no counters in the pods show the traffic of {names}"
    data = test["sent"]["messages"] * test["sent"]["size"]
    hard = all(not end.software for end in ends)
    if test["check"] != "write_bandwidth" or not hard or not all(end.moved["interfaces"] for end in ends):
        return Evidence(None, unknown)
    carried = [sum(end.moved["interfaces"].values()) for end in ends]
    if all(moved < data / 2 for moved in carried):
        most = _amount(max(carried), "bytes")
        return Evidence(
            True, f"{unknown}, but the pods' interfaces moved {most} of {_amount(data, 'bytes')}: it was not TCP"
        )
    return Evidence(False, f"{unknown}; {'; '.join(map(_busiest, ends))} of {_amount(data, 'bytes')}: it was TCP")


def _busiest(end: _End) -> str:
    moved = end.moved["interfaces"]
    name = max(moved, key=lambda name: moved[name], default="")
    return f"{name} of {end.node} moved {_amount(moved[name], 'bytes')}" if name else f"{end.node} shows no interface"


def _amount(number: float, kind: str) -> str:
    """An amount without thousands separators, as in earlier reports."""
    return amount_text(number, kind).replace(",", "")
