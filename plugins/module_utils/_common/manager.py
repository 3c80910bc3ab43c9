# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The name under which this collection writes to the API server, recorded in metadata.managedFields."""

from __future__ import annotations

import typing as t

from .helm_record import Object

MANAGER = "ipu.fabric"


def is_ours(obj: t.Optional[Object]) -> bool:
    """Whether this collection has applied an object of the API."""
    fields = ((obj or {}).get("metadata") or {}).get("managedFields") or ()
    return any(each.get("manager") == MANAGER and each.get("operation") == "Apply" for each in fields)
