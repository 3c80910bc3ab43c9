# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Merges chart values and similar data."""

from __future__ import annotations

import typing as t


def merge_values(base: t.Mapping[str, t.Any], over: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
    """Values merged as helm does: mappings by key, everything else is replaced."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merge_values(result[key], value) if both else value
    return result
