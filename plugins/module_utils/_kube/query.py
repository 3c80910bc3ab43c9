# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads API objects, and JSON printed by tools, with JMESPath."""

from __future__ import annotations

import functools
import json
import typing as t

Object = t.Dict[str, t.Any]  # an API object, as JSON


@functools.lru_cache(maxsize=None)
def _compiled(expression: str) -> t.Any:
    import jmespath  # not at the top: filters that only share a file with code that reads objects don't need it

    return jmespath.compile(expression)


def query(expression: str, data: t.Any) -> t.Any:
    """What `expression` finds in `data`; None if any part of its path is missing."""
    return _compiled(expression).search(data)


def by_name(objects: t.Iterable[Object]) -> t.Dict[str, Object]:
    """Objects of one kind and namespace, by their names."""
    return {each["metadata"]["name"]: each for each in objects}


def quoted(key: str) -> str:
    """A key with dots or slashes, such as a label's, quoted for an expression."""
    return json.dumps(key)
