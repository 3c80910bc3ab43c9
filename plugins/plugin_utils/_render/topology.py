# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drawing in plan.html: a row for each host, or for hosts that are alike, and a column for each network. Pure."""

from __future__ import annotations

import ipaddress
import math
import typing as t

from ...module_utils._common.text import join_endpoint, shorten_list
from ...module_utils._model.plan import HOST, Controller, Plan, PlannedHost, PlannedLink, PlannedSubnet
from ...module_utils._plan.report import count

ALONE = 20  # hosts; with more of them, those that are alike share a row
ROWS = 24  # of hosts; the table below the drawing has all of them
CONTROLLERS = 8
NAMED = 8  # networks, in the sentence that describes the drawing
GPUS = 4  # near one NIC, with a line each
COLOURS = 8  # of networks, in style.css

# Pixels. A monospaced font at 11 px needs 6.6 of them for a character.
CHARACTER, LINE, PADDING, GAP, SECTION = 6.7, 15, 8, 8, 24
BELOW = 4  # between a NIC and its GPUs
NARROWEST, WIDEST = 84, 230


class Line(t.NamedTuple):
    """A line of text in a box."""

    text: str
    style: str = ""  # name, error, warning or soft


class Cell(t.NamedTuple):
    """What is drawn where a row meets a column."""

    lines: t.List[Line]
    title: str  # the full text, as a tooltip


class Row(t.NamedTuple):
    """A host, hosts that are alike, or a V-IPU controller."""

    section: str
    kind: str  # host or vipu
    label: Cell
    cells: t.Dict[str, Cell]  # by column
    gpus: t.Mapping[str, Cell] = {}  # below the cell of this column, whose NIC is nearest to them


class Column(t.NamedTuple):
    """A network: the cluster's own, or one of the fabric."""

    key: str  # name of the fabric network; empty: the cluster's own
    head: Cell


