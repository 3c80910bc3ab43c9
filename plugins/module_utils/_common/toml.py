# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a mapping as TOML."""

from __future__ import annotations

import json
import re
import typing as t

from .result import FabricError


def not_toml(seen: str) -> FabricError:
    what, step = "Settings have to be what TOML can express.", "Write mappings, lists, strings, numbers and booleans."
    return FabricError(what, "the settings", seen, step, code="invalid-input")


def format_key(name: object) -> str:
    """A key, quoted unless it is a bare word."""
    return str(name) if re.fullmatch(r"[A-Za-z0-9_-]+", str(name)) else json.dumps(str(name), ensure_ascii=False)


def format_value(item: object, where: str) -> str:
    """A value. TOML writes strings, numbers and booleans as JSON does."""
    if isinstance(item, (list, tuple)):
        return "[" + ", ".join(format_value(part, where) for part in item) + "]"
    if isinstance(item, (str, bool, int, float)):
        return json.dumps(item, ensure_ascii=False)
    raise not_toml(f"{where} is a {type(item).__name__}")


def format_table(mapping: t.Mapping[str, object], path: t.Tuple[str, ...] = ()) -> t.List[str]:
    """The lines of a table, followed by those of its subtables."""
    own = {name: item for name, item in mapping.items() if not isinstance(item, t.Mapping)}
    inner = {name: item for name, item in mapping.items() if isinstance(item, t.Mapping)}
    lines = [
        f"{format_key(name)} = {format_value(item, '.'.join((*path, format_key(name))))}"
        for name, item in sorted(own.items())
    ]
    if path and (lines or not inner):
        lines.insert(0, f"\n[{'.'.join(path)}]")
    for name, item in sorted(inner.items()):
        lines += format_table(item, (*path, format_key(name)))
    return lines


def to_toml(mapping: object) -> str:
    """Nested mappings as tables, in the order of their keys; sufficient for files such as containerd's."""
    if not isinstance(mapping, t.Mapping):
        raise not_toml(f"the top level is a {type(mapping).__name__}")
    return "\n".join(format_table(mapping)).lstrip("\n") + "\n"
