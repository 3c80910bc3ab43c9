# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares data that came from a host with the type that the plan reads it as. Pure; for the controller only."""

from __future__ import annotations

import functools
import typing as t

ALIKE = {float: (int, float)}  # JSON writes 1.0 as 1
Hints = t.Dict[str, t.Any]


def first_fault(value: object, kind: t.Any, path: str) -> str:
    """Where the value is not of this type, as in `host/kubelet is str, not mapping`; empty if it is.

    More keys than the type has are no fault: nothing reads them.
    """
    origin, inner = t.get_origin(kind), t.get_args(kind)
    if origin is t.Union:
        faults = [first_fault(value, each, path) for each in inner]
        return "" if "" in faults else faults[0]
    if origin is t.Literal:
        return "" if value in inner else f"{path} is none of {', '.join(map(str, inner))}"
    if origin is list:
        return _in_all(enumerate(value), inner[0], path) if isinstance(value, list) else _is_no("list", path, value)
    if origin is not None:  # a mapping
        return _in_all(value.items(), inner[1], path) if isinstance(value, dict) else _is_no("mapping", path, value)
    if t.is_typeddict(kind):
        return _of_keys(value, kind, path) if isinstance(value, dict) else _is_no("mapping", path, value)
    if kind in (t.Any, object):
        return ""
    right = isinstance(value, ALIKE.get(kind, kind)) and (kind is bool or not isinstance(value, bool))
    return "" if right else _is_no(kind.__name__, path, value)


def _in_all(items: t.Iterable[t.Tuple[object, object]], kind: t.Any, path: str) -> str:
    return next((fault for key, each in items for fault in [first_fault(each, kind, f"{path}/{key}")] if fault), "")


def _of_keys(value: t.Mapping[str, object], kind: t.Any, path: str) -> str:
    hints, needed = _hints_of(kind)
    missing = sorted(needed - value.keys())
    if missing:
        return f"{path} lacks {', '.join(missing)}"
    known = ((key, each) for key, each in value.items() if key in hints)
    return next(
        (fault for key, each in known for fault in [first_fault(each, hints[key], f"{path}/{key}")] if fault), ""
    )


@functools.lru_cache(maxsize=None)
def _hints_of(kind: t.Any) -> t.Tuple[Hints, t.FrozenSet[str]]:
    return t.get_type_hints(kind), kind.__required_keys__


def _is_no(wanted: str, path: str, value: object) -> str:
    return f"{path} is {type(value).__name__}, not {wanted}"
