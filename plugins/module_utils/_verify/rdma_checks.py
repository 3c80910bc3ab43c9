# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of RDMA from the host's device to the traffic between pods; skipped where the plan has none. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import (
    KINDS,
    NO_IPU,
    NODE_POD,
    TWO_NODES,
    Check,
    Expect,
    result,
    skip,
)
from ansible_collections.ipu.fabric.plugins.module_utils._verify.commands import gid_of
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pods import Facts, addresses_of

NO_RDMA = "planned without RDMA"
HARDWARE = tuple(name for name, kind in KINDS.items() if kind.area == "rdma" and name != "host_traffic")


def judge_rdma(plan: Facts, probe: Facts, expect: Expect) -> t.Iterator[Check]:
    checks = ("rdma_resource", "rdma_link", "link_layer", "rdma_files", "gid")
    for network in plan.get("networks", []):
        name = network["name"]
        if not network.get("rdma"):
            yield from (skip(check, NO_RDMA, network=name) for check in HARDWARE)
            continue
        for node, pod in sorted(probe["pods"].items()):
            if name not in pod["networks"]:
                continue
            where = {"node": node, "network": name}
            held = (
                probe["nodes"].get(node, {}).get("allocatable", {}).get(name, {"resource": "RDMA resource", "count": 0})
            )
            link = plan["hosts"][pod["host"]]["links"][name]
            seen = "{resource}: {count}".format(**held)
            if not held["count"]:
                seen += f"; {broken_chain(link, pod.get('rdma') or {})}"
            yield result("rdma_resource", held["count"] > 0, f"{held['resource']} > 0", seen, **where)
            if pod["state"] != "running" or "rdma" not in pod:
                yield from (skip(c, NODE_POD, **where) for c in checks[1:])
            else:
                yield from device_checks(pod["rdma"], link.get("device") or "", addresses_of(pod, name), where)


def broken_chain(link: Facts, rdma: Facts) -> str:
    """Where the way from the NIC's name to the resource ends: NIC, RDMA device, its device files, the plugin."""
    nic, device, classes = link.get("netdev", "the NIC"), link.get("device") or "", rdma.get("classes")
    if not device:
        return f"{nic} has no infiniband/ below its PCI device"
    if not classes:
        return f"{nic} is {device}; what the node has can't be seen"
    if f"infiniband/{device}" not in classes:
        return f"the node has no {device} (of {nic}) in /sys/class/infiniband"
    wanted = {"infiniband_verbs/uverbs": "ib_uverbs", "infiniband_mad/umad": "ib_umad", "misc/rdma_cm": "rdma_ucm"}
    missing = [module for start, module in wanted.items() if not any(name.startswith(start) for name in classes)]
    if missing:
        return f"{nic} is {device}, but the module {', '.join(missing)} is not loaded"
    return f"{nic} is {device} with all its device files: the device plugin does not select it"


def device_checks(rdma: Facts, device: str, addresses: t.Sequence[str], where: t.Dict[str, str]) -> t.Iterator[Check]:
    ports = {name: port for name, port in rdma["ports"].items() if not device or name.startswith(f"{device}/")}
    label = device or "an RDMA device"
    states = ", ".join(f"{name} {port.get('state', 'no state')}" for name, port in sorted(ports.items()))
    active = any(port.get("state") == "ACTIVE" for port in ports.values())
    yield result("rdma_link", active, f"{label} ACTIVE", states or f"no port of {label} in the pod", **where)
    layers = sorted({port.get("link_layer", "not known") for port in ports.values()})
    yield result("link_layer", layers == ["Ethernet"], "Ethernet", ", ".join(layers) or f"no port of {label}", **where)
    files = rdma["files"]
    good = "rdma_cm" in files and any(name.startswith("uverbs") for name in files)
    yield result("rdma_files", good, "uverbs*, rdma_cm", ", ".join(files) or "no /dev/infiniband", **where)
    yield gid_check(rdma["gids"], addresses, where)


def gid_check(gids: t.Sequence[Facts], addresses: t.Sequence[str], where: t.Dict[str, str]) -> Check:
    """The GID is found by the address and its type: its index differs from pod to pod."""
    if not addresses:
        return skip("gid", "the pod has no address on this network", **where)
    wanted = {gid_of(address) for address in addresses}
    mine = [gid for gid in gids if gid["gid"] in wanted]
    found = next((gid for gid in mine if gid["type"] == "RoCE v2"), None)
    expected = f"RoCE v2 GID of {', '.join(addresses)}"
    if found:
        return result("gid", True, expected, "{device} port {port} index {index}".format(**found), **where)
    types = ", ".join(sorted({gid["type"] or "no type" for gid in mine}))
    return result("gid", False, expected, f"only as {types}" if mine else "no GID of this address", **where)


def judge_traffic(plan: Facts, probe: Facts, expect: Expect) -> t.Iterator[Check]:
    image = probe.get("rdma_image", "")
    for network in plan.get("networks", []):
        if not network.get("rdma"):
            continue  # judge_rdma() says why
        seen = [test for test in probe["traffic"] if test["network"] == network["name"]]
        if not seen:
            yield from (
                skip(c, TWO_NODES, network=network["name"]) for c in ("rping", "write_bandwidth", "read_latency")
            )
        for test in seen:
            yield traffic_check(test, image, expect)
    yield from host_traffic_checks(plan, probe, expect)


def traffic_check(test: Facts, image: str, expect: Expect) -> Check:
    check, where = test["check"], {"network": test["network"], "pair": (test["from"], test["to"])}
    if test["missing"]:
        return skip(check, f"{test['tool']} is not in the image {image}", **where)
    if test.get("blocked"):
        return skip(check, "rping failed between these pods", **where)
    value, unit = test["value"], test["unit"]
    expected, good = {
        "rping": ("10 pings", (value or 0) >= 10),
        "write_bandwidth": (f">= {expect.rdma_bandwidth:g} Gb/s", value is not None and value >= expect.rdma_bandwidth),
        "read_latency": (
            f"<= {expect.rdma_latency:g} us" if expect.rdma_latency else "a figure",
            value is not None and (not expect.rdma_latency or value <= expect.rdma_latency),
        ),
    }[check]
    if test["rc"] != 0 or value is None:
        return result(check, False, expected, test["seen"], **where)
    return result(check, good, expected, f"{value:g} {unit}", value=value, unit=unit, **where)


def host_traffic_checks(plan: Facts, probe: Facts, expect: Expect) -> t.Iterator[Check]:
    reason = "no IPU node has a running pod with RDMA"
    if not expect.ipu:
        reason = NO_IPU
    elif not any(network.get("rdma") for network in plan.get("networks", [])):
        reason = NO_RDMA
    elif not expect.ipu_partition:
        reason = "no V-IPU partition was given for it (verify_ipu_partition)"
    if not probe["host_traffic"]:
        yield skip("host_traffic", reason)
    for test in probe["host_traffic"]:
        where = {"node": test["node"]}
        if test["missing"]:
            yield skip("host_traffic", f"gc-hosttraffictest is not in the image {probe.get('rdma_image', '')}", **where)
            continue
        value = test["value"]
        good = test["rc"] == 0 and value is not None and value >= expect.host_traffic
        seen = test["seen"] if value is None or test["rc"] else f"{value:.1f} Gb/s in the slowest direction"
        expected = f">= {expect.host_traffic:g} Gb/s"
        yield result("host_traffic", good, expected, seen, value=value, unit="Gb/s", **where)
