# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Secret in which helm stores a revision of a release, and the values of a chart by path."""

from __future__ import annotations

import base64
import gzip
import json
import typing as t

from .redaction import redact

# The digest of the post-renderer's changes is a label of the release: helm itself does not record it.
RENDER_LABEL = "ipu.fabric/render"

Object = t.Mapping[str, t.Any]  # of the Kubernetes API
Record = t.Dict[str, t.Any]  # of helm: arbitrary JSON


def unpack(secret: Object) -> Record:
    """A Secret of type helm.sh/release.v1: base64 of base64 of gzip of JSON."""
    packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
    record: Record = json.loads(gzip.decompress(packed))
    return record


def by_path(values: t.Mapping[str, t.Any], start: str = "") -> t.Dict[str, str]:
    """Values of a chart as strings, by paths such as worker.hostNetwork. A list is one value."""
    found: t.Dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, dict) and value:
            found.update(by_path(value, f"{start}{key}."))
        elif value is not None:  # null removes a default
            found[f"{start}{key}"] = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return found


def shown(values: t.Mapping[str, t.Any]) -> t.Dict[str, str]:
    """The values of a chart by path, without secrets."""
    return by_path(t.cast("t.Dict[str, t.Any]", redact(values)))
