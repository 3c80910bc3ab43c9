# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Model, firmware, GUID and driver version of a NIC or GPU, as far as sysfs has them."""

from __future__ import annotations

import os

from .sysfs import list_names, read_attribute, to_number

GIDS = 16  # entries to read for their types


def firmware(sysfs: str, device: str) -> str:
    """The firmware of an RDMA device; a software device has none."""
    return read_attribute(sysfs, "class/infiniband", device, "fw_ver") if device else ""


def guid(sysfs: str, device: str) -> str:
    """The GUID of an RDMA device, as set by its vendor; empty if it has none, as for a virtual function."""
    found = read_attribute(sysfs, "class/infiniband", device, "node_guid") if device else ""
    return found if found.strip("0:") else ""


def driver_version(sysfs: str, driver: str) -> str:
    """The version of a driver outside the kernel tree, such as DOCA's, else a digest of its source; else empty."""
    module = os.path.join(sysfs, "module", driver.replace("-", "_"))
    return (read_attribute(module, "version") or read_attribute(module, "srcversion")) if driver else ""


def model(sysfs: str, device: str, netdev: str) -> str:
    """The board of an RDMA device, such as MT_0000000359, else vendor and device ID of the PCI function; else empty.

    A virtual function reports the board of its physical function.
    """
    board = read_attribute(sysfs, "class/infiniband", device, "board_id") if device else ""
    return board or pci_model(os.path.join(sysfs, "class/net", netdev, "device"))


def gid_room(sysfs: str, device: str, port: int) -> int:
    """How many addresses fit into a port's GID table: each takes one entry per GID type that the NIC supports."""
    base = os.path.join(sysfs, "class/infiniband", device, "ports", str(port))
    entries = list_names(base, "gids") if device else []
    # Unused entries can't be read.
    types = {read_attribute(base, "gid_attrs/types", entry) for entry in sorted(entries, key=to_number)[:GIDS]} - {""}
    return len(entries) // (len(types) or 2)


def pci_model(function: str) -> str:
    """Vendor and device ID of a PCI function, such as 10de:2330; empty if one of them is missing."""
    numbers = [read_attribute(function, name).partition("x")[2] for name in ("vendor", "device")]
    return ":".join(numbers) if all(numbers) else ""
