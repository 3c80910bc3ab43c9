# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations of pod networks on a host. Runtimes take the first one by its name, whoever has put it there."""

from __future__ import annotations

import json
import os
import typing as t

from .._common.cilium import BACKUP
from .._model.observation import CniFile
from .files import read_text

ENDINGS = (".conf", ".conflist", ".json")  # that runtimes read


def plugin_of(text: str) -> str:
    """The plugin that a configuration starts first; empty where it can't be read."""
    try:
        tree = json.loads(text)
    except ValueError:
        return ""
    for first in (tree.get("plugins"), [tree]) if isinstance(tree, dict) else ():
        if isinstance(first, list) and first and isinstance(first[0], dict) and isinstance(first[0].get("type"), str):
            return str(first[0]["type"])
    return ""


def read_disabled(directory: str, root: str = "/") -> t.List[CniFile]:
    """Those that Cilium has renamed, so that no runtime looks at them."""
    return read_cni_files(directory, root, (BACKUP,))


def read_cni_files(directory: str, root: str = "/", endings: t.Tuple[str, ...] = ENDINGS) -> t.List[CniFile]:
    """In the order in which runtimes look at them."""
    folder = os.path.join(root, directory.lstrip("/"))
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(endings))
    except OSError:  # there is no such directory yet
        return []
    return [
        {"name": name, "plugin": plugin_of(read_text(os.path.join(folder, name)))}
        for name in names
        if os.path.isfile(os.path.join(folder, name))
    ]
