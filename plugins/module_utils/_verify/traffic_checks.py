# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of traffic between pods: ping, full-size packets, RDMA tests, and gc-hosttraffictest. Pure functions."""

from __future__ import annotations

import re
import typing as t

from .._model.checks import Check, Expect, Place
from .._model.plan import Plan, PlannedNetwork
from .._model.probe import HostTraffic, Ping, PingPair, Probe, Traffic
from .._model.stacks import has_rdma
from .attribution import attribute
from .catalog import (
    FAILED,
    NO_RDMA,
    NO_RDMA_CM,
    NODE_POD,
    NOT_MEASURED,
    ONE_ADDRESS,
    PASSED,
    TWO_NODES,
    need_image,
    result,
    skip,
    unproven,
)
from .counter_checks import check_counters
from .pods import Device, addresses_of, devices_on, has_one_address
from .speed_checks import check_speeds

# perftest's wording by age; it may have been built without DMA-BUF.
NO_CUDA = re.compile(r"Unsupported memory type|unrecognized option '--use_cuda")
RPINGS = 10  # as many as pod.sh sends
SPEEDS = ("rping", "write_bandwidth", "read_latency")
RDMA_TESTS = (*SPEEDS, "rdma_counters")
# What to check, by what the matrix of a test points to.
NEXT_STEPS = {
    "node": "Check this node's port and cable, its switch port, its PCIe (plan: pcie-link), PFC and ECN.",
    "path": "Both nodes do well with others: check switches and links between them, PFC, ECN and MTU.",
    "all": "Check what all pairs share: switch, MTU, PFC, ECN. If it is as it should be, set what to expect"
    " (verify_rdma_bandwidth, verify_rdma_latency).",
}


def check_pings(plan: Plan, probe: Probe) -> t.Iterator[Check]:
    for network in plan["networks"]:
        pairs = [pair for pair in probe["pairs"] if pair["network"] == network["name"]]
        if not pairs:
            yield from no_pairs(network, ("ping", "full_size"))
        for pair in pairs:
            where: Place = {"network": network["name"], "pair": (pair["from"], pair["to"])}
            if pair["address"] in addresses_of(probe["pods"][pair["from"]], network["name"]):
                yield from (
                    result(check, False, "another pod answers", f"{pair['address']} is the address of both", **where)
                    for check in ("ping", "full_size")  # the pod has answered itself
                )
            else:
                yield from ping_checks(pair, where)


def no_pairs(network: PlannedNetwork, checks: t.Sequence[str]) -> t.Iterator[Check]:
    if has_one_address(network):
        yield from (skip(check, ONE_ADDRESS, network=network["name"]) for check in checks)
    else:
        yield from (unproven(check, *TWO_NODES, network=network["name"]) for check in checks)


def ping_checks(pair: PingPair, where: Place) -> t.Iterator[Check]:
    """If a small packet comes back and a full-size one does not, the MTU is wrong, and the path is not broken."""
    full, small = pair.get("full"), pair.get("small")
    if small is None:
        reason = pair["error"] or "no output"
        yield from (result(check, False, "answers", reason, **where) for check in ("ping", "full_size"))
        return
    if not small["supported"]:
        reason, missing = f"the image's ping: {small['seen']}", need_image("ping of iputils")
        yield from (unproven(check, reason, missing, **where) for check in ("ping", "full_size"))
        return
    seen = answered(small) + (f", {small['rtt_ms']} ms" if small["rtt_ms"] else "")
    good = small["received"] > 0
    yield result("ping", good, f"answers from {pair['address']}", seen, value=small["rtt_ms"], unit="ms", **where)
    expected = f"{pair['mtu']} bytes, not fragmented"
    if full is None:
        yield skip("full_size", "the plan has no MTU for this network", **where)
    elif not full["supported"]:
        reason = "the image's ping cannot forbid fragments (-M do)"
        yield unproven("full_size", reason, need_image("ping of iputils"), **where)
    else:
        seen = answered(full)
        seen += f", the path's MTU is {full['path_mtu']}" if full["path_mtu"] else ""
        yield result("full_size", full["received"] > 0, expected, seen, **where)


def answered(ping: Ping) -> str:
    """How many came back; if none did, also what ping printed besides its statistics."""
    why = "" if ping["received"] or "packets transmitted" in ping["seen"] else f": {ping['seen']}"
    return f"{ping['received']} of {ping['sent']} answered{why}"


