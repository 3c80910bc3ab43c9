# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes and directories of sysfs, and a device's place in the PCI tree."""

from __future__ import annotations

import os
import re
import typing as t

from .files import read_text

PCI = re.compile(r"^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")


def read_attribute(*path: str) -> str:
    """The text of an attribute. Many can't be read while a link is down; they count as empty."""
    return read_text(os.path.join(*path)).strip()


def list_names(*path: str) -> t.List[str]:
    try:
        return sorted(os.listdir(os.path.join(*path)))
    except OSError:
        return []


def to_number(text: str, default: int = 0) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return default


def _real_parts(directory: str) -> t.List[str]:
    return os.path.realpath(directory).split(os.sep) if os.path.exists(directory) else []


def pci_address(directory: str) -> str:
    """The PCI address of the device that `directory` belongs to; virtio and similar devices are below theirs."""
    return next((part for part in reversed(_real_parts(directory)) if PCI.match(part)), "")


def pci_path(directory: str) -> str:
    """The path to the PCI function of `directory`: host bridge, root port, switches, function."""
    parts = _real_parts(directory)
    on_bus = [number for number, part in enumerate(parts) if PCI.match(part)]
    return "/".join(parts[on_bus[0] - 1 : on_bus[-1] + 1]) if on_bus else ""


def numa_node(sysfs: str, pci: str) -> int:
    """NUMA node of a PCI function; -1 if the machine has none or does not report it."""
    return to_number(read_attribute(sysfs, "bus/pci/devices", pci, "numa_node"), -1) if pci else -1


def driver_name(directory: str) -> str:
    driver = os.path.join(directory, "driver")
    return os.path.basename(os.path.realpath(driver)) if os.path.exists(driver) else ""