class Box(t.NamedTuple):
    """A rectangle with lines of text that fit into it."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    lines: t.List[Line]
    title: str

    def baseline(self, number: int) -> float:
        """Of a line of text: all lines together are in the middle."""
        return self.y + (self.height - len(self.lines) * LINE) / 2 + number * LINE + 11


class Rail(t.NamedTuple):
    """The line of a network, from its head to the last row."""

    x: float
    top: float
    bottom: float
    colour: int  # 0: the cluster's own network


class Heading(t.NamedTuple):
    y: float
    text: str


class Topology(t.NamedTuple):
    width: float
    height: float
    rails: t.List[Rail]
    boxes: t.List[Box]
    headings: t.List[Heading]
    alternative: str  # in words


Group = t.List[t.Tuple[str, PlannedHost]]


def topology(plan: Plan) -> Topology:
    return draw(columns(plan), rows(plan), describe(plan))


# What is drawn


def columns(plan: Plan) -> t.List[Column]:
    cluster = plan["cluster"]
    own = [Line("Cluster", "name"), *([Line("API"), Line(cluster["endpoint"], "soft")] if cluster["endpoint"] else [])]
    found = [Column("", Cell(own, f"pods {cluster['pod_cidr']}, services {cluster['service_cidr']}"))]
    for network in plan["networks"]:
        links = [host["links"][network["name"]] for host in plan["hosts"].values() if network["name"] in host["links"]]
        traits = ", ".join(
            filter(None, [_rates(links), f"MTU {network['mtu']}", "RDMA" if network["rdma"] else "no RDMA"])
        )
        cidrs = [subnet["cidr"] for subnet in network["subnets"]] or ["no addresses"]
        lines = [Line(network["name"], "name"), *(Line(cidr) for cidr in cidrs)]
        lines += [Line(trait, "soft") for trait in traits.split(", ")]
        found.append(Column(network["name"], Cell(lines, f"{network['name']}: {', '.join(cidrs)}, {traits}")))
    if any(HOST in host["links"] for host in plan["hosts"].values()):
        lines = [Line("RDMA of the host", "name"), Line("no fabric network", "soft")]
        found.append(Column(HOST, Cell(lines, "pods reach it in privileged containers")))
    return found


def _rates(links: t.Iterable[PlannedLink]) -> str:
    rates = sorted({link["rate_gbps"] for link in links if link["rate_gbps"]})
    return "" if not rates else f"{rates[0]:g}{f' to {rates[-1]:g}' if rates[1:] else ''} Gb/s"


def rows(plan: Plan) -> t.List[Row]:
    """Control planes, then other hosts, then V-IPU controllers; if some are left out, a row says so."""
    found = []
    groups = alike(plan)
    for group in groups[: ROWS if len(groups) <= ROWS else ROWS - 1]:
        found.append(_host_row(plan, group))
    if len(groups) > ROWS:
        rest = sum(len(group) for group in groups[ROWS - 1 :])
        found.append(
            Row("Hosts", "host", Cell([Line(f"{rest} more hosts", "name"), Line("see Hosts", "soft")], ""), {})
        )
    controllers = plan["vipu"]["controllers"]
    found += [_controller_row(plan, each) for each in controllers[:CONTROLLERS]]
    if len(controllers) > CONTROLLERS:
        label = Cell([Line(f"{len(controllers) - CONTROLLERS} more", "name"), Line("see plan.json", "soft")], "")
        found.append(Row("V-IPU controllers", "vipu", label, {}))
    return found


def alike(plan: Plan) -> t.List[Group]:
    """Hosts that differ in names and addresses only, control planes first; each alone if there are few."""
    groups: t.Dict[t.Tuple[object, ...], Group] = {}
    few = len(plan["hosts"]) <= ALONE
    for name, host in plan["hosts"].items():
        nics = [(key, link["netdev"], link["device"], link["rate_gbps"]) for key, link in sorted(host["links"].items())]
        gpus = [(gpu["pci"], gpu["model"], *gpu["networks"]) for gpu in host["gpus"]]
        key = (name,) if few else (*host["roles"], host["platform"], _state(plan, name), *nics, *gpus)
        groups.setdefault(key, []).append((name, host))
    return sorted(groups.values(), key=lambda group: "control_plane" not in group[0][1]["roles"])


def _state(plan: Plan, host: str) -> str:
    levels = [finding["level"] for finding in plan["findings"] if host in finding["hosts"]]
    return "error" if "error" in levels else "warning" if levels else ""


def _host_row(plan: Plan, group: Group) -> Row:
    names, (_name, first) = [name for name, _host in group], group[0]
    domain = common_domain(list(plan["hosts"]))
    shown = [name[: len(name) - len(domain)] for name in names]
    state = _state(plan, names[0])
    lines = [Line(shown[0] if len(group) == 1 else count(len(group), "host"), "name")]
    if len(group) > 1:
        lines.append(Line(f"{shown[0]} to {shown[-1]}"))
    lines.append(Line(", ".join(role.replace("_", " ") for role in first["roles"]), "soft"))
    far = [gpu for gpu in first["gpus"] if not gpu["networks"]]
    if far:
        lines.append(Line(f"{count(len(far), 'GPU')} near no fabric NIC", "soft"))
    if state:
        lines.append(Line(f"has {state}s", state))
    section = "Control planes" if "control_plane" in first["roles"] else "Nodes"
    return Row(
        "Host" if plan["cluster"]["single_node"] else section,
        "host",
        Cell(lines, shorten_list(names, ROWS)),
        _host_cells(group),
        _gpu_cells(first),
    )


def common_domain(names: t.Sequence[str]) -> str:
    """What all names have from their first dot on; empty if they differ."""
    domains = {name[len(name.partition(".")[0]) :] for name in names}
    return domains.pop() if len(domains) == 1 and len(names) > 1 else ""


def _host_cells(group: Group) -> t.Dict[str, Cell]:
    """The addresses of these hosts, by column."""
    cells, first = {}, group[0][1]
    own = [text for _name, host in group for text in host["address"].split(",") if text]
    if own:
        cells[""] = Cell([Line(text) for text in span(own)], "")
    for network in first["links"]:
        links = [host["links"][network] for _name, host in group]
        nic = " ".join(filter(None, [links[0]["netdev"], links[0]["device"]]))
        addresses = [Line(text, "soft") for text in span([link["address"] for link in links if link["address"]])]
        cells[network] = Cell([Line(nic), *addresses], _nic(links[0]))
    return cells


def _gpu_cells(host: PlannedHost) -> t.Dict[str, Cell]:
    """The GPUs that are nearest to each NIC, as nvidia-smi counts them. One may be as near to several NICs."""
    cells = {}
    for network in host["links"]:
        near = [(number, gpu) for number, gpu in enumerate(host["gpus"]) if network in gpu["networks"]]
        lines = [Line(f"GPU {number} {gpu['pci'].removeprefix('0000:')}") for number, gpu in near]
        if len(near) > GPUS:
            lines = [Line(f"{len(near)} GPUs, {near[0][0]} to {near[-1][0]}")]
        if near:
            told = [" ".join(filter(None, [f"GPU {number}", gpu["pci"], gpu["model"]])) for number, gpu in near]
            cells[network] = Cell(lines, ", ".join(told))
    return cells


def _nic(link: PlannedLink) -> str:
    rate = f"{link['rate_gbps']:g} Gb/s" if link["rate_gbps"] else ""
    return ", ".join(filter(None, [link["netdev"], link["device"], link["driver"], link["pci"], rate, link["address"]]))


def span(addresses: t.Sequence[str]) -> t.List[str]:
    """One address, or the first and the last of several."""
    ordered = sorted(set(addresses), key=_numeric)
    return ordered if len(ordered) < 2 else [ordered[0], f"to {ordered[-1]}"]


def _numeric(text: str) -> t.Tuple[int, int, str]:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:  # a name
        return 0, 0, text
    return address.version, int(address), ""


def _controller_row(plan: Plan, controller: Controller) -> Row:
    serves = controller["serves"]
    told = f"serves {serves[0] if len(serves) == 1 else count(len(serves), 'host')}"
    endpoint = join_endpoint(controller["address"], controller["port"])
    column = next((n["name"] for n in plan["networks"] if _holds(n["subnets"], controller["address"])), None)
    lines = [Line("V-IPU", "name"), Line(told, "soft"), *([Line(endpoint)] if column is None else [])]
    cells = {column: Cell([Line(endpoint)], controller["host"])} if column is not None else {}
    return Row("V-IPU controllers", "vipu", Cell(lines, f"{endpoint}, {controller['label']}"), cells)


def _holds(subnets: t.Sequence[PlannedSubnet], address: str) -> bool:
    with_number = _numeric(address)
    return with_number[0] > 0 and any(
        ipaddress.ip_address(address) in ipaddress.ip_network(subnet["cidr"]) for subnet in subnets
    )


def describe(plan: Plan) -> str:
    """The drawing in a sentence."""
    cluster, networks = plan["cluster"], [network["name"] for network in plan["networks"]]
    planes = f"{count(len(cluster['control_planes']), 'control plane')} and {count(len(cluster['workers']), 'worker')}"
    hosts = "One host" if cluster["single_node"] else planes
    fabric = f"{count(len(networks), 'fabric network')} ({shorten_list(networks, NAMED)})" if networks else "no network"
    controllers = plan["vipu"]["controllers"]
    parts = [(sum(len(host["gpus"]) for host in plan["hosts"].values()), "GPU"), (len(controllers), "V-IPU controller")]
    return f"{hosts} on {', '.join([fabric, *(count(number, word) for number, word in parts if number)])}."


# Where it is drawn


def width_of(cells: t.Iterable[Cell]) -> float:
    longest = max((len(line.text) for cell in cells for line in cell.lines), default=0)
    return min(max(math.ceil(longest * CHARACTER) + 2 * PADDING, NARROWEST), WIDEST)


def shorten(text: str, most: int) -> str:
    """Cut the middle out of a text that is too long, since names and addresses differ at their ends."""
    tail = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def _box(x: float, y: float, width: float, height: float, kind: str, cell: Cell) -> Box:
    room = int((width - 2 * PADDING) / CHARACTER)
    lines = [line._replace(text=shorten(line.text, room)) for line in cell.lines]
    return Box(x, y, width, height, kind, lines, cell.title)


def _height(cells: t.Iterable[Cell]) -> float:
    return max(len(cell.lines) for cell in cells) * LINE + PADDING


def draw(columns: t.Sequence[Column], rows: t.Sequence[Row], alternative: str) -> Topology:
    """A grid: nothing in it can overlap."""
    left = width_of(row.label for row in rows)
    places, x = {}, left + GAP
    for column in columns:
        below = [part[column.key] for row in rows for part in (row.cells, row.gpus) if column.key in part]
        width = width_of([column.head, *below])
        places[column.key] = (x, width)
        x += width + GAP
    top = _height(column.head for column in columns)
    boxes = [_box(*_at(places[each.key], 0, top), f"head c{_colour(n)}", each.head) for n, each in enumerate(columns)]
    headings, y, section, ends = [], top + GAP, "", dict.fromkeys(places, top)
    for row in rows:
        if row.section != section:
            section = row.section
            headings.append(Heading(y + SECTION - GAP, section))
            y += SECTION
        under = {key: _height([cell]) + BELOW for key, cell in row.gpus.items()}
        height = max([_height([row.label]), *(_height([cell]) + under.get(key, 0) for key, cell in row.cells.items())])
        boxes.append(_box(0, y, left, height, row.kind, row.label))
        for key, cell in row.cells.items():
            own = height - under.get(key, 0)
            boxes.append(_box(*_at(places[key], y, own), f"nic {row.kind}", cell))
            if key in row.gpus:
                boxes.append(_box(*_at(places[key], y + own + BELOW, height - own - BELOW), "gpu", row.gpus[key]))
            ends[key] = y
        y += height + GAP
    rails = [
        Rail(places[each.key][0] + places[each.key][1] / 2, top, ends[each.key], _colour(number))
        for number, each in enumerate(columns)
    ]
    return Topology(x - GAP, y - GAP, rails, boxes, headings, alternative)


def _at(place: t.Tuple[float, float], y: float, height: float) -> t.Tuple[float, float, float, float]:
    return place[0], y, place[1], height


def _colour(number: int) -> int:
    return (number - 1) % COLOURS + 1 if number else 0
