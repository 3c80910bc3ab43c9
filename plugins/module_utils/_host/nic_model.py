# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a NIC or a GPU is: model, firmware, GUID and the version of its driver, as far as sysfs has them."""

from __future__ import annotations

import os

from .sysfs import list_names, read_attribute, to_number

GIDS = 16  # entries that are read for their types


def firmware(sysfs: str, device: str) -> str:
    """Of an RDMA device; software has none."""
    return read_attribute(sysfs, "class/infiniband", device, "fw_ver") if device else ""


def guid(sysfs: str, device: str) -> str:
    """Of an RDMA device, as its maker has set it; empty where it has none, such as a virtual function."""
    found = read_attribute(sysfs, "class/infiniband", device, "node_guid") if device else ""
    return found if found.strip("0:") else ""


def driver_version(sysfs: str, driver: str) -> str:
    """Of a driver beside the kernel's own, such as that of DOCA; else a digest of its source. Empty: neither."""
    module = os.path.join(sysfs, "module", driver.replace("-", "_"))
    return (read_attribute(module, "version") or read_attribute(module, "srcversion")) if driver else ""


def model(sysfs: str, device: str, netdev: str) -> str:
    """The board of an RDMA device, such as MT_0000000359, else vendor and device of the PCI function. Empty: neither.

    A virtual function counts as the model that it says it is: it has the board of its physical one.
    """
    board = read_attribute(sysfs, "class/infiniband", device, "board_id") if device else ""
    return board or pci_model(os.path.join(sysfs, "class/net", netdev, "device"))


def gid_room(sysfs: str, device: str, port: int) -> int:
    """How many addresses a port's GID table has room for: each takes an entry for every type that the NIC speaks."""
    base = os.path.join(sysfs, "class/infiniband", device, "ports", str(port))
    entries = list_names(base, "gids") if device else []
    # Entries that nobody has can't be read.
    types = {read_attribute(base, "gid_attrs/types", entry) for entry in sorted(entries, key=to_number)[:GIDS]} - {""}
    return len(entries) // (len(types) or 2)


def pci_model(function: str) -> str:
    """Vendor and device of a PCI function, such as 10de:2330; empty where one of them is missing."""
    numbers = [read_attribute(function, name).partition("x")[2] for name in ("vendor", "device")]
    return ":".join(numbers) if all(numbers) else ""
