# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""RoCE against TCP: what MPI programs measured, and by which device their data went. Pure."""

from __future__ import annotations

import re
import typing as t

from ...module_utils._common.result import FabricError
from ...module_utils._common.text import printable
from ...module_utils._verify.counter_checks import LARGEST_MTU
from ...module_utils._verify.parsers import RDMA_COUNTERS, amount_text
from ...module_utils._verify.speed_checks import SAYS_NOTHING
from ...module_utils._verify.telling import telling_line
from .html import render

TITLES = {"roce": "RoCE", "tcp": "TCP"}
SOFTWARE_COUNTERS = ("sent_pkts", "rcvd_pkts")  # only rdma_rxe has these
NO_PORT = "-"  # of an interface
PASSED, FAILED, UNPROVEN = "passed", "failed", "unproven"


class Measured(t.TypedDict, total=False):
    """What the jobs have left behind. logs is needed."""

    logs: t.Mapping[str, t.Union[str, t.Sequence[str]]]  # by transport
    title: str
    about: t.Mapping[str, t.Any]  # lines of the report's head
    interfaces: t.Sequence[str]  # of the fabric in the pods


# What programs print


class Key(t.NamedTuple):
    """A test of a program, as OSU's benchmarks call themselves."""

    title: str
    quantity: str
    unit: str


class Counter(t.NamedTuple):
    """A counter of one device in one pod."""

    pod: str
    device: str
    port: str
    name: str


class Log(t.NamedTuple):
    """All jobs of one transport."""

    figures: t.Dict[Key, t.Dict[int, float]]  # by size in bytes
    grown: t.Dict[Counter, int]


HEAD = re.compile(r"#\s*(?:OSU\s+)?(?P<title>\S.*?)\s+Test\b")
COLUMNS = re.compile(r"#\s*Size\b[^A-Za-z]*(?:Avg\s+)?(?P<quantity>Latency|Bandwidth)\s*\((?P<unit>[^)]+)\)")
ROW = re.compile(r"(\d+)\s+(\d+(?:\.\d+)?)(?:\s+[\d.]+)*")
GROWN = re.compile(r"@@ rank \S+ on (\S+): (\S+) (\S+) (\w+) (\d+)")


def read_log(text: str) -> Log:
    """Tables of OSU's benchmarks and of programs like them, and the counters of the ranks."""
    found, title, key = Log({}, {}), "", None
    for line in (line.strip() for line in printable(text).splitlines()):
        head, columns, row, grown = (pattern.match(line) for pattern in (HEAD, COLUMNS, ROW, GROWN))
        if columns:
            key = Key(title or columns["quantity"], columns["quantity"], columns["unit"])
            found.figures[key] = {}
        elif head:
            title = head["title"]
        elif grown:
            counter = Counter(*grown.groups()[:4])
            # All ranks of a pod see the same counters.
            found.grown[counter] = max(found.grown.get(counter, 0), int(grown[5]))
        elif key and row and row.group() == line:
            found.figures[key][int(row[1])] = float(row[2])
    return Log({key: figures for key, figures in found.figures.items() if figures}, found.grown)


def read_logs(texts: t.Union[str, t.Sequence[str]]) -> Log:
    """Jobs that ran one after another: the amounts that they moved are added up."""
    whole = Log({}, {})
    for log in map(read_log, [texts] if isinstance(texts, str) else texts):
        whole.figures.update(log.figures)
        for counter, count in log.grown.items():
            # Pods of different jobs have different names; a pod of the same name is another one.
            whole.grown[counter] = whole.grown.get(counter, 0) + count
    return whole


# Tables


class Row(t.NamedTuple):
    size: int
    roce: t.Optional[float]
    tcp: t.Optional[float]
    ratio: t.Optional[float]  # above 1: RoCE is that much better


class Table(t.NamedTuple):
    title: str
    unit: str
    less_is_better: bool
    rows: t.Sequence[Row]

    @property
    def ratio(self) -> str:
        return "TCP / RoCE" if self.less_is_better else "RoCE / TCP"

    def telling(self) -> t.Optional[Row]:
        """The row that people compare: the smallest message for latency, the largest for bandwidth."""
        both = [row for row in self.rows if row.ratio is not None]
        return (both[0] if self.less_is_better else both[-1]) if both else None


def quotient(above: t.Optional[float], below: t.Optional[float]) -> t.Optional[float]:
    return above / below if above is not None and below else None


