# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of RDMA on a node and in its pod: resource, link, device files, GID; skipped without RDMA. Pure functions."""

from __future__ import annotations

import typing as t

from .._model.checks import Check, Place
from .._model.plan import Plan, PlannedLink, PlannedNetwork
from .._model.probe import Gid, PodFacts, Probe, RdmaFacts, Resource
from .._model.profiles import ETHERNET, INFINIBAND
from .._model.stacks import has_rdma, host_nic, is_derived
from .._network.releases import kernel_before
from .catalog import CHECK_TYPES, HOST_DEVICES, NO_ADDRESS, NO_RDMA, NODE_POD, result, skip, unproven
from .parsers import gid_of, port_gid
from .pods import addresses_of, devices_on, link_of, node_of

OF_INFINIBAND = "Set LINK_TYPE of the port to InfiniBand, or plan this network with type macvlan or sriov."
NO_RESOURCE: Resource = {"resource": "RDMA resource", "count": 0}
HARDWARE = tuple(name for name, kind in CHECK_TYPES.items() if kind.area == "rdma" and name != "host_traffic")


def check_rdma(plan: Plan, probe: Probe) -> t.Iterator[Check]:
    if not plan["networks"]:
        yield from check_host_devices(plan, probe)
    for network in plan["networks"]:
        name = network["name"]
        if not network["rdma"]:
            yield from (skip(check, NO_RDMA, network=name) for check in HARDWARE)
            continue
        found = devices_on(probe["pods"], name)
        for key, pod in sorted(probe["pods"].items()):
            if name not in pod["networks"]:
                continue
            node = node_of(key)
            where: Place = {"node": key, "network": name}
            link, rdma = plan["hosts"][pod["host"]]["links"][name], pod.get("rdma")
            held = probe["nodes"][node]["allocatable"].get(name, NO_RESOURCE) if node in probe["nodes"] else NO_RESOURCE
            seen = "{resource}: {count}".format(**held)
            if not held["count"] and not is_derived(plan):
                demanded = bool(kernel_before(plan["releases"]["network_operator"]))
                seen += f"; {missing_part(link, rdma['classes'] if rdma else [], demanded)}"
            yield result("rdma_resource", held["count"] > 0, f"{held['resource']} > 0", seen, **where)
            if not link["device"] or network.get("vfs"):  # no host was observed, or it is a VF: the GID shows it
                link = t.cast(PlannedLink, {**link, "device": found[key].name if key in found else ""})
            yield from pod_checks(pod, link, addresses_of(pod, name), where, network)


def check_host_devices(plan: Plan, probe: Probe) -> t.Iterator[Check]:
    """What a privileged pod on the pod network sees of its host's device, whose GIDs are of the host's addresses."""
    if not has_rdma(plan):
        yield from (skip(check, NO_RDMA) for check in HARDWARE)
        return
    yield skip("rdma_resource", HOST_DEVICES)
    for key, pod in sorted(probe["pods"].items()):
        link = host_nic(plan, pod["host"])
        if link:
            yield from pod_checks(pod, link, [entry["address"] for entry in link["addresses"]], {"node": key})


def pod_checks(
    pod: PodFacts,
    link: PlannedLink,
    addresses: t.Sequence[str],
    where: Place,
    network: t.Optional[PlannedNetwork] = None,
) -> t.Iterator[Check]:
    checks, rdma = ("rdma_link", "link_layer", "rdma_files", "gid"), pod.get("rdma")
    if pod["state"] != "running" or rdma is None:
        yield from (unproven(check, *NODE_POD, **where) for check in checks)
    elif rdma["error"]:
        yield from (result(check, False, "facts from the pod", rdma["error"], **where) for check in checks)
    else:
        layer = network.get("link_layer", ETHERNET) if network else ETHERNET
        yield from device_checks(rdma, link["device"], layer, where)
        if network and layer == INFINIBAND:
            yield port_gid_check(rdma["gids"], port_gid(link_of(pod, network["name"])["mac"]), where)
        else:
            yield gid_check(rdma["gids"], addresses, where)


