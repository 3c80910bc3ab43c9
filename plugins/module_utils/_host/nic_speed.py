# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a NIC can carry: the rate of its port, and the PCIe links between it and its processor."""

from __future__ import annotations

import os
import re
import typing as t

from .._model.observation import PcieLink
from .sysfs import pci_path, read_attribute, to_number

MOST_LANES = 32  # sysfs reports 63 or 255 if unknown


def _gigabits(text: str) -> t.Optional[float]:
    """The number in a rate such as `100 Gb/sec (4X EDR)`."""
    match = re.match(r"([\d.]+) Gb/sec", text)
    return float(match.group(1)) if match else None


def port_rate(sysfs: str, device: str, port: int, netdevs: t.Sequence[str]) -> t.Optional[float]:
    """Gb/s of an RDMA port, or of the NICs below it if that is less: a stream over a bond uses one of them.

    Software RDMA has no rate: what it reports is invented, or is the rate of a NIC that its traffic does not reach.
    """
    base = os.path.join(sysfs, "class/infiniband", device)
    if device and (not os.path.exists(os.path.join(base, "device")) or os.path.exists(os.path.join(base, "parent"))):
        return None
    megabits = [to_number(read_attribute(sysfs, "class/net", name, "speed")) for name in netdevs]
    known = [number / 1000 for number in megabits if number > 0]  # -1: unknown
    rate = _gigabits(read_attribute(base, "ports", str(port), "rate")) if device else None
    return min([*known, *([rate] if rate else [])], default=None)


def carried(speed_gtps: float, width: int) -> float:
    """Gb/s of payload that PCIe lanes carry, net of encoding: 8b/10b, 128b/130b, and the FLITs of PCIe 6."""
    encoding = 8 / 10 if speed_gtps <= 5 else 128 / 130 if speed_gtps <= 32 else 242 / 256
    return round(speed_gtps * width * encoding, 1)


class _Lanes(t.NamedTuple):
    speed_gtps: float
    width: int


def _lanes(sysfs: str, pci: str, which: str) -> t.Optional[_Lanes]:
    """The `current` or `max` link of a PCI function; both `16.0 GT/s PCIe` and `8 GT/s` are understood."""
    base = os.path.join(sysfs, "bus/pci/devices", pci)
    speed = re.match(r"([\d.]+) GT/s", read_attribute(base, f"{which}_link_speed"))
    width = to_number(read_attribute(base, f"{which}_link_width"))
    return _Lanes(float(speed.group(1)), width) if speed and 0 < width <= MOST_LANES else None


def is_guest(proc: str) -> bool:
    """Whether this is a guest: its hypervisor makes up the PCIe tree."""
    return bool(re.search(r"^flags\s*:.*\bhypervisor\b", read_attribute(proc, "cpuinfo"), re.MULTILINE))


def pcie_link(sysfs: str, netdevs: t.Sequence[str]) -> t.Optional[PcieLink]:
    """The narrowest PCIe link on the path of these NICs; None if none is known."""
    links: t.List[PcieLink] = []
    for netdev in netdevs:
        device = os.path.join(sysfs, "class/net", netdev, "device")
        physfn = os.path.join(device, "physfn")  # a virtual function has no link itself
        functions = pci_path(physfn if os.path.exists(physfn) else device).split("/")[1:]
        # A link is between two functions: root port and NIC, or root port and switch, then switch and NIC.
        first = len(functions) % 2
        pairs = [("", pci) for pci in functions[:first]] + list(zip(functions[first::2], functions[first + 1 :: 2]))
        links += [found for found in (_one_link(sysfs, *pair) for pair in pairs) if found]
    return min(links, key=lambda link: link["gbps"], default=None)


def _one_link(sysfs: str, upper: str, lower: str) -> t.Optional[PcieLink]:
    now = _lanes(sysfs, lower, "current")
    if not now:
        return None
    ends = [most for most in (_lanes(sysfs, pci, "max") for pci in (upper, lower) if pci) if most] or [now]
    return {
        "pci": lower,
        "speed_gtps": now.speed_gtps,
        "width": now.width,
        "max_speed_gtps": min(end.speed_gtps for end in ends),
        "max_width": min(end.width for end in ends),
        "gbps": carried(*now),
    }
