# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NICs of one rail, compared between its hosts: those that differ from the others are reported.

MTU (fabric-mtu) and links trained below their maximum (pcie-link) are checked without other hosts.
"""

from __future__ import annotations

import collections
import typing as t

from .._common.findings import Findings
from .._common.text import shorten_list
from .._model.observation import Link
from .host_links import NAMES, NetworkLinks

CHECK = "rail-nics"


def _rate(nic: Link) -> str:
    rate = nic.get("rate_gbps")
    return f"{rate:g} Gb/s" if rate else ""


def _slot(nic: Link) -> str:
    """What both ends of the PCIe link support, whatever speed it runs at now."""
    pcie = nic.get("pcie")
    return f"{pcie['max_speed_gtps']:g} GT/s x{pcie['max_width']}" if pcie else ""


class _Quality(t.NamedTuple):
    """A property that NICs of a rail should have in common."""

    name: str
    read: t.Callable[[Link], str]  # empty: not known
    of_model: bool  # whether only NICs of the same model are compared
    next_step: str


QUALITIES = (
    _Quality(
        "model",
        lambda nic: nic.get("model", ""),
        False,
        "Use one model of NIC on a rail, or plan a network for each (key hosts). Nothing to do if they are known to"
        " work.",
    ),
    _Quality(
        "firmware",
        lambda nic: nic.get("firmware", ""),
        True,
        "Bring all to one release of the firmware (mlxfwmanager of the vendor's tools), then reboot those hosts.",
    ),
    _Quality(
        "port rate",
        _rate,
        True,
        "Check cable, transceiver and switch port of the slow ones: ethtool shows the negotiated rate.",
    ),
    _Quality(
        "PCIe slot",
        _slot,
        True,
        "Put the NIC into the same slot as on the other hosts; the firmware of the host may also limit it.",
    ),
)


def check_alike(chosen: NetworkLinks, findings: Findings) -> None:
    """Warn of hosts whose NIC differs from most of the rail. Unknown values are not compared."""
    for quality in QUALITIES:
        groups: t.Dict[str, t.Dict[str, t.List[str]]] = {}
        for host, link in chosen.links.items():
            value = quality.read(link.nic)
            kind = f"{link.nic['driver']} {link.nic.get('model', '')}" if quality.of_model else ""
            if value:
                groups.setdefault(kind, {}).setdefault(value, []).append(host)
        for by_value in groups.values():
            if len(by_value) > 1:
                _report(chosen, quality, by_value, findings)


def _report(
    chosen: NetworkLinks, quality: _Quality, by_value: t.Mapping[str, t.Sequence[str]], findings: Findings
) -> None:
    usual = most_common({value: len(hosts) for value, hosts in by_value.items()})
    odd = {value: hosts for value, hosts in by_value.items() if value != usual}
    parts = [
        f"{shorten_list([_named(chosen, host) for host in hosts], NAMES)} {_has(hosts)} {value}"
        for value, hosts in odd.items()
    ]
    if usual:
        others = by_value[usual]
        parts.append(f"the other {len(others)} {_has(others)} {usual}" if others[1:] else f"the other has {usual}")
    findings.warning(
        CHECK,
        [host for hosts in odd.values() for host in hosts],
        f"{chosen.network.name}: NICs of a rail should be alike, but their {quality.name} differs.",
        "; ".join(parts),
        quality.next_step,
    )


def most_common(counts: t.Mapping[str, int]) -> str:
    """The most frequent value; empty if two are equally frequent."""
    (first, most), (_second, next_most) = collections.Counter(counts).most_common(2)
    return first if most > next_most else ""


def _named(chosen: NetworkLinks, host: str) -> str:
    nic = chosen.links[host].nic
    return f"{host}'s {nic['device'] or nic['netdev']}"


def _has(hosts: t.Sequence[str]) -> str:
    return "have" if len(hosts) > 1 else "has"
