# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clocks of hosts: problems with them, and whether the site's NTP servers are usable."""

from __future__ import annotations

import re
import typing as t

from .._common.findings import Findings
from .._model.observation import HostFacts
from .endpoints import parse_address
from .hosts import PlacedHost

VARIABLE = "fabric_ntp"
CLOCK_SECONDS = 30
CHRONY = ("chrony", "chronyd")
# chrony's package replaces it.
REPLACED = "systemd-timesyncd"
NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*\.?")
SETS_UP = f"site sets up chrony with {VARIABLE} before Kubernetes"
SETS_UP_THERE = f"site sets up chrony with {VARIABLE} on this host, also where others manage the cluster"


def read_servers(given: t.Sequence[object], findings: Findings) -> t.List[str]:
    """NTP servers that are valid names or addresses. They are written to a configuration file, one per line."""
    names = [str(entry) for entry in given]
    wrong = [name for name in names if parse_address(name) is None and not NAME.fullmatch(name)]
    if wrong:
        findings.error(
            "ntp-setup",
            [],
            f"An entry of {VARIABLE} is not valid.",
            ", ".join(map(repr, wrong)),
            "Write names or addresses alone, such as ntp1.example.org. Options of chrony belong in its own files.",
        )
    return [name for name in names if name not in wrong]


def check_clock(
    host: PlacedHost, facts: HostFacts, servers: t.Sequence[str], managed: bool, findings: Findings
) -> None:
    """managed: whether the site builds the cluster."""
    _check_time(host, facts, servers, SETS_UP if managed else SETS_UP_THERE, findings)
    if servers:
        _check_services(host, facts, findings)
        _check_answers(host, facts, servers, findings)


def _check_time(host: PlacedHost, facts: HostFacts, servers: t.Sequence[str], sets_up: str, findings: Findings) -> None:
    clock = facts["time"]
    has_chrony = any(service in CHRONY for service in clock.get("services", ()))
    if abs(clock["offset"]) > CLOCK_SECONDS:
        what = "Clocks must agree: certificates are not valid before their time."
        seen = f"{abs(clock['offset'])} s {'ahead of' if clock['offset'] > 0 else 'behind'} the controller"
        if not servers:
            step = f"Name the site's NTP servers in {VARIABLE}: {sets_up}. Or set the clock yourself."
            findings.error("time", [host.name], what, seen, step)
        elif has_chrony and clock["synchronized"]:
            step = "Check the controller's clock: that of the host is synchronized by chrony."
            findings.error("time", [host.name], what, seen, step)
        else:
            findings.warning("time", [host.name], what, seen, f"Nothing: {sets_up}, and chrony sets the clock.")
    elif clock["synchronized"] is False:
        if not servers:
            step = f"Name the site's NTP servers in {VARIABLE}: {sets_up}. Or set up a time service yourself. A"
            step += " container needs none: its clock is that of its machine."
        elif has_chrony:
            step = "Look at `chronyc -n sources` on the host, or wait if chrony has just started."
        else:
            step = f"Nothing: {sets_up}."
        what = "The clock is not synchronized by NTP."
        findings.warning("time", [host.name], what, "timedatectl says NTPSynchronized=no", step)


def _check_services(host: PlacedHost, facts: HostFacts, findings: Findings) -> None:
    others = [name for name in facts["time"].get("services", ()) if name not in (*CHRONY, REPLACED)]
    if others:
        findings.error(
            "ntp-setup",
            [host.name],
            f"{VARIABLE} sets up chrony, but another service sets the clock of this host, and site does not remove it.",
            f"{', '.join(others)} {'runs' if len(others) == 1 else 'run'}",
            f"Stop it for good: `systemctl disable --now {others[0]}`. Or configure it yourself, and leave {VARIABLE}"
            " empty.",
        )


def _check_answers(host: PlacedHost, facts: HostFacts, servers: t.Sequence[str], findings: Findings) -> None:
    asked = facts["time"].get("servers", {})
    silent = [name for name in servers if asked.get(name) is False]
    step = f"Open UDP 123 from the host to them, check DNS, or correct {VARIABLE}."
    seen = f"no answer from {', '.join(silent)}"
    if silent and len(silent) == len(servers):
        findings.error("ntp", [host.name], f"No NTP server of {VARIABLE} answers this host.", seen, step)
    elif silent:
        findings.warning("ntp", [host.name], f"Not every NTP server of {VARIABLE} answers this host.", seen, step)
