# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last lines that a host's services logged, for error messages and for maintainers without access to the host."""

from __future__ import annotations

import re
import typing as t

from .._common.command import run_program
from .._common.redaction import redact_log
from .._common.result import printed_by
from .._common.text import printable

# The services that a node runs on, each before those that need it.
NODE_UNITS = ("containerd", "docker", "cri-docker", "kubelet")
COMPLAINT = re.compile(r"\blevel=(?:error|fatal)\b|^[EF]\d{4} |\b(?:[Ff]ailed|[Ff]atal|panic)\b")
STAMP = re.compile(r'^(?:time="[^"]*" |[EF]\d{4} \S+ +\d+ )')
SECONDS = 60
COMPLAINTS, LONGEST = 3, 400  # lines of a unit, and characters of a line


def read_unit(unit: str, lines: int, size: int) -> str:
    """The last lines of a unit, limited to `size` bytes. Empty if the unit logged nothing."""
    argv = ["journalctl", f"--unit={unit}", f"--lines={lines}", "--output=short-iso", "--no-pager", "--quiet"]
    step = "Run this command on the host, and fix what it reports."
    printed = printed_by(run_program(argv, SECONDS), SECONDS, "The journal could not be read.", " ".join(argv), step)
    return redact_log(printable(printed), size)


def read_journal(units: t.Sequence[str], lines: int, size: int) -> t.Dict[str, str]:
    """What units logged, by name, without those that logged nothing."""
    logs = {unit: read_unit(unit, lines, size) for unit in units}
    return {unit: text for unit, text in logs.items() if text}


def both_ends(line: str) -> str:
    """A long line without its middle: what failed comes first in it, and why comes last."""
    if len(line) <= LONGEST:
        return line
    first = line[: LONGEST // 3].rstrip()
    return f"{first} ... {line[len(first) + 5 - LONGEST :].lstrip()}"


def complaints(since: float) -> t.Dict[str, str]:
    """The last errors that a node's services logged since then (seconds since 1970), by unit, without duplicates.

    Empty if the journal can't be read: the caller is reporting another error, which must not be lost.
    """
    found = {}
    for unit in NODE_UNITS:
        argv = ["journalctl", f"--unit={unit}", f"--since=@{int(since)}", "--output=cat", "--no-pager", "--quiet"]
        said = [both_ends(STAMP.sub("", line)) for line in run_program(argv).out.splitlines() if COMPLAINT.search(line)]
        last = list(dict.fromkeys(reversed(said)))[:COMPLAINTS][::-1]
        if last:
            found[unit] = redact_log(printable("\n".join(last)), COMPLAINTS * LONGEST)
    return found
