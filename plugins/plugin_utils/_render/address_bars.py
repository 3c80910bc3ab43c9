# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of each fabric subnet as a bar: hosts, those that no pod gets, pods, and what is free. Pure."""

from __future__ import annotations

import contextlib
import typing as t

from ...module_utils._ipam.planned_ranges import planned_ranges
from ...module_utils._ipam.ranges import read_address, read_range
from ...module_utils._model.plan import Plan, PlannedNetwork

with contextlib.suppress(ImportError):  # run_module() reports it, by the module's `libraries`
    import netaddr

LEAST = 1.5  # percent of a bar, for a part that would be too narrow to be seen
EXACT = 10_000_000  # addresses; larger numbers are shown in powers of ten
PARTS = {"hosts": "hosts", "kept": "never for pods", "pods": "planned pods", "free": "free"}
POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Part(t.NamedTuple):
    kind: str  # key of PARTS
    number: int  # of addresses
    start: float  # percent of the bar
    width: float

    @property
    def label(self) -> str:
        return "host" if self.kind == "hosts" and self.number == 1 else PARTS[self.kind]

    @property
    def figure(self) -> str:
        return figure(self.number)


class Bar(t.NamedTuple):
    network: str
    cidr: str
    size: int
    parts: t.List[Part]  # in the order of PARTS
    detail: str

    @property
    def size_text(self) -> str:
        return figure(self.size)

    @property
    def alternative(self) -> str:
        parts = ", ".join(f"{part.figure} {part.label}" for part in self.parts)
        return f"{self.network}, {self.cidr}: {figure(self.size)} addresses: {parts}"


def figure(number: int) -> str:
    if number < EXACT:
        return f"{number:,}"
    power = len(str(number)) - 1
    return f"{number / 10**power:.1f} · 10{str(power).translate(POWERS)}"


def widths(counts: t.Sequence[int]) -> t.List[float]:
    """Percent of the bar for each, at least LEAST for those that are not 0. The wide ones shrink for it."""
    whole = sum(counts) or 1
    narrow = [0 < number / whole * 100 < LEAST for number in counts]
    rest = sum(number for number, small in zip(counts, narrow) if not small) or 1
    room = 100 - LEAST * sum(narrow)
    return [LEAST if small else number / rest * room for number, small in zip(counts, narrow)]


def split(network: PlannedNetwork, hosts: t.Iterable[str]) -> t.Iterator[t.Tuple[str, t.Dict[str, int]]]:
    """Each subnet's CIDR, with the number of its addresses in each part."""
    taken = netaddr.IPSet([read_address(address) for address in hosts])
    for subnet, planned in zip(network["subnets"], planned_ranges(network)):
        whole = netaddr.IPSet(read_range(subnet["cidr"]))
        allowed = netaddr.IPSet(planned.bounds) - netaddr.IPSet([c for r in planned.excluded for c in r.cidrs()])
        own = ((taken & whole) - allowed).size
        pods = min(subnet["needed"], allowed.size)
        yield (
            subnet["cidr"],
            {"hosts": own, "kept": whole.size - own - allowed.size, "pods": pods, "free": allowed.size - pods},
        )


def bars(plan: Plan) -> t.List[Bar]:
    found = []
    for network in plan["networks"]:
        links = [host["links"][network["name"]] for host in plan["hosts"].values() if network["name"] in host["links"]]
        hosts = [each["address"] for link in links for each in link["addresses"]]
        for subnet, (cidr, counts) in zip(network["subnets"], split(network, hosts)):
            parts, start = [], 0.0
            for kind, width in zip(PARTS, widths([counts[kind] for kind in PARTS])):
                parts.append(Part(kind, counts[kind], start, width))
                start += width
            gateway = f", gateway {subnet['gateway']}" if subnet["gateway"] else ""
            pods = f"pods {subnet['range_start']} to {subnet['range_end']}{gateway}"
            room = f"room for {figure(subnet['capacity'])}, {figure(subnet['needed'])} needed"
            found.append(Bar(network["name"], cidr, sum(counts.values()), parts, f"{pods}; {room}"))
    return found
