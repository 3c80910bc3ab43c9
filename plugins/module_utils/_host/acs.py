# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI Access Control Services: bridges that send what devices behind them exchange up to the processor."""

from __future__ import annotations

import os
import struct
import typing as t

EXTENDED, ACS = 0x100, 0x000D  # where extended capabilities begin in the configuration of a function, and that of ACS
CONTROL = 6  # bytes into it
REDIRECTS = 0x0004 | 0x0008 | 0x0010  # requests, completions, and what is forwarded upstream


def acs_control(config: bytes) -> int:
    """The control register of ACS in a configuration space; 0 without one, or where only root can read it."""
    offset, seen = EXTENDED, set()
    while offset >= EXTENDED and offset not in seen and len(config) >= offset + CONTROL + 2:
        seen.add(offset)
        (header,) = struct.unpack_from("<I", config, offset)
        if header & 0xFFFF == ACS:
            return int(struct.unpack_from("<H", config, offset + CONTROL)[0])
        offset = header >> 20
    return 0


def redirecting(sysfs: str, paths: t.Iterable[str]) -> t.List[str]:
    """Bridges below root ports, on these ways of PCI functions, that redirect what goes between devices."""
    bridges = {part for path in paths for part in path.split("/")[2:-1]}
    found = []
    for bridge in sorted(bridges):
        try:
            with open(os.path.join(sysfs, "bus/pci/devices", bridge, "config"), "rb") as file:
                config = file.read(4096)
        except OSError:  # gone meanwhile
            continue
        if acs_control(config) & REDIRECTS:
            found.append(bridge)
    return found
