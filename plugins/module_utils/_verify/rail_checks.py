# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether rails are isolated, or reach each other, as the site expects. Pure functions.

An answer from an address on another rail proves nothing by itself: Linux answers for all of its addresses on every
interface, so the ping may have arrived on its own rail. But a link-local address is only answered on its own
interface, and a router answers without being a neighbour that has the address.
"""

from __future__ import annotations

import typing as t

from .._common.text import shorten_list
from .._model.checks import Check, Expect
from .._model.plan import Plan
from .._model.probe import Crossing, Probe
from .catalog import NO_NETWORK, need_image, result, skip, unproven

APART = "expect"  # value of fabric_rail_isolation; with `forbid`, rails must reach each other
NOT_ASKED = "fabric_rail_isolation does not say whether rails must be isolated"
ONE_RAIL = "there is only one network"
TWO_RAILS = (
    "needs pods with an address on two networks",
    "First act on the failed checks of the networks: pods on two nodes need an address on two networks.",
)
NO_LINK_LOCAL = (
    "pods have no IPv6 link-local address",
    "Enable IPv6 on the interfaces of pods (net.ipv6.conf.all.disable_ipv6: 0). That needs no IPv6 network.",
)
FEW = 4


def way(crossing: Crossing) -> str:
    """How one rail reached the other; empty if it did not."""
    if crossing["near"]["received"]:
        return "on layer 2"
    return "by a router" if crossing["far"]["received"] and not crossing["mac"] else ""


def check_rails(plan: Plan, probe: Probe, expect: Expect) -> t.Iterator[Check]:
    """One check for each pair of rails."""
    if len(plan["networks"]) < 2 and not probe.get("crossings"):
        yield skip("rail_isolation", ONE_RAIL if plan["networks"] else NO_NETWORK)
        return
    if not expect.rail_isolation:
        yield skip("rail_isolation", NOT_ASKED)
        return
    tests: t.Dict[t.Tuple[str, ...], t.List[Crossing]] = {}
    for crossing in probe.get("crossings", []):
        tests.setdefault(tuple(sorted((crossing["network"], crossing["other"]))), []).append(crossing)
    if not tests:
        yield unproven("rail_isolation", *TWO_RAILS)
    for rails, each in sorted(tests.items()):
        yield rails_check(" and ".join(rails), each, expect.rail_isolation == APART)


def rails_check(rails: str, tests: t.Sequence[Crossing], apart: bool) -> Check:
    crossed = [
        f"{one['from']} on {one['network']} reaches {one['to']} on {one['other']} {way(one)}"
        for one in tests
        if way(one)
    ]
    if crossed or not apart:
        seen = shorten_list(crossed, FEW, "; ") or "no answer"
        return result(
            "rail_isolation", bool(crossed) != apart, "no answer" if apart else "an answer", seen, subject=rails
        )
    error = next((one["error"] for one in tests if one["error"]), "")
    if error:
        return result("rail_isolation", False, "pings from pods", error, subject=rails)
    if not all(one["far"]["supported"] for one in tests):
        seen = f"the image's ping: {tests[0]['far']['seen']}"
        return unproven("rail_isolation", seen, need_image("ping of iputils"), subject=rails)
    if not all(one["asked"] for one in tests):
        return unproven("rail_isolation", *NO_LINK_LOCAL, subject=rails)
    return result("rail_isolation", True, "no answer", f"no answer to {2 * len(tests)} pings", subject=rails)
