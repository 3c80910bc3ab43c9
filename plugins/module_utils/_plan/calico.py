# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a Calico that others manage may pick a fabric NIC's address for the pod network's traffic."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import typing as t

from .._common.findings import Findings
from .._common.text import shorten_list
from .host_links import HostLink, NetworkLinks
from .running_cluster import Running

BY_OPERATOR = "DaemonSet calico-system/calico-node"
SHOWN = 8


def check_autodetection(running: t.Optional[Running], chosen: t.Sequence[NetworkLinks], findings: Findings) -> None:
    """Warn if Calico may choose a fabric NIC, unless the node's address is on it: then the host has no other choice."""
    links = [link for network in chosen for link in network.links.values()]
    links = [link for link in links if link.host.address not in {entry["address"] for entry in link.nic["addresses"]}]
    for pods in running.facts["pod_networks"] if running else []:
        for variable, method in pods.get("autodetection", {}).items():
            version = 6 if variable.startswith("IP6") else 4
            taken = [link for link in links if _may_take(method, link, version)]
            if running and taken:
                nics = sorted({link.nic["netdev"] for link in taken})
                by_operator = pods["seen"] == BY_OPERATOR
                setting = f"calicoNetwork.nodeAddressAutodetectionV{version}"
                findings.warning(
                    "calico-address",
                    sorted({link.host.name for link in taken}),
                    "Calico may take a fabric NIC's address, and send the pod network's traffic there.",
                    f"{variable} of {pods['seen']} is {method}, which allows {shorten_list(nics, SHOWN)}",
                    f"In the Installation named default, set {setting} to {{kubernetes: NodeInternalIP}}."
                    if by_operator
                    else f"Run kubectl set env {_place(pods['seen'])} {variable}=kubernetes-internal-ip",
                )


def _place(seen: str) -> str:
    """kubectl arguments for `DaemonSet kube-system/calico-node`."""
    kind, _space, place = seen.partition(" ")
    namespace, _slash, name = place.partition("/")
    return f"-n {namespace} {kind.lower()}/{name}"


def _may_take(method: str, link: HostLink, version: int) -> bool:
    """Whether the method may choose an address of this NIC; False for unknown methods."""
    way, _equals, value = method.partition("=")
    values = [part.strip() for part in value.split(",") if part.strip()]
    with contextlib.suppress(ValueError, re.error):  # Calico itself would end with an error
        own = [ipaddress.ip_interface(f"{one['address']}/{one['prefix']}") for one in link.nic["addresses"]]
        own = [one for one in own if one.version == version]
        named = any(re.search(part, link.nic["netdev"]) for part in values if way.endswith("interface"))
        if way == "can-reach":
            return any(ipaddress.ip_address(value) in one.network for one in own)
        if way == "cidr":
            return any(one.ip in ipaddress.ip_network(part, strict=False) for one in own for part in values)
        return bool(own) and (
            way == "first-found" or (way == "interface" and named) or (way == "skip-interface" and not named)
        )
    return False
