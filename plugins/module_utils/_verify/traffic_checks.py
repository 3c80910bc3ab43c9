# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of traffic between pods: ping, full-size packets, RDMA tests, and gc-hosttraffictest. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check, Expect, Place
from ansible_collections.ipu.fabric.plugins.module_utils._model.plan import Plan
from ansible_collections.ipu.fabric.plugins.module_utils._model.probe import HostTraffic, PingPair, Probe, Traffic
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import NO_IPU, NO_RDMA, TWO_NODES, result, skip

RPINGS = 10  # as many as pod.sh asks for


def check_pings(plan: Plan, probe: Probe) -> t.Iterator[Check]:
    for network in plan["networks"]:
        pairs = [pair for pair in probe["pairs"] if pair["network"] == network["name"]]
        if not pairs:
            yield from (skip(check, TWO_NODES, network=network["name"]) for check in ("ping", "full_size"))
        for pair in pairs:
            yield from ping_checks(pair, {"network": network["name"], "pair": (pair["from"], pair["to"])})


def ping_checks(pair: PingPair, where: Place) -> t.Iterator[Check]:
    """A small packet that comes back and a full-size one that does not is an MTU fault, not a broken path."""
    full, small = pair.get("full"), pair.get("small")
    if small is None:
        reason = pair["error"] or "no output"
        yield from (result(check, False, "answers", reason, **where) for check in ("ping", "full_size"))
        return
    if not small["supported"]:
        yield from (skip(check, f"the image's ping: {small['seen']}", **where) for check in ("ping", "full_size"))
        return
    seen = f"{small['received']} of {small['sent']} answered" + (f", {small['rtt_ms']} ms" if small["rtt_ms"] else "")
    good = small["received"] > 0
    yield result("ping", good, f"answers from {pair['address']}", seen, value=small["rtt_ms"], unit="ms", **where)
    expected = f"{pair['mtu']} bytes, not fragmented"
    if full is None:
        yield skip("full_size", "the plan has no MTU for this network", **where)
    elif not full["supported"]:
        yield skip("full_size", "the image's ping cannot forbid fragments (-M do): use one with iputils", **where)
    else:
        seen = f"{full['received']} of {full['sent']} answered"
        seen += f", the path's MTU is {full['path_mtu']}" if full["path_mtu"] else ""
        yield result("full_size", full["received"] > 0, expected, seen, **where)


def check_traffic(plan: Plan, probe: Probe, expect: Expect) -> t.Iterator[Check]:
    for network in plan["networks"]:
        if not network["rdma"]:
            continue  # check_rdma() says why
        seen = [test for test in probe["traffic"] if test["network"] == network["name"]]
        if not seen:
            yield from (
                skip(c, TWO_NODES, network=network["name"]) for c in ("rping", "write_bandwidth", "read_latency")
            )
        for test in seen:
            yield traffic_check(test, probe["rdma_image"], expect)
    yield from host_traffic_checks(plan, probe, expect)


def traffic_check(test: Traffic, image: str, expect: Expect) -> Check:
    check = test["check"]
    where: Place = {"network": test["network"], "pair": (test["from"], test["to"])}
    if test["missing"]:
        return skip(check, f"{test['tool']} is not in the image {image}", **where)
    if test["blocked"]:
        return skip(check, "rping failed between these pods", **where)
    value, unit = test["value"], test["unit"]
    figure = value or 0
    expected, good = {
        "rping": (f"{RPINGS} pings", figure >= RPINGS),
        "write_bandwidth": (f">= {expect.rdma_bandwidth:g} Gb/s", figure >= expect.rdma_bandwidth),
        "read_latency": (
            f"<= {expect.rdma_latency:g} us" if expect.rdma_latency else "a figure",
            not expect.rdma_latency or figure <= expect.rdma_latency,
        ),
    }[check]
    if test["rc"] != 0 or value is None:
        return result(check, False, expected, test["seen"], **where)
    return result(check, good, expected, f"{value:g} {unit}", value=value, unit=unit, **where)


def host_traffic_checks(plan: Plan, probe: Probe, expect: Expect) -> t.Iterator[Check]:
    reason = "no IPU node has a running pod with RDMA"
    if not expect.ipu:
        reason = NO_IPU
    elif not any(network["rdma"] for network in plan["networks"]):
        reason = NO_RDMA
    elif not expect.ipu_partition:
        reason = "no V-IPU partition was given for it (verify_ipu_partition)"
    if not probe["host_traffic"]:
        yield skip("host_traffic", reason)
    for test in probe["host_traffic"]:
        if test["missing"]:
            seen = f"gc-hosttraffictest is not in the image {probe['rdma_image']}"
            yield skip("host_traffic", seen, node=test["node"])
        else:
            yield host_traffic_check(test, expect.host_traffic)


def host_traffic_check(test: HostTraffic, least: float) -> Check:
    value = test["value"]
    good = test["rc"] == 0 and value is not None and value >= least
    seen = test["seen"] if value is None or test["rc"] else f"{value:.1f} Gb/s in the slowest direction"
    return result("host_traffic", good, f">= {least:g} Gb/s", seen, node=test["node"], value=value, unit="Gb/s")
