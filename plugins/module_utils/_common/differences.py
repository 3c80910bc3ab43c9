# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences between two JSON values, in words."""

from __future__ import annotations

import typing as t

from .text import shorten_list

# Keys that identify the entries of a list.
KEYS = ("name", "host", "cidr", "resourceName", "address", "range")
ABSENT = object()  # stands for a value that one side lacks
ENTRIES = 8  # entries of a list, or fields of an entry, in one sentence
Words = t.Tuple[str, str]  # for the first and the second value, such as `in the file` and `now`


def differences(first: t.Any, second: t.Any, words: Words, path: str = "") -> t.Iterator[str]:
    """A sentence for each field that differs: `spec mtu: 9000 in the file, 1500 now`."""
    if first == second:
        return
    if isinstance(first, dict) and isinstance(second, dict):
        for key in {**first, **second}:
            below = f"{path} {key}".strip()
            yield from differences(first.get(key, ABSENT), second.get(key, ABSENT), words, below)
    elif isinstance(first, list) and isinstance(second, list):
        yield from _entries(first, second, words, path)
    else:
        yield _sentence(path, f"{_text(first)} {words[0]}, {_text(second)} {words[1]}")


def by_key(items: t.Any) -> t.Optional[t.Dict[str, t.Any]]:
    """The entries of a list by what identifies them; None if nothing does."""
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return None
    for key in KEYS:
        found = {str(item[key]): item for item in items if item.get(key)}
        if len(found) == len(items):
            return found
    return None


def _entries(first: t.List[t.Any], second: t.List[t.Any], words: Words, path: str) -> t.Iterator[str]:
    """The entries of a list that differ; if only their order differs, the order."""
    before, after = by_key(first), by_key(second)
    if before is not None and after is not None:
        if set(before) == set(after) and list(before) != list(after):
            yield from _entries(list(before), list(after), words, f"{path} order".strip())
        yield from differences(before, after, words, path)
        return
    texts, others = [_text(item) for item in first], [_text(item) for item in second]
    sides = (
        (words[0], [text for text in texts if text not in others]),
        (words[1], [text for text in others if text not in texts]),
    )
    told = [f"only {word} {shorten_list(items, ENTRIES)}" for word, items in sides if items]
    if not told:  # different order, or duplicate entries
        told = [f"{shorten_list(items, ENTRIES)} {word}" for word, items in zip(words, (texts, others))]
    yield _sentence(path, ", ".join(told))


def _sentence(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text


def _text(value: t.Any) -> str:
    if value is ABSENT:
        return "absent"
    if value in ("", None):
        return "none"
    if isinstance(value, dict):  # its scalar fields are enough to identify it
        fields = [f"{key} {_text(item)}" for key, item in value.items() if not isinstance(item, (dict, list))]
        return shorten_list(fields, ENTRIES) or "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value[:ENTRIES]))}{', ...' if len(value) > ENTRIES else ''}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
