# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The release of this collection."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

COLLECTION = Path(__file__).parents[2]


def collection_version() -> str:
    """The release of the installed collection, or of a checkout."""
    manifest = COLLECTION / "MANIFEST.json"
    if manifest.is_file():
        return str(json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])
    return str(yaml.safe_load((COLLECTION / "galaxy.yml").read_text(encoding="utf-8"))["version"])
