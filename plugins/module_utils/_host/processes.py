# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of a host, from /proc."""

from __future__ import annotations

import glob
import os
import typing as t

from .files import read_text


def _namespace(root: str, process: str) -> str:
    try:
        return os.readlink(os.path.join(root, "proc", process, "ns/pid"))
    except OSError:  # ended in the meantime, or another user's
        return ""


def host_processes(root: str, names: t.Collection[str]) -> t.Dict[str, t.List[str]]:
    """The arguments of the processes with these names, by name, of which the kernel keeps 15 characters.

    Processes in containers are not the host's, as with kind.
    """
    own = _namespace(root, "1")
    found: t.Dict[str, t.List[str]] = {}
    for path in glob.iglob(os.path.join(glob.escape(root), "proc/[0-9]*/comm")):
        name = read_text(path).strip()
        if name in names and _namespace(root, path.split(os.sep)[-2]) == own:
            found[name] = read_text(os.path.join(os.path.dirname(path), "cmdline")).split("\0")
    return found
