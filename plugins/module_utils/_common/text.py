# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text that a person reads, and short forms of long data."""

from __future__ import annotations

import hashlib
import json
import typing as t


def shorten_list(names: t.Iterable[str], most: int, separator: str = ", ") -> str:
    """The first names, and how many more there are: `a, b and 3 more`."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return separator.join(listed[:most]) + more


def fingerprint(value: object) -> str:
    """A short digest that says whether two values are the same, and nothing else."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()[:16]
