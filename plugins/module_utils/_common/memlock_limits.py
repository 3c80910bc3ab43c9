# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of locked memory, as systemd, the kernel and Docker write them, and for people."""

from __future__ import annotations

import math

UNLIMITED = ("unlimited", "infinity", "-1")  # the kernel's word, systemd's, and Docker's
FACTORS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "E": 1 << 60}  # systemd's suffixes


def limit_bytes(limit: str) -> float:
    """A limit in bytes; math.inf if unlimited. ValueError for anything else."""
    if limit in UNLIMITED:
        return math.inf
    number, factor = (limit[:-1], FACTORS[limit[-1]]) if limit[-1:] in FACTORS else (limit, 1)
    if not number.isdigit():
        raise ValueError(f"{limit!r} is not a limit")
    return int(number) * factor


def readable(limit: str) -> str:
    """`unlimited`, or bytes in the largest binary unit up to GiB that divides them."""
    size = limit_bytes(limit)
    if size == math.inf:
        return "unlimited"
    number = int(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number % 1024 or unit == "GiB" or not number:
            break
        number //= 1024
    return f"{number} {unit}"
