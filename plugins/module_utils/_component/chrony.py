# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fabric_ntp changes on a host: the servers of its time, in files next to chrony's own configuration.

The role also installs chrony, in place of systemd-timesyncd. Whether fabric_ntp is valid, and which clocks are wrong,
is decided by the plan: _plan/clocks.py.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._common.result import FabricError
from .._model.wish import HostFile

CONF, CONF_DIRECTORY, SOURCES_DIRECTORY = "/etc/chrony/chrony.conf", "/etc/chrony/conf.d", "/etc/chrony/sources.d"
READS = re.compile(r"(?m)^[ \t]*(confdir|sourcedir)[ \t](?:.*[ \t])?(/etc/chrony/(?:conf|sources)\.d)/?(?:[ \t]|$)")
HEAD = "# Written by the role chrony of ipu.fabric.\n"
# A clock that is off by more than a second is stepped when chrony starts: slewing would take hours.
STEP = "makestep 1 3\nrtcsync\n"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role, without its name as a prefix."""

    servers: t.Sequence[str]


@dataclasses.dataclass(frozen=True)
class Seen:
    """What the role read."""

    host: str
    conf: t.Optional[str]  # the text of chrony's own configuration; None: no such file
    to_come: bool  # in check mode, the package that brings that file may not be installed yet


@dataclasses.dataclass(frozen=True)
class Clock:
    """The files that this role gives to chrony."""

    files: t.Sequence[HostFile]


def missing_lines(conf: str) -> t.List[str]:
    """Lines that chrony's own configuration lacks, and without which it does not read these directories."""
    read = {" ".join(found) for found in READS.findall(conf)}
    return [line for line in (f"confdir {CONF_DIRECTORY}", f"sourcedir {SOURCES_DIRECTORY}") if line not in read]


def decide(settings: Settings, seen: Seen) -> Clock:
    """Raise FabricError if chrony would not read the files: its own configuration is left alone."""
    missing = [] if seen.conf is None and seen.to_come else missing_lines(seen.conf or "")
    if missing:
        lines = " and ".join(missing)
        raise FabricError(
            "chrony would not read the servers of this role, and its own configuration is left alone.",
            f"{CONF} on {seen.host}",
            ("no line " if seen.conf is not None else "no such file, and no line ") + ", nor ".join(missing),
            f"Add {lines}, then run again.",
            code="not-ours",
        )
    servers = "".join(f"server {server} iburst prefer\n" for server in settings.servers)
    return Clock(
        [
            HostFile(f"{CONF_DIRECTORY}/ipu-fabric.conf", HEAD + STEP, units=["chrony"]),
            HostFile(f"{SOURCES_DIRECTORY}/ipu-fabric.sources", HEAD + servers, units=["chrony"]),
        ]
    )