def missing_part(link: PlannedLink, classes: t.Sequence[str], issm: bool = True) -> str:
    """The first thing that a resource lacks: NIC, RDMA device, its device files, or the plugin's selection.

    issm: whether this release of the device plugin may require a device file issm*.
    """
    nic, device = link["netdev"], link["device"]
    if not device:
        return f"{nic} has no infiniband/ below its PCI device"
    if not classes:
        return f"{nic} is {device}; the node's RDMA devices can't be seen"
    if f"infiniband/{device}" not in classes:
        return f"the node has no {device} (of {nic}) in /sys/class/infiniband"
    wanted = {"infiniband_verbs/uverbs": "ib_uverbs", "infiniband_mad/umad": "ib_umad", "misc/rdma_cm": "rdma_ucm"}
    missing = [module for start, module in wanted.items() if not any(name.startswith(start) for name in classes)]
    if missing:
        return f"{nic} is {device}, but the module {', '.join(missing)} is not loaded"
    if issm and not any(name.startswith("infiniband_mad/issm") for name in classes):
        return (
            f"{nic} is {device} without issm*, which Linux 6.11 and later do not create for RoCE: device plugins before"
            " 1.5.2 require it (network operator before 24.10)"
        )
    return (
        f"{nic} is {device} with all its device files: the device plugin does not select it; it knows only"
        f" the first of the names in /sys/class/infiniband/{device}/device/net"
    )


def device_checks(rdma: RdmaFacts, device: str, layer: str, where: Place) -> t.Iterator[Check]:
    ports = {name: port for name, port in rdma["ports"].items() if not device or name.startswith(f"{device}/")}
    label = device or "an RDMA device"
    states = ", ".join(f"{name} {port.get('state', 'no state')}" for name, port in sorted(ports.items()))
    active = any(port.get("state") == "ACTIVE" for port in ports.values())
    yield result("rdma_link", active, f"{label} ACTIVE", states or f"no port of {label} in the pod", **where)
    layers = sorted({port.get("link_layer", "not known") for port in ports.values()})
    check = result("link_layer", layers == [layer], layer, ", ".join(layers) or f"no port of {label}", **where)
    yield check if layer == ETHERNET else check._replace(next=check.next and OF_INFINIBAND)
    files = rdma["files"]
    good = "rdma_cm" in files and any(name.startswith("uverbs") for name in files)
    yield result("rdma_files", good, "uverbs*, rdma_cm", ", ".join(files) or "no /dev/infiniband", **where)


def port_gid_check(gids: t.Sequence[Gid], wanted: str, where: Place) -> Check:
    """Check that, on InfiniBand, the interface's hardware address contains the GID of its port."""
    found = next((gid for gid in gids if gid["gid"] == wanted), None)
    seen = "{device} port {port} index {index}".format(**found) if found else "no such GID"
    expected = f"GID {wanted} of the interface" if wanted else "an interface on InfiniBand"
    return result("gid", bool(found), expected, seen if wanted else "its hardware address has no GID", **where)


def gid_check(gids: t.Sequence[Gid], addresses: t.Sequence[str], where: Place) -> Check:
    """Check the GID by address and type, since its index differs from pod to pod."""
    if not addresses:
        return unproven("gid", *NO_ADDRESS, **where)
    wanted = {gid_of(address) for address in addresses}
    mine = [gid for gid in gids if gid["gid"] in wanted]
    found = next((gid for gid in mine if gid["type"] == "RoCE v2"), None)
    expected = f"RoCE v2 GID of {', '.join(addresses)}"
    if found:
        return result("gid", True, expected, "{device} port {port} index {index}".format(**found), **where)
    types = ", ".join(sorted({gid["type"] or "no type" for gid in mine}))
    return result("gid", False, expected, f"only as {types}" if mine else "no GID of this address", **where)