def check_traffic(plan: Plan, probe: Probe, expect: Expect) -> t.Iterator[Check]:
    tests: t.Dict[str, t.List[Traffic]] = {}
    for test in probe["traffic"]:
        tests.setdefault(test["network"], []).append(test)
    for network in plan["networks"]:
        if not network["rdma"]:
            continue  # check_rdma() reports why
        seen = tests.get(network["name"], [])
        if not seen:
            yield from no_pairs(network, RDMA_TESTS)
            continue
        devices = devices_on(probe["pods"], network["name"])
        for kind in SPEEDS:
            mine = [test for test in seen if test["check"] == kind]
            yield from judge_speeds(kind, plan, probe, devices, mine, expect)
        pairs: t.Dict[t.Tuple[str, str], t.List[Traffic]] = {}
        for test in seen:
            pairs.setdefault((test["from"], test["to"]), []).append(test)
        yield from (check_counters(each, devices) for each in pairs.values())
    if not plan["networks"] and has_rdma(plan):
        yield skip("rping", NO_RDMA_CM)
        yield from (unproven(check, *NOT_MEASURED) for check in RDMA_TESTS if check != "rping")
    yield from host_traffic_checks(plan, probe, expect)


def judge_speeds(
    kind: str,
    plan: Plan,
    probe: Probe,
    devices: t.Mapping[str, Device],
    tests: t.Sequence[Traffic],
    expect: Expect,
) -> t.Iterator[Check]:
    """The checks of one kind on one network, with what each failure points to."""
    yield from name_suspects(kind, [*speed_checks(plan, probe, devices, tests, expect)])


def speed_checks(
    plan: Plan, probe: Probe, devices: t.Mapping[str, Device], tests: t.Sequence[Traffic], expect: Expect
) -> t.Iterator[Check]:
    """The checks of one kind on one network; tests with a figure are judged together."""
    failures = [failure(test, probe["rdma_image"]) for test in tests]
    measured = [test for test, failed in zip(tests, failures) if not failed]
    yield from filter(None, failures)
    if tests and tests[0]["check"] == "rping":
        yield from map(rping_check, measured)
    else:
        yield from check_speeds(plan, probe["pods"], devices, measured, expect)


def failure(test: Traffic, image: str) -> t.Optional[Check]:
    """The failure of a test without a figure; None if it has one."""
    check = test["check"]
    where: Place = {"network": test["network"], "pair": (test["from"], test["to"])}
    if test["missing"]:
        return unproven(check, f"{test['tool']} is not in the image {image}", need_image("rping and perftest"), **where)
    if test["blocked"]:
        return unproven(
            check, "rping failed between these pods", "First act on `rping from pod to pod` of this pair.", **where
        )
    if NO_CUDA.search(test["seen"]):
        tool = "perftest built with CUDA and DMA-BUF"
        return unproven(check, f"ib_write_bw of the image {image} has no CUDA", need_image(tool), **where)
    if test["rc"] != 0 or test["value"] is None:
        return result(check, False, f"{RPINGS} pings" if check == "rping" else "a figure", test["seen"], **where)
    return None


def rping_check(test: Traffic) -> Check:
    value = test["value"] or 0
    where: Place = {"network": test["network"], "pair": (test["from"], test["to"])}
    seen = f"{value:g} {test['unit']}"
    return result("rping", value >= RPINGS, f"{RPINGS} pings", seen, value=value, unit=test["unit"], **where)


def name_suspects(kind: str, checks: t.List[Check]) -> t.Iterator[Check]:
    """Add to each failure whether it points to the node, the path, or everything."""
    blame = attribute({check.pair: check.status != FAILED for check in checks if check.status in (PASSED, FAILED)})
    for check in checks:
        if check.status == FAILED and len(checks) > 1:
            suspect = blame.of(check.pair)
            next_step = (
                NEXT_STEPS[suspect.partition(" ")[0]] if kind in ("write_bandwidth", "read_latency") else check.next
            )
            yield check._replace(seen=f"{check.seen} ({suspect})", next=next_step)
        else:
            yield check


def host_traffic_checks(plan: Plan, probe: Probe, expect: Expect) -> t.Iterator[Check]:
    """Checks of host traffic, which a site requests by naming a partition."""
    if not expect.ipu:
        return
    reasons = {
        NO_RDMA: not has_rdma(plan),
        "no V-IPU partition was given for it (verify_ipu_partition)": not expect.ipu_partition,
    }
    reason = next((reason for reason, holds in reasons.items() if holds), "")
    if not probe["host_traffic"] and reason:
        yield skip("host_traffic", reason)
    elif not probe["host_traffic"]:
        yield unproven("host_traffic", "no IPU node has a running pod with RDMA", NODE_POD[1])
    for test in probe["host_traffic"]:
        if test["missing"]:
            seen = f"gc-hosttraffictest is not in the image {probe['rdma_image']}"
            yield unproven("host_traffic", seen, need_image("gc-hosttraffictest of Poplar"), node=test["node"])
        else:
            yield host_traffic_check(test, expect.host_traffic)


def host_traffic_check(test: HostTraffic, least: float) -> Check:
    value = test["value"]
    good = test["rc"] == 0 and value is not None and value >= least
    seen = test["seen"] if value is None or test["rc"] else f"{value:.1f} Gb/s in the slowest direction"
    return result("host_traffic", good, f">= {least:g} Gb/s", seen, node=test["node"], value=value, unit="Gb/s")