def table_of(key: Key, roce: t.Mapping[int, float], tcp: t.Mapping[int, float]) -> Table:
    less = key.quantity == "Latency"
    rows = []
    for size in sorted({*roce, *tcp}):
        ours, theirs = roce.get(size), tcp.get(size)
        rows.append(Row(size, ours, theirs, quotient(theirs, ours) if less else quotient(ours, theirs)))
    return Table(key.title, key.unit, less, rows)


def tables_of(roce: Log, tcp: Log) -> t.List[Table]:
    keys = {**roce.figures, **tcp.figures}
    return [table_of(key, roce.figures.get(key, {}), tcp.figures.get(key, {})) for key in keys]


# Path of the data


class Moved(t.NamedTuple):
    """What one device or interface moved in the jobs of one transport."""

    transport: str
    pod: str
    device: str
    port: str
    kind: str  # bytes, packets or requests
    amount: int

    @property
    def text(self) -> str:
        return amount_text(self.amount, self.kind)


class Way(t.NamedTuple):
    transport: str
    state: str
    text: str


def moved_by(transport: str, log: Log) -> t.List[Moved]:
    """Both directions together, for each device of each pod."""
    found: t.Dict[t.Tuple[str, str, str, str], int] = {}
    for counter, count in log.grown.items():
        kind, size = ("bytes", 1) if counter.port == NO_PORT else RDMA_COUNTERS.get(counter.name, ("", 0))
        if kind:
            place = (counter.pod, counter.device, counter.port, kind)
            found[place] = found.get(place, 0) + count * size
    return [Moved(transport, *place, count) for place, count in sorted(found.items())]


NEED_COUNT = "Next: render the job with count."
NEED_RDMA = "Next: render the job with count, and use an image with `rdma` of iproute2."


