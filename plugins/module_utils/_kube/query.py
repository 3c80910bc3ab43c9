# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read API objects, and JSON that tools print, by JMESPath."""

from __future__ import annotations

import functools
import json
import typing as t

Object = t.Dict[str, t.Any]  # of the API, as JSON


@functools.lru_cache(maxsize=None)
def _compiled(expression: str) -> t.Any:
    import jmespath  # not at the top: filters that only share a file with readers of objects do without

    return jmespath.compile(expression)


def query(expression: str, data: t.Any) -> t.Any:
    """What `expression` finds in `data`; None where any part of its path is missing."""
    return _compiled(expression).search(data)


def quoted(key: str) -> str:
    """A key with dots or slashes, such as a label's, as a part of an expression."""
    return json.dumps(key)
