# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI Access Control Services: bridges that send traffic between the devices below them up to the processor."""

from __future__ import annotations

import os
import struct
import typing as t

EXTENDED, ACS = 0x100, 0x000D  # start of the extended capabilities in a function's configuration space; ID of ACS
CONTROL = 6  # offset of the control register within the capability, in bytes
REDIRECTS = 0x0004 | 0x0008 | 0x0010  # request redirect, completion redirect, upstream forwarding


def acs_control(config: bytes) -> int:
    """The ACS control register in a configuration space; 0 if there is none, or if only root can read it."""
    offset, seen = EXTENDED, set()
    while offset >= EXTENDED and offset not in seen and len(config) >= offset + CONTROL + 2:
        seen.add(offset)
        (header,) = struct.unpack_from("<I", config, offset)
        if header & 0xFFFF == ACS:
            return int(struct.unpack_from("<H", config, offset + CONTROL)[0])
        offset = header >> 20
    return 0


def redirecting(sysfs: str, paths: t.Iterable[str]) -> t.List[str]:
    """Bridges below root ports, on these PCI paths, that redirect traffic between devices."""
    bridges = {part for path in paths for part in path.split("/")[2:-1]}
    found = []
    for bridge in sorted(bridges):
        try:
            with open(os.path.join(sysfs, "bus/pci/devices", bridge, "config"), "rb") as file:
                config = file.read(4096)
        except OSError:  # gone in the meantime
            continue
        if acs_control(config) & REDIRECTS:
            found.append(bridge)
    return found
