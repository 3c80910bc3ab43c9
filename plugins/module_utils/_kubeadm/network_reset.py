# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds what Kubernetes left in a host's network, and removes it."""

from __future__ import annotations

import json
import os
import typing as t

from .._common.command import Done, find_program, output_of, run_program
from .._common.result import printed_by
from .._host.files import read_text
from . import network_traces
from .membership import host_name

SECONDS = 120
NETNS = "/run/netns"
SAVERS = (
    # Unused backends are not queried: that would load their kernel modules, or fail without IPv6.
    ("iptables-legacy", "/proc/net/ip_tables_names"),
    ("ip6tables-legacy", "/proc/net/ip6_tables_names"),
    ("iptables-nft", ""),
    ("ip6tables-nft", "/proc/net/if_inet6"),
)


Found = t.Dict[str, t.List[str]]  # what to remove, by kind


class InterfaceAddress(t.TypedDict):
    """An address in the JSON of `ip -j addr`."""

    local: str


class LinkAddresses(t.TypedDict, total=False):
    """A device in the JSON of `ip -j addr`."""

    addr_info: t.List[InterfaceAddress]


def printed(*argv: str) -> str:
    """The output of a program; empty if it is not installed."""
    if not find_program(argv[0]):
        return ""
    return printed_by(
        run_program(argv, SECONDS),
        SECONDS,
        "Could not read what has to be removed.",
        " ".join(argv),
        "Try the command on the host. Then run again: nothing is lost.",
    )


def list_links() -> t.List[network_traces.Link]:
    found: t.List[network_traces.Link] = json.loads(printed("ip", "-j", "-d", "link", "show") or "[]")
    return found


def list_routes(family: str) -> t.List[network_traces.Route]:
    argv = ("ip", "-j", family, "route", "show", "proto", network_traces.FELIX)
    found: t.List[network_traces.Route] = json.loads(printed(*argv) or "[]")
    return found


def list_addresses(link: str) -> t.List[str]:
    shown: t.List[LinkAddresses] = json.loads(printed("ip", "-j", "addr", "show", "dev", link) or "[]")
    return [each["local"] for one in shown for each in one.get("addr_info", [])]


def execute(*argv: str, data: str = "") -> Done:
    done = run_program(argv, SECONDS, data=data)
    printed_by(
        done,
        SECONDS,
        "Could not remove all that Kubernetes left on this host.",
        f"{' '.join(argv)} on {host_name()}",
        "Fix what it reports, then run again: it continues from here.",
    )
    return done


def rule_programs() -> t.List[str]:
    """The iptables programs of every backend on this host."""
    names = [name for name, used in SAVERS if find_program(f"{name}-save") and (not used or read_text(used).strip())]
    return names or [name for name in ("iptables", "ip6tables") if find_program(f"{name}-save")]


def read_rules() -> t.Dict[str, network_traces.OwnRules]:
    return {name: network_traces.own_rules(printed(f"{name}-save")) for name in rule_programs()}


def read_network(rules: t.Mapping[str, network_traces.OwnRules]) -> Found:
    links = network_traces.own_links(list_links())
    served: t.List[t.List[str]] = []
    if "kube-ipvs0" in links and find_program("ipvsadm"):
        saved, addresses = printed("ipvsadm", "--save", "-n"), list_addresses("kube-ipvs0")
        served = network_traces.own_virtual_servers(saved, addresses)
    return {
        "network_namespaces": network_traces.own_namespaces(os.listdir(NETNS) if os.path.isdir(NETNS) else []),
        "rules": [f"{name}: {each}" for name, own in rules.items() for each in (*own.chains, *own.rules)],
        # Both fail on a kernel that does not support them.
        "nft_tables": network_traces.own_tables(output_of("nft", "list", "tables")),
        "ip_sets": network_traces.own_ip_sets(output_of("ipset", "list", "-name")),
        "virtual_servers": [" ".join(words) for words in served],
        "routes": [
            f"{option} {route}" for option in ("-4", "-6") for route in network_traces.own_routes(list_routes(option))
        ],
        "links": links,
    }


def remove_network(found: Found, rules: t.Mapping[str, network_traces.OwnRules]) -> None:
    for name in found["network_namespaces"]:
        execute("ip", "netns", "delete", name)
    for program, own in rules.items():
        if own.restore:
            execute(f"{program}-restore", "--noflush", "--wait", data=own.restore)
    for table in found["nft_tables"]:
        execute("nft", "delete", "table", *table.split())
    for service in found["virtual_servers"]:
        protocol, address = service.split()
        execute("ipvsadm", "--delete-service", protocol, address)
    for name in found["ip_sets"]:
        execute("ipset", "destroy", name)
    for route in found["routes"]:
        family, destination = route.split()
        execute("ip", family, "route", "delete", "blackhole", destination, "proto", network_traces.FELIX)
    remove_links(found["links"])


def remove_links(names: t.Sequence[str]) -> None:
    """Remove links. A veth goes together with its peer, so it may be gone already."""
    for name in names:
        if os.path.isdir(f"/sys/class/net/{name}"):
            done = run_program(["ip", "link", "delete", name], SECONDS)
            if done.rc != 0 and os.path.isdir(f"/sys/class/net/{name}"):
                execute("ip", "link", "delete", name)
