# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files in the artifacts folder: written whole or not at all, and readable by all, since they hold no secrets."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import typing as t
from pathlib import Path

from ..module_utils._common.result import FabricError


def read_file(path: str) -> str:
    """The text of a file, or nothing."""
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace")
    return ""


def write_file(path: str, data: bytes, mode: int = 0o644) -> None:
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def plan_text(plan: t.Mapping[str, t.Any]) -> str:
    """The text of plan.json."""
    return json.dumps(plan, indent=2) + "\n"


def sign_file(path: str, signature: bytes) -> None:
    """Write a signature. Without one, remove that of an earlier report, which no longer fits."""
    if signature:
        write_file(path, signature)
    else:
        Path(path).unlink(missing_ok=True)


def write_files(folder: str, texts: t.Mapping[str, str], variable: str) -> t.List[str]:
    """Write the files that differ from `texts`, by name. Returns the paths of all; `variable` sets the folder."""
    paths = {name: os.path.join(folder, name) for name in texts}
    try:
        os.makedirs(folder, mode=0o755, exist_ok=True)
        for name, text in texts.items():
            if read_file(paths[name]) != text:
                write_file(paths[name], text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise FabricError(
            "Files could not be written.",
            folder,
            str(error),
            f"Set {variable} to a folder that you may write to.",
            code="unusable-file",
        ) from error
    return list(paths.values())
