# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual address for the API, as a host sees it: whether the host has it, or who else does.

Changes nothing, and sends only a TCP handshake. Before it, the kernel asks the local network for the address (ARP or
neighbour discovery): whoever answers has it, whatever firewall protects its ports.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import time
import typing as t

from .._common.command import Done, run_program
from .._model.observation import VipFacts
from .files import OWN_MARK, read_text

Runner = t.Callable[[t.Sequence[str]], Done]

KEEPALIVED = "etc/keepalived/keepalived.conf"
PORT = 6443
CONNECT_SECONDS = 4.0  # the kernel asks for a neighbour three times, a second apart
NEIGHBOUR_SECONDS = 10.0  # until the kernel gives up a neighbour that it knew
SETTLED = ("REACHABLE", "PERMANENT", "NOARP")
UNSETTLED = ("STALE", "DELAY", "PROBE", "INCOMPLETE")


class IpItem(t.TypedDict, total=False):
    """An object in the JSON of `ip addr`, `ip neigh` or `ip route`."""

    ifname: str
    addr_info: t.List[t.Dict[str, object]]
    lladdr: str
    state: t.List[str]
    gateway: str
    via: t.Dict[str, str]


def _items(text: str) -> t.List[IpItem]:
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    items: t.List[IpItem] = found if isinstance(found, list) else []
    return [item for item in items if isinstance(item, dict)]


def _same(text: object, address: str) -> bool:
    try:
        return ipaddress.ip_address(str(text)) == ipaddress.ip_address(address)
    except ValueError:
        return False


def parse_holder(text: str, address: str) -> str:
    """The device that has the address, from `ip -j addr`; empty if there is none."""
    for item in _items(text):
        if any(_same(entry.get("local"), address) for entry in item.get("addr_info", ())):
            return item.get("ifname", "")
    return ""


def parse_neighbour(text: str) -> t.Tuple[str, bool]:
    """The MAC that `ip -j neigh` shows, and whether the kernel's lookup is finished."""
    for item in _items(text):
        states = item.get("state", [])
        if any(state in SETTLED for state in states):
            return item.get("lladdr", ""), True
        if any(state in UNSETTLED for state in states):
            return "", False
    return "", True  # no entry, or a failed one


def parse_gateways(text: str) -> t.List[str]:
    """Gateways in `ip -j route`."""
    found = {item.get("gateway") or item.get("via", {}).get("host", "") for item in _items(text)}
    return sorted(found - {""})


def is_foreign(text: str) -> bool:
    """Whether a configuration of keepalived is somebody else's."""
    return bool(text.strip()) and OWN_MARK not in text


def knock(address: str, port: int = PORT, seconds: float = CONNECT_SECONDS) -> str:
    """The result of a TCP connection; empty if nobody answered."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.settimeout(seconds)
            one.connect((address, port))
        return "open"
    except ConnectionRefusedError:
        return "refused"
    except OSError:
        return ""


def _find_neighbour(address: str, run: Runner, seconds: float) -> str:
    end = time.monotonic() + seconds
    while True:
        mac, settled = parse_neighbour(run(["ip", "-j", "neigh", "show", "to", address]).out)
        if settled or time.monotonic() > end:
            return mac
        time.sleep(0.5)


def read_vip(
    address: str, *, root: str = "/", run: Runner = run_program, seconds: float = NEIGHBOUR_SECONDS
) -> t.Optional[VipFacts]:
    """All facts; None if no address, or an invalid one, was given: the plan reports the latter."""
    try:
        version = ipaddress.ip_address(address).version
    except ValueError:
        return None
    held = bool(parse_holder(run(["ip", "-j", "addr"]).out, address))
    answered = "" if held else knock(address)
    return {
        "address": address,
        "held": held,
        "answered": answered,
        "mac": "" if held else _find_neighbour(address, run, seconds),
        "gateways": parse_gateways(run(["ip", "-j", f"-{version}", "route"]).out),
        "foreign_keepalived": is_foreign(read_text(os.path.join(root, KEEPALIVED))),
    }
