# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file on the controller with recorded observations."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from ..module_utils._common.result import FabricError
from ..module_utils._plan.recording import NEXT, Recording, parse_recording
from ..module_utils._support.archive import unpack

OBSERVATIONS = "observations.json"


def read_recording(path: str) -> Recording:
    """Read an observations.json, the same compressed as .gz, or an archive of ipu.fabric.support (.tar.gz)."""
    try:
        if path.endswith((".tar.gz", ".tgz")):
            with open(path, "rb") as packed:
                text = unpack(packed, path).get(OBSERVATIONS, "")
        else:
            data = Path(path).read_bytes()
            text = (gzip.decompress(data) if path.endswith(".gz") else data).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        seen = getattr(error, "strerror", "") or str(error)
        raise FabricError(
            "A recording of hosts can't be read.", f"fabric_observations: {path}", seen, NEXT, code="unusable-file"
        ) from error
    return parse_recording(text, path)
