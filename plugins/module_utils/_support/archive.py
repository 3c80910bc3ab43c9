# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The archive as bytes: packed, and read without trusting who packed it. Nothing is ever extracted to disk."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import typing as t
import zlib

from .._common.result import FabricError

Files = t.Dict[str, str]  # text by name
MOST_BYTES = 512 * 2**20  # of all files in total
MOST_FILES = 20_000
NAME = re.compile(r"[\w-][\w.:-]*(?:/[\w-][\w.:-]*){0,4}")
NEXT_STEP = "Ask for an archive as ipu.fabric.support wrote it."


def file_name(*parts: str) -> str:
    """A file name below the archive's folder that is safe whatever the names of hosts and pods."""
    return "/".join(re.sub(r"^[.:]|[^\w.:-]", "_", part) or "_" for part in parts)


def pack(folder: str, files: t.Mapping[str, str], seconds: int) -> bytes:
    """Pack all files into one folder, readable by their owner."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.GNU_FORMAT) as archive:
        for name, text in files.items():
            data = text.encode("utf-8", "backslashreplace")
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(data), seconds, 0o600
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def unpack(packed: t.BinaryIO, where: str) -> Files:
    """The texts by file name below the archive's folder."""
    return dict(_entries(_decompressed(packed, where), where))


def _refused(where: str, seen: str) -> FabricError:
    return FabricError(
        "The archive is not one that ipu.fabric.support wrote.", where, seen, NEXT_STEP, code="wrong-content"
    )


def _decompressed(packed: t.BinaryIO, where: str) -> bytes:
    """Decompressed as a whole, so that no header inside can claim more than the limit."""
    try:
        with gzip.GzipFile(fileobj=packed) as stream:
            data = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise _refused(where, str(error)) from error
    if len(data) > MOST_BYTES:
        raise _refused(where, f"more than {MOST_BYTES // 2**20} MiB")
    return data


def _entries(data: bytes, where: str) -> t.Iterator[t.Tuple[str, str]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for number, entry in enumerate(archive):
                folder, _slash, name = entry.name.partition("/")
                if number >= MOST_FILES:
                    raise _refused(where, f"more than {MOST_FILES} files")
                if not entry.isreg() or not NAME.fullmatch(folder) or not NAME.fullmatch(name):
                    raise _refused(where, f"the entry {entry.name!r}, which is no file of such an archive")
                content = archive.extractfile(entry)
                yield name, content.read().decode("utf-8", "replace") if content else ""
    except (tarfile.TarError, ValueError) as error:
        raise _refused(where, str(error)) from error
