# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last lines that services of a host wrote, for a maintainer who has no access to it."""

from __future__ import annotations

import typing as t

from .._common.command import run_program
from .._common.redaction import redact_log
from .._common.result import FabricError
from .._common.text import printable


def read_unit(unit: str, lines: int, size: int) -> str:
    """The last lines of a unit, and of them not more than so many bytes. Empty for a unit that wrote nothing."""
    argv = ["journalctl", f"--unit={unit}", f"--lines={lines}", "--output=short-iso", "--no-pager", "--quiet"]
    done = run_program(argv, timeout=60)
    if done.rc != 0:
        raise FabricError(
            "The journal could not be read.",
            " ".join(argv),
            done.err.strip() or ("no answer in 60 s" if done.rc is None else f"exit code {done.rc}"),
            "Look at the log of the service on the host.",
            code=done.code,
        )
    return redact_log(printable(done.out), size)


def read_journal(units: t.Sequence[str], lines: int, size: int) -> t.Dict[str, str]:
    """What units wrote, by name, without those that wrote nothing."""
    logs = {unit: read_unit(unit, lines, size) for unit in units}
    return {unit: text for unit, text in logs.items() if text}
