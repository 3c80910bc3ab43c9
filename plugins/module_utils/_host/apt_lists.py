# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""apt source lists written by others, and entries in them that name one of our repositories.

apt reads no list at all while two name the same repository with different keys. Such an entry is commented out line by
line, so that it can be restored.
"""

from __future__ import annotations

import re
import typing as t

MARK = "# Disabled by ipu.fabric: "
LINE = re.compile(r"\s*deb(?:-src)?\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)(.*)")
OFF = ("no", "false", "without", "off", "disable", "0")

Place = t.Tuple[str, str]  # address and suite


class Source(t.NamedTuple):
    """Where packages come from, and what their signatures are checked against."""

    places: t.FrozenSet[Place]
    components: t.FrozenSet[str]
    signed_by: t.FrozenSet[str]  # keyrings or fingerprints, or the words of an embedded key
    trusted: bool  # no signature needed


class Entry(t.NamedTuple):
    """A line of a .list file, or a stanza of a .sources file."""

    first: int  # line number, counted from 0
    last: int
    source: Source


def place(uri: str, suite: str) -> Place:
    """What identifies a repository: apt ignores the difference between http and https, and trailing slashes."""
    web = re.match(r"https?://([^/]*)(.*)", uri, re.IGNORECASE | re.DOTALL)
    address = web[1].rpartition("@")[2].lower() + web[2] if web else uri
    return address.rstrip("/"), suite.rstrip("/")


def make_source(
    uris: t.Sequence[str], suites: t.Sequence[str], components: t.Sequence[str], signed_by: str, trusted: str
) -> Source:
    places = frozenset(place(uri, suite) for uri in uris for suite in suites)
    keyrings = frozenset(re.split(r"[\s,]+", signed_by.strip())) - {""}
    return Source(places, frozenset(components), keyrings, trusted.lower() not in ("", *OFF))


def _read_line(number: int, line: str) -> t.Optional[Entry]:
    match = LINE.match(line.partition("#")[0])
    if not match:
        return None
    options = dict(word.partition("=")[::2] for word in (match[1] or "").split())
    source = make_source(
        [match[2]], [match[3]], match[4].split(), options.get("signed-by", ""), options.get("trusted", "")
    )
    return Entry(number, number, source)


def _read_stanza(first: int, lines: t.Sequence[str]) -> t.Optional[Entry]:
    fields: t.Dict[str, str] = {}
    name = ""
    for line in lines:
        if line.startswith("#"):
            continue
        if line[:1] not in " \t":
            name, _colon, line = line.partition(":")
            fields[name.lower()] = ""
        fields[name.lower()] = f"{fields.get(name.lower(), '')}\n{line.strip()}".strip()
    if not fields.get("types") or fields.get("enabled", "").lower() in OFF:
        return None
    words = {key: value.split() for key, value in fields.items()}
    source = make_source(
        words.get("uris", []),
        words.get("suites", []),
        words.get("components", []),
        fields.get("signed-by", ""),
        fields.get("trusted", ""),
    )
    return Entry(first, first + len(lines) - 1, source)


def read_entries(path: str, text: str) -> t.List[Entry]:
    """The active entries of a list."""
    lines = text.split("\n")
    if path.endswith(".list"):
        found = [_read_line(number, line) for number, line in enumerate(lines)]
    else:
        ends = [-1, *(number for number, line in enumerate(lines) if not line.strip()), len(lines)]
        found = [
            _read_stanza(start + 1, lines[start + 1 : end]) for start, end in zip(ends, ends[1:]) if end > start + 1
        ]
    return [entry for entry in found if entry]


def find_rivals(entries: t.Iterable[Entry], ours: Source) -> t.List[Entry]:
    """Entries that name one of our repositories with other keys."""
    keys = (ours.signed_by, ours.trusted)
    return [
        entry
        for entry in entries
        if entry.source.places & ours.places and (entry.source.signed_by, entry.source.trusted) != keys
    ]


def offers_more(source: Source, ours: Source) -> bool:
    """Whether disabling this source would lose a suite or component that ours does not offer."""
    return not (source.places <= ours.places and source.components <= ours.components)


def disable(text: str, entries: t.Iterable[Entry]) -> str:
    lines = text.split("\n")
    for entry in entries:
        for number in range(entry.first, entry.last + 1):
            lines[number] = MARK + lines[number]
    return "\n".join(lines)


def enable(text: str) -> str:
    """The text of a list as it was before `disable`."""
    return re.sub(f"^{re.escape(MARK)}", "", text, flags=re.MULTILINE)
