# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small files of a host: read, written atomically, and compared."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import typing as t

from .._common.result import FabricError
from .._common.secrets import hide_lines

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


class File(t.TypedDict):
    """The present or future state of a file."""

    content: str  # bytes that are not UTF-8 as surrogates
    mode: str  # octal digits with a leading zero


Files = t.Dict[str, t.Optional[File]]  # by path; None if there is no file
BLOCK = 1 << 20  # bytes read at a time
MARK = "# Written by ipu.fabric."  # a file of the same name without it is somebody else's
# The mark in files of the role kubernetes: a file of the same name without it is somebody else's.
OWN_MARK = "# Written by the role kubernetes of ipu.fabric."


class FileDiff(t.TypedDict):
    """A changed file, as Ansible shows it."""

    before_header: str
    after_header: str
    before: str
    after: str


def read_text(path: str) -> str:
    """The text of a file; empty if it is missing or can't be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def file_digest(path: str) -> str:
    """SHA-256 of a file of any size; empty if it is missing."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(BLOCK), b""):
                digest.update(block)
    except FileNotFoundError:
        return ""
    return digest.hexdigest()


def read_file(path: str) -> t.Optional[File]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return {"content": file.read(), "mode": format(os.fstat(file.fileno()).st_mode & 0o7777, "04o")}
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FabricError(
            "Could not read a file.", path, str(error), "Make it a readable file, or remove it.", code="unusable-file"
        ) from error


def write_file(module: AnsibleModule, path: str, content: str, mode: str = "0644", backup: bool = False) -> None:
    """Replace a file atomically, so that nobody ever reads half of it. If the disk is full, the old file remains."""
    part = f"{path}.part"
    try:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        if backup and os.path.exists(path):
            module.backup_local(path)
        write_part(part, content, mode)
        os.replace(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise FabricError(
            "Could not write a file.",
            path,
            str(error),
            "Free space on its disk, or remove what is in its place, then run again. The file was not changed.",
            code="unusable-file",
        ) from error


def write_part(part: str, content: str, mode: str) -> None:
    """Write a file to disk. Its mode holds from the first byte on: some of these files carry credentials."""
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, int(mode, 8))
    with open(descriptor, "w", encoding="utf-8", errors="surrogateescape", newline="") as out:
        os.fchmod(out.fileno(), int(mode, 8))
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def open_private(path: str) -> t.IO[str]:
    """Open a file for writing, creating it if needed, in a directory for root only, where no one can place a link."""
    directory = os.path.dirname(path)
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    seen = os.lstat(directory)
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or stat.S_IMODE(seen.st_mode) & 0o077:
        kind = "a directory" if stat.S_ISDIR(seen.st_mode) else "a link or a file"
        raise FabricError(
            "Locks and secrets are kept in a directory that is for root alone.",
            directory,
            f"{kind} of user {seen.st_uid}, mode {stat.S_IMODE(seen.st_mode):04o}",
            "Find out who created it, and remove it. Then run again.",
            code="unsafe",
        )
    return open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+", encoding="utf-8")


def file_diffs(before: Files, after: Files) -> t.List[FileDiff]:
    """One diff for each changed file, with secrets hidden."""

    def text(file: t.Optional[File]) -> str:
        return hide_lines(file["content"]) if file else ""

    return [
        {"before_header": path, "after_header": path, "before": text(before[path]), "after": text(after[path])}
        for path in after
        if before[path] != after[path]
    ]
