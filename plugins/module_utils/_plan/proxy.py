# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a site with a proxy reaches without the proxy."""

from __future__ import annotations

import ipaddress
import re
import typing as t

from .._host.vipu import split_endpoint
from .._model.plan import NoProxy, PlannedNetwork, Vipu
from .._model.settings import Settings
from .endpoints import parse_address
from .hosts import Hosts, PlacedHost

ALWAYS = ("localhost", "127.0.0.1", "127.0.0.0/8", "::1", ".svc", ".cluster.local")


def host_of(source: str) -> str:
    """The host in a URL, in host:port, or in the name of an image's registry; empty if there is none."""
    rest = re.sub(r"^[a-zA-Z+]+://", "", source.strip())
    place = rest.partition("/")[0].rpartition("@")[2]
    if source.startswith(("file:", "/")) or not place:
        return ""
    try:
        return split_endpoint(place, 443)[0]
    except ValueError:
        return ""


def sources(mirror: object, key: str = "") -> t.List[str]:
    """The URLs in a site's mirrors, and its registry, which may be only host:port."""
    if isinstance(mirror, dict):
        return [source for name, value in mirror.items() for source in sources(value, str(name))]
    return [mirror] if isinstance(mirror, str) and ("://" in mirror or key == "registry") else []


def network_of(host: PlacedHost, address: str) -> str:
    """The network of a host's address, or only the address if the network is not known."""
    own = parse_address(address)
    if own is None:
        return ""
    for link in host.rdma["links"] if host.rdma else ():
        for one in link["addresses"]:
            if parse_address(one["address"]) == own:
                return str(ipaddress.ip_network(f"{own}/{one['prefix']}", strict=False))
    return str(own)


def plan_no_proxy(
    settings: Settings,
    hosts: Hosts,
    endpoints: t.Sequence[str],
    cidrs: t.Sequence[str],
    vipu: Vipu,
    networks: t.Sequence[PlannedNetwork],
) -> NoProxy:
    """Both lists, each in a stable order: a file made from them changes only when the site does."""
    if settings.proxy is None:
        return {"everything": [], "downloads": []}
    downloads = [
        *ALWAYS,
        *cidrs,
        *sorted({network_of(host, address) for host in hosts.values() for address in host.addresses}),
        *sorted({host_of(source) for source in settings.proxy.mirrors}),
        *settings.proxy.no_proxy,
    ]
    everything = [
        *downloads,
        *(host_of(endpoint) for endpoint in endpoints),
        *(subnet["cidr"] for network in networks for subnet in network["subnets"]),
        *(word for host in hosts.values() for word in (host.name, host.node, *host.addresses)),
        *(word for controller in vipu["controllers"] for word in (controller["host"], controller["address"])),
    ]
    return {"everything": _words(everything), "downloads": _words(downloads)}


def _words(words: t.Iterable[str]) -> t.List[str]:
    return list(dict.fromkeys(word for word in words if word))