def way_of(transport: str, moved: t.Sequence[Moved], least: int, interfaces: t.Sequence[str]) -> Way:
    """Whether a transport's data, at least one message of each size, went the way that it is named after."""
    needs = {"bytes": least, "packets": max(1, least // LARGEST_MTU)}
    enough = [each for each in moved if each.amount >= needs.get(each.kind, each.amount + 1)]
    rdma = [each for each in enough if each.port != NO_PORT]
    sockets = [each for each in enough if each.port == NO_PORT]
    seen_rdma = [each for each in moved if each.port != NO_PORT and each.kind in needs]
    said = f"of at least {amount_text(least, 'bytes')}"

    def most(carried: t.Sequence[Moved]) -> str:
        first = max(carried, key=lambda each: each.amount)
        return f"{first.device} of {first.pod} moved {first.text}"

    if transport == "roce":
        if rdma:
            return Way(transport, PASSED, f"{most(rdma)} {said}")
        if sockets:
            return Way(transport, FAILED, f"{most(sockets)} {said}, and no RDMA device as much: that was TCP")
        if any(each.port == NO_PORT for each in moved) and not seen_rdma:
            no_tcp = f"the pods' interfaces moved less than {amount_text(least, 'bytes')}: that was not TCP"
            return Way(transport, UNPROVEN, f"{no_tcp}, but no counter of an RDMA device shows the data. {NEED_RDMA}")
        return Way(transport, UNPROVEN, f"no counter shows the path of the data. {NEED_RDMA}")
    right = [each for each in sockets if not interfaces or each.device in interfaces]
    if right:
        return Way(transport, PASSED, f"{most(right)} {said}")
    if sockets:
        return Way(transport, FAILED, f"{most(sockets)} {said}: that is not on the fabric")
    if rdma:
        return Way(transport, FAILED, f"{most(rdma)} {said}, and no interface as much: that was RDMA")
    return Way(transport, UNPROVEN, f"no counter shows the path of the data. {NEED_COUNT}")


# The report


class Comparison(t.TypedDict):
    """What the filter returns."""

    summary: t.List[str]
    notes: t.List[str]
    problems: t.List[str]  # transports whose data took another way
    tables: t.List[t.Dict[str, t.Any]]
    moved: t.List[t.Dict[str, t.Any]]
    ways: t.List[t.Dict[str, t.Any]]
    markdown: str
    html: str


def size_text(size: int) -> str:
    for unit, bytes_ in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size and size % bytes_ == 0:
            return f"{size // bytes_} {unit}"
    return f"{size} B"


def figure_text(value: t.Optional[float], digits: int = 2) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def cells_of(row: Row) -> t.List[str]:
    return [size_text(row.size), figure_text(row.roce), figure_text(row.tcp), figure_text(row.ratio)]


def heading_of(table: Table) -> t.List[str]:
    return ["Size", f"RoCE ({table.unit})", f"TCP ({table.unit})", table.ratio]


def sentence(table: Table) -> str:
    row = table.telling()
    if row is None or row.ratio is None:
        return f"{table.title}: no size was measured over both."
    figures = f"RoCE {figure_text(row.roce)} {table.unit}, TCP {figure_text(row.tcp)} {table.unit}"
    return f"{table.title} at {size_text(row.size)}: {figures}, {table.ratio} is {row.ratio:.2f}."


def markdown_table(heading: t.Sequence[str], rows: t.Iterable[t.Sequence[str]], left: int = 0) -> str:
    """The first columns are text, the others figures."""
    marks = ["---" if at < left else "---:" for at in range(len(heading))]
    lines = [heading, marks, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


class Report(t.NamedTuple):
    """All that a report says."""

    title: str
    about: t.Mapping[str, str]
    summary: t.Sequence[str]
    notes: t.Sequence[str]
    tables: t.Sequence[Table]
    ways: t.Sequence[Way]
    moved: t.Sequence[Moved]


MOVED_HEADING = ("Run", "Pod", "Device", "Moved")


def moved_cells(each: Moved) -> t.List[str]:
    port = "" if each.port == NO_PORT else f" port {each.port}"
    return [TITLES[each.transport], each.pod, f"{each.device}{port}", each.text]


def as_markdown(report: Report) -> str:
    parts = [f"# {report.title}\n"]
    if report.about:
        parts.append("".join(f"- {name}: {value}\n" for name, value in report.about.items()))
    parts.append("".join(f"- {text}\n" for text in report.summary))
    parts += [f"**{text}**\n" for text in report.notes]
    for table in report.tables:
        parts += [f"## {table.title}\n", markdown_table(heading_of(table), map(cells_of, table.rows))]
    parts += ["## Path of the data\n"]
    ways = ([TITLES[way.transport], way.state, way.text] for way in report.ways)
    parts.append(markdown_table(("Run", "Result", "Seen"), ways, 3))
    if report.moved:
        parts.append("Counters of RDMA devices are those of the whole node, of both directions together.\n")
        parts.append(markdown_table(MOVED_HEADING, map(moved_cells, report.moved), 3))
    return "\n".join(parts)


def as_html(report: Report) -> str:
    return render(
        "transports.html.j2",
        title=report.title,
        report=report,
        tables=[(table.title, heading_of(table), [cells_of(row) for row in table.rows]) for table in report.tables],
        ways=[(TITLES[way.transport], way) for way in report.ways],
        heading=MOVED_HEADING,
        moved=[moved_cells(each) for each in report.moved],
    )


def is_software(log: Log) -> bool:
    return any(counter.name in SOFTWARE_COUNTERS for counter in log.grown)


def transport_comparison(measured: Measured) -> Comparison:
    """Two tables for each program and more, from the logs of its jobs over RoCE and over TCP."""
    texts = measured["logs"]
    logs = {transport: read_logs(texts.get(transport) or "") for transport in TITLES}
    for transport, log in logs.items():
        if not log.figures:
            last = texts.get(transport) or ""
            seen = telling_line(printable(last if isinstance(last, str) else "\n".join(last)))
            step = "Run a program that prints tables as osu_latency and osu_bw do, and give its whole log."
            raise FabricError("Each transport has to be measured.", f"logs.{transport}", seen, step)
    tables = tables_of(logs["roce"], logs["tcp"])
    moved = [each for transport, log in logs.items() for each in moved_by(transport, log)]
    ways = []
    for transport, log in logs.items():
        least = sum(size for figures in log.figures.values() for size in figures)
        mine = [each for each in moved if each.transport == transport]
        ways.append(way_of(transport, mine, least, measured.get("interfaces") or []))
    problems = [f"{TITLES[way.transport]}: {way.text}" for way in ways if way.state == FAILED]
    notes = [f"{SAYS_NOTHING[0].upper()}{SAYS_NOTHING[1:]}."] if is_software(logs["roce"]) else []
    about = {name: str(value) for name, value in (measured.get("about") or {}).items()}
    title = measured.get("title") or "RoCE compared with TCP"
    report = Report(title, about, [sentence(table) for table in tables], notes, tables, ways, moved)
    return {
        "summary": list(report.summary),
        "notes": notes,
        "problems": problems,
        "tables": [{**table._asdict(), "rows": [row._asdict() for row in table.rows]} for table in tables],
        "moved": [each._asdict() for each in moved],
        "ways": [way._asdict() for way in ways],
        "markdown": as_markdown(report),
        "html": as_html(report),
    }
